import Control
import Logging
import Syscalls
import SystemPackage

/// The mounts of a predecessor that has crashed or was restarted.
extension Domains {
    /// Serves the inherited mounts. A mount that this kernel or this program cannot continue is ended, and its domain is mounted
    /// again at the same place: processes that use it get ENOTCONN for what they have open.
    func takeOver(_ inherited: [InheritedMount]) async {
        guard !inherited.isEmpty || manager.restarts > 0 else { return }
        await withTaskGroup(of: Void.self) { group in
            for mount in inherited {
                group.addTask {
                    do {
                        try await self.takeOver(mount)
                    } catch {
                        self.logger.error("an inherited mount cannot be continued: \(error)")
                        self.end(mount)
                    }
                    try? mount.device.close()
                    try? mount.missed?.close()
                }
            }
        }
        // The kernel ends a connection with its last descriptor; until then, an access to the mount would wait.
        manager.waitUntilHandled()
        await remountDeadDomains()
    }

    private func takeOver(_ inherited: InheritedMount) async throws {
        let previous = try PreviousMount(inherited)
        let name = previous.description.domain
        await acquire(name)
        defer { release(name) }
        guard hosts[name] == nil, let known = try store.domain(named: name) else {
            throw ControlError(.failed, "no such domain", path: name)
        }
        let request = MountRequest(
            name: name, source: known.source, mountpoint: previous.mountpoint,
            options: known.options)
        _ = try await begin(request, previous: previous)
        logger.notice("'\(name)' continues on '\(request.mountpoint)'")
    }

    private nonisolated func end(_ mount: InheritedMount) {
        InheritedMount.remove(mount.number, from: manager)
    }

    private func remountDeadDomains() async {
        for known in store.all().known where hosts[known.name] == nil {
            do {
                await acquire(known.name)
                defer { release(known.name) }
                guard try await detachDeadMount(of: known) else { continue }
            } catch {
                logger.error("'\(known.name)': \(error)")
                continue
            }
            do {
                _ = try await mount(MountArguments(source: nil, directory: nil, name: known.name))
            } catch {
                logger.error("'\(known.name)' cannot be mounted again: \(error)")
            }
        }
    }
}
