import Control
import FileProvider
import Foundation
import Logging
import Replica
import SystemPackage

/// The domains that are mounted, and how they come and go: one mounting or unmounting of a name at a time.
actor Domains {
    nonisolated let store: DomainStore
    nonisolated let policy: MaterializationPolicy
    /// Names that are never sent, in any domain.
    let ignoredNames: IgnoredNames
    let catalog: ProviderCatalog
    let logger: Logger
    var hosts: [String: DomainHost] = [:]
    /// Names that are being mounted or unmounted, with who waits for it.
    private var busy: [String: [CheckedContinuation<Void, Never>]] = [:]
    private(set) var isShuttingDown = false
    private var isShutDown = false
    private var waitersForEnd: [CheckedContinuation<Void, Never>] = []

    init(
        store: DomainStore, policy: MaterializationPolicy, ignoredNames: IgnoredNames, catalog: ProviderCatalog,
        logger: Logger
    ) {
        self.ignoredNames = ignoredNames
        self.catalog = catalog
        self.policy = policy
        self.store = store
        self.logger = logger
    }

    /// The mounted domains by name.
    var mounted: [DomainHost] { hosts.values.sorted { $0.name < $1.name } }

    /// The domain that is mounted under a name, or whose mount contains a path.
    ///
    /// - Throws: `unavailable` when it is known but not mounted, `failed` when it is not known.
    func host(_ reference: DomainReference) throws(ControlError) -> DomainHost {
        if let host = hosts[reference.text] { return host }
        if let host = host(containing: reference.path) { return host }
        guard (try? store.domain(named: reference.text)) == nil else {
            throw ControlError(
                .unavailable, "not mounted; 'yonder mount \(reference.text)' does it", path: reference.text)
        }
        throw ControlError(.unavailable, "no such domain, nor a path in a mounted one", path: reference.text)
    }

    /// The domain that is meant, or all that are mounted.
    func hosts(_ reference: DomainReference?) throws(ControlError) -> [DomainHost] {
        guard let reference else { return mounted }
        return [try host(reference)]
    }

    /// The domain whose mount contains a path.
    func host(containing path: String) -> DomainHost? {
        hosts.values.filter { Mountpoint.contains($0.mountpoint.string, path) }
            .max { $0.mountpoint.string.utf8.count < $1.mountpoint.string.utf8.count }
    }

    // MARK: - Mounting

    /// Mounts a source, or a known domain where it was. One that is mounted there already is fine.
    func mount(_ arguments: MountArguments) async throws -> DomainHost {
        guard !isShuttingDown else { throw ControlError(.unavailable, "the daemon is shutting down") }
        let wish = try wish(for: arguments)
        try wish.options.checkRights(of: wish.name)
        await acquire(wish.name)
        defer { release(wish.name) }
        if let host = hosts[wish.name] {
            guard host.mountpoint.string.utf8.elementsEqual(wish.mountpoint.utf8) else {
                throw ControlError(
                    .failed, "mounted on '\(host.mountpoint)' already; unmount it first", path: wish.name)
            }
            try await change(host, to: wish, arguments.credentials)
            return host
        }
        if let other = hosts.values.first(where: { $0.mountpoint.string.utf8.elementsEqual(wish.mountpoint.utf8) }) {
            throw ControlError(.failed, "'\(other.name)' is mounted there", path: wish.mountpoint)
        }
        return try await begin(wish, arguments.credentials)
    }

    /// Mounts a domain whose name the caller has acquired.
    ///
    /// - Parameter given: credentials that are not kept yet.
    func begin(_ wish: Wish, _ given: GivenCredentials? = nil) async throws -> DomainHost {
        let host = try await open(wish, given)
        hosts[wish.name] = host
        Task {
            await host.waitUntilUnmounted()
            await self.ended(host)
        }
        return host
    }

    /// Takes a domain's mount away.
    func unmount(_ host: DomainHost) async {
        await acquire(host.name)
        defer { release(host.name) }
        await host.stop()
        if hosts[host.name] === host { hosts[host.name] = nil }
    }

    // MARK: - Checking

    /// Checks domains, mounted or not, one after the other. A mounted one whose database has to be made anew is
    /// unmounted for that, and mounted again.
    func check(_ arguments: CheckArguments) async throws -> [CheckReport] {
        guard !isShuttingDown else { throw ControlError(.unavailable, "the daemon is shutting down") }
        var names: [String] = []
        if let reference = arguments.domain {
            names = [try host(named: reference)?.name ?? reference.text]
        } else {
            names = store.names()
        }
        var reports: [CheckReport] = []
        for name in names { reports.append(try await check(name, arguments)) }
        return reports
    }

    private func host(named reference: DomainReference) throws(ControlError) -> DomainHost? {
        if let host = hosts[reference.text] ?? host(containing: reference.path) { return host }
        let known: DomainStore.Known?
        do {
            known = try store.domainOrItsRemains(named: reference.text)
        } catch {
            throw ControlError(.failed, "its database cannot be read: \(error)", path: reference.text)
        }
        guard known != nil else {
            throw ControlError(.failed, "no such domain; 'yonder domains' shows all", path: reference.text)
        }
        return nil
    }

    private func check(_ name: String, _ arguments: CheckArguments) async throws -> CheckReport {
        let options = hosts[name]?.options ?? (try? store.domain(named: name))?.options ?? DomainOptions()
        let command = DomainCheck(
            name: name, arguments: arguments, options: options, catalog: catalog, logger: logger)
        if let host = hosts[name] {
            do {
                return try await command.check(host)
            } catch let damage as ReplicaDamage {
                guard arguments.isRepairing else {
                    var report = CheckReport(name: name)
                    await command.rebuild(in: store.directory(of: name), source: host.source, damage, &report)
                    return report
                }
                await unmount(host)
                let report = await checkUnmounted(name, source: host.source, command, damage)
                _ = try await mount(
                    MountArguments(source: host.source, directory: host.mountpoint.string, name: name))
                return report
            }
        }
        let source = try store.domainOrItsRemains(named: name)?.source ?? ""
        return await checkUnmounted(name, source: source, command, nil)
    }

    private func checkUnmounted(
        _ name: String, source: String, _ command: DomainCheck, _ damage: ReplicaDamage?
    ) async -> CheckReport {
        await acquire(name)
        defer { release(name) }
        let directory = store.directory(of: name)
        guard let damage else { return await command.check(in: directory, source: source) }
        var report = CheckReport(name: name)
        await command.rebuild(in: directory, source: source, damage, &report)
        return report
    }

    /// Takes all mounts away, and takes in no more.
    func shutDown() async {
        isShuttingDown = true
        await withTaskGroup(of: Void.self) { group in
            for host in hosts.values { group.addTask { await self.unmount(host) } }
        }
        isShutDown = true
        for waiter in waitersForEnd { waiter.resume() }
        waitersForEnd = []
    }

    /// Returns when all mounts have gone because of a shutdown.
    func waitUntilShutDown() async {
        guard !isShutDown else { return }
        await withCheckedContinuation { waitersForEnd.append($0) }
    }

    // MARK: - Private

    struct Wish: Sendable {
        var name: String
        var source: String
        var mountpoint: String
        var options: DomainOptions
    }

    /// Which domain is meant, and where and how it is to be mounted.
    private func wish(for arguments: MountArguments) throws -> Wish {
        guard let source = arguments.source, let directory = arguments.directory else {
            guard let name = arguments.name, let known = try store.domainOrItsRemains(named: name) else {
                throw ControlError(
                    .failed, "no such domain; 'yonder mount SOURCE DIR' adds one, 'yonder domains' shows all",
                    path: arguments.name)
            }
            if let damage = known.damage, known.source.isEmpty {
                throw ControlError(
                    .failed, "its database is damaged: \(damage); \(DomainStore.wayOut(of: name))", path: name)
            }
            guard let mountpoint = known.mountpoint else {
                throw ControlError(.usage, "was never mounted: say where", path: name)
            }
            return Wish(
                name: name, source: known.source, mountpoint: mountpoint,
                options: known.options.merging(arguments))
        }
        let name = try arguments.name ?? name(for: source, on: directory)
        guard FileProviderDomain.isValid(identifier: name) else {
            throw ControlError(.usage, "cannot be a domain's name", path: name)
        }
        var known = try store.domainOrItsRemains(named: name)
        if let remains = known, remains.damage != nil, remains.source.isEmpty {
            // The user says again what neither the database nor the file beside it can tell.
            try store.restoreRecord(of: name, DomainSidecar(source: source, mountpoint: directory, options: nil))
            known = try store.domain(named: name)
        }
        if let known, !known.source.utf8.elementsEqual(source.utf8) {
            throw ControlError(
                .failed, "is the name of a domain with another source, '\(known.source)'; choose one with --name",
                path: name)
        }
        return Wish(
            name: name, source: source, mountpoint: directory,
            options: (known?.options ?? DomainOptions()).merging(arguments))
    }

    /// The name of the domain that a source on a directory means when none is said: one that was there already, else
    /// one made of the directory's name.
    private func name(for source: String, on directory: String) throws -> String {
        let known = store.all().known.filter { $0.source.utf8.elementsEqual(source.utf8) }
        if let same = known.first(where: { $0.mountpoint?.utf8.elementsEqual(directory.utf8) == true }) {
            return same.name
        }
        let last = FilePath(directory).lastComponent?.string ?? "root"
        let base = FileProviderDomain.isValid(identifier: last) ? last : "domain"
        for number in 1... {
            let name = number == 1 ? base : "\(base)-\(number)"
            guard let taken = try store.domainOrItsRemains(named: name) else { return name }
            if taken.source.utf8.elementsEqual(source.utf8), hosts[name] == nil { return name }
        }
        return base
    }

    func open(_ wish: Wish, _ given: GivenCredentials? = nil) async throws -> DomainHost {
        let directory = store.directory(of: wish.name)
        let isNew = !FileManager.default.fileExists(atPath: directory.string)
        let (logger, policy, ignoredNames, catalog) = (logger, policy, ignoredNames, catalog)
        if !isNew, let known = try? store.domain(named: wish.name) { try await detachDeadMount(of: known) }
        let findings = try await tryOut(wish, given, isNew: isNew)
        // Opening a replica and mounting block for as long as the disk does.
        return try await Task.detached { [store] in
            var made: Mountpoint?
            do {
                try store.finishImport(of: wish.name, logger: logger)
                let place = try Mountpoint(wish.mountpoint, source: wish.source)
                made = place
                return try DomainHost(
                    domain: FileProviderDomain(identifier: wish.name, source: wish.source), directory: directory,
                    mountpoint: place.path, options: wish.options, policy: policy,
                    ignoredNames: ignoredNames, logger: logger,
                    makeProvider: { try catalog.provider(for: $0, wish.options, findings) })
            } catch {
                made?.giveUp()
                // A domain that could not be mounted once is not known.
                if isNew {
                    try? FileManager.default.removeItem(atPath: directory.string)
                    catalog.credentials.forget(wish.name)
                }
                if let damage = error as? ReplicaDamage {
                    throw ControlError(
                        .failed,
                        "its database is damaged: \(damage); 'yonder check \(wish.name) --repair' makes a new one from "
                            + "the remote and keeps what is here", path: wish.name)
                }
                if let error = error as? FileProviderError {
                    throw ControlError(
                        error.errno == .notPermitted ? .notPermitted : .failed, error.message, path: wish.source)
                }
                throw error
            }
        }.value
    }

    /// A remote that is new has to answer, and to let us in; one that is known may be away. Credentials are kept once
    /// they have worked, or cannot be tried: while the domain is paused nobody asks the remote.
    ///
    /// - Parameter isTrying: false to keep variables untried. A password is tried.
    /// - Returns: what was found out about it.
    @discardableResult
    func tryOut(
        _ wish: Wish, _ given: GivenCredentials?, isNew: Bool, isTrying: Bool = true
    ) async throws -> ProviderCatalog.Findings? {
        // What is left of another domain of this name is not this one's.
        let kept = isNew ? nil : catalog.credentials.credentials(of: wish.name)
        let all = given.map { $0.replacing(kept) } ?? kept
        let hasNews = given?.hasPassword == true || all != kept
        guard isNew || hasNews else { return nil }
        var findings: ProviderCatalog.Findings?
        let domain = FileProviderDomain(identifier: wish.name, source: wish.source)
        do {
            if wish.options.isPaused != true, isTrying || given?.hasPassword == true {
                findings = try await catalog.tryOut(domain, wish.options, given: all)
            }
        } catch let error as FileProviderError {
            let isAway = error.code != .notAuthenticated && error.code != .providerNotFound
            guard !isNew, isAway else { throw ControlError(.failed, error.message, path: wish.source) }
        }
        if isNew || hasNews { try keep(all, of: wish.name) }
        return findings
    }

    private func keep(_ all: GivenCredentials?, of name: String) throws {
        guard let all else { return catalog.credentials.forget(name) }
        do {
            try catalog.credentials.keep(all, of: name)
        } catch let error as ControlError {
            throw error
        } catch {
            throw ControlError(.failed, "the credentials cannot be kept: \(error)", path: name)
        }
    }

    /// Somebody took the mount away, us or another.
    private func ended(_ host: DomainHost) async {
        guard hosts[host.name] === host else { return }
        logger.notice("'\(host.name)' was unmounted")
        await unmount(host)
    }

    func acquire(_ name: String) async {
        while busy[name] != nil {
            await withCheckedContinuation { busy[name, default: []].append($0) }
        }
        busy[name] = []
    }

    func release(_ name: String) {
        for waiter in busy.removeValue(forKey: name) ?? [] { waiter.resume() }
    }
}
