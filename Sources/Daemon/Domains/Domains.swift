import Control
import FileNames
import FileProvider
import Foundation
import Logging
import Mount
import ProviderDescriptors
import Replica
import Sync
import Synchronization
import Syscalls
import SystemPackage

/// The mounted domains. Mounts and unmounts of one name are serialized.
actor Domains {
    nonisolated let store: DomainStore
    nonisolated let policy: MaterializationPolicy
    /// Name patterns that are excluded from sync in every domain.
    let ignoredNames: IgnoredNames
    let catalog: ProviderCatalog
    nonisolated let manager: ServiceManager
    nonisolated let metered: MeteredConnection
    let logger: Logger
    var hosts = NameTable<DomainHost>()
    /// The domains that were mounted because the last daemon had mounted them, and not by a command since.
    var mountedAgain: Set<String> = []
    /// The domains that are to be mounted again, and found no room on the disk at first.
    var withoutRoom: [String: WantOfRoom] = [:] {
        didSet { if withoutRoom != oldValue { noteWithoutRoom() } }
    }
    /// Nil until all domains were tried.
    var mark: MountedAgainMark?
    /// Names that are being mounted or unmounted, with their waiters.
    private var busy: [String: [CheckedContinuation<Void, Never>]] = [:]
    /// The mounts that are being made.
    private var beginning = NameTable<Task<DomainHost, any Error>>()
    private(set) var isShuttingDown = false
    /// The same, for threads that wait.
    nonisolated let isEnding = Atomic(false)
    private let followers = EventFollowers()
    static let shutdownError = ControlError(.unavailable, "the daemon is shutting down")
    private var isShutDown = false
    private var waitersForEnd: [CheckedContinuation<Void, Never>] = []

    init(
        store: DomainStore, policy: MaterializationPolicy, ignoredNames: IgnoredNames, catalog: ProviderCatalog,
        manager: ServiceManager, metered: MeteredConnection, logger: Logger
    ) {
        self.manager = manager
        self.metered = metered
        self.ignoredNames = ignoredNames
        self.catalog = catalog
        self.policy = policy
        self.store = store
        self.logger = logger
    }

    var mounted: [DomainHost] { hosts.values.sorted { $0.name < $1.name } }

    /// The mounted domain that a reference names; see ``name(of:)``.
    ///
    /// - Throws: `unavailable` for a domain that is not mounted or not known.
    func host(_ reference: DomainReference) throws(ControlError) -> DomainHost {
        guard let name = name(of: reference) else {
            throw unknownDomain(reference)
        }
        guard let host = hosts[name] else {
            let isBeginning = beginning[name] != nil
            let reason =
                isBeginning
                ? "it is being mounted"
                : withoutRoom[name].map(Self.text) ?? "not mounted; 'yonder mount \(ShellWord.escaped(name))' mounts it"
            throw ControlError(.unavailable, reason, path: reference.text)
        }
        return host
    }

    /// - Throws: `failed` if a domain other than `host` is mounted on a directory.
    func refuseOther(than host: DomainHost? = nil, on directory: String) throws(ControlError) {
        let other = hosts.values.first { $0 !== host && $0.isMounted(on: directory) }
        if let other {
            throw ControlError(.failed, "'\(other.name)' is mounted there", path: directory)
        }
    }

    /// The referenced domain, or all mounted domains.
    func hosts(_ reference: DomainReference?) throws(ControlError) -> [DomainHost] {
        guard let reference else { return mounted }
        return [try host(reference)]
    }

    /// The events of the referenced domain, or of all mounted domains and of each one that is mounted before the daemon ends.
    ///
    /// - Throws: as ``host(_:)``.
    func events(of reference: DomainReference?) throws(ControlError) -> AsyncStream<DomainEvents> {
        let present = try hosts(reference).map(DomainEvents.init(of:))
        return followers.add(after: present, isLasting: reference == nil && !isShuttingDown)
    }

    /// The domain to whose mount a path leads: not to another file system that is mounted over it, or below it.
    func host(containing path: String) -> DomainHost? {
        guard let mount = (try? MountTable())?.mount(containing: path) else { return nil }
        return hosts.values.first { $0.mounted.isMount(mount) }
    }

    /// The domain to whose mount a path leads.
    ///
    /// - Throws: `unavailable` if there is none.
    func mountedHost(of path: String) throws(ControlError) -> DomainHost {
        if let host = host(containing: path) { return host }
        let places = hosts.values.map { (name: $0.name, place: $0.place.fileNameText) }
        let hidden = places.filter { Mountpoint.contains($0.place, path) }.max {
            $0.place.utf8.count < $1.place.utf8.count
        }
        if let hidden {
            throw ControlError(
                .unavailable,
                "it does not lead to the mount of '\(hidden.name)': another file system is mounted there, or the mount is detached",
                path: path)
        }
        throw ControlError(.unavailable, "not in a mounted domain; 'yonder domains' shows the mounts", path: path)
    }

    /// Where a known domain is mounted, or was last; nil if it never was.
    func mountpoint(of known: DomainStore.Known) -> String? {
        hosts[known.name]?.mountpoint.fileNameText ?? known.mountpoint
    }

    // MARK: - Mounting

    /// Mounts a source, or a known domain on its last mount point. Returns the existing mount if there is one.
    func mount(_ arguments: MountArguments) async throws -> DomainHost {
        let name = try await acquire { try self.name(for: arguments) }
        defer { release(name) }
        let request = try request(for: arguments, named: name)
        try request.options.checkRights(of: name)
        try ProviderCatalog.check(request.options, of: request.source)
        // Another domain may be about to be mounted there. A path is no name of a domain.
        await acquire(request.mountpoint)
        defer { release(request.mountpoint) }
        guard !isShuttingDown else { throw Self.shutdownError }
        if let host = hosts[request.name] {
            // No program can reach a detached mount by a path.
            if host.isDetached { return try await move(host, to: request, arguments.credentials) }
            try host.checkUncovered()
            if host.mountpoint.fileNameText.utf8.elementsEqual(request.mountpoint.utf8) {
                mountedAgain.remove(request.name)
                try await change(host, to: request, arguments.credentials)
                return host
            }
            try refuseMove(of: host)
            return try await move(host, to: request, arguments.credentials)
        }
        try refuseOther(on: request.mountpoint)
        let host = try await begin(request, arguments.credentials)
        mountedAgain.remove(request.name)
        return host
    }

    /// Mounts a domain whose name the caller holds.
    ///
    /// - Parameters:
    ///   - given: credentials that are not stored yet.
    ///   - findings: what was detected when they were tried before.
    func begin(
        _ request: MountRequest, _ given: GivenCredentials? = nil, findings: ProviderFindings? = nil,
        previous: PreviousMount? = nil
    ) async throws -> DomainHost {
        // It may have waited for something since its caller asked.
        guard !isShuttingDown else { throw Self.shutdownError }
        let task = Task {
            // It must not begin with calls over a connection that it avoids, and the host asks further.
            let avoidsMetered = request.options.avoidsMeteredConnection(to: request.source)
            if avoidsMetered { metered.join() }
            defer { if avoidsMetered { metered.leave() } }
            if avoidsMetered { _ = await metered.answer() }
            if let previous { return try await takeOver(request, previous) }
            return try await open(request, given, findings)
        }
        beginning[request.name] = task
        defer { beginning[request.name] = nil }
        let host = try await withTaskCancellationHandler {
            try await task.value
        } onCancel: {
            task.cancel()
        }
        hosts[request.name] = host
        withoutRoom[request.name] = nil
        guard !isShuttingDown else {
            await stop(host)
            throw Self.shutdownError
        }
        host.store(in: manager)
        followers.tell(of: host)
        Task {
            await host.waitUntilUnmounted()
            await self.ended(host)
        }
        return host
    }

    func unmount(_ host: DomainHost) async {
        await acquire(host.name)
        defer { release(host.name) }
        await stop(host)
    }

    /// Unmounts a domain whose name the caller holds.
    ///
    /// - Returns: the number of pending changes; nil if they cannot be counted.
    @discardableResult
    func stop(_ host: DomainHost) async -> Int? {
        let pending = await host.stop()
        host.remove(from: manager)
        if hosts[host.name] === host {
            hosts[host.name] = nil
            logger.notice("'\(host.name)' was unmounted")
        }
        return pending
    }

    /// Unmounts all domains and refuses further mounts.
    func shutDown() async {
        isShuttingDown = true
        isEnding.store(true, ordering: .relaxed)
        followers.finish()
        // A mount that is being made would outlive the others, and the daemon.
        for name in beginning.names {
            beginning[name]?.cancel()
            await acquire(name)
            release(name)
        }
        await withTaskGroup(of: Void.self) { group in
            for host in hosts.values { group.addTask { await self.unmount(host) } }
        }
        isShutDown = true
        for waiter in waitersForEnd { waiter.resume() }
        waitersForEnd = []
    }

    /// Returns when a shutdown has unmounted all domains.
    func waitUntilShutDown() async {
        guard !isShutDown else { return }
        await withCheckedContinuation { waitersForEnd.append($0) }
    }

    private func takeOver(_ request: MountRequest, _ previous: PreviousMount) async throws -> DomainHost {
        let directory = store.directory(of: request.name)
        let (logger, policy, ignoredNames, catalog, metered) = (logger, policy, ignoredNames, catalog, metered)
        return try await BlockingWork.run {
            try DomainHost(
                domain: FileProviderDomain(identifier: request.name, source: request.source), directory: directory,
                mountpoint: FilePath(fileNamed: request.mountpoint), options: request.options, previous: previous,
                policy: policy,
                ignoredNames: ignoredNames, metered: metered, logger: logger,
                makeProvider: { try catalog.provider(for: $0, request.options, nil) })
        }
    }

    private func open(
        _ request: MountRequest, _ given: GivenCredentials?, _ findings: ProviderFindings?
    ) async throws -> DomainHost {
        let directory = store.directory(of: request.name)
        let isNew = !FileManager.default.fileExists(atPath: directory.string)
        let (logger, policy, ignoredNames, catalog, metered) = (logger, policy, ignoredNames, catalog, metered)
        var old: String?
        if !isNew, let known = try? store.domain(named: request.name) {
            try await detachDeadMount(of: known)
            old = known.mountpoint.flatMap { $0.utf8.elementsEqual(request.mountpoint.utf8) ? nil : $0 }
        }
        let obstacle = try await BlockingWork.run { [store] in store.obstacle(toUsing: request.source) }
        // The changes that wait in a known domain must reach the source.
        if isNew, let obstacle { throw ControlError(.failed, obstacle, path: request.source) }
        let found = try await tryOut(request, given, isNew: isNew) ?? findings
        // Opening a replica and mounting block on the disk.
        return try await BlockingWork.run { [store, old] in
            var made: Mountpoint?
            // The new place may lie in the old one.
            let released = old.flatMap { Mountpoint.release($0) ? $0 : nil }
            do {
                // The mount would hide the state, and the files that are found there are moved into it.
                if request.hidesFiles { try store.refuseState(in: request.mountpoint) }
                // A removal that failed is not finished at the next start when the domain was mounted after it.
                if !isNew { store.withdrawDecision(of: request.name) }
                let left = try store.finishImport(of: request.name, logger: logger)
                let place = try Mountpoint(
                    request.mountpoint, source: request.source, isKnown: !isNew, mayHaveFiles: request.hidesFiles)
                made = place
                let host = try DomainHost(
                    domain: FileProviderDomain(identifier: request.name, source: request.source), directory: directory,
                    mountpoint: place.path, options: request.options, policy: policy,
                    ignoredNames: ignoredNames, metered: metered, logger: logger,
                    makeProvider: { try catalog.provider(for: $0, request.options, found) })
                place.protect()
                if let obstacle { host.engine.warnings.report("the source '\(request.source)': \(obstacle)") }
                for path in left {
                    host.engine.warnings.report("'\(path)' was changed after it was imported, and is left there")
                }
                return host
            } catch {
                made?.giveUp()
                if let released { Mountpoint.protect(released) }
                // A new domain is forgotten if its first mount fails.
                if isNew {
                    try? FileManager.default.removeItem(atPath: directory.string)
                    catalog.credentials.forget(request.name)
                }
                if let damage = error as? ReplicaDamage {
                    let word = ShellWord.escaped(request.name)
                    throw ControlError(
                        .failed,
                        "its database is damaged: \(damage); 'yonder check \(word) --repair' makes a new one from "
                            + "the remote and keeps what is here", path: request.name)
                }
                if let error = error as? FileProviderError {
                    throw ControlError(
                        error.errno == .notPermitted ? .notPermitted : .failed, error.message, path: request.source)
                }
                throw error
            }
        }
    }

    /// Connects to the remote of a domain. A new remote must answer and accept the credentials; a known one may be
    /// unreachable. Credentials are stored once they have worked, or if they cannot be tried because the domain is
    /// paused.
    ///
    /// - Parameter isTrying: false to store environment variables untried; a password is tried in any case.
    /// - Returns: what was detected about the remote.
    @discardableResult
    func tryOut(
        _ request: MountRequest, _ given: GivenCredentials?, isNew: Bool, isTrying: Bool = true
    ) async throws -> ProviderFindings? {
        // Stored credentials may belong to an earlier domain with this name.
        let kept = isNew ? nil : catalog.credentials.credentials(of: request.name)
        let all =
            given.map { $0.replacing(kept, exclusive: ProviderCatalog.identityVariables(of: request.source)) } ?? kept
        let hasNews = given?.hasSecrets == true || all != kept
        guard isNew || hasNews else { return nil }
        var findings: ProviderFindings?
        let domain = FileProviderDomain(identifier: request.name, source: request.source)
        do {
            // Only a known domain can be paused already.
            let reason = isNew ? nil : await reasonToPause(request.options, request.source)
            if reason == nil, isTrying || given?.hasSecrets == true {
                findings = try await catalog.tryOut(domain, request.options, given: all)
            }
        } catch let error as FileProviderError {
            let isAway = error.code != .notAuthenticated && error.code != .providerNotFound
            guard !isNew, isAway else {
                let code: ControlError.Code = error.code == .notAuthenticated ? .notAuthenticated : .failed
                throw ControlError(code, error.message, path: request.source)
            }
        }
        if isNew || hasNews { try keep(all, of: request.name) }
        return findings
    }

    func keep(_ all: GivenCredentials?, of name: String) throws {
        guard let all else { return catalog.credentials.forget(name) }
        do {
            try catalog.credentials.keep(all, of: name)
        } catch let error as ControlError {
            throw error
        } catch {
            throw ControlError(.failed, "the credentials cannot be kept: \(reason(of: error))", path: name)
        }
    }

    /// Ends a domain whose mount was ended, by this daemon or another process. Returns when the domain is listed as not mounted, also if
    /// another caller ends it.
    func ended(_ host: DomainHost) async {
        await acquire(host.name)
        defer { release(host.name) }
        if hosts[host.name] === host { await stop(host) }
    }

    func acquire(_ name: String) async {
        await acquire { name }
    }

    /// Acquires the name that a look-up finds. The commands for which this waits may have mounted, unmounted or removed the domain:
    /// the look-up is repeated after each of them, and is true as long as the caller holds the name.
    @discardableResult
    func acquire(_ find: () throws -> String) async rethrows -> String {
        var name = try find()
        while busy[name] != nil {
            await wait(for: name)
            name = try find()
        }
        busy[name] = []
        return name
    }

    private func wait(for name: String) async {
        await withCheckedContinuation { busy[name, default: []].append($0) }
    }

    func release(_ name: String) {
        for waiter in busy.removeValue(forKey: name) ?? [] { waiter.resume() }
    }
}
