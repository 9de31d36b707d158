import ArgumentParser
import Control
import Foundation
import Synchronization
import Syscalls
import SystemPackage

/// The connection of a command to the daemon. Starts the daemon if needed, and turns its errors into exit codes.
struct DaemonConnection: Sendable {
    /// Asked for each time: a daemon that systemd has started meanwhile may have another socket.
    private var places: Places { Places(environment: ProcessInfo.processInfo.environment).ofRunningDaemon }
    private var client: ControlClient { ControlClient(socket: places.socket) }

    /// Executes a command. A command that can be repeated is repeated if the daemon dies during it and is restarted.
    ///
    /// - Parameters:
    ///   - onPart: receives parts of a long result; nil: the whole result is returned.
    ///   - second: returns the command to execute instead if the remote rejects the credentials, or nil.
    /// - Throws: `ExitCode` after printing the error.
    func perform(
        _ command: ControlCommand, onEvent: @escaping @Sendable (ControlEvent) -> Void = { _ in },
        onPart: ControlClient.PartHandler? = nil,
        afterRefusal second: (ControlError) throws -> ControlCommand? = { _ in nil }
    ) async throws -> ControlResult {
        var interruption: ControlError?
        let hasParts = Mutex(false)
        var noting: ControlClient.PartHandler?
        if let onPart {
            noting = { part in
                hasParts.withLock { $0 = true }
                try await onPart(part)
            }
        }
        let start = ContinuousClock.now
        var attempts = 0
        while true {
            do {
                let sent = attempts == 0 ? command : command.again(after: ContinuousClock.now - start)
                return try await client.perform(sent, onEvent: onEvent, onPart: noting)
            } catch let error as ControlError {
                if error.code == .notAuthenticated, let next = try second(error) {
                    return try await perform(next, onEvent: onEvent, onPart: onPart)
                }
                // After an interruption, a daemon that is not there will not be started again.
                guard error.code == .interrupted else { throw complaint(interruption ?? error) }
                interruption = error
                attempts += 1
                // Parts that were printed cannot be taken back.
                guard command.isRepeatable, !hasParts.withLock({ $0 }) else { break }
                if attempts < Self.attempts { continue }
                guard command.isOnlyWaiting, crashLoop == nil else { break }
                try await Task.sleep(for: Self.pause)
            }
        }
        await showWhatWasDone()
        throw complaint(interruption ?? ControlError(.interrupted, "the daemon ended before it answered"))
    }

    /// Executes a command once, and prints no error.
    ///
    /// - Throws: ``ControlError``.
    func perform(
        quietly command: ControlCommand, onEvent: @escaping @Sendable (ControlEvent) -> Void = { _ in },
        onPart: ControlClient.PartHandler? = nil
    ) async throws -> ControlResult {
        try await client.perform(command, onEvent: onEvent, onPart: onPart)
    }

    /// The caller will look at the mount, which must not show the time before a command that was executed.
    private func showWhatWasDone() async {
        for _ in 0..<Self.attempts where (try? await client.perform(.tellKernel)) != nil { return }
    }

    /// How often a command is tried while the daemon dies during it. One that only waits is then tried until a keeper reports that the
    /// daemon crashes in a loop.
    private static let attempts = 4
    private static let pause = Duration.milliseconds(100)

    private func complaint(_ error: ControlError) -> ExitCode {
        let places = places
        // 'yonder mount' would not start one either.
        if error == ControlClient.noDaemon(at: places.socket), let other = OtherDaemon(on: places) {
            return Self.complaint(other, on: places)
        }
        let isUncertain = error.code == .interrupted
        return Output.failure(
            error.description
                + (isUncertain ? "; the command may have been executed, or not: 'yonder status' shows more" : ""),
            exit: error.code.exitStatus)
    }

    private static func complaint(_ other: OtherDaemon, on places: Places) -> ExitCode {
        Output.failure(
            "\(places.stateDirectory): \(other.text); \(OtherDaemon.advice)",
            exit: ControlError.Code.unavailable.exitStatus)
    }

    /// Executes a command and shows its progress.
    ///
    /// - Throws: as ``perform(_:onEvent:onPart:)``.
    func perform(
        _ command: ControlCommand, showing line: ProgressLine,
        afterRefusal second: (ControlError) throws -> ControlCommand? = { _ in nil }
    ) async throws -> ControlResult {
        defer { line.clear() }
        return try await perform(command, onEvent: line.show, afterRefusal: second)
    }

    /// Those of the daemon that runs now.
    var processes: DaemonProcesses { DaemonProcesses(of: places) }

    /// A daemon that crashes again and again; nil while it runs.
    var crashLoop: CrashLoop? { CrashLoop(in: places) }

    func answers() async -> Bool { await ControlClient.answers(at: places.socket) }

