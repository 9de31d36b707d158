import Control
import Logging
import Syscalls
import SystemPackage

/// The mounts of a predecessor that has crashed or was restarted.
extension Domains {
    /// Ends the inherited mounts and mounts their domains again at the same places. Processes that use them get
    /// ENOTCONN for what they have open.
    func takeOver(_ inherited: [InheritedMount]) async {
        guard !inherited.isEmpty || manager.restarts > 0 else { return }
        for mount in inherited {
            let names = InheritedMount.names(mount.number)
            manager.remove(names.device)
            manager.remove(names.handles)
            try? mount.device.close()
            try? mount.handles.close()
        }
        // The kernel ends a connection with its last descriptor; until then, an access to the mount would wait.
        if !inherited.isEmpty { manager.waitUntilHandled() }
        for known in store.all().known {
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
