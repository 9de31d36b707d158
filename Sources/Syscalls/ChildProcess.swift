import FileNames
import Glibc
import Subprocess
import Synchronization
import SystemPackage

/// A program that this process has started: the leader of a process group of its own, which inherits its three standard
/// descriptors and no other, and blocks and ignores no signal.
package final class ChildProcess: Sendable {
    /// How a process has ended. (wait(2))
    package enum End: Hashable, Sendable, CustomStringConvertible {
        case exited(Int32)
        case killed(signal: Int32)

        init(_ status: TerminationStatus) {
            self =
                switch status {
                case .exited(let status): .exited(status)
                case .signaled(let signal): .killed(signal: signal)
                }
        }

        package var description: String {
            switch self {
            case .exited(let status): "exit status \(status)"
            case .killed(let signal): "signal \(signal)"
            }
        }

        /// As a shell reports it.
        package var exitStatus: Int32 {
            switch self {
            case .exited(let status): status
            case .killed(let signal): 128 + signal
            }
        }
    }

    package struct StartError: Error, Hashable, CustomStringConvertible {
        package var description: String
    }

    /// A program and what it is started with.
    package struct Launch: Hashable, Sendable {
        /// Is looked up in PATH of `environment` unless it is a path.
        package var program: String
        /// Encoded by ``FileNameText``.
        package var arguments: [String]
        package var environment: [String: String]
        /// nil: that of this process.
        package var directory: FilePath?

        package init(
            _ program: String, _ arguments: [String] = [], environment: [String: String], in directory: FilePath? = "/"
        ) {
            self.program = program
            self.arguments = arguments
            self.environment = environment
            self.directory = directory
        }
    }

    private final class Ending: Sendable {
        let end = Mutex<End?>(nil)
    }

    package let processIdentifier: Int32
    private let ending: Ending
    /// Ends after the process, with the error that kept it from being started.
    private let task: Task<StartError?, Never>

    private init(_ processIdentifier: Int32, _ ending: Ending, _ task: Task<StartError?, Never>) {
        self.processIdentifier = processIdentifier
        self.ending = ending
        self.task = task
    }

    /// Starts a program. It runs on when its `ChildProcess` is released.
    ///
    /// - Parameters:
    ///   - input: nil for `/dev/null`, as the others. The caller closes its descriptors.
    package static func start(
        _ launch: Launch, input: FileDescriptor? = nil, output: FileDescriptor? = nil, errors: FileDescriptor? = nil
    ) async throws(StartError) -> ChildProcess {
        let null: FileDescriptor
        do {
            null = try FileDescriptor.open("/dev/null", .readWrite, options: .closeOnExec)
        } catch {
            throw StartError(description: "'/dev/null' cannot be opened: \(error)")
        }
        defer { try? null.close() }
        let ending = Ending()
        let (numbers, number) = AsyncStream.makeStream(of: Int32.self)
        let task = Task.detached { () -> StartError? in
            defer { number.finish() }
            do {
                let outcome = try await Subprocess.run(
                    configuration(of: launch), input: .fileDescriptor(input ?? null, closeAfterSpawningProcess: false),
                    output: .fileDescriptor(output ?? null, closeAfterSpawningProcess: false),
                    error: .fileDescriptor(errors ?? null, closeAfterSpawningProcess: false)
                ) { execution in
                    number.yield(execution.processIdentifier.value)
                    number.finish()
                }
                ending.end.withLock { $0 = End(outcome.terminationStatus) }
                return nil
            } catch {
                // If the program was started, the library has lost its status.
                ending.end.withLock { $0 = .exited(-1) }
                return StartError(description: "\(error)")
            }
        }
        // Not in the caller's task: if that is cancelled, it does not read the number, and the program could not be ended.
        let first = await Task.detached { await numbers.first { _ in true } }.value
        if let first { return ChildProcess(first, ending, task) }
        throw await task.value ?? StartError(description: "it has no process identifier")
    }

    static func configuration(of launch: Launch) -> Configuration {
        var options = PlatformOptions()
        options.processGroupID = 0
        options.teardownSequence = [.send(signal: .kill, toProcessGroup: true, allowedDurationToNextStep: .zero)]
        let program: Executable = launch.program.contains("/") ? .path(FilePath(launch.program)) : .name(launch.program)
        return Configuration(
            executable: program, arguments: Arguments(launch.arguments.map { FileNameText.bytes(of: $0) + [0] }),
            environment: .custom(
                Dictionary(
                    launch.environment.compactMap { name, value in
                        Environment.Key(rawValue: name).map { ($0, value) }
                    }, uniquingKeysWith: { first, _ in first })),
            workingDirectory: launch.directory, platformOptions: options)
    }

    /// How it has ended; nil while it runs.
    package var end: End? { ending.end.withLock { $0 } }

    package var isRunning: Bool { end == nil }

    @discardableResult
    package func waitForEnd() async -> End {
        _ = await task.value
        return end ?? .exited(-1)
    }

    /// Waits for its end, at most for a time.
    ///
    /// - Returns: nil if it has not ended then, or the task was cancelled.
    package func end(within patience: Duration) async -> End? {
        let (ends, ending) = AsyncStream.makeStream(of: End.self)
        let waiting = Task { [self] in
            ending.yield(await waitForEnd())
            ending.finish()
        }
        let timer = Task {
            try await Task.sleep(for: patience)
            ending.finish()
        }
        defer {
            waiting.cancel()
            timer.cancel()
        }
        for await end in ends { return end }
        return nil
    }

    /// Asks it to end (SIGTERM), or sends it another signal.
    package func send(signal: Int32 = SIGTERM) {
        if isRunning { _ = kill(processIdentifier, signal) }
    }

    /// Ends it and those that it has started at once, but for those in another process group.
    package func killGroup() {
        guard isRunning else { return }
        if kill(-processIdentifier, SIGKILL) != 0 { _ = kill(processIdentifier, SIGKILL) }
    }

    /// Ends those that it has started and that have outlived it, but for those in another process group. No other process gets the number
    /// of a group that is left; one that has it nevertheless shows that none is left.
    package func killRestOfGroup() {
        guard !isRunning, kill(processIdentifier, 0) != 0, errno == ESRCH else { return }
        _ = kill(-processIdentifier, SIGKILL)
    }
}

