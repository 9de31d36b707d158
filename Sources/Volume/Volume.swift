import FileNames
import FileProvider
import Logging
import Replica
import Synchronization
import SystemPackage

/// What POSIX means here: requests on names, inodes and open files, answered from the replica on the calling thread.
///
/// Nothing here waits for the network. What is not here is thrown as ``Obstacle/absent(_:)``: the caller has it provided
/// and asks again. Every method may be called from any thread, also from several at once.
package final class Volume: Sendable {
    let replica: Replica
    let ownership: Ownership
    let files = OpenFiles()
    let logger: Logger
    /// Told when the last handle of an inode is closed.
    private let didClose: @Sendable (InodeNumber) -> Void
    /// Told when a directory whose listing is here is opened, and by whom.
    private let didOpenDirectory: @Sendable (InodeNumber, Requester?) -> Void
    private let didMissName: @Sendable (InodeNumber) -> Void
    /// Told when a file is opened.
    let didOpenFile: @Sendable (InodeNumber) -> Void
    /// How much room the remote has, as far as that is known.
    let remoteRoom: @Sendable () -> RemoteQuota?
    /// Told after every change that was made here, with what the kernel does not know of it.
    let didChange: @Sendable (ReplicaEffects) -> Void
    /// Whether every change is refused: the remote cannot be written, or the user wants it so.
    package let isReadOnly: Bool
    private let waiting: Atomic<Bool>

    /// - Parameters:
    ///   - ownership: whose items are that do not say so.
    ///   - didClose: called on the closing thread; returns at once.
    ///   - didOpenDirectory: called on the opening thread; returns at once.
    ///   - didMissName: a name was asked for that a listed directory does not have; called on the asking thread, returns at
    ///     once.
    ///   - didOpenFile: called on the opening thread; returns at once.
    ///   - remoteRoom: called on the asking thread; returns at once.
    ///   - didChange: called on the thread that made the change; returns at once.
    package init(
        replica: Replica, ownership: Ownership, isReadOnly: Bool = false, waitsForRemote: Bool = false,
        logger: Logger, didClose: @escaping @Sendable (InodeNumber) -> Void,
        didOpenDirectory: @escaping @Sendable (InodeNumber, Requester?) -> Void = { _, _ in },
        didMissName: @escaping @Sendable (InodeNumber) -> Void = { _ in },
        didOpenFile: @escaping @Sendable (InodeNumber) -> Void = { _ in },
        remoteRoom: @escaping @Sendable () -> RemoteQuota? = { nil },
        didChange: @escaping @Sendable (ReplicaEffects) -> Void = { _ in }
    ) {
        self.replica = replica
        self.ownership = ownership
        self.logger = logger
        self.didClose = didClose
        self.didOpenDirectory = didOpenDirectory
        self.didMissName = didMissName
        self.didOpenFile = didOpenFile
        self.remoteRoom = remoteRoom
        self.didChange = didChange
        self.isReadOnly = isReadOnly
        waiting = Atomic(waitsForRemote)
    }

    /// Whether `fsync` returns only when the remote has what was written.
    package var waitsForRemote: Bool {
        get { waiting.load(ordering: .relaxed) }
        set { waiting.store(newValue, ordering: .relaxed) }
    }

    /// Which inodes are open, for those who change or drop content.
    package var openInodes: any OpenInodes { files }

    /// The files that are open now.
    package var openNumbers: [InodeNumber] { files.numbers }

    /// How many inodes are open.
    package var openCount: Int { files.numbers.count }

    // MARK: - Names and attributes

    /// The inode that a directory shows under a name.
    package func lookup(_ name: String, in directory: UInt64) throws(Obstacle) -> Attributes {
        let parent = InodeNumber(rawValue: Int64(bitPattern: directory))
        guard FileNameText.byteCount(of: name) <= FileProviderItem.maximumFilenameLength else {
            throw .refused(.fileNameTooLong)
        }
        let answer = try known { try replica.database.lookup(name, in: parent) }
        guard let state = answer.directory else { throw .refused(.staleNFSFileHandle) }
        // Before a directory is listed its remembered items may be old news.
        guard state == .materialized else {
            // But what was made here, and the remote has never heard of, is here.
            if let made = try known({ try replica.database.itemMadeHere(name, in: parent) }) {
                return attributes(for: made)
            }
            throw .absent(.listing(of: parent, beyond: nil))
        }
        guard let inode = answer.inode else {
            didMissName(parent)
            throw .refused(.noSuchFileOrDirectory)
        }
        return attributes(for: inode)
    }

    /// What `stat` shows of an inode.
    package func attributes(of node: UInt64) throws(Obstacle) -> Attributes {
        attributes(for: try inode(node))
    }

    /// What a symbolic link points to.
    package func linkTarget(of node: UInt64) throws(Obstacle) -> String {
        let number = InodeNumber(rawValue: Int64(bitPattern: node))
        guard let target = try known({ try replica.database.linkTarget(of: number) }) else {
            throw .refused(.invalidArgument)
        }
        return target
    }

    /// The entries of a directory after an offset, without `.` and `..`; none at the end.
    ///
    /// - Parameter isProvided: whether the absence that was thrown before has been seen to.
    package func entries(
        of node: UInt64, after offset: UInt64, limit: Int, isProvided: Bool
    ) throws(Obstacle) -> [VolumeEntry] {
        let number = InodeNumber(rawValue: Int64(bitPattern: node))
        let cookie = Int64(clamping: offset)
        let directory = try inode(node)
        guard directory.kind == .directory else { throw .refused(.notDirectory) }
        if !isProvided { try checkReadable(directory.number) }
        if directory.content == .dataless || (directory.content == .partial && !isProvided) {
            throw .absent(.listing(of: number, beyond: cookie))
        }
        let rows = try known { try replica.database.entries(of: number, after: cookie, limit: limit) }
        if rows.isEmpty, directory.content == .partial { throw .absent(.listing(of: number, beyond: cookie)) }
        return rows.map {
            VolumeEntry(
                name: $0.name, attributes: attributes(for: $0.inode),
                offset: UInt64(bitPattern: $0.cookie))
        }
    }

    /// The directory that shows an inode, for `..`.
    package func parent(of node: UInt64) throws(Obstacle) -> Attributes {
        let number = InodeNumber(rawValue: Int64(bitPattern: node))
        guard let parent = try known({ try replica.database.parent(of: number) }) else {
            throw .refused(.staleNFSFileHandle)
        }
        return try attributes(of: UInt64(bitPattern: parent.rawValue))
    }

    /// Makes sure that a directory can be read, before it is opened: its listing is here or on its way.
    package func openDirectory(
        _ node: UInt64, caller: Requester? = nil, isProvided: Bool
    ) throws(Obstacle) {
        let directory = try inode(node)
        guard directory.kind == .directory else { throw .refused(.notDirectory) }
        if directory.content == .dataless, !isProvided {
            throw .absent(.listing(of: directory.number, beyond: 0))
        }
        if !isProvided { didOpenDirectory(directory.number, caller) }
    }

    // MARK: - What the extensions share

    func inode(_ node: UInt64) throws(Obstacle) -> InodeRecord {
        let number = InodeNumber(rawValue: Int64(bitPattern: node))
        guard let inode = try known({ try replica.database.inode(number) }) else {
            throw .refused(.staleNFSFileHandle)
        }
        return inode
    }

    /// Runs a query. A database that cannot be read is EIO, with the reason in the log.
    func known<Value>(_ query: () throws -> Value) throws(Obstacle) -> Value {
        do {
            return try query()
        } catch let error as Errno {
            throw .refused(error)
        } catch {
            logger.error("the replica cannot be read: \(error)")
            throw .refused(.ioError)
        }
    }

    /// Whether its capabilities let an item be read, or listed.
    func checkReadable(_ number: InodeNumber) throws(Obstacle) {
        guard try known({ try replica.database.allowsReading(number) }) else { throw .refused(.permissionDenied) }
    }

    func handleClosed(_ number: InodeNumber) {
        didClose(number)
    }

    // MARK: - What the kernel knows

    /// Counts a lookup of each of the nodes: called before the reply that tells the kernel of them.
    package func noteLookup(of nodes: some Sequence<UInt64>) {
        files.noteLookup(of: nodes.lazy.map { InodeNumber($0) })
    }

    /// The kernel has forgotten lookups of a node, or was not told of them after all. With the last of an inode that has no
    /// name, the inode can go.
    package func forget(_ node: UInt64, lookups: UInt64) {
        let number = InodeNumber(node)
        if files.forget(number, lookups: lookups) { handleClosed(number) }
    }

    /// How many inodes the kernel knows.
    package var knownCount: Int { files.knownCount }
}
