import ArgumentParser
import Control
import Daemon
import Foundation
import Logging
import Syscalls

/// The daemon's program.
@main
struct Yonderd: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "yonderd",
        abstract: "Serves Yonder's mounts. 'yonder mount' starts it by itself.",
        version: Version.current)

    @Flag(help: "Become independent of the terminal.")
    var background = false

    @Option(help: ArgumentHelp("How much to log: debug, info, notice, warning or error.", valueName: "level"))
    var logLevel = "notice"

    func run() async throws {
        guard let level = Logger.Level(rawValue: logLevel) else {
            throw ValidationError("'\(logLevel)' is no level of logging")
        }
        // Also when something else than 'yonder' has started it.
        Machine.removeEnvironmentVariables(except: DaemonEnvironment.keeps)
        if background { Machine.leaveTerminal() }
        LoggingSystem.bootstrap { label in EscapingLogHandler(StreamLogHandler.standardError(label: label)) }
        var logger = Logger(label: "yonderd")
        logger.logLevel = level
        do {
            try Machine.forbidCoreDumps()
        } catch {
            logger.warning("core dumps cannot be switched off, and would contain credentials: \(error)")
        }
        do {
            try await Daemon(
                places: Places(environment: ProcessInfo.processInfo.environment), logger: logger
            ).run()
        } catch let error as ControlError {
            logger.error("\(error)")
            throw ExitCode(error.code.exitStatus)
        }
    }
}
