import Control
import FileProvider
import Syscalls
import Logging
import SystemPackage
import Volume

/// Mounts of a domain in place of another mount of it.
extension Domains {
    /// - Throws: `failed` if a mount stays where it is: the user has asked for that place since the daemon started, or a file is open.
    func refuseMove(of host: DomainHost) throws(ControlError) {
        guard mountedAgain.contains(host.name), host.volume.openNumbers.isEmpty else {
            throw ControlError(.failed, "mounted on '\(host.mountpoint)' already; unmount it first", path: host.name)
        }
    }

    /// Ends the mount of a domain whose name the caller holds, and mounts the domain as requested. The mount ends when all was asked
    /// that may refuse the request. If the new mount fails after that, the domain is mounted as it was.
    func move(_ host: DomainHost, to request: MountRequest, _ given: GivenCredentials?) async throws -> DomainHost {
        try refuseOther(than: host, on: request.mountpoint)
        let place = host.place.fileNameText
        try await BlockingWork.run {
            // What is below a mount cannot be seen until it has ended.
            guard host.isDetached || !Mountpoint.leads(request.mountpoint, into: place) else { return }
            try Mountpoint(
                request.mountpoint, source: request.source, isKnown: true, mayHaveFiles: request.hidesFiles
            ).giveUp()
        }
        let credentials = catalog.credentials.credentials(of: host.name)
        let findings = try await tryOut(request, given, isNew: false)
        let wasDetached = host.isDetached
        // A program may have opened a file meanwhile.
        do {
            try host.checkUncovered()
            if !wasDetached { try refuseMove(of: host) }
        } catch {
            try keep(credentials, of: host.name)
            throw error
        }
        let former = MountRequest(
            name: host.name, source: host.source, mountpoint: host.mountpoint.fileNameText, options: host.options,
            hidesFiles: true)
        await stop(host)
        do {
            // The credentials are stored.
            let moved = try await begin(request, findings: findings)
            mountedAgain.remove(host.name)
            return moved
        } catch {
            try keep(credentials, of: host.name)
            // No program could reach a detached mount.
            guard !wasDetached, !isShuttingDown else { throw error }
            // In a task of its own: the command may have been cancelled.
            await Task { await self.restore(former) }.value
            throw error
        }
    }

    private func restore(_ former: MountRequest) async {
        do {
            _ = try await begin(former)
        } catch {
            logger.error("'\(former.name)' cannot be mounted on '\(former.mountpoint)' again: \(error)")
        }
    }
}
