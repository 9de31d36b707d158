import CFUSEShim
import Glibc
import Synchronization
import Syscalls
import SystemPackage

/// One connection to the kernel: the shim's session and its mount point. The session, the serving threads and unanswered
/// replies retain it.
// Unchecked: the pointer never changes, and libfuse locks the state behind it.
final class Connection: @unchecked Sendable {
    enum Phase: Sendable {
        case new
        case mounted
        case serving
        case ended
    }

    struct State: Sendable {
        var phase = Phase.new
        var features: ConnectionFeatures?
        var mountPoint: FilePath?
        /// The mount's number in the mount table; nil before the mount.
        var mount: Int64?
        /// The mount's `major:minor`; nil before the mount.
        var device: String?
        /// The error that ended serving; nil after an unmount.
        var failure: Errno?
        /// The features that an earlier process negotiated, for a mount that was taken over.
        var predecessor: ConnectionFeatures?
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    let shim: OpaquePointer
    let interrupts = InterruptTable()
    let locality = CallerLocality()
    let state = Monitor(State())
    private let lastUnique = Atomic<UInt64>(0)

    init(options: SessionOptions, operations: fuseshim_operations) throws(Errno) {
        var shimOptions = fuseshim_options()
        // libfuse and fusermount3 only print why they reject these options.
        guard !options.allowsOthers || SessionOptions.canAllowOthers else { throw .notPermitted }
        guard !(options.allowsDevices || options.allowsSetID) || geteuid() == 0 else { throw .notPermitted }
        shimOptions.allow_other = options.allowsOthers
        shimOptions.allow_devices = options.allowsDevices
        shimOptions.allow_set_id = options.allowsSetID
        shimOptions.passthrough = options.passthrough
        shimOptions.async_read = options.asynchronousRead
        shimOptions.keep_umask = options.keepsUmask
        shimOptions.posix_acl = options.accessControlLists
        let created = options.source.withCString { source in
            options.subtype.withCString { subtype in
                shimOptions.source = source
                shimOptions.subtype = subtype
                var operations = operations
                return fuseshim_session_create(&shimOptions, &operations)
            }
        }
        guard let created else { throw Errno(rawValue: errno) }
        shim = created
    }

    deinit { fuseshim_session_destroy(shim) }

    func nextUnique() -> UInt64 {
        lastUnique.wrappingAdd(1, ordering: .relaxed).newValue
    }

    func started(_ features: ConnectionFeatures) {
        state.update { $0.features = features }
    }

    /// The mount's `major:minor` as the kernel gives it with the descriptor of the device; nil on a kernel that does not.
    var kernelDevice: String? {
        let place = FilePath("/proc/self/fdinfo/\(fuseshim_session_descriptor(shim))")
        guard let text = try? place.contents() else { return nil }
        let line = String(decoding: text, as: UTF8.self).split(separator: "\n").first {
            $0.hasPrefix("fuse_connection:")
        }
        return line.flatMap { $0.split(whereSeparator: \.isWhitespace).last }.map { "0:\($0)" }
    }

    /// Where the mount is in the mount table, also when a directory above it was renamed, and whether another mount covers it; nil when
    /// it is not there any more.
    ///
    /// Blocks while the numbers of an ended mount are those of another one that does not answer.
    ///
    /// - Throws: errors of reading the table.
    func place() throws(Errno) -> (path: FilePath, isCovered: Bool)? {
        let (mount, device) = state.read { ($0.mount, $0.device) }
        guard let mount, let device else { return nil }
        guard let place = try MountTable().place(of: mount, device: device) else { return nil }
        return place.isCovered || keepsNumbers(at: place.path) ? place : nil
    }

    /// Whether a mount of the mount table is this one, or shows the whole of it once more (a bind mount). Blocks as ``place()`` does.
    func isMount(_ mount: MountTable.Mount) -> Bool {
        let device = state.read { $0.device }
        return mount.device == device && mount.root == "/" && keepsNumbers(at: mount.filePath)
    }

    /// Whether the mount at a path that has this one's numbers is this one. While there is a connection, it keeps them; otherwise another
    /// mount may have got them before the table was read. A mount whose connection was aborted has them, too: it is dead.
    private func keepsNumbers(at path: FilePath) -> Bool {
        fuseshim_is_connected(fuseshim_session_descriptor(shim)) || MountTable.isDead(path)
    }
}
