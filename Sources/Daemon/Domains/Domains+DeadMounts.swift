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
        let before = name(of: reference)
        let hostBefore = before.flatMap { hosts[$0] }
        let name = try await acquire {
            // A path in a dead mount may not exist in the mount that another command has made meanwhile.
            guard let found = self.name(of: reference) ?? before else { throw self.unknownDomain(reference) }
            return found
        }
        defer { release(name) }
        if let host = hosts[name] {
            try host.checkUncovered()
            host.forgetMounting()
            return UnmountReport(name: name, pending: await stop(host))
        }
        guard let known = try store.domain(named: name) else { throw unknownDomain(reference) }
        let wasDead = try await detachDeadMount(of: known)
        // What this waited for may have unmounted it.
        let wasMounted = wasDead || hostBefore?.name == name
        let directory = store.directory(of: name)
        if !wasMounted, !known.isToBeMounted { _ = try host(reference) }
        let pending = try await BlockingWork.run { [logger] in
            let replica = try Replica(at: directory, readers: 2, logger: logger)
            defer { try? replica.close() }
            try replica.database.set(.isToBeMounted, to: nil as String?)
            return try replica.database.pendingCounts().items
        }
        withoutRoom[name] = nil
        if !wasMounted { _ = try host(reference) }
        return UnmountReport(name: name, pending: pending)
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
    /// A word without a slash may be a mistyped name, which is a path in the working directory only if there is such an item. A symbolic
    /// link to the directory of a domain names the domain, also when it is not mounted.
    func name(of reference: DomainReference) -> String? {
        if hosts[reference.text] != nil || withoutRoom[reference.text] != nil { return reference.text }
        if (try? store.domain(named: reference.text)) != nil { return reference.text }
        let mayBeName = Self.mayBeName(reference.text)
        if let host = host(containing: reference.path) {
            let existence = PathResolver(host: host).existence(of: reference.path)
            return existence ?? !mayBeName ? host.name : nil
        }
        let places = Self.places(reference.path, reference.link)
        let known = store.all().known.first { known in
            guard let mountpoint = mountpoint(of: known) else { return false }
            return places.contains {
                mayBeName ? mountpoint.utf8.elementsEqual($0.utf8) : Mountpoint.contains(mountpoint, $0)
            }
        }
        return known?.name
    }

    /// The paths by which a known domain may have been mounted on the directory that a command names: that of the mount behind a
    /// symbolic link, which the command line has followed, the link itself, and where a link leads to a directory without a mount.
    static func places(_ path: String, _ link: String?) -> [String] {
        [path, link, Mountpoint.target(of: path)].compactMap(\.self)
    }

    /// The error for a reference that names no domain.
    ///
    /// - Parameter code: `failed` for a command that finds nothing to work on: one that also works on domains that are not mounted.
    func unknownDomain(_ reference: DomainReference, _ code: ControlError.Code = .unavailable) -> ControlError {
        if !Self.mayBeName(reference.text), host(containing: reference.path) != nil {
            return ControlError(.failed, "no such file or directory, and no such domain", path: reference.text)
        }
        return ControlError(
            code, "no such domain, nor a path in a mounted one; 'yonder domains' shows all", path: reference.text)
    }

    private static func mayBeName(_ text: String) -> Bool { !text.contains("/") && ![".", ".."].contains(text) }
}
