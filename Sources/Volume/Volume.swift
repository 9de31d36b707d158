import FileNames
import FileProvider
import Logging
import Replica
import Synchronization
import Syscalls
import SystemPackage

/// The POSIX semantics of a domain: requests on names, inodes and open files, answered from the replica on the
/// calling thread.
///
/// Nothing here waits for the network. If a prerequisite is missing, a function throws ``VolumeError/needs(_:)``; the
/// caller fulfils it and repeats the call. All functions may be called from any thread, concurrently.
package final class Volume: Sendable {
    let replica: Replica
    let ownership: Ownership
    let files: OpenFiles
    let observer: any VolumeObserver
    let logger: Logger
    /// Whether every change fails with EROFS: the remote cannot be written, or the domain is mounted read-only.
    package let isReadOnly: Bool
    private let waiting: Atomic<Bool>

    /// - Parameters:
    ///   - files: the open inodes; shared with the sync engine, which must not drop their content.
    ///   - ownership: the owner and group of items that have none of their own.
    ///   - isReadOnly: every change fails with EROFS.
    ///   - waitsForRemote: `fsync` returns only after the upload.
    package init(
        replica: Replica, files: OpenFiles, ownership: Ownership, isReadOnly: Bool = false,
        waitsForRemote: Bool = false, logger: Logger, observer: any VolumeObserver
    ) {
        self.replica = replica
        self.files = files
        self.ownership = ownership
        self.logger = logger
        self.observer = observer
        self.isReadOnly = isReadOnly
        waiting = Atomic(waitsForRemote)
    }

    /// Whether `fsync` returns only after the upload.
    package var waitsForRemote: Bool {
        get { waiting.load(ordering: .relaxed) }
        set { waiting.store(newValue, ordering: .relaxed) }
    }

    /// The open inodes, for code that changes or drops content.
    package var openInodes: any OpenInodes { files }

    package var openNumbers: [InodeNumber] { files.numbers }

    // MARK: - Names and attributes

    package func lookup(_ name: String, in directory: UInt64) throws(VolumeError) -> Attributes {
        let parent = InodeNumber(rawValue: Int64(bitPattern: directory))
        guard FileNameText.byteCount(of: name) <= FileProviderItem.maximumFilenameLength else {
            throw .refused(.fileNameTooLong)
        }
        let answer = try known { try replica.database.lookup(name, in: parent) }
        guard let state = answer.directory else { throw .refused(.staleNFSFileHandle) }
        if let inode = answer.inode { return attributes(for: inode) }
        guard state == .materialized else { throw .needs(.listing(of: parent, beyond: nil)) }
        observer.didMissName(in: parent)
        throw .refused(.noSuchFileOrDirectory)
    }

    package func attributes(of node: UInt64) throws(VolumeError) -> Attributes {
        attributes(for: try inode(node))
    }

    package func linkTarget(of node: UInt64) throws(VolumeError) -> String {
        let number = InodeNumber(rawValue: Int64(bitPattern: node))
        guard let target = try known({ try replica.database.linkTarget(of: number) }) else {
            throw .refused(.invalidArgument)
        }
        return target
    }

    /// The entries of a directory after an offset, without `.` and `..`; none at the end.
    ///
    /// - Parameter isProvided: whether the prerequisite of an earlier attempt has been fulfilled.
    package func entries(
        of node: UInt64, after offset: UInt64, limit: Int, isProvided: Bool
    ) throws(VolumeError) -> [VolumeEntry] {
        let number = InodeNumber(rawValue: Int64(bitPattern: node))
        let cookie = Int64(clamping: offset)
        let directory = try inode(node)
        guard directory.kind == .directory else { throw .refused(.notDirectory) }
        if !isProvided { try checkReadable(directory.number) }
        if directory.content == .dataless || (directory.content == .partial && !isProvided) {
            throw .needs(.listing(of: number, beyond: cookie))
        }
        let rows = try known { try replica.database.entries(of: number, after: cookie, limit: limit) }
        if rows.isEmpty, directory.content == .partial { throw .needs(.listing(of: number, beyond: cookie)) }
        return rows.map {
            VolumeEntry(
                name: $0.name, attributes: attributes(for: $0.inode),
                offset: UInt64(bitPattern: $0.cookie))
        }
    }

    /// The node of an inode's parent directory, for `..`.
    package func parent(of node: UInt64) throws(VolumeError) -> UInt64 {
        let number = InodeNumber(rawValue: Int64(bitPattern: node))
        guard let parent = try known({ try replica.database.parent(of: number) }) else {
            throw .refused(.staleNFSFileHandle)
        }
        return UInt64(bitPattern: parent.rawValue)
    }

    /// Verifies that a directory can be opened: its listing is here or in progress.
    package func openDirectory(
        _ node: UInt64, caller: Requester? = nil, isProvided: Bool
    ) throws(VolumeError) {
        let directory = try inode(node)
        guard directory.kind == .directory else { throw .refused(.notDirectory) }
        if directory.content == .dataless, !isProvided {
            throw .needs(.listing(of: directory.number, beyond: 0))
        }
        if !isProvided { observer.didOpenDirectory(directory.number, caller: caller) }
    }

    // MARK: - What the extensions share

    func inode(_ node: UInt64) throws(VolumeError) -> InodeRecord {
        let number = InodeNumber(rawValue: Int64(bitPattern: node))
        guard let inode = try known({ try replica.database.inode(number) }) else {
            throw .refused(.staleNFSFileHandle)
        }
        return inode
    }

    /// Runs a query. If the database cannot be read, logs the reason and throws EIO.
    func known<Value>(_ query: () throws -> Value) throws(VolumeError) -> Value {
        do {
            return try query()
        } catch let error as Errno {
            throw .refused(error)
        } catch {
            logger.error("the replica cannot be read: \(error)")
            throw .refused(.ioError)
        }
    }

    /// Verifies that the item's capabilities allow reading or listing.
    func checkReadable(_ number: InodeNumber) throws(VolumeError) {
        guard try known({ try replica.database.allowsReading(number) }) else { throw .refused(.permissionDenied) }
    }

    // MARK: - What the kernel knows

    /// Increments the lookup count of each node. Called before the reply that contains them.
    ///
    /// - Parameter request: counted once, also if the kernel sends it again; nil for READDIRPLUS.
    package func noteLookup(of nodes: some Sequence<UInt64>, request: RequestNumber? = nil) {
        files.noteLookup(of: nodes.lazy.map { InodeNumber($0) }, request: request)
    }

    /// Decrements the lookup count of a node, after FORGET or a reply that the kernel discarded. An inode without a
    /// name can be removed with its last lookup.
    ///
    /// - Parameter undone: the request whose reply the kernel discarded.
    package func forget(_ node: UInt64, lookups: UInt64, undoing undone: RequestNumber? = nil) {
        let number = InodeNumber(node)
        if files.forget(number, lookups: lookups, undoing: undone) { observer.didCloseInode(number) }
    }

    /// The number of inodes that the kernel knows.
    package var knownCount: Int { files.knownCount }
}
