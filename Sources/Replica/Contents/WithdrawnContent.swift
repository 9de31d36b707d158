import FileProvider
import Synchronization
import Syscalls
import SystemPackage

/// The content file of a generation that is over. It is moved out of the way inside the transaction that ends the
/// generation, so that a file that cannot be moved fails the transaction; and it is deleted once the commit is on the disk
/// (``WithdrawnFiles``). A crash or a power cut before that loses no content, and the row of an earlier generation never meets
/// the holes of a later one, which would have the same length.
struct WithdrawnContent {
    let number: InodeNumber
    /// The generation that the row has until the transaction is committed.
    let generation: Int64
    /// Whether the inode goes, too.
    let isOfGoneInode: Bool
    private let file: FilePath
    private let place: FilePath
    private var bytes: Int64 = 0

    /// The file after ``withdraw()``.
    var withdrawn: WithdrawnFile { WithdrawnFile(path: place, bytes: bytes, isOfGoneInode: isOfGoneInode) }

    init(_ number: InodeNumber, generation: Int64, isOfGoneInode: Bool = false, in contents: ContentStore) {
        self.number = number
        self.generation = generation
        self.isOfGoneInode = isOfGoneInode
        file = contents.path(of: number)
        place = contents.withdrawn.appending("\(number)-\(generation)")
    }

    /// - Parameter name: of a file that a transaction has left; nil for a name that none gives.
    init?(left name: String, in contents: ContentStore) {
        let numbers = name.split(separator: "-").compactMap { Int64($0) }
        guard numbers.count == 2 else { return nil }
        self.init(InodeNumber(rawValue: numbers[0]), generation: numbers[1], in: contents)
    }

    /// Whether the file is withdrawn, and neither put back nor deleted yet.
    var isThere: Bool { (try? FileStatus(at: place)) != nil }

    /// Precondition: a writing transaction. Nothing happens where the file is missing.
    ///
    /// - Throws: `isDirectory` for what is no file.
    mutating func withdraw() throws(Errno) {
        do throws(Errno) {
            let status = try FileStatus(at: file)
            guard status.kind == .regular else { throw Errno.isDirectory }
            try file.move(to: place)
            bytes = status.allocated
        } catch {
            guard error == .noSuchFileOrDirectory else { throw error }
        }
    }

    /// The transaction was not committed.
    func putBack() throws(Errno) {
        do throws(Errno) {
            guard (try? FileStatus(at: file)) == nil else { return try place.unlinkIfPresent() }
            try place.move(to: file)
        } catch {
            guard error == .noSuchFileOrDirectory else { throw error }
        }
    }

    /// A crash came before the commit: as ``putBack()``, in place of a file that the transaction has made.
    func restore() throws(Errno) { try place.move(to: file) }

    /// The transaction was committed.
    func delete() throws(Errno) { try place.unlinkIfPresent() }
}

/// The contents that one transaction withdraws, and what takes back its other changes of content files.
final class ContentWithdrawals: Sendable {
    private let contents: ContentStore
    private let database: ReplicaDatabase
    private let withdrawn = Mutex<[WithdrawnContent]>([])
    private let unmoved = Mutex<[InodeNumber]>([])
    private let undos = Mutex<[@Sendable () -> Void]>([])

    init(from contents: ContentStore, of database: ReplicaDatabase) {
        self.contents = contents
        self.database = database
    }

    /// The transaction begins, perhaps for the second time: it may withdraw others now.
    func begin() {
        unmoved.withLock { $0 = [] }
        for undo in takeUndos().reversed() { undo() }
        for content in take() { try? content.putBack() }
    }

    /// Moves the content file of an inode out of the way.
    ///
    /// - Parameter isGone: whether the inode is deleted, too.
    /// - Throws: `isDirectory` for what is no file; what the system says.
    func withdraw(_ number: InodeNumber, generation: Int64, isGone: Bool = false) throws(Errno) {
        var content = WithdrawnContent(number, generation: generation, isOfGoneInode: isGone, in: contents)
        try content.withdraw()
        withdrawn.withLock { $0.append(content) }
    }

    /// Calls a closure if the transaction is not committed, before what was withdrawn is put back.
    func ifNotCommitted(_ undo: @escaping @Sendable () -> Void) { undos.withLock { $0.append(undo) } }

    /// Moves an inode's content file to the recovered folder. If the transaction is not committed, it is moved back.
    ///
    /// - Returns: where it lies; nil without a file.
    func setAside(_ number: InodeNumber, stamp: Int64) throws -> FilePath? {
        guard let name = FilePath.Component(number.description), (try? contents.status(of: number)) != nil else {
            return nil
        }
        let place = try contents.quarantine(fileNamed: name, stamp: stamp)
        ifNotCommitted { [contents] in try? place.move(to: contents.path(of: number)) }
        return place
    }

    /// What a cut of more than this frees is room for its record.
    private static let longestRestored: Int64 = 256 << 10

    /// Sets the length of a content file. If the transaction is not committed, the file gets back its length, its bytes and its
    /// time.
    func setLength(of number: InodeNumber, to length: Int64) throws {
        let file = OwnedDescriptor(try contents.open(number, .readWrite))
        let before = try FileStatus(of: file.descriptor)
        let cut = before.size - length
        if cut <= Self.longestRestored {
            let bytes = cut > 0 ? try file.use { try $0.readBytes(at: length, count: Int(cut)) } : []
            ifNotCommitted { [contents] in
                file.use { file in
                    try? file.setLength(before.size)
                    if !bytes.isEmpty { try? file.writeAll(bytes.span.bytes, at: length) }
                }
                try? contents.setModificationTime(of: number, to: FileTimestamp(before.modified))
            }
        }
        try file.use { try $0.setLength(length) }
    }

    /// Deletes the content file of an inode that goes after the commit, where it is: on a full disk a file cannot be moved.
    /// A crash before that leaves a file without a row, which is set aside.
    func deleteInPlace(_ number: InodeNumber) { unmoved.withLock { $0.append(number) } }

    /// The generation of an inode's content is not over after all.
    func putBack(_ number: InodeNumber) {
        withdrawn.withLock { withdrawn in
            for content in withdrawn where content.number == number { try? content.putBack() }
            withdrawn.removeAll { $0.number == number }
        }
    }

    /// Runs a body, which returns when its transaction is committed and throws when it is not.
    func run<Value>(_ body: () throws -> Value) throws -> Value {
        do {
            let value = try body()
            delete()
            return value
        } catch {
            begin()
            throw error
        }
    }

    /// Runs a body as above, without blocking the calling thread.
    func run<Value: Sendable>(_ body: () async throws -> Value) async throws -> Value {
        let value: Value
        do {
            value = try await body()
        } catch {
            begin()
            throw error
        }
        _ = takeUndos()
        if withdrawn.withLock({ !$0.isEmpty }) || unmoved.withLock({ !$0.isEmpty }) {
            try await BlockingWork.run { self.delete() }
        }
        return value
    }

    /// What cannot be deleted now is deleted at the next start.
    private func delete() {
        _ = takeUndos()
        let ended = take()
        if !ended.isEmpty { database.deleteWhenDurable(ended.map(\.withdrawn)) }
        for number in unmoved.withLock({ $0 }) { try? contents.remove(number) }
        unmoved.withLock { $0 = [] }
    }

    private func takeUndos() -> [@Sendable () -> Void] {
        undos.withLock { exchange(&$0, with: []) }
    }

    private func take() -> [WithdrawnContent] {
        withdrawn.withLock { exchange(&$0, with: []) }
    }
}
