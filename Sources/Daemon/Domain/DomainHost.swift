import Control
import FUSE
import FileProvider
import Foundation
import Logging
import Mount
import Replica
import Sync
import Synchronization
import Syscalls
import SystemPackage
import Volume

/// A mounted domain: its replica, engine, volume and mount. The initializer is the composition root.
package final class DomainHost: Sendable {
    package let name: String
    package let source: String
    /// Where it was mounted, or was taken over.
    private let originalMountpoint: FilePath
    package let replica: Replica
    package let engine: SyncEngine
    let volume: Volume
    let mounted: VolumeMount
    /// Nil where no user's cache is known.
    private let thumbnails: ThumbnailMaker?
    let budget: FetchBudget
    private let pausing: DomainPausing
    private let present: Mutex<DomainOptions>
    private let directory: FilePath
    /// The name patterns that are excluded from sync in every domain.
    private let ignoredNames: IgnoredNames
    private let files: OpenFiles
    private let logger: Logger
    private let events = ChangeEvents(attribute: YonderAttribute.changed)
    /// The end of the mount, once it has begun.
    private let ending = Mutex<Task<Int?, Never>?>(nil)
    /// The number under which the service manager keeps the mount.
    private let stored: Mutex<UInt32?>
    /// Compares the content files with their rows, which takes long in a large replica.
    private let recovery: Task<Void, Never>

    package typealias ProviderMaker =
        @Sendable (any FileProviderManager) throws -> any FileProviderReplicatedExtension

    /// Opens or creates a domain's replica and mounts it. The mount is usable when this returns. Blocks on the disk and on
    /// `makeProvider`.
    ///
    /// Each part is constructed from the parts above it. Only the manager is connected later: a provider is constructed
    /// with its manager and may call it at once, and the host needs the provider. The manager keeps what it is told until
    /// then.
    ///
    /// - Parameters:
    ///   - directory: holds the replica.
    ///   - mountpoint: an empty directory; or where the previous mount is.
    ///   - previous: a mount that an earlier process made, to be taken over.
    ///   - policy: decides which processes may materialize; nil for the default rules.
    ///   - ignoredNames: name patterns that are excluded from sync, in addition to those of the options.
    ///   - metered: tells a domain that asks for it when to wait; nil if no connection is metered.
    /// - Throws: ``FileProviderError``: the provider's, or `posix` with the error of `mount`; the replica's errors.
    package init(
        domain: FileProviderDomain, directory: FilePath, mountpoint: FilePath, options: DomainOptions,
        previous: PreviousMount? = nil, policy: MaterializationPolicy? = nil, ignoredNames: IgnoredNames = .usual,
        metered: MeteredConnection? = nil, logger: Logger, makeProvider: ProviderMaker
    ) throws {
        let policy = policy ?? MaterializationPolicy(rules: .usual, logger: logger)
        var domain = domain
        domain.isReadOnly = options.isReadOnly
        var logger = logger
        logger[metadataKey: "domain"] = "\(domain.identifier)"
        let files = try previous?.files ?? OpenFiles()
        let replica = try Replica(
            at: directory, readers: VolumeMount.threads + Self.otherReaders, open: files, isTakenOver: previous != nil,
            mayWait: previous?.mayWait ?? { true }, finishesRecovery: false, logger: logger)
        var made: (any FileProviderReplicatedExtension)?
        do {
            if previous == nil {
                // The kernel numbers the requests of each mount anew, and has cached nothing.
                try replica.database.forgetAnswers()
                try replica.database.forgetInvalidations()
            }
            let providerState = directory.appending("provider")
            try providerState.makeDirectory()
            let manager = DomainManager(domain: domain, stateDirectory: providerState, replica: replica, logger: logger)
            let provider = try makeProvider(manager)
            made = provider
            let isReadOnly = options.isReadOnly || !provider.features.writing
            var ignoredNames = ignoredNames
            ignoredNames.sendsByteNames = provider.features.byteNames
            try replica.ignore(ignoredNames.adding(options))
            let session = try VolumeMount.makeSession(
                source: Mountpoint.source(of: domain.identifier), rights: options.mountRights,
                // For tests of mounts without passthrough.
                allowsPassthrough: ProcessInfo.processInfo.environment["YONDER_PASSTHROUGH"] != "0")
            let announcer = ChangeAnnouncer(
                database: replica.database, notifications: session.notifications, events: events)
            let kernel = KernelInvalidator(
                notifications: session.notifications, database: replica.database, announcer: announcer,
                logger: logger)
            engine = SyncEngine(
                provider: provider, replica: replica, open: files, kernel: kernel,
                polling: options.polling(wherever: provider.features.changeFeed), domainName: domain.identifier,
                isReadOnly: isReadOnly, cacheLimits: options.cacheLimits,
                accounting: policy.budget.accounting(of: domain.identifier), conflictLabel: Replica.conflictLabel,
                logger: logger)
            engine.keep(to: options.transferLimits)
            pausing = DomainPausing(engine, of: domain.source, options, metered: metered)
            volume = Volume(
                replica: replica, files: files,
                ownership: options.ownership,
                isReadOnly: isReadOnly, waitsForRemote: options.waitsForRemote ?? false, logger: logger,
                observer: EngineObserver(engine: engine, policy: policy))
            let environment = ProcessInfo.processInfo.environment
            thumbnails = ThumbnailCache(environment: environment).map { [engine, database = replica.database] cache in
                ThumbnailMaker(
                    engine: engine, database: database, cache: cache,
                    scaler: ImageScaler(
                        directory: directory.appending("scaling"), environment: environment, logger: logger),
                    mountPoint: { session.mountPoint }, announce: { announcer.announce([.attributes($0)]) },
                    logger: logger)
            }
            mounted = VolumeMount(
                session: session, volume: volume,
                provisioning: Provisioner(
                    engine: engine, policy: policy, thumbnails: thumbnails, domain: domain.identifier))
            let unsent = try previous == nil ? ReplicaEffects() : replica.database.unsentInvalidations()
            do {
                if let previous {
                    let missed = previous.missed.map { MissedRequests(in: $0) }
                    try mounted.takeOver(
                        try previous.device.duplicateCloseOnExec(), of: previous.description.session, counting: missed
                    ) {
                        announcer.begin(in: session)
                        // Before a file is opened: the kernel may have pages and sizes of versions before those that the replica has.
                        kernel.forget(unsent)
                    }
                } else {
                    try mounted.mount(at: mountpoint)
                    announcer.begin(in: session)
                }
            } catch {
                let obstacle = MountObstacle.ofDevice().map { "; \($0.text)" } ?? ""
                throw FileProviderError.posix(error, "cannot mount on '\(mountpoint)': \(error)\(obstacle)")
            }
            do {
                // The options are stored only after they have worked.
                try replica.database.set(.source, to: domain.source)
                try replica.database.set(.mountpoint, to: mountpoint.fileNameText)
                try options.keep(in: replica, of: domain.source, on: mountpoint.fileNameText, directory)
                if previous == nil { try replica.database.set(.isToBeMounted, to: "") }
            } catch {
                if previous == nil { session.abort() }
                guard ReplicaDamage(error) == nil else { throw error }
                throw ControlError(
                    .failed, "how it is mounted cannot be kept there: \(error.reason)", path: directory.string)
            }
            name = domain.identifier
            source = domain.source
            originalMountpoint = mountpoint
            present = Mutex(options)
            self.directory = directory
            self.ignoredNames = ignoredNames
            self.replica = replica
            budget = policy.budget
            self.files = files
            self.logger = logger
            stored = Mutex(previous?.number)
            recovery = Task { [engine] in
                let areCompared = await replica.finishRecovery(retryingAfter: DomainHost.pauseAfterFailedRecovery) {
                    engine.warnings.report($0)
                }
                if areCompared { engine.contentFilesWereCompared() }
            }
            manager.connect(to: self)
            if let thumbnails { Task { [events = engine.events] in await thumbnails.follow(events) } }
            engine.start()
            pausing.start()
        } catch {
            // It may have threads, connections or a process.
            if let made { Task { await made.invalidate() } }
            try? replica.close()
            throw error
        }
    }

    /// Until content files are compared with their rows again: until then no content is synced.
    private static let pauseAfterFailedRecovery = Duration.seconds(600)

    /// Database readers for the engine, the provider and the control socket, in addition to the serving threads.
    private static let otherReaders = 6

    /// Where the mount is, without symbolic links. Reads the mount table.
    var place: FilePath { mounted.session.presentPath ?? mounted.session.mountPoint ?? originalMountpoint }

    /// The directory on which the user has mounted it; or where the mount is, when a directory above it was renamed. Reads the mount table.
    package var mountpoint: FilePath { isElsewhere(place) ? place : originalMountpoint }

    /// Whether a path is that on which the user has mounted it, or that of the mount, to which a symbolic link may lead.
    func isMounted(on path: String) -> Bool {
        [mountpoint, place].contains { $0.fileNameText.utf8.elementsEqual(path.utf8) }
    }

    private func isElsewhere(_ place: FilePath) -> Bool { place != mounted.session.mountPoint }

    var options: DomainOptions { present.withLock { $0 } }

    /// Applies and stores new options. `isReadOnly` and the object store take effect at the next mount.
    func apply(_ options: DomainOptions) async throws {
        try options.keep(in: replica, of: source, on: mountpoint.fileNameText, directory)
        let old = present.withLock { present in
            defer { present = options }
            return present
        }
        if options.cacheLimits != old.cacheLimits { await engine.keep(to: options.cacheLimits) }
        engine.keep(to: options.transferLimits)
        if options.pollSeconds != old.pollSeconds {
            engine.poll(options.polling(wherever: engine.hasChangeFeed))
        }
        volume.waitsForRemote = options.waitsForRemote ?? false
        if options.ignoredNames ?? [] != old.ignoredNames ?? [] {
            try replica.ignore(ignoredNames.adding(options))
            engine.localChange()
        }
        pausing.keep(to: options)
    }

    /// The next daemon does not mount the domain. On a full disk it may.
    func forgetMounting() {
        do {
            try replica.database.withReserve { try replica.database.set(.isToBeMounted, to: nil as String?) }
        } catch {
            logger.warning("the next daemon will mount it again: \(error)")
        }
    }

    /// Pauses or resumes all calls of the provider, also for later mounts. One that waits because the network connection is metered
    /// is resumed until that has ended.
    func pause(_ isPaused: Bool) async throws {
        var options = options
        options.isPaused = isPaused ? true : nil
        try await apply(options)
        pausing.pause(isPaused)
    }

    /// Stores a new mount with the service manager, so that the next process can continue it. One that was taken over is stored
    /// already: it must not be removed for a moment in which this process may be killed.
    func store(in manager: ServiceManager) {
        guard stored.withLock({ $0 }) == nil, manager.keeper != nil, let record = mounted.session.record else { return }
        do {
            let description = PreviousMount.Description(domain: name, session: record)
            try files.setMountDescription(Array(JSONEncoder().encode(description)))
            let number = UInt32.random(in: 1...UInt32.max)
            let names = InheritedMount.names(number)
            stored.withLock { $0 = number }
            try manager.store(files.tableDescriptor, as: names.handles)
            try manager.store(mounted.session.device, as: names.device)
        } catch {
            logger.warning("the mount ends with this process, because it cannot be stored: \(error)")
        }
    }

    /// The mount has ended: the service manager need not keep it any more.
    func remove(from manager: ServiceManager) {
        guard let number = stored.withLock({ $0 }) else { return }
        InheritedMount.remove(number, from: manager)
    }

    package var openInodes: any OpenInodes { volume.openInodes }

    package var isMounted: Bool { mounted.session.isMounted }

    /// Whether its end has begun.
    var isEnding: Bool { ending.withLock { $0 != nil } }

    /// Whether the mount table does not have the mount, as after `umount -l` while programs have files open.
    package var isDetached: Bool { mounted.session.isDetached }

    /// Verifies that a path leads to the mount.
    ///
    /// - Throws: `failed` while another mount is on this one, or on a directory above it: no path leads to it, and it could only be left
    ///   there, dead.
    func checkUncovered() throws(ControlError) {
        guard mounted.session.isCovered else { return }
        throw ControlError(
            .failed, "another file system is mounted on it, or on a directory above it; unmount that first",
            path: mountpoint.fileNameText)
    }

    /// Unmounts and closes the replica. Pending changes stay for the next mount. Never waits for a remote that does not
    /// answer.
    ///
    /// One task does it, and all callers wait for that. It goes on when a caller is cancelled, as the command of a client that has
    /// gone away: without the waits below, the kernel loses what it has not written back.
    ///
    /// - Returns: the number of pending changes; nil if they cannot be counted.
    @discardableResult
    package func stop() async -> Int? {
        let task = ending.withLock { ending in
            let task = ending ?? Task { await self.end() }
            ending = task
            return task
        }
        return await task.value
    }

    private func end() async -> Int? {
        pausing.stop()
        events.finish()
        recovery.cancel()
        await recovery.value
        // Requests that wait for the provider are answered first: no process may hang because of the unmount.
        await thumbnails?.cancel()
        await engine.stop()
        // What programs have stored through mappings is in the kernel's cache, which goes with the connection.
        let mountpoint = mounted.session.presentMountPoint
        if let mountpoint { keep(mountpoint) }
        _ = await Self.within(Self.timeForKernel) { [self] in await writeBack(mountpoint) }
        do {
            try mounted.session.unmount()
        } catch {
            logger.error("'\(name)' cannot be unmounted: \(error)")
        }
        var isDone = await Self.within(.seconds(1)) { [mounted] in await mounted.session.waitUntilEnded() }
        if !isDone {
            mounted.session.abort()
            isDone = await Self.within(.seconds(1)) { [mounted] in await mounted.session.waitUntilEnded() }
        }
        mounted.settle()
        let pending = countPending()
        if isDone { files.closeContents() }
        do {
            try replica.close()
        } catch {
            logger.error(
                "the replica of '\(name)' was not closed in order, and is checked when it is mounted again: \(error)")
        }
        return pending
    }

    /// Counts what is pending, with what the kernel has written to files that are still open.
    private func countPending() -> Int? {
        do {
            try engine.noteWrittenFiles()
            return try replica.database.pendingCounts().items
        } catch {
            logger.warning("the pending changes of '\(name)' cannot be counted: \(error)")
            return nil
        }
    }

    /// Has the kernel write back what it keeps of a mount, or, where no path leads to it, of all file systems. Another process waits for
    /// that: a thread that is killed while it waits for its own process never ends, and the mount hangs with it. Only where no such process
    /// can do it, a thread of this one does, for a mount to which a path leads.
    private func writeBack(_ mountpoint: FilePath?) async {
        let launch = ChildProcess.Launch(
            "sync", mountpoint.map { ["--file-system", "--", $0.fileNameText] } ?? [],
            environment: ProcessInfo.processInfo.environment)
        do {
            let (end, errors) = try await ChildProcess.run(launch, reading: .errors, within: Self.timeForKernel)
            if end == .exited(0) { return }
            let words = String(decoding: errors, as: UTF8.self)
            logger.warning("'\(name)' is written back by the daemon itself: sync: \(end) \(words)")
        } catch ChildProcess.RunError.timedOut {
            return
        } catch {
            logger.warning("'\(name)' is written back by the daemon itself: \(error)")
        }
        try? await BlockingWork.run { try mountpoint?.syncFileSystem() }
    }

    /// The next mount is made where this one was last, and not where it was made.
    private func keep(_ mountpoint: FilePath) {
        guard isElsewhere(mountpoint) else { return }
        do {
            try replica.database.set(.mountpoint, to: mountpoint.fileNameText)
            try options.keep(in: replica, of: source, on: mountpoint.fileNameText, directory)
        } catch {
            logger.warning("'\(name)' is mounted on '\(originalMountpoint)' the next time: \(error)")
        }
    }

    /// Returns when the mount has ended, also when another process has unmounted it.
    package func waitUntilUnmounted() async {
        await mounted.session.waitUntilEnded()
    }

    /// Returns when the kernel has processed all invalidations so far. Before that, a process may still reach an item
    /// by its old name and write to it. The wait is limited, because a process that waits for the remote may hold the
    /// lock of a directory.
    package func tellKernel() async {
        _ = await Self.within(Self.timeForKernel) { [mounted] in await mounted.drainNotifications() }
    }

    private static let timeForKernel = Duration.seconds(5)

    private static func within(_ time: Duration, _ body: @escaping @Sendable () async -> Void) async -> Bool {
        let task = Task<Void, any Error> { await body() }
        return await task.result(within: time) != nil
    }
}

extension IgnoredNames {
    /// These patterns and those of one domain.
    fileprivate func adding(_ options: DomainOptions) -> IgnoredNames {
        IgnoredNames(patterns + (options.ignoredNames ?? []), sendsByteNames: sendsByteNames)
    }
}
