import CFUSEShim
import Glibc
import Syscalls
import SystemPackage

/// One FUSE mount: created, mounted or taken over, served and unmounted, in this order and once.
///
/// All functions may be called from any thread, except that functions that block must not be called on a thread that
/// answers the kernel. A session that is released while it serves continues to serve until it is unmounted.
package final class Session: Sendable {
    let connection: Connection
    private let options: SessionOptions

    /// Invalidates the kernel's caches. May be used before ``mount(at:)``; notifications are sent once the session serves.
    package let notifications = Notifications()

    /// - Throws: EINVAL when libfuse rejects the options; EPERM for options that this user must not use.
    package init(options: SessionOptions) throws(Errno) {
        self.options = options
        connection = try Connection(options: options, operations: makeOperations())
    }

    /// Mounts on a directory: directly as root, through `fusermount3` as any other user. Processes that access the mount
    /// wait until ``serve(_:)``. Blocks briefly.
    ///
    /// - Throws: the error of `stat` or `mount`: ENOENT, ENOTDIR, ENOTCONN for a dead mount, EPERM; ENOENT also when the
    ///   mount does not appear in /proc; EBUSY when a mount of the same type is there. The session cannot be used afterwards.
    package func mount(at path: FilePath) throws(Errno) {
        guard connection.state.read({ $0.phase == .new }) else { throw .resourceBusy }
        // Resolved before the mount, because afterwards a lookup of the path would wait for this session.
        guard let resolved = path.withPlatformString({ realpath($0, nil) }) else { throw Errno(rawValue: errno) }
        defer { free(resolved) }
        let failure = fuseshim_session_mount(connection.shim, resolved)
        guard failure == 0 else { throw Errno(rawValue: failure) }
        let mountPoint = FilePath(platformString: resolved)
        // The device number is needed later to tell this mount from another one on the same path.
        guard let table = try? MountTable(), let mount = table.mount(at: mountPoint, device: connection.kernelDevice)
        else {
            _ = fuseshim_unmount(resolved, true)
            throw .noSuchFileOrDirectory
        }
        // Of two processes that mount there at once the first one has it.
        guard !table.isOnAnother(mount) else {
            _ = fuseshim_unmount(resolved, true)
            throw .resourceBusy
        }
        connection.state.update { state in
            state.phase = .mounted
            state.mountPoint = mountPoint
            state.mount = mount.identifier
            state.device = mount.device
        }
    }

    /// Starts the threads that answer the kernel, and returns after FUSE_INIT or when the mount is already gone.
    ///
    /// - Parameter fileSystem: answers the kernel; retained until ``waitUntilEnded()`` returns.
    /// - Throws: EINVAL when the session is not mounted; EAGAIN when the system has no threads left; EOPNOTSUPP when this program
    ///   would negotiate other features than the process did from which the mount was taken over. The connection is then aborted and
    ///   the mount detached.
    package func serve(_ fileSystem: any FileSystem) throws(Errno) {
        let begins = connection.state.update { state in
            defer { if state.phase == .mounted { state.phase = .serving } }
            return state.phase == .mounted
        }
        guard begins else { throw .invalidArgument }
        let service = Service(connection: connection, fileSystem: fileSystem)
        fuseshim_session_set_owner(connection.shim, Unmanaged.passUnretained(service).toOpaque())
        connection.interrupts.start()
        notifications.start(over: connection)
        if let predecessor = connection.state.read({ $0.predecessor }) {
            do {
                try resume(predecessor)
            } catch {
                // No process can serve it any more. Without this, callers would wait for answers until the last descriptor is closed.
                abort()
                Self.end(connection, notifications)
                throw error
            }
        }

        let connection = connection
        let notifications = notifications
        let count = max(1, options.threads)
        let first: SystemThread
        do {
            first = try SystemThread.start(name: "fuse-0") {
                // The first thread starts the others and joins them, so that all have ended when it reports the end.
                let others = (1..<count).compactMap { number in
                    try? SystemThread.start(name: "fuse-\(number)") { Self.run(service) }
                }
                Self.run(service)
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

    /// The features negotiated with the kernel, by an earlier process for a mount that was taken over; nil before ``serve(_:)`` of
    /// any other.
    package var negotiated: ConnectionFeatures? { connection.state.read { $0.features ?? $0.predecessor } }

    /// Whether the mount exists: false before ``mount(at:)``, and after any process has unmounted it.
    package var isMounted: Bool { (try? connection.place()) ?? nil != nil }

    /// Whether another mount is on it, or on a directory above it, so that no path leads to it.
    package var isCovered: Bool { ((try? connection.place()) ?? nil)?.isCovered ?? false }

    /// Whether the mount table does not have the mount: it was unmounted, or detached while programs have files open.
    package var isDetached: Bool {
        do throws(Errno) { return try connection.place() == nil } catch { return false }
    }

    /// Where the mount is now: elsewhere than ``mountPoint`` when a directory above it was renamed; nil when it is not there any more,
    /// or covered.
    package var presentMountPoint: FilePath? {
        guard let place = (try? connection.place()) ?? nil, !place.isCovered else { return nil }
        return place.path
    }

    /// As ``presentMountPoint``, also when the mount is covered.
    package var presentPath: FilePath? { ((try? connection.place()) ?? nil)?.path }

    /// Whether a mount of the mount table is this one, or a bind mount of the whole of it. Blocks while the numbers of an ended mount are those of another one that does not
    /// answer.
    package func isMount(_ mount: MountTable.Mount) -> Bool { connection.isMount(mount) }

    /// Where it was mounted; nil before ``mount(at:)``.
    package var mountPoint: FilePath? { connection.state.read { $0.mountPoint } }

    /// The device number of the mounted file system, as ``FileStatus/device`` has it; nil without a mount.
    package var deviceNumber: UInt64? {
        guard let parts = connection.state.read({ $0.device })?.split(separator: ":"), parts.count == 2,
            let major = UInt32(parts[0]), let minor = UInt32(parts[1])
        else { return nil }
        return FileStatus.device(major: major, minor: minor)
    }

    /// Whether the last serving thread has ended.
    package var hasEnded: Bool { connection.state.read { $0.phase == .ended } }

    /// The error that ended the session; nil when it was unmounted.
    package var failure: Errno? { connection.state.read { $0.failure } }

    /// Returns when the last serving thread has ended and the file system is not called any more. Returns at once if the
    /// session never served.
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

    /// Unmounts. A mount in use is detached lazily: processes keep their open files, and the session ends when they have
    /// closed them. Does nothing when the mount is already gone. Blocks while the kernel writes back dirty pages; must
    /// not be called on a thread that answers the kernel.
    ///
    /// - Throws: the error of `umount`; EPERM when the mount belongs to another user; EBUSY while it is covered.
    package func unmount() throws(Errno) {
        guard !isCovered else { throw .resourceBusy }
        guard let mountPoint = presentMountPoint else { return }
        var failure = mountPoint.withPlatformString { fuseshim_unmount($0, false) }
        if failure == Errno.resourceBusy.rawValue {
            failure = mountPoint.withPlatformString { fuseshim_unmount($0, true) }
        }
        guard failure != 0, isMounted else { return }
        throw Errno(rawValue: failure)
    }

    /// Aborts the connection: waiting requests fail with ECONNABORTED, open files fail from now on, and dirty pages are
    /// lost. Then unmounts. An ordinary user who has no access to /sys/fs/fuse/connections cannot abort, and this is the
    /// same as ``unmount()``.
    package func abort() {
        if let device = connection.state.read({ $0.device }), let minor = device.split(separator: ":").last {
            if fuseshim_session_abort(connection.shim, String(minor)) != 0, let mountPoint = presentMountPoint {
                _ = mountPoint.withPlatformString { umount2($0, Int32(MNT_FORCE)) }
            }
        }
        try? unmount()
    }

    /// Lazily unmounts the mount at a path, also a dead one of an earlier process: directly as root, through `fusermount3`
    /// as any other user. Blocks briefly.
    ///
    /// - Throws: the error of `umount`.
    package static func detachMount(at path: FilePath) throws(Errno) {
        let failure = path.withPlatformString { fuseshim_unmount($0, true) }
        guard failure == 0 else { throw Errno(rawValue: failure) }
    }

    /// Registers a backing file for passthrough. The descriptor may be closed afterwards.
    ///
    /// - Throws: EOPNOTSUPP when passthrough was not negotiated; EPERM without CAP_SYS_ADMIN; ELOOP when the file is on a
    ///   stacked file system.
    package func registerBacking(_ file: FileDescriptor) throws(Errno) -> BackingID {
        guard negotiated?.passthrough == true else { throw .notSupported }
        let result = fuseshim_backing_open(connection.shim, file.rawValue)
        guard result > 0 else { throw Errno(rawValue: -result) }
        return BackingID(rawValue: result)
    }

    /// Removes the registration of a backing file. Files that are open with it continue to use it.
    ///
    /// - Throws: ENOENT when there is no such registration.
    package func unregisterBacking(_ backing: BackingID) throws(Errno) {
        let failure = fuseshim_backing_close(connection.shim, backing.rawValue)
        guard failure == 0 else { throw Errno(rawValue: failure) }
    }

    // MARK: - Private

    /// Continues a connection. The kernel keeps to what it negotiated with the process before.
    private func resume(_ predecessor: ConnectionFeatures) throws(Errno) {
        let failure = fuseshim_session_resume(connection.shim)
        guard failure == 0 else { throw Errno(rawValue: failure) }
        guard connection.state.read({ $0.features }) == predecessor else { throw .notSupported }
    }

    private static func run(_ service: Service) {
        let connection = service.connection
        connection.locality.join()
        defer { connection.locality.leave() }
        let failure = fuseshim_session_serve(connection.shim)
        guard failure != 0 else { return }
        connection.state.update { $0.failure = $0.failure ?? Errno(rawValue: failure) }
        detach(connection)
    }

    /// Detaches a mount that is not served any more; otherwise every access to it would wait or fail.
    private static func detach(_ connection: Connection) {
        guard let place = (try? connection.place()) ?? nil, !place.isCovered else { return }
        try? detachMount(at: place.path)
    }

    private static func end(_ connection: Connection, _ notifications: Notifications) {
        detach(connection)
        connection.interrupts.finish()
        notifications.finish()
        let waiters = connection.state.update { state in
            defer { state.waiters = [] }
            state.phase = .ended
            // The kernel reuses the device number for the next mount.
            state.device = nil
            return state.waiters
        }
        for waiter in waiters { waiter.resume() }
    }
}
