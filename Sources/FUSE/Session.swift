import CFUSEShim
import Glibc
import SystemPackage

/// A file system's mount: made, mounted, served, unmounted, in this order and once.
///
/// Safe to use from any thread, except the ones that answer the kernel where it says that a function blocks. A session
/// that is let go while it serves goes on serving until it is unmounted.
package final class Session: Sendable {
    private let connection: Connection
    private let options: SessionOptions

    /// Where the kernel is told to forget what it has cached.
    package let notifications: Notifications

    /// - Throws: EINVAL when libfuse refuses the options; EPERM for options that this user cannot have.
    package init(fileSystem: any FileSystem, options: SessionOptions) throws(Errno) {
        self.options = options
        connection = try Connection(fileSystem: fileSystem, options: options)
        notifications = Notifications(connection)
    }

    /// Mounts on a directory, as root by itself, as anybody else through `fusermount3`. Whoever touches the mount now
    /// waits until ``serve()``. Blocks for moments.
    ///
    /// - Throws: what `stat` and `mount` say: ENOENT, ENOTDIR, ENOTCONN for a dead mount, EPERM when not allowed; ENOENT
    ///   also when the mount does not show in /proc. The session is of no use then.
    package func mount(at path: FilePath) throws(Errno) {
        guard connection.state.read({ $0.phase == .new }) else { throw .resourceBusy }
        // Resolved before, because afterwards looking at it would wait for ourselves.
        guard let resolved = path.withPlatformString({ realpath($0, nil) }) else { throw Errno(rawValue: errno) }
        defer { free(resolved) }
        let failure = fuseshim_session_mount(connection.shim, resolved)
        guard failure == 0 else { throw Errno(rawValue: failure) }
        let mountPoint = FilePath(platformString: resolved)
        // Without it nobody could tell later whether what is mounted there is this one.
        guard let device = (try? MountTable())?.device(at: mountPoint) else {
            _ = fuseshim_unmount(resolved, true)
            throw .noSuchFileOrDirectory
        }
        connection.state.update { state in
            state.phase = .mounted
            state.mountPoint = mountPoint
            state.device = device
        }
    }

    /// Starts the threads that answer the kernel, and returns when the kernel and the session have agreed, or the
    /// mount has gone already.
    ///
    /// - Throws: EINVAL when not mounted; EAGAIN when there are no threads to be had.
    package func serve() throws(Errno) {
        let begins = connection.state.update { state in
            defer { if state.phase == .mounted { state.phase = .serving } }
            return state.phase == .mounted
        }
        guard begins else { throw .invalidArgument }
        connection.interrupts.start()
        notifications.start()

        let connection = connection
        let notifications = notifications
        let count = max(1, options.threads)
        let first: SystemThread
        do {
            first = try SystemThread.start(name: "fuse-0") {
                // The first thread starts the others and joins them, so that all are gone for certain when it says so.
                let others = (1..<count).compactMap { number in
                    try? SystemThread.start(name: "fuse-\(number)") { Self.run(connection) }
                }
                Self.run(connection)
                for thread in others { thread.join() }
                Self.end(connection, notifications)
            }
        } catch {
            Self.end(connection, notifications)
            throw error
        }
        first.detach()
        connection.state.wait { $0.features != nil || $0.phase == .ended ? () : nil }
    }

    /// What was agreed with the kernel; nil before ``serve()``.
    package var negotiated: ConnectionFeatures? { connection.state.read { $0.features } }

    /// Whether the mount is there: not before ``mount(at:)``, and not after anybody has unmounted it.
    package var isMounted: Bool { connection.isAttached() }

    /// Whether the last thread has left.
    package var hasEnded: Bool { connection.state.read { $0.phase == .ended } }

    /// Why it ended, when not because it was unmounted.
    package var failure: Errno? { connection.state.read { $0.failure } }

    /// The open /dev/fuse, as long as the session lives: who holds a duplicate holds the mount. Nil before
    /// ``mount(at:)``.
    package var deviceDescriptor: FileDescriptor? {
        let descriptor = fuseshim_session_descriptor(connection.shim)
        return descriptor < 0 ? nil : FileDescriptor(rawValue: descriptor)
    }

    /// Returns when the last thread has left: the file system will not be called any more. At once if it never served.
    package func waitUntilEnded() async {
        await withCheckedContinuation { continuation in
            let waits = connection.state.update { state in
                guard state.phase == .serving else { return false }
                state.waiters.append(continuation)
                return true
            }
            if !waits { continuation.resume() }
        }
    }

    /// Takes the mount out of the tree, also while it is in use: then whoever holds files there keeps them, and the
    /// session ends when they have let go. Does nothing when somebody has unmounted it already. Blocks while the kernel
    /// writes back what it holds; never on a thread that answers.
    ///
    /// - Throws: what `umount` says; EPERM when it is not this user's.
    package func unmount() throws(Errno) {
        guard connection.isAttached(), let mountPoint = connection.state.read({ $0.mountPoint }) else { return }
        var failure = mountPoint.withPlatformString { fuseshim_unmount($0, false) }
        if failure == Errno.resourceBusy.rawValue {
            failure = mountPoint.withPlatformString { fuseshim_unmount($0, true) }
        }
        guard failure != 0, connection.isAttached() else { return }
        throw Errno(rawValue: failure)
    }

    /// Ends the connection at once: all that wait for an answer get ECONNABORTED, files that are held open fail from
    /// now on, and what the kernel has not written back is lost. Unmounts.
    /// An ordinary user can only where /sys/fs/fuse/connections is mounted; elsewhere this is no more than
    /// ``unmount()``.
    package func abort() {
        if let device = connection.state.read({ $0.device }), let minor = device.split(separator: ":").last {
            let control = FilePath("/sys/fs/fuse/connections/\(minor)/abort")
            if let file = try? FileDescriptor.open(control, .writeOnly, options: .closeOnExec) {
                _ = try? file.writeAll("1".utf8)
                try? file.close()
            } else if let mountPoint = connection.state.read({ $0.mountPoint }), connection.isAttached() {
                _ = mountPoint.withPlatformString { umount2($0, Int32(MNT_FORCE)) }
            }
        }
        try? unmount()
    }

    /// Registers a file that opened files can be passed through to. It may be closed afterwards.
    ///
    /// - Throws: EOPNOTSUPP without passthrough; EPERM without CAP_SYS_ADMIN; ELOOP when the file lies on a file system
    ///   that is stacked itself.
    package func registerBacking(_ file: FileDescriptor) throws(Errno) -> BackingID {
        guard negotiated?.passthrough == true else { throw .notSupported }
        let result = fuseshim_backing_open(connection.shim, file.rawValue)
        guard result > 0 else { throw Errno(rawValue: -result) }
        return BackingID(rawValue: result)
    }

    /// Drops a backing file. What was opened with it goes on.
    ///
    /// - Throws: ENOENT when there is no such backing file.
    package func unregisterBacking(_ backing: BackingID) throws(Errno) {
        let failure = fuseshim_backing_close(connection.shim, backing.rawValue)
        guard failure == 0 else { throw Errno(rawValue: failure) }
    }

    // MARK: - Private

    private static func run(_ connection: Connection) {
        connection.locality.join()
        defer { connection.locality.leave() }
        let failure = fuseshim_session_serve(connection.shim)
        guard failure != 0 else { return }
        connection.state.update { $0.failure = $0.failure ?? Errno(rawValue: failure) }
        detach(connection)
    }

    /// Takes the mount away that nobody serves any more: else whoever touches it waits or fails for ever.
    private static func detach(_ connection: Connection) {
        guard connection.isAttached(), let mountPoint = connection.state.read({ $0.mountPoint }) else { return }
        _ = mountPoint.withPlatformString { fuseshim_unmount($0, true) }
    }

    private static func end(_ connection: Connection, _ notifications: Notifications) {
        detach(connection)
        connection.interrupts.finish()
        notifications.finish()
        let waiters = connection.state.update { state in
            defer { state.waiters = [] }
            state.phase = .ended
            // The kernel gives the number to the next mount, which is not this one.
            state.device = nil
            return state.waiters
        }
        for waiter in waiters { waiter.resume() }
    }
}
