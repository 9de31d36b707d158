import Control
import FileProvider
import Logging
import Sync

/// Other options for a domain that is mounted.
extension Domains {
    /// Applies what a command wants otherwise than it is, all of it or nothing, and keeps that. The caller has acquired
    /// the domain's name.
    ///
    /// - Parameter given: credentials, which are kept; a password is tried before. Certificates and proxies count from the
    ///   next mount on.
    /// - Throws: `failed` for what only a new mount can change.
    func change(_ host: DomainHost, to wish: Wish, _ given: GivenCredentials?) async throws {
        let (new, old) = (wish.options, host.options)
        if new.isReadOnly != old.isReadOnly {
            let flag = new.isReadOnly ? "--read-only" : "--no-read-only"
            throw Self.needsMount("\(flag) does not change how it is mounted already", wish.name)
        }
        for (flag, isNew, isOld) in [
            ("allow-other", new.allowsOthers, old.allowsOthers), ("dev", new.allowsDevices, old.allowsDevices),
            ("suid", new.allowsSetID, old.allowsSetID),
        ] where isNew != isOld {
            throw Self.needsMount(
                "\(isNew == true ? "--" : "--no-")\(flag) does not change how it is mounted already", wish.name)
        }
        if new.objectStore != old.objectStore, old.objectStore != nil {
            throw Self.needsMount("it is mounted with another endpoint, region or profile", wish.name)
        }
        if let given {
            // Variables of a session that has run out are replaced so, and need not work yet.
            try await tryOut(wish, given, isNew: false, isTrying: false)
            host.engine.errorWasResolved()
        }
        guard new != old else { return }
        try await host.apply(new)
        logger.notice("'\(wish.name)' has other options now")
    }

    /// Pauses or resumes a domain, for this mount and later ones. One that is not mounted begins so at its next mount.
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
