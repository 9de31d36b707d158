import Control
import Foundation
import Logging
import Synchronization
import Syscalls
import SystemPackage

/// The daemon: one for each state directory, with its socket and its domains, from start to end.
package final class Daemon: Sendable {
    /// The version of Yonder.
    package static let version = Version.current

    private let places: Places
    private let logger: Logger

    package init(places: Places, logger: Logger) {
        self.places = places
        self.logger = logger
    }

    /// Serves until somebody asks it to end: `yonder shutdown`, SIGTERM or SIGINT. Takes its mounts away then.
    ///
    /// - Throws: ``ControlError``: `alreadyRunning`; `notPermitted` for directories that others own or can write; what making the state directory says.
    package func run() async throws {
        Machine.raiseFileLimit()
        try places.check()
        try FileManager.default.createDirectory(
            atPath: places.stateDirectory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        let lock = try await lock()
        defer { withExtendedLifetime(lock) {} }
        let store = try DomainStore(in: FilePath(places.stateDirectory))
        store.cleanUp { [logger] in logger.warning("\($0)") }
        let configuration = Configuration(at: places.configuration, logger: logger)
        let domains = Domains(
            store: store,
            gatekeeper: Gatekeeper(
                rules: configuration.rules, processBudget: configuration.processBudget, logger: logger),
            ignoredNames: configuration.ignoredNames,
            catalog: ProviderCatalog(
                credentials: CredentialStore(in: FilePath(places.credentials)), logger: logger),
            logger: logger)
        let (ending, end) = AsyncStream.makeStream(of: Void.self)
        let service = DaemonService(domains: domains) { end.yield() }
        let server = try await ControlServer(
            at: places.socket, userIdentifier: Machine.userIdentifier, service: service, logger: logger)
        let signals = TerminationSignals { [logger] name in
            logger.notice("\(name): shutting down")
            end.yield()
        }
        defer { signals.stop() }
        logger.notice("yonderd \(Self.version) listens on '\(places.socket)'")
        let serving = Task { try await server.run() }
        for await _ in ending { break }
        // From here on a new daemon may be started; it waits for this one's lock.
        server.withdraw()
        await domains.shutDown()
        // Who asked for the end gets the answer before the connection goes.
        try? await Task.sleep(for: .milliseconds(50))
        await server.close()
        serving.cancel()
        _ = await serving.result
        logger.notice("yonderd ends")
    }

    /// Takes the state directory for this daemon. One that is just ending is waited for.
    private func lock() async throws -> FileLock {
        let path = FilePath(places.stateDirectory).appending("yonderd.lock")
        let deadline = ContinuousClock.now + Self.patienceWithPredecessor
        while true {
            do throws(Errno) {
                return try FileLock(at: path)
            } catch {
                guard error == .wouldBlock else {
                    throw ControlError(.failed, "cannot be locked: \(error)", path: path.string)
                }
            }
            guard ContinuousClock.now < deadline, !(await ControlClient.answers(at: places.socket)) else {
                throw ControlError(
                    .alreadyRunning, "another daemon uses this state directory", path: places.stateDirectory)
            }
            try await Task.sleep(for: .milliseconds(20))
        }
    }

    private static let patienceWithPredecessor = Duration.seconds(8)
}

/// The signals that end the daemon in order. A writer whose reader has gone gets an error, not a signal.
final class TerminationSignals: Sendable {
    // The sources are only kept, and cancelled once.
    private let sources: Mutex<[any DispatchSourceSignal]>

    init(_ action: @escaping @Sendable (String) -> Void) {
        signal(SIGPIPE, SIG_IGN)
        signal(SIGHUP, SIG_IGN)
        var sources: [any DispatchSourceSignal] = []
        for (number, name) in [(SIGTERM, "SIGTERM"), (SIGINT, "SIGINT")] {
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler { action(name) }
            source.resume()
            sources.append(source)
        }
        self.sources = Mutex(sources)
    }

    func stop() {
        sources.withLock { sources in
            for source in sources { source.cancel() }
            sources = []
        }
    }
}
