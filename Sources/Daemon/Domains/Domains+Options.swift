import Control
import FileProvider
import Logging
import Sync

/// Changes of options of a mounted domain.
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
        let names = Set((new.remote ?? [:]).keys).union((old.remote ?? [:]).keys).sorted()
        if let name = names.first(where: { new.remote?[$0] != old.remote?[$0] }) {
            throw Self.needsMount("it is mounted with another --\(name)", request.name)
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
        guard let name = name(of: reference) else {
            _ = try host(reference)
            return
        }
        await acquire(name)
        defer { release(name) }
        if let host = hosts[name] { return try await host.pause(isPaused) }
        guard var known = try store.domain(named: name) else {
            throw ControlError(.failed, "no such domain", path: name)
        }
        guard known.damage == nil else {
            throw ControlError(
                .failed, "its database is damaged; 'yonder check \(name) --repair' makes a new one", path: name)
        }
        known.options.isPaused = isPaused ? true : nil
        let (store, logger) = (store, logger)
        try await Task.detached { [known] in try store.keepOptions(of: known, logger: logger) }.value
    }

    private static func needsMount(_ what: String, _ name: String) -> ControlError {
        ControlError(.failed, "\(what); 'yonder unmount \(name)' first, and then mount it again so", path: name)
    }
}
