import Control
import FileProvider
import Foundation
import Logging
import Synchronization
import Syscalls
import SystemPackage
import Volume
import Web

/// The daemon: one per state directory, with its socket and its domains.
package final class Daemon: Sendable {
    private let places: Places
    private let manager: ServiceManager
    private let logger: Logger
    private let logLevel: AdjustableLogLevel
    private let metrics: MetricsRegistry
    private let metricsAddress: ListeningAddress?

    /// - Parameters:
    ///   - logLevel: that of `logger`, which `yonder log --level` changes.
    ///   - metrics: what swift-metrics was bootstrapped with.
    ///   - metricsAddress: where they are served; nil for what the configuration says.
    package init(
        places: Places, manager: ServiceManager, logger: Logger, logLevel: AdjustableLogLevel,
        metrics: MetricsRegistry, metricsAddress: ListeningAddress?
    ) {
        self.metrics = metrics
        self.metricsAddress = metricsAddress
        self.places = places
        self.manager = manager
        self.logger = logger
        self.logLevel = logLevel
    }

    /// Serves until `yonder shutdown`, SIGTERM or SIGINT, then unmounts all domains; or until `yonder daemon restart` or
    /// SIGUSR1, which leave the mounts to the next process.
    ///
    /// - Throws: ``ControlError``: `alreadyRunning`; `notPermitted` for directories that other users own or can
    ///   write, and for a state directory that this user cannot enter.
    package func run() async throws -> DaemonEnd {
        Machine.raiseFileLimit()
        let activation = manager.takeInherited(Self.activationName)
        let lock: FileLock
        let store: DomainStore
        do {
            try makeStateDirectory()
            lock = try await self.lock(isActivated: activation != nil)
            store = try DomainStore(in: FilePath(places.stateDirectory))
        } catch {
            if let activation { await refuseClients(of: activation, error) }
            throw error
        }
        defer { withExtendedLifetime(lock) {} }
        CrashReports.prepare(places.crashes, logger: logger)
        // Before a command asks for a domain, and before one is mounted again.
        let leftovers = store.settle { [logger] in logger.warning("\($0)") }
        let credentials = CredentialStore(in: FilePath(places.credentials))
        for name in store.unknownNames(of: leftovers) { credentials.forget(name) }
        let configuration = Configuration(at: places.configuration, keepingCopyAt: places.configurationCopy)
        for complaint in configuration.complaints { logger.warning("\(complaint)") }
        let networkManager = NetworkManager(environment: ProcessInfo.processInfo.environment, logger: logger)
        let metered = MeteredConnection { await networkManager.follow($0) }
        let domains = Domains(
            store: store,
            policy: MaterializationPolicy(
                rules: configuration.rules, processBudget: configuration.processBudget, logger: logger),
            ignoredNames: configuration.ignoredNames,
            catalog: ProviderCatalog(
                credentials: credentials, defaults: configuration.remoteOptions, stateDirectory: places.stateDirectory,
                logger: logger),
            manager: manager, metered: metered, logger: logger)
        let exporter = (metricsAddress ?? configuration.metricsAddress).map {
            MetricsExporter(at: $0, logger: logger)
        }
        let (ending, end) = AsyncStream.makeStream(of: DaemonEnd.self)
        let service = DaemonService(
            domains: domains, places: places, logLevel: logLevel, metrics: metrics,
            warnings: { [manager] in
                let ofNetwork = metered.isInUse ? networkManager.complaint : nil
                let complaints = [exporter?.complaint, manager.complaint, ofNetwork]
                return configuration.complaints + complaints.compactMap(\.self)
            }
        ) { end.yield($0) }
        let listen = { @Sendable [places, logger, manager] (activation: FileDescriptor?, inherited: FileDescriptor?) in
            try await ControlServer(
                at: places.socket, userIdentifier: Machine.userIdentifier, service: service, logger: logger,
                activation: activation, inherited: inherited
            ) { socket in
                manager.remove(Self.controlName)
                // Without it, commands fail instead of waiting while the daemon is restarted.
                try? manager.store(socket, as: Self.controlName)
            }
        }
        let server = try await listen(activation, manager.takeInherited(Self.controlName))
        let signals = TerminationSignals { [logger, manager] number in
            guard number == SIGUSR1 else {
                logger.notice("signal \(number): the daemon ends")
                end.yield(.shutdown)
                return
            }
            // Without a keeper there is no next process.
            guard manager.keeper != nil else { return }
            Task {
                do {
                    try await UpgradeCheck.run(hasMounts: !domains.mounted.isEmpty)
                    end.yield(.restart)
                } catch {
                    logger.error("\(error)")
                }
            }
        }
        defer { signals.stop() }
        // First: `takeInheritedMounts` removes all others from the store, such as the mark of an earlier keeper's worker.
        if manager.restarts > 0, let mark = manager.takeInherited(MountedAgainMark.name) {
            await domains.resume(after: mark)
        }
        let inherited = manager.takeInheritedMounts()
        // It holds the names of the domains until it is done: a command that mounts one of them waits.
        let takingOver = Task<Void, any Error> { await domains.takeOver(inherited) }
        _ = await takingOver.result(within: Self.patienceWithTakeover)
        noteSocket()
        logger.notice("yonderd \(Version.current) listens on '\(places.socket)'")
        let socket = ControlSocket(server, logger: logger) { try await listen(nil, nil) }
        manager.ready("listens on '\(places.socket)'")
        let exporting = Task { await exporter?.run { try await service.metricsText() } }
        defer { exporting.cancel() }
        let life = manager.reportLife { _ = await domains.mounted }
        defer { life.cancel() }
        await socket.watch()
        let mounting = Task {
            _ = await takingOver.result
            await domains.mountAgain()
        }
        defer { mounting.cancel() }
        let deleting = Task { await delete(leftovers, of: store) }
        defer { deleting.cancel() }
        var ended = DaemonEnd.shutdown
        for await end in ending {
            ended = end
            break
        }
        manager.stopping(isLast: ended != .restart)
        if ended == .restart {
            logger.notice("restarting")
            await socket.handOver()
            return ended
        }
        manager.remove(Self.controlName)
        manager.remove(Self.lockName)
        manager.remove(MountedAgainMark.name)
        // A new daemon may be started from here on; it waits for the lock of this one.
        await socket.withdraw()
        await domains.shutDown()
        await socket.close()
        logger.notice("yonderd ends")
        return ended
    }

    /// Verifies all directories before anything is made in them.
    private func makeStateDirectory() throws {
        try places.check()
        do {
            try FilePath(places.stateDirectory).makeDirectories()
        } catch {
            throw ControlError(ControlError.Code(of: error), "cannot be made: \(error)", path: places.stateDirectory)
        }
    }

    /// Deletes what removals and imports of earlier daemons have left. The next daemon continues when this one ends before.
    private func delete(_ leftovers: [FilePath], of store: DomainStore) async {
        for left in leftovers where !Task.isCancelled {
            _ = try? await BlockingWork.run { [logger] in store.delete(left) { logger.warning("\($0)") } }
        }
    }

    /// Verifies that this program could take over from a running daemon.
    ///
    /// - Parameter layout: that of the tables of open files of its mounts; nil if it has none.
    /// - Throws: ``ControlError`` for a domain that a newer Yonder has written, and for a layout that this program cannot read.
    package static func checkUpgrade(_ places: Places, openFilesLayout layout: UInt64?) throws {
        if let layout {
            do throws(HandleTableError) {
                try HandleTable.check(layout: layout)
            } catch {
                throw ControlError(
                    .failed,
                    "\(error); 'yonder shutdown', then 'yonder mount --all' starts it, but files that are open on the "
                        + "mounts fail then")
            }
        }
        do {
            try DomainStore(in: FilePath(places.stateDirectory)).refuseNewerDomains()
        } catch let error as FileProviderError {
            throw ControlError(.failed, error.message)
        }
    }

    /// Answers the clients that wait for this process. They would wait for ever, because systemd goes on listening.
    private func refuseClients(of socket: FileDescriptor, _ error: any Error) async {
        let refusal = error as? ControlError ?? ControlError(.failed, "\(error)")
        guard
            let server = try? await ControlServer(
                at: places.socket, userIdentifier: Machine.userIdentifier, service: RefusingService(error: refusal),
                logger: logger, activation: socket)
        else { return }
        let serving = Task { try await server.run() }
        try? await Task.sleep(for: Self.timeForRefusals)
        await server.close(isWithdrawing: false)
        serving.cancel()
        _ = await serving.result
    }

    private static let timeForRefusals = Duration.seconds(1)

    /// The name of the control socket that systemd listens on, and has passed to this process (`FileDescriptorName=`).
    private static let activationName = "activation"
    /// The name under which the service manager stores a control socket that the daemon made.
    private static let controlName = "control"
    /// That of the lock of the state directory. A killed predecessor may keep its own until the kernel has got an answer of this
    /// process: one of its threads may wait for a page that is being read from its mount.
    private static let lockName = "lock"

    /// Locks the state directory, also for the next process of the service manager. Waits for a daemon that is shutting down.
    ///
    /// - Parameter isActivated: whether this process listens on the control socket already, without answering.
    private func lock(isActivated: Bool) async throws -> FileLock {
        if let inherited = manager.takeInherited(Self.lockName), let lock = try? FileLock(inherited: inherited) {
            return lock
        }
        let lock = try await newLock(isActivated: isActivated)
        let left = await LeftPrograms.kill(of: places.stateDirectory)
        if left > 0 { logger.notice("\(left) programs of a daemon that was killed were still running, and are ended") }
        manager.remove(Self.lockName)
        try? manager.store(lock.file, as: Self.lockName)
        return lock
    }

    private func newLock(isActivated: Bool) async throws -> FileLock {
        let path = FilePath(places.stateDirectory).appending("yonderd.lock")
        let deadline = ContinuousClock.now + Self.patienceWithPredecessor
        while true {
            do throws(Errno) {
                return try FileLock(at: path)
            } catch {
                guard error == .wouldBlock else {
                    throw ControlError(ControlError.Code(of: error), "cannot be locked: \(error)", path: path.string)
                }
            }
            let sockets = isActivated ? [] : [places.socket, places.otherSocket].compactMap(\.self)
            var isSure = false
            for socket in sockets where !isSure { isSure = await ControlClient.answers(at: socket) }
            guard ContinuousClock.now < deadline, !isSure else {
                throw ControlError(
                    .alreadyRunning, "another daemon uses this state directory", path: places.stateDirectory)
            }
            try await Task.sleep(for: .milliseconds(20))
        }
    }

    /// For commands of a session that has another XDG_RUNTIME_DIR, or none.
    private func noteSocket() {
        do {
            try Data(places.socket.utf8).write(to: URL(fileURLWithPath: places.socketNote), options: .atomic)
        } catch {
            logger.warning(
                "commands without this daemon's XDG_RUNTIME_DIR do not find it: \(error.localizedDescription)")
        }
    }

    private static let patienceWithPredecessor = Duration.seconds(8)
    /// Then commands and signals are handled while a mount waits for its database, which another process has locked.
    private static let patienceWithTakeover = Duration.seconds(15)
}

/// Answers every command with an error.
private struct RefusingService: ControlService {
    let error: ControlError

    func perform(
        _ command: ControlCommand, for peer: ControlPeer, progress: @escaping @Sendable (ControlEvent) -> Void,
        part: @escaping @Sendable (ControlResult) async throws -> Void
    ) async throws -> ControlResult {
        throw error
    }
}

/// Handles SIGTERM, SIGINT and SIGUSR1, and ignores SIGPIPE, so that a write to a closed pipe fails with EPIPE.
final class TerminationSignals: Sendable {
    // Retained until they are cancelled.
    private let sources: Mutex<[any DispatchSourceSignal]>

    /// - Parameter action: gets the number of the signal.
    init(_ action: @escaping @Sendable (Int32) -> Void) {
        signal(SIGPIPE, SIG_IGN)
        signal(SIGHUP, SIG_IGN)
        var sources: [any DispatchSourceSignal] = []
        for number in [SIGTERM, SIGINT, SIGUSR1] {
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler { action(number) }
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
