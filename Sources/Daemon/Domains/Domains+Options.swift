import Control
import FileNames
import FileProvider
import Logging
import Sync
import Syscalls
import SystemPackage

extension Domains {
    /// Applies and stores the changed options, all or none. The caller holds the domain's name.
    ///
    /// - Parameter given: new credentials; a password is verified first. Certificates and proxies take effect at the
    ///   next mount.
    /// - Throws: `failed` for options that need a new mount.
    func change(_ host: DomainHost, to request: MountRequest, _ given: GivenCredentials?) async throws {
        let (new, old) = (request.options, host.options)
        if new.isReadOnly != old.isReadOnly {
            let flag = new.isReadOnly ? "--read-only" : "--no-read-only"
            throw Self.needsMount("\(flag) does not change how it is mounted already", request.name)
        }
        for (flag, isNew, isOld) in [
            ("allow-other", new.allowsOthers, old.allowsOthers), ("dev", new.allowsDevices, old.allowsDevices),
            ("suid", new.allowsSetID, old.allowsSetID),
        ] where isNew != isOld {
            throw Self.needsMount(
                "\(isNew == true ? "--" : "--no-")\(flag) does not change how it is mounted already", request.name)
        }
        for (name, isSame) in [
            ("uid", new.user == old.user), ("gid", new.group == old.group), ("umask", new.umask == old.umask),
        ] where !isSame {
            throw Self.needsMount("it is mounted with another --\(name)", request.name)
        }
        let names = Set((new.remote ?? [:]).keys).union((old.remote ?? [:]).keys).sorted()
        if let name = names.first(where: { new.remote?[$0] != old.remote?[$0] }) {
            throw Self.needsMount("it is mounted with another value of the option '\(name)'", request.name)
        }
        if let given {
            // Variables replace those of an expired session, and need not work yet.
            try await tryOut(request, given, isNew: false, isTrying: false)
            host.engine.errorWasResolved()
        }
        guard new != old else { return }
        try await host.apply(new)
        logger.notice("'\(request.name)' has other options now")
    }

    /// Pauses or resumes a domain, also for later mounts. For a domain that is not mounted it takes effect at the
    /// next mount.
    func pause(_ isPaused: Bool, _ reference: DomainReference) async throws {
        let name = try await acquire { try knownName(of: reference) }
        defer { release(name) }
        if let host = hosts[name] { return try await host.pause(isPaused) }
        var known = try unmountedDomain(name)
        known.options.isPaused = isPaused ? true : nil
        try await keepOptions(of: known)
    }

    /// Why a domain that is not mounted makes no calls; nil if it does.
    func reasonToPause(_ options: DomainOptions, _ source: String) async -> Connection.Pause? {
        if options.isPaused == true { return .user }
        guard options.avoidsMeteredConnection(to: source) else { return nil }
        metered.join()
        defer { metered.leave() }
        return await metered.answer() ? .metered : nil
    }

    /// The options of a domain, mounted or not.
    func options(of reference: DomainReference) throws -> OptionsReport {
        let name = try knownName(of: reference)
        if let host = hosts[name] { return report(host) }
        return report(try unmountedDomain(name))
    }

    /// Changes options of a domain, all or none.
    ///
    /// - Throws: `failed` for options that do not apply to the source, or that a mounted domain cannot change.
    func setOptions(of reference: DomainReference, _ arguments: MountArguments) async throws -> OptionsReport {
        let name = try await acquire { try knownName(of: reference) }
        defer { release(name) }
        if let host = hosts[name] {
            let request = MountRequest(
                name: name, source: host.source, mountpoint: host.mountpoint.fileNameText,
                options: host.options.merging(arguments))
            try checkChange(request.options, of: name, request.source)
            try await change(host, to: request, nil)
            return report(host)
        }
        var known = try unmountedDomain(name)
        known.options = known.options.merging(arguments)
        try checkChange(known.options, of: name, known.source)
        try await keepOptions(of: known)
        return report(known)
    }

    /// As ``check(_:of:_:)``, in the words of `yonder set`.
    private func checkChange(_ options: DomainOptions, of name: String, _ source: String) throws {
        do {
            try check(options, of: name, source)
        } catch let error as ControlError where error.code == .usage {
            let message = error.message.replacing("--", with: "")
            throw ControlError(
                .usage, message + "; 'yonder show \(ShellWord.escaped(name))' shows its options", path: error.path)
        }
    }

    private func check(_ options: DomainOptions, of name: String, _ source: String) throws {
        try options.checkRights(of: name)
        try ProviderCatalog.check(options, of: source)
    }

    private func report(_ host: DomainHost) -> OptionsReport {
        OptionsReport(
            name: host.name, source: host.source, mountpoint: host.mountpoint.fileNameText, isMounted: true,
            options: host.options.report(for: host.source))
    }

    private func report(_ known: DomainStore.Known) -> OptionsReport {
        OptionsReport(
            name: known.name, source: known.source, mountpoint: known.mountpoint, isMounted: false,
            options: known.options.report(for: known.source))
    }

    /// - Throws: `unavailable` if no domain is known by the reference.
    private func knownName(of reference: DomainReference) throws(ControlError) -> String {
        guard let name = name(of: reference) else { return try host(reference).name }
        return name
    }

    /// - Throws: `failed` for a domain that is not known, or whose database is damaged.
    private func unmountedDomain(_ name: String) throws -> DomainStore.Known {
        guard let known = try store.domain(named: name) else {
            throw ControlError(.failed, "no such domain", path: name)
        }
        guard known.damage == nil else {
            throw ControlError(
                .failed, "its database is damaged; 'yonder check \(ShellWord.escaped(name)) --repair' makes a new one",
                path: name)
        }
        return known
    }

    private func keepOptions(of known: DomainStore.Known) async throws {
        let (store, logger) = (store, logger)
        try await BlockingWork.run { try store.keepOptions(of: known, logger: logger) }
    }

    private static func needsMount(_ what: String, _ name: String) -> ControlError {
        ControlError(
            .failed, "\(what); 'yonder unmount \(ShellWord.escaped(name))' first, and then mount it again so",
            path: name)
    }
}
