import Control
import FileProvider
import Logging
import Replica

/// Mounts that a killed daemon has left: the domain is known and not mounted, and accesses fail with ENOTCONN.
extension Domains {
    /// Unmounts a domain, or detaches its dead mount. The next daemon does not mount it.
    ///
    /// - Throws: `unavailable` for a domain that is not mounted or not known.
    func unmount(_ reference: DomainReference) async throws -> UnmountReport {
        let name = name(of: reference)
        if let host = name.flatMap({ hosts[$0] }) {
            try host.checkUncovered()
            host.forgetMounting()
            return UnmountReport(name: host.name, pending: await unmount(host))
        }
        guard let name, let known = try store.domain(named: name) else {
            _ = try host(reference)
            throw ControlError(.unavailable, "not mounted", path: reference.text)
        }
        await acquire(known.name)
        defer { release(known.name) }
        if let host = hosts[known.name] {
            // It was mounted concurrently.
            try host.checkUncovered()
            host.forgetMounting()
            return UnmountReport(name: host.name, pending: await stop(host))
        }
        let wasDead = try await detachDeadMount(of: known)
        let directory = store.directory(of: known.name)
        if !wasDead, !known.isToBeMounted { _ = try host(reference) }
        let pending = try await BlockingWork.run { [logger] in
            let replica = try Replica(at: directory, readers: 2, logger: logger)
            defer { try? replica.close() }
            try replica.database.set(.isToBeMounted, to: nil as String?)
            return try replica.database.pendingCounts().items
        }
        if !wasDead { _ = try host(reference) }
        return UnmountReport(name: known.name, pending: pending)
    }

    /// Detaches the dead mount of a domain that this daemon has not mounted. The caller holds the domain's name.
    ///
    /// - Returns: whether there was one.
    @discardableResult
    func detachDeadMount(of known: DomainStore.Known) async throws -> Bool {
        guard let mountpoint = known.mountpoint else { return false }
        let (name, logger) = (known.name, logger)
        return try await BlockingWork.run {
            let wasThere = try Mountpoint.removeDeadMounts(of: name, on: mountpoint)
            if wasThere { logger.notice("'\(mountpoint)' was a dead mount of '\(name)', and is detached") }
            return wasThere
        }
    }

    /// The name of the domain that a reference names; nil for none. The name of a known domain takes precedence over a path,
    /// also when the domain is not mounted: the working directory may be in the mount of another domain.
    ///
    /// A word without a slash may be a mistyped name, which is a path in the working directory only if there is such an item.
    func name(of reference: DomainReference) -> String? {
        if hosts[reference.text] != nil || (try? store.domain(named: reference.text)) != nil { return reference.text }
        let mayBeName = !reference.text.contains("/") && ![".", ".."].contains(reference.text)
        if let host = host(containing: reference.path) {
            let existence = PathResolver(host: host).existence(of: reference.path)
            return existence ?? !mayBeName ? host.name : nil
        }
        let known = store.all().known.first { known in
            guard let mountpoint = mountpoint(of: known) else { return false }
            return mayBeName
                ? mountpoint.utf8.elementsEqual(reference.path.utf8) : Mountpoint.contains(mountpoint, reference.path)
        }
        return known?.name
    }
}
