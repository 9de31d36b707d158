import FUSE
import Logging
import Synchronization
import SystemPackage
import Volume

/// A volume that is mounted: the session with the kernel, and the way to make the kernel forget.
package final class MountedVolume: Sendable {
    private let session: Session
    private let passthrough: Passthrough
    private let writtenFiles: WrittenFiles

    /// - Parameters:
    ///   - source: the first field of /proc/mounts.
    ///   - rights: what it lets other users, device files and set-user-ID programs do.
    ///   - provisioning: provides what requests lack.
    ///   - allowsPassthrough: whether the kernel may read and write files by itself, where it can.
    /// - Throws: EINVAL when libfuse refuses the options; EPERM for rights that this user cannot give.
    package init(
        volume: Volume, source: String, rights: MountRights = MountRights(), provisioning: any Provisioning,
        allowsPassthrough: Bool = true
    ) throws(Errno) {
        passthrough = Passthrough()
        let fileSystem = VolumeFileSystem(volume: volume, provisioning: provisioning, passthrough: passthrough)
        writtenFiles = fileSystem.writtenFiles
        var options = SessionOptions(source: source, subtype: "yonder")
        options.allowsOthers = rights.allowsOthers
        options.allowsDevices = rights.allowsDevices
        options.allowsSetID = rights.allowsSetID
        options.threads = Self.threads
        options.passthrough = allowsPassthrough
        // Whoever reads is told of when he leaves: what only he waited for is given up.
        options.asynchronousRead = false
        // A default ACL decides without the umask.
        options.accessControlLists = true
        options.keepsUmask = true
        session = try Session(fileSystem: fileSystem, options: options)
    }

    /// How many threads answer the kernel: as many readers the database should have.
    package static let threads = 4

    /// Mounts on a directory and begins to serve.
    ///
    /// - Throws: what `mount(2)` or `fusermount3` say.
    package func mount(at directory: FilePath) throws(Errno) {
        try session.mount(at: directory)
        passthrough.session.store(session)
        do {
            try session.serve()
        } catch {
            try? session.unmount()
            throw error
        }
    }

    /// Takes the mount away, also while it is in use. Blocks for moments; never on a thread that answers the kernel.
    package func unmount() throws(Errno) {
        try session.unmount()
    }

    /// Ends the mount at once: whoever waits gets an error.
    package func abort() {
        session.abort()
    }

    /// Records at once what was written to files that have been closed. Blocks for as long as the disk does.
    package func settle() {
        writtenFiles.flush()
    }

    /// Whether the mount is there.
    package var isMounted: Bool { session.isMounted }

    /// Whether materialized files are read by the kernel itself.
    package var hasPassthrough: Bool { session.negotiated?.passthrough == true }

    /// Returns when the mount has gone, whoever took it away.
    package func waitUntilEnded() async {
        await session.waitUntilEnded()
    }

    // MARK: - What the kernel must forget. All return at once.

    package func forgetEntry(named name: String, in parent: UInt64) {
        session.notifications.expireEntry(parent: NodeID(rawValue: parent), name: FileName(name))
    }

    package func forgetDeleted(_ child: UInt64, named name: String, in parent: UInt64) {
        session.notifications.deleteEntry(
            parent: NodeID(rawValue: parent), child: NodeID(rawValue: child), name: FileName(name))
    }

    package func forgetAttributes(of node: UInt64) {
        session.notifications.invalidateAttributes(NodeID(rawValue: node))
    }

    package func forgetContents(of node: UInt64) {
        session.notifications.invalidateContents(NodeID(rawValue: node))
    }

    /// Returns when the kernel has forgotten all that it was asked to before.
    package func drainNotifications() async {
        await session.notifications.drain()
    }
}

/// Registers local files with the kernel, once there is a session that may.
final class Passthrough: PassthroughRegistry {
    /// The session, as long as its mount holds it. A strong reference would be a cycle (session, file system, registry),
    /// which would keep /dev/fuse open after the unmount.
    final class Slot: Sendable {
        private struct Reference {
            weak var session: Session?
        }

        private let reference = Mutex(Reference())

        func store(_ session: Session) {
            reference.withLock { $0.session = session }
        }

        var value: Session? { reference.withLock { $0.session } }
    }

    let session = Slot()

    /// Nil where the kernel or the rights do not allow it.
    var registry: (any PassthroughRegistry)? {
        session.value?.negotiated?.passthrough == true ? self : nil
    }

    func register(_ descriptor: FileDescriptor) throws(Errno) -> Int32 {
        guard let session = session.value else { throw .notSupported }
        return try session.registerBacking(descriptor).rawValue
    }

    func unregister(_ backing: Int32) {
        try? session.value?.unregisterBacking(BackingID(rawValue: backing))
    }
}
