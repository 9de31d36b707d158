import FUSE
import Syscalls
import SystemPackage
import Volume

/// A mounted volume: the session with the kernel and the file system that answers it.
package final class VolumeMount: Sendable {
    package let session: Session
    private let fileSystem: VolumeFileSystem

    /// - Parameters:
    ///   - session: made by ``makeSession(source:rights:allowsPassthrough:)`` and not mounted yet.
    ///   - provisioning: fulfils the prerequisites of parked requests.
    package init(session: Session, volume: Volume, provisioning: any Provisioning) {
        self.session = session
        fileSystem = VolumeFileSystem(
            volume: volume, provisioning: provisioning, passthrough: Passthrough(session: session),
            notifications: session.notifications)
    }

    /// Makes the session of a mount. It exists before the volume, so that the sync engine can send invalidations to it.
    ///
    /// - Parameters:
    ///   - source: the source field in /proc/mounts.
    ///   - rights: what the mount allows other users, device files and set-user-ID programs.
    ///   - allowsPassthrough: whether the kernel may read and write content files directly, where it can.
    /// - Throws: EINVAL when libfuse rejects the options; EPERM for rights that this user cannot grant.
    package static func makeSession(
        source: String, rights: MountRights = MountRights(), allowsPassthrough: Bool = true
    ) throws(Errno) -> Session {
        var options = SessionOptions(source: source, subtype: "yonder")
        options.allowsOthers = rights.allowsOthers
        options.allowsDevices = rights.allowsDevices
        options.allowsSetID = rights.allowsSetID
        options.threads = threads
        options.passthrough = allowsPassthrough
        // The kernel reports the interruption of synchronous reads only, and an interrupted reader must end its fetch.
        options.asynchronousRead = false
        // The volume applies the umask, because a default ACL takes its place.
        options.accessControlLists = true
        options.keepsUmask = true
        return try Session(options: options)
    }

    /// The number of serving threads: each of them may need a database reader.
    package static let threads = 4

    /// Mounts on a directory and begins to serve. Must not be called on a thread that answers the kernel, and nothing may be
    /// invalidated before it returns.
    ///
    /// - Throws: the error of `mount(2)` or `fusermount3`.
    package func mount(at directory: FilePath) throws(Errno) {
        try session.mount(at: directory)
        try serve()
        // A new root has no permissions in the kernel. An answer that an invalidation overtakes is dropped there
        // (fuse_change_attributes), and the first process of an ordinary user would get EACCES.
        _ = try? FileStatus(at: directory)
    }

    /// Serves a mount that another process made and left by ending, instead of ``mount(at:)``.
    ///
    /// - Parameters:
    ///   - device: the mount's device, which the session closes, also after an error.
    ///   - record: the record of the process that made it.
    ///   - missed: the requests that no process has counted yet. They are counted first: requests that were served meanwhile would
    ///     take their places in the ring of the `HandleTable`.
    ///   - prepare: called when the mount is there, and before any request is answered.
    /// - Throws: ENOTCONN when the mount is gone; ENOSYS on a kernel that cannot send unanswered requests again; EOPNOTSUPP when this
    ///   program would not negotiate what that process did; the error of reading `missed`.
    package func takeOver(
        _ device: FileDescriptor, of record: SessionRecord, counting missed: MissedRequests?,
        preparing prepare: () -> Void
    ) throws(Errno) {
        try session.takeOver(device, of: record)
        try fileSystem.restoreOpenFiles()
        try missed?.takeAll { [fileSystem] record in fileSystem.count(record) }
        prepare()
        try serve()
    }

    private func serve() throws(Errno) {
        do {
            try session.serve(fileSystem)
        } catch {
            try? session.unmount()
            throw error
        }
    }

    /// Records the changes of closed files at once. Blocks on the disk.
    package func settle() {
        fileSystem.closedFiles.flush()
    }

    /// Whether a mount of the mount table is this one, or a bind mount of the whole of it. May block briefly.
    package func isMount(_ mount: MountTable.Mount) -> Bool { session.isMount(mount) }

    /// Whether the kernel reads materialized files directly.
    package var hasPassthrough: Bool { session.negotiated?.passthrough == true }

    /// Returns when the kernel has processed all invalidations that were posted before.
    package func drainNotifications() async {
        await session.notifications.drain()
    }
}