    /// Starts the daemon if none listens.
    ///
    /// - Parameter inForeground: whether it logs to standard error and ends with the terminal.
    /// - Returns: the process if it was started.
    /// - Throws: `ExitCode` after printing the error.
    func start(inForeground: Bool = false) async throws -> ChildProcess? {
        if await answers() { return nil }
        do {
            try places.check()
            try await SocketPlace(places.socket).check()
        } catch {
            // Another command may have started a daemon concurrently.
            guard error.code != .alreadyRunning else { return nil }
            throw Output.failure(error.description, exit: error.code.exitStatus)
        }
        guard let program = Self.program(named: "yonderd") else {
            throw Output.failure("'yonderd' is neither beside this program nor in PATH", exit: 69)
        }
        let keeper = Self.program(named: "yonder-keeper")
        var environment = ProcessInfo.processInfo.environment
        if !inForeground, let keeper,
            let unit = await SystemdUnit(for: places, keeper: keeper, environment: environment)
        {
            try await start(unit)
            return nil
        }
        // Without the keeper the daemon runs, too, and is not restarted after a crash.
        let report = ["--crash-report", places.crashLoop]
        let background = inForeground ? [] : ["--background"]
        environment = DaemonEnvironment.of(environment)
        if let settings = places.backtraceSettings { environment["SWIFT_BACKTRACE"] = settings }
        // The working directory of the daemon would keep a file system busy.
        let launch = ChildProcess.Launch(
            keeper ?? program, background + (keeper == nil ? [] : report + ["--", program]), environment: environment,
            in: inForeground ? nil : "/")
        let log = inForeground ? nil : try logOrComplaint()
        defer { try? log?.close() }
        let process: ChildProcess
        do {
            process = try await ChildProcess.start(
                launch, output: log ?? .standardOutput, errors: log ?? .standardError)
        } catch {
            throw Output.failure("'\(program)' cannot be started: \(error)", exit: 69)
        }
        let deadline = ContinuousClock.now + Self.patience
        while !(await answers()) {
            // A process that has ended may have found another daemon.
            guard ContinuousClock.now <= deadline else {
                if inForeground {
                    Output.complain("the daemon does not respond, and is ended")
                    await Self.end(process)
                } else {
                    Output.complain("the daemon does not respond; see its log '\(places.log)'")
                }
                throw ExitCode(69)
            }
            if let end = process.end {
                guard end == .exited(ControlError.Code.alreadyRunning.exitStatus) else {
                    let refusal = ControlError.Code.notPermitted.exitStatus
                    throw Output.failure(
                        "the daemon exited at once; see its log '\(places.log)'",
                        exit: end == .exited(refusal) ? refusal : 69)
                }
                // Or one that listens on another socket.
                let places = places
                if let other = OtherDaemon(on: places) { throw Self.complaint(other, on: places) }
            }
            try await Task.sleep(for: .milliseconds(20))
        }
        return process
    }

    private func start(_ unit: SystemdUnit) async throws {
        await unit.start()
        let deadline = ContinuousClock.now + Self.patience
        while !(await answers()) {
            guard ContinuousClock.now < deadline else {
                throw Output.failure(
                    "the daemon of the unit '\(unit.name)' does not respond; see 'systemctl status \(unit.name)'",
                    exit: 69)
            }
            try await Task.sleep(for: .milliseconds(20))
        }
    }

    private static let patience = Duration.seconds(10)

    /// Ends a daemon that does not respond, and its keeper.
    private static func end(_ process: ChildProcess) async {
        process.send()
        if await process.end(within: .seconds(5)) == nil {
            process.killGroup()
            await process.waitForEnd()
        }
    }

    private func logOrComplaint() throws -> FileDescriptor {
        do {
            return try log()
        } catch {
            Output.complain(
                "\(places.stateDirectory): the state directory cannot be written: \(error); "
                    + "set YONDER_STATE_DIR to another directory")
            let code = ControlError.Code(of: error)
            throw ExitCode(code == .notPermitted ? code.exitStatus : 69)
        }
    }

    private func log() throws -> FileDescriptor {
        try FilePath(places.stateDirectory).makeDirectories()
        // It appends: the daemon truncates it when it is too long.
        return try FileDescriptor.open(
            places.log, .writeOnly, options: [.append, .create, .closeOnExec], permissions: .ownerReadWrite)
    }

    /// The absolute path of a program: beside this one, else the first in PATH.
    private static func program(named name: String) -> String? {
        let files = FileManager.default
        let own = try? files.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let beside = own.map { URL(fileURLWithPath: $0).deletingLastPathComponent().path }
        let path = ProcessInfo.processInfo.environment["PATH"]?.split(separator: ":").map(String.init) ?? []
        return ((beside.map { [$0] } ?? []) + path).filter { $0.hasPrefix("/") }.map { $0 + "/" + name }.first(
            where: files.isExecutableFile)
    }
}

/// An answer of the wrong type: daemon and command line are of different builds.
func unexpected(_ result: ControlResult) -> ExitCode {
    Output.failure(
        "the daemon is of another version than 'yonder'; 'yonder daemon restart' starts the installed one", exit: 69)
}
