import FileProvider
import Foundation
import Logging
import SystemPackage

extension ProgramSession: HostedSession {
    var isOpen: Bool { failure == nil }
}

/// Keeps a program running: starts it when a call needs it, and again with a backoff after it has ended.
struct ProgramHost: Sendable {
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

        fileprivate var name: String { URL(fileURLWithPath: program).lastPathComponent }
    }

    private let launch: Launch
    private let host: SessionHost<ProgramSession>
    private static let pauses = SessionPauses(
        [0, 0.5, 2, 5, 15, 60].map { .seconds($0) }, goodLife: .seconds(10), longestWait: .seconds(2))

    init(_ launch: Launch) {
        self.launch = launch
        host = SessionHost(Self.pauses) { session in
            launch.logger.warning("\(session.failure?.message ?? ""); it is started again")
        } open: {
            try await Self.start(launch)
        }
    }

    /// The running program, started if necessary.
    ///
    /// - Throws: `serverUnreachable` or `notAuthenticated` while the program is not to be started again yet; the errors of its
    ///   start; `userCancelled`.
    func running() async throws -> ProgramSession {
        do {
            return try await host.session()
        } catch let pause as SessionPause {
            throw failure(during: pause)
        } catch is CancellationError {
            throw FileProviderError(.userCancelled)
        }
    }

    private func failure(during pause: SessionPause) -> FileProviderError {
        let name = launch.name
        let next = "is started again in \(pause.wait.components.seconds) seconds"
        guard let failure = pause.failure as? FileProviderError else {
            return FileProviderError(
                .serverUnreachable, "'\(name)' ends again and again, and \(next); \(launch.placeOfErrors)")
        }
        return FileProviderError(
            failure.code == .notAuthenticated ? .notAuthenticated : .serverUnreachable,
            "\(failure.message); '\(name)' \(next)")
    }

    /// Starts the program with the next call, however often it has ended.
    func retryNow() async { await host.retryNow() }

    func close() async { await host.close() }

    /// Starts the program and agrees on version and features.
    private static func start(_ launch: Launch) async throws -> ProgramSession {
        let session = try await ProgramSession.start(
            launch.program, environment: launch.environment(), inactivityLimit: launch.inactivityLimit,
            logger: launch.logger, onNotice: launch.onNotice)
        let name = launch.name
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
            session.beginUse()
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
