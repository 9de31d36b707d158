import ArgumentParser
import Control
import CoreMetrics
import Daemon
import Foundation
import Logging
import Syscalls
import SystemPackage
import Web

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

    @Option(
        help: ArgumentHelp(
            "Serve metrics for Prometheus on this address, such as 127.0.0.1:9464; by default where the configuration says.",
            valueName: "address"))
    var metrics: ListeningAddress?

    @Flag(help: "Check whether this program could take over from the running daemon, and exit with 1 if not.")
    var checkUpgrade = false

    @Option(
        help: ArgumentHelp(
            "With --check-upgrade: the layout of the tables of open files that the running daemon has.",
            valueName: "number"))
    var openFilesLayout: UInt64?

    /// Does what ArgumentParser's `main` does, which ends with 0 when help or the version cannot be written.
    static func main() async {
        // What is logged must not go to the lock or to content, which would get the number of a closed standard error.
        FileDescriptor.reserveStandard()
        do {
            var command = try await asyncParseAsRoot()
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                try command.run()
            }
        } catch {
            guard exitCode(for: error).isSuccess else { exit(withError: error) }
            do {
                try FileHandle.standardOutput.write(contentsOf: Data((fullMessage(for: error) + "\n").utf8))
            } catch {
                FileHandle.standardError.write(
                    Data("yonderd: the output cannot be written: \(error.localizedDescription)\n".utf8))
                exit(withError: ExitCode.failure)
            }
            exit(withError: nil)
        }
    }

    func run() async throws {
        guard let level = Logger.Level(rawValue: logLevel) else {
            throw ValidationError("'\(logLevel)' is no level of logging")
        }
        if let name = Places.relativePaths(in: ProcessInfo.processInfo.environment).keys.min() {
            throw ValidationError("\(name) has a relative path; give an absolute one")
        }
        let places = Places(environment: ProcessInfo.processInfo.environment)
        if checkUpgrade {
            do {
                return try Daemon.checkUpgrade(places, openFilesLayout: openFilesLayout)
            } catch let error as ControlError {
                FileHandle.standardError.write(Data("\(error)\n".utf8))
                throw ExitCode(error.code.exitStatus)
            }
        }
        // Before anything is opened, and before the variables are removed.
        let environment = ProcessInfo.processInfo.environment
        let manager = ServiceManager(environment: environment)
        let hasJournal = JournalLogHandler.isStandardError(environment: environment)
        // Also when something else than 'yonder' has started it.
        Machine.removeEnvironmentVariables(except: DaemonEnvironment.keeps)
        if background { Machine.leaveTerminal() }
        let logLevel = AdjustableLogLevel(level)
        let logFile = LogFile(at: places.log)
        LoggingSystem.bootstrap { label in
            let errors = StreamLogHandler.standardError(label: label)
            return EscapingLogHandler(
                hasJournal ? JournalLogHandler(fallback: errors) : errors, level: logLevel, file: logFile)
        }
        let registry = MetricsRegistry()
        MetricsSystem.bootstrap(registry)
        let logger = Logger(label: "yonderd")
        do {
            try Machine.forbidCoreDumps()
        } catch {
            logger.warning("core dumps cannot be switched off, and would contain credentials: \(error)")
        }
        do {
            let end = try await Daemon(
                places: places, manager: manager, logger: logger, logLevel: logLevel, metrics: registry,
                metricsAddress: metrics
            ).run()
            // At once: the mounts are served until the process has ended, and nothing may be taken down below them.
            if end == .restart { _exit(end.exitStatus) }
        } catch let error as ControlError {
            logger.error("\(error)")
            throw ExitCode(error.code.exitStatus)
        }
    }
}

extension ListeningAddress: ExpressibleByArgument {
    package init?(argument: String) { self.init(argument) }
}