/// The ends on this side of the pipes to a program. The caller of ``ChildProcess/startWithPipes(_:)`` closes them.
package struct ProgramPipes: Hashable, Sendable {
    /// What the program reads.
    package var input: FileDescriptor
    package var output: FileDescriptor
    package var errors: FileDescriptor

    package func closeAll() {
        for end in [input, output, errors] { try? end.close() }
    }
}

extension ChildProcess {
    /// Starts a program that reads from a pipe and writes to two.
    package static func startWithPipes(
        _ launch: Launch
    ) async throws(StartError) -> (process: ChildProcess, pipes: ProgramPipes) {
        var ends: [(readEnd: FileDescriptor, writeEnd: FileDescriptor)] = []
        do throws(Errno) {
            for _ in 0..<3 { ends.append(try FileDescriptor.closeOnExecPipe()) }
        } catch {
            for pipe in ends { for end in [pipe.readEnd, pipe.writeEnd] { try? end.close() } }
            throw StartError(description: "\(error)")
        }
        let pipes = ProgramPipes(input: ends[0].writeEnd, output: ends[1].readEnd, errors: ends[2].readEnd)
        let inner = (input: ends[0].readEnd, output: ends[1].writeEnd, errors: ends[2].writeEnd)
        defer { for end in [inner.input, inner.output, inner.errors] { try? end.close() } }
        do throws(StartError) {
            let process = try await start(launch, input: inner.input, output: inner.output, errors: inner.errors)
            return (process, pipes)
        } catch {
            pipes.closeAll()
            throw error
        }
    }
}
