import Subprocess

/// Programs that end soon.
extension ChildProcess {
    /// One of the two outputs of a program.
    package enum OutputStream: Hashable, Sendable {
        case output
        case errors
    }

    /// Why a program did not run to its end.
    package enum RunError: Error, Hashable {
        case notStarted(reason: String)
        case tooMuchOutput
        case timedOut
    }

    private struct Outcome: Sendable {
        var end: End
        var bytes: [UInt8]
    }

    /// Runs a program to its end, and reads one of its outputs. It is killed, with those that it has started, when the task is
    /// cancelled.
    ///
    /// - Parameters:
    ///   - limit: of the output in bytes.
    ///   - patience: how long it may run.
    /// - Throws: ``RunError``, `CancellationError`.
    package static func run(
        _ launch: Launch, reading stream: OutputStream, limit: Int = 64 << 10, within patience: Duration
    ) async throws -> (end: End, bytes: [UInt8]) {
        let outcome = try await withThrowingTaskGroup { group in
            group.addTask { try await run(launch, reading: stream, limit: limit) }
            group.addTask {
                try await Task.sleep(for: patience)
                throw RunError.timedOut
            }
            defer { group.cancelAll() }
            guard let outcome = try await group.next() else { throw CancellationError() }
            return outcome
        }
        try Task.checkCancellation()
        return (outcome.end, outcome.bytes)
    }

    private static func run(_ launch: Launch, reading stream: OutputStream, limit: Int) async throws -> Outcome {
        let configuration = configuration(of: launch)
        do {
            switch stream {
            case .output:
                let result = try await Subprocess.run(
                    configuration, output: .bytes(limit: limit), error: .discarded)
                return Outcome(end: End(result.terminationStatus), bytes: result.standardOutput)
            case .errors:
                let result = try await Subprocess.run(
                    configuration, output: .discarded, error: .bytes(limit: limit))
                return Outcome(end: End(result.terminationStatus), bytes: result.standardError)
            }
        } catch let error as SubprocessError where error.code == .outputLimitExceeded {
            throw RunError.tooMuchOutput
        } catch let error as SubprocessError {
            throw RunError.notStarted(reason: "\(error)")
        }
    }
}
