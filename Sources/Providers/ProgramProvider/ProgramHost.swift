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
        var directory: FilePath
        var logger: Logger
        /// Where the user finds what the program writes to its standard error.
        var placeOfErrors = "see 'yonder log'"
        var onNotice: @Sendable (ProgramNotice) -> Void = { _ in }
        /// Called with what the program declares at each start.
        var onStart: @Sendable (InitializeResult) throws -> Void = { _ in }
    }

    private let launch: Launch
    private var session: ProgramSession?
    private var starting: Task<ProgramSession, any Error>?
    /// Ends shortly after a start, without a longer run in between.
    private var failures = 0
    /// Why the last start has failed; nil if it has not.
    private var startFailure: FileProviderError?
    /// The program is not started before.
    private var earliestStart = ContinuousClock.now
    private var isClosed = false

    init(_ launch: Launch) {
        self.launch = launch
    }

    /// The running program, started if necessary.
    ///
    /// - Throws: `serverUnreachable` or `notAuthenticated` while the program is not to be started again yet; the errors of its
    ///   start.
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
            let next = "is started again in \(wait.components.seconds) seconds"
            guard let startFailure else {
                throw FileProviderError(
                    .serverUnreachable, "'\(name)' ends again and again, and \(next); \(launch.placeOfErrors)")
            }
            throw FileProviderError(
                startFailure.code == .notAuthenticated ? .notAuthenticated : .serverUnreachable,
                "\(startFailure.message); '\(name)' \(next)")
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
            startFailure = nil
            session.beginUse()
            return session
        } catch {
            startFailure = error as? FileProviderError
            noteEnd(after: .zero)
            throw error
        }
    }

    /// Starts the program with the next call, however often it has ended.
    func retryNow() {
        if let session, session.failure != nil {
            self.session = nil
            noteEnd(after: .now - session.startedAt)
        }
        earliestStart = .now
    }

    func close() async {
        isClosed = true
        starting?.cancel()
        // No program is left behind that is being started.
        let started = try? await starting?.value
        await (session ?? started)?.close()
    }

    private var name: String { URL(fileURLWithPath: launch.program).lastPathComponent }

    private static let pauses: [Duration] = [
        .zero, .seconds(0.5), .seconds(2), .seconds(5), .seconds(15), .seconds(60),
    ]

    /// After so long a run the next end counts as the first.
    private static let goodRun = Duration.seconds(10)

    private func noteEnd(after life: Duration) {
        failures = life > Self.goodRun ? 1 : failures + 1
        earliestStart = .now + Self.pauses[min(failures, Self.pauses.count) - 1]
    }

    /// Starts the program and agrees on version and features.
    private static func start(_ launch: Launch) async throws -> ProgramSession {
        let session = try await ProgramSession.start(
            launch.program, environment: launch.environment(), inactivityLimit: launch.inactivityLimit,
            logger: launch.logger, onNotice: launch.onNotice)
        let name = URL(fileURLWithPath: launch.program).lastPathComponent
        do {
            let parameters = launch.parameters()
            let result = try await session.call("initialize", parameters, returning: InitializeResult.self)
            guard result.version == ProgramProtocol.version, parameters.levels.contains(result.level) else {
                throw FileProviderError(
                    .serverUnreachable,
                    "'\(name)' speaks version \(result.version) of the protocol with '\(result.level)', and this domain needs version "
                        + "\(ProgramProtocol.version) with '\(parameters.levels.joined(separator: "' or '"))'")
            }
            try launch.onStart(result)
            return session
        } catch let failure as ProgramFailure {
            await session.close()
            throw failure.startError(of: name)
        } catch let error as FileProviderError {
            await session.close()
            guard error.code == .providerDomainTemporarilyUnavailable else { throw error }
            let interpreter = ScriptInterpreter.missing(of: launch.program, in: launch.environment())
            let reason = interpreter.map { "its interpreter '\($0)' is not installed" } ?? launch.placeOfErrors
            throw FileProviderError(.serverUnreachable, "\(error.message) before it was ready; \(reason)")
        }
    }
}
