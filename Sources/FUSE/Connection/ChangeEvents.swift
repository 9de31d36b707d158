import CFUSEShim
import Synchronization
import SystemPackage

/// Makes the kernel notify programs that watch files of the mount (inotify, fanotify) of changes that no process has made
/// through it.
///
/// A thread sets an extended attribute that the file system accepts and does not store; the kernel then reports `IN_ATTRIB`
/// to watchers of the file and of its directory. The thread waits for an answer of this process. It has no descriptors: if the
/// process is killed before it answers, the thread stays until the next process does (``Notifications``).
package final class ChangeEvents: Sendable {
    private let thread = MessageThread<FilePath>(name: "fuse-events")
    private let hasStarted = Atomic(false)
    private let attribute: String

    /// Events that wait; further ones are dropped. The kernel drops events, too, when a watcher falls behind.
    private static let most = 10_000

    /// - Parameter attribute: the name of the extended attribute, of the `system.` namespace, for which the kernel checks no
    ///   permissions.
    package init(attribute: String) {
        self.attribute = attribute
    }

    deinit { finish() }

    /// Raises an event for the file at a path, and for its directory. Returns at once; from one thread at a time. What is not
    /// there gets none.
    package func raise(at path: FilePath) {
        if !hasStarted.exchange(true, ordering: .relaxed) {
            let attribute = attribute
            thread.start(preparing: { _ = fuseshim_keep_only(-1) }) { path in
                _ = path.withPlatformString { fuseshim_raise_event($0, attribute) }
            }
        }
        if thread.count < Self.most { thread.send(path) }
    }

    /// Ends the thread after the event that it is raising.
    package func finish() { thread.finish() }
}
