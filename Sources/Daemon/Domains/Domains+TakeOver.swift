import Control
import FUSE
import FileProvider
import Logging
import Synchronization
import SystemPackage

/// The mounts of a predecessor that has crashed or was restarted.
extension Domains {
    /// Serves the inherited mounts. A mount that this kernel or this program cannot continue is ended, and its domain is mounted
    /// again at the same place: processes that use it get ENOTCONN for what they have open.
    func takeOver(_ inherited: [InheritedMount]) async {
        guard !inherited.isEmpty || manager.restarts > 0 else { return }
        let detached = await withTaskGroup(of: String?.self) { group in
            for mount in inherited {
                group.addTask {
                    defer {
                        try? mount.device.close()
                        try? mount.missed?.close()
                    }
                    do {
                        return try await self.takeOver(mount)
                    } catch {
                        self.logger.error("an inherited mount cannot be continued: \(error)")
                        self.end(mount)
                        return nil
                    }
                }
            }
            var names: Set<String> = []
            for await name in group { if let name { names.insert(name) } }
            return names
        }
        // The kernel ends a connection with its last descriptor; until then, an access to the mount would wait.
        manager.waitUntilHandled()
        await remountDeadDomains(and: detached)
    }

    /// - Returns: the domain whose mount cannot be continued and is detached; nil when the domain is mounted, or its mount was
    ///   ended meanwhile.
    private func takeOver(_ inherited: InheritedMount) async throws -> String? {
        var previous = try PreviousMount(inherited)
        previous.mayWait = { !self.isEnding.load(ordering: .relaxed) }
        let name = previous.description.domain
        await acquire(name)
        defer { release(name) }
        guard hosts[name] == nil, let known = try store.domain(named: name) else {
            throw ControlError(.failed, "no such domain", path: name)
        }
        // The user may have named it by a symbolic link.
        let place = previous.isElsewhere ? previous.mountpoint : known.mountpoint ?? previous.mountpoint
        let request = MountRequest(name: name, source: known.source, mountpoint: place, options: known.options)
        do {
            _ = try await begin(request, previous: previous)
        } catch {
            end(inherited)
            var isDetached = (error as? FileProviderError)?.errno == .notSupported
            // An access to the mount would wait as long as another process has the device open.
            if let present = previous.description.session.present(inherited.device), !present.isCovered {
                try? Session.detachMount(at: present.path)
                isDetached = true
            }
            // A mount that is not there any more was ended by a user.
            let place = known.mountpoint ?? request.mountpoint
            let fate = isDetached ? "is mounted again on '\(place)'" : "cannot be continued"
            logger.error("'\(name)' \(fate): \(error)")
            return isDetached ? name : nil
        }
        logger.notice("'\(name)' continues on '\(request.mountpoint)'")
        return nil
    }

    private nonisolated func end(_ mount: InheritedMount) {
        InheritedMount.remove(mount.number, from: manager)
    }

    /// Mounts the domains that were mounted when the last daemon ended, once for all processes of a keeper: what was unmounted while a
    /// crashed daemon was restarted stays unmounted. A domain that cannot be mounted is reported in the log; one for which there is no
    /// room on the disk is mounted when there is.
    func mountAgain() async {
        if mark == nil {
            await mountAllAgain()
            // The next process mounts the rest.
            guard !isShuttingDown, !Task.isCancelled else { return }
            // Before the others, which may wait for days.
            storeMark()
        }
        await mountWhenThereIsRoom()
    }

    private func mountAllAgain() async {
        // On a full disk the record of a domain cannot be read, either.
        let waiting = store.names().filter { name in
            hosts[name] == nil && withoutRoom[name] == nil && (try? store.domain(named: name))?.isToBeMounted ?? true
        }
        if manager.restarts < Self.attemptsToMountAgain {
            await withTaskGroup { group in
                for name in waiting { group.addTask { await self.mountAgain(name) } }
            }
        } else {
            // One of them may be the reason.
            for name in waiting {
                logger.error(
                    "'\(name)' is not mounted again: \(manager.restarts) daemons have ended before all domains were mounted"
                )
            }
        }
    }

    static let attemptsToMountAgain = 5

    func mountAgain(_ name: String) async {
        await acquire(name)
        defer { release(name) }
        let available = store.availableBytes
        do {
            guard !isShuttingDown else { return }
            // It may have been removed, mounted or unmounted meanwhile.
            guard hosts[name] == nil, let known = try store.domain(named: name), known.isToBeMounted,
                let mountpoint = known.mountpoint
            else {
                withoutRoom[name] = nil
                return
            }
            _ = try await begin(
                MountRequest(name: name, source: known.source, mountpoint: mountpoint, options: known.options))
            mountedAgain.insert(name)
        } catch {
            note(error, mounting: name, available: available)
        }
    }

    private func remountDeadDomains(and detached: Set<String>) async {
        for known in store.all().known where hosts[known.name] == nil {
            do {
                await acquire(known.name)
                defer { release(known.name) }
                guard try await detachDeadMount(of: known) || detached.contains(known.name) else { continue }
            } catch {
                logger.error("'\(known.name)': \(error)")
                continue
            }
            await mountAgain(known.name)
        }
    }
}
