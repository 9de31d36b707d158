import FileProvider
import Foundation
import Logging
import SystemPackage

/// Keeps a program running: starts it when a call needs it, and again with a backoff after it has ended.
actor ProgramHost {
    /// What a program is started with.
    struct Launch: Sendable {
        /// The path of the executable.
        var program: String
        var environment: @Sendable () -> [String: String]
        var parameters: @Sendable () -> InitializeParameters
        var inactivityLimit: Duration
        /// The directory of content files.
        var directory: FilePath
        var logger: Logger
        /// Called when the program says that the remote has changed.
        var onChange: @Sendable () -> Void = {}
        /// Called with the features of each start.
        var onFeatures: @Sendable (ProgramFeatures) -> Void = { _ in }
    }

    private let launch: Launch
    private var session: ProgramSession?
    private var starting: Task<ProgramSession, any Error>?
    /// Ends shortly after a start, without a longer run in between.
    private var failures = 0
    /// The program is not started before.
    private var earliestStart = ContinuousClock.now
    private var isClosed = false

    init(_ launch: Launch) {
        self.launch = launch
    }

    /// The running program, started if necessary.
    ///
    /// - Throws: `serverUnreachable` while the program is not to be started again yet; the errors of its start.
    func running() async throws -> ProgramSession {
        if isClosed { throw FileProviderError(.userCancelled) }
        if let session {
            guard let failure = session.failure else { return session }
            self.session = nil
            noteEnd(after: .now - session.startedAt)
            launch.logger.warning("\(failure.message); it is started again")
        }
        if let starting { return try await starting.value }
        let wait = earliestStart - .now
        guard wait < .seconds(2) else {
            throw FileProviderError(
                .serverUnreachable,
                "'\(name)' ends again and again, and is started again in \(wait.components.seconds) seconds; see 'yonder log'"
            )
        }
        let task = Task { [launch] in
            if wait > .zero { try await Task.sleep(for: wait) }
            return try await Self.start(launch)
        }
        starting = task
        defer { starting = nil }
        do {
            let session = try await task.value
            if isClosed {
                await session.close()
                throw FileProviderError(.userCancelled)
            }
            self.session = session
            return session
        } catch {
            noteEnd(after: .zero)
            throw error
        }
    }

    func close() async {
        isClosed = true
        starting?.cancel()
        await session?.close()
    }

    private var name: String { URL(fileURLWithPath: launch.program).lastPathComponent }

    private static let pauses: [Duration] = [
        .zero, .seconds(0.5), .seconds(2), .seconds(5), .seconds(15), .seconds(60),
    ]

    private func noteEnd(after life: Duration) {
        failures = life > .seconds(60) ? 1 : failures + 1
        earliestStart = .now + Self.pauses[min(failures, Self.pauses.count) - 1]
    }

    /// Starts the program and agrees on version and features.
    private static func start(_ launch: Launch) async throws -> ProgramSession {
        let session = try ProgramSession(
            launch.program, environment: launch.environment(), inactivityLimit: launch.inactivityLimit,
            logger: launch.logger, onChange: launch.onChange)
        let name = URL(fileURLWithPath: launch.program).lastPathComponent
        do {
            let result = try await session.call(
                "initialize", launch.parameters(), returning: InitializeResult.self)
            guard result.version == ProgramProtocol.version, result.level == "paths" else {
                throw FileProviderError(
                    .serverUnreachable,
                    "'\(name)' speaks version \(result.version) of the protocol with '\(result.level)', and this daemon version "
                        + "\(ProgramProtocol.version) with 'paths'")
            }
            launch.onFeatures(result.features ?? ProgramFeatures())
            return session
        } catch let failure as ProgramFailure {
            await session.close()
            throw failure.error()
        } catch let error as FileProviderError {
            await session.close()
            guard error.code == .providerDomainTemporarilyUnavailable else { throw error }
            throw FileProviderError(.serverUnreachable, "\(error.message) before it was ready; see 'yonder log'")
        }
    }
}

extension ProgramFailure {
    /// Codes that a program may use.
    private static let codes: Set<FileProviderError.Code> = [
        .notAuthenticated, .serverUnreachable, .insufficientQuota, .cannotSynchronize, .excludedFromSync, .noSuchItem,
        .pageExpired, .versionNoLongerAvailable, .featureUnsupported, .fileReadNoPermission, .userCancelled, .timedOut,
        .malformedResponse, .providerDomainTemporarilyUnavailable,
    ]

    /// The error for the system.
    func error() -> FileProviderError {
        let code = data?.code.flatMap(FileProviderError.Code.init(rawValue:))
        guard let code, Self.codes.contains(code) else {
            return FileProviderError(.malformedResponse, "the program failed: \(text)")
        }
        return FileProviderError(code, text)
    }

    /// Whether the error says that the condition of a change did not hold.
    var isCondition: Bool {
        ["filenameCollision", "localVersionConflictingWithServer", "deletionRejected", "directoryNotEmpty"].contains(
            data?.code)
    }

    /// The message, as long as one for the user may be.
    private var text: String { String(message.prefix(500)) }
}
