import FileProvider
import GRDB

enum WriteReach: Sendable {
    /// Anything.
    case everything
    /// It makes, moves and removes no name, and changes no directory: new files may be added meanwhile.
    case contents
}

/// Takes back what the body of a transaction has changed outside the database. It can be called more than once.
struct TransactionUndo: Sendable {
    let run: @Sendable () -> Void
}

/// The turn of a writing transaction: the new files that wait are written before its own changes, or among them.
final class WriteTurn {
    private let db: Database
    private let newFiles: NewFiles
    private var hasClaimed = false
    private var hasTaken = false
    /// Whether some were written inside the transaction: they are rolled back when it fails.
    private(set) var hasWrittenWithin = false
    private var reserved: Range<Int64>?

    init(_ reach: WriteReach, of newFiles: NewFiles, in db: Database) {
        self.db = db
        self.newFiles = newFiles
        guard reach == .everything else { return }
        newFiles.claim()
        hasClaimed = true
    }

    /// Writes those that wait, as part of the transaction that has begun.
    ///
    /// - Returns: whether there were any.
    func settle() throws -> Bool {
        let (files, reserves) = newFiles.take()
        hasTaken = hasTaken || !files.isEmpty
        if reserves { reserved = try db.reserveInodes(NewFiles.reservation) }
        try db.insert(files)
        return !files.isEmpty
    }

    /// The transaction is about to change names after all.
    func claim() throws {
        guard !hasClaimed else { return }
        newFiles.claim()
        hasClaimed = true
        hasWrittenWithin = try settle()
    }

    /// Runs a body in a writing transaction, after the new files that wait.
    ///
    /// - Parameters:
    ///   - changes: where it is a local change, which is committed later.
    ///   - undo: called if the body fails or is not committed, before another transaction can compare rows with files.
    static func run<Value>(
        _ reach: WriteReach, of newFiles: NewFiles, in db: Database, as changes: UncommittedChanges? = nil,
        undoing undo: TransactionUndo? = nil, _ body: (Database, WriteTurn) throws -> Value
    ) throws -> Value {
        let turn = WriteTurn(reach, of: newFiles, in: db)
        var isCommitted = false
        defer { turn.end(committed: isCommitted) }
        func settleAndRun(_ db: Database) throws -> Result<Value, any Error> {
            guard try turn.settle() else { return .success(try body(db, turn)) }
            // An error of the body does not roll back the new files.
            let result = try db.attempt { db in try body(db, turn) }
            if turn.hasWrittenWithin { _ = try result.get() }
            return result
        }
        do {
            let result =
                if let changes {
                    try changes.change(in: db, settleAndRun)
                } else {
                    try db.transaction(beginning: "BEGIN IMMEDIATE", settleAndRun)
                }
            isCommitted = true
            return try result.get()
        } catch {
            undo?.run()
            throw error
        }
    }

    func end(committed: Bool) {
        if hasTaken {
            if committed { newFiles.wrote() } else { newFiles.putBack() }
        }
        if committed, let reserved { newFiles.reserve(reserved) }
        if hasClaimed { newFiles.release() }
    }
}

extension Database {
    /// Writes files that were made, in the order in which they were, and that they are written.
    ///
    /// Nothing stands in their way but after a power cut, when of names and log not the same may have reached the disk:
    /// then a name that is taken gets a number behind it, and content without a directory is set aside by the recovery.
    func insert(_ files: [NewFile]) throws {
        guard !files.isEmpty else { return }
        var touched: [InodeNumber: FileTimestamp] = [:]
        for file in files {
            var creation = file.creation
            let parent = creation.item.parent
            guard try touched[parent] != nil || isDirectory(parent), try inode(file.number) == nil else { continue }
            if try hasItem(named: creation.item.name, in: parent) {
                creation.item.name = try freeName(for: creation.item.name, in: parent)
            }
            _ = try insert(creation, as: file.number)
            touched[parent] = creation.item.madeAt
        }
        for (directory, time) in touched { try touch(directory, at: time) }
        if let last = files.last { try DomainKey.newFilesWritten.set(String(last.sequence), in: self) }
    }

    private func isDirectory(_ number: InodeNumber) throws -> Bool {
        try one(Self.shownDirectory, [number.rawValue], { _ in true }) ?? false
    }

    private static let shownDirectory = """
        SELECT 1 FROM inode JOIN item ON item.inode = inode.number
        WHERE inode.number = ? AND inode.kind = \(kind: .directory)
        """

    /// Runs a body within a transaction that goes on when the body fails, without what it had done.
    func attempt<Value>(_ body: (Database) throws -> Value) throws -> Result<Value, any Error> {
        try run("SAVEPOINT body", [])
        let recorder = RedoRecorder.current
        let recorded = recorder?.count ?? 0
        let result = Result { try body(self) }
        if case .failure(let error) = result {
            // SQLite itself rolls back all after some errors.
            guard isInsideTransaction else { throw error }
            try run("ROLLBACK TO body", [])
            recorder?.takeBack(to: recorded)
        }
        try run("RELEASE body", [])
        return result
    }

    /// Reserves inode numbers that no other insertion gets.
    fileprivate func reserveInodes(_ count: Int64) throws -> Range<Int64> {
        // Temporary tables have a sequence of their own, which is found first.
        try run("UPDATE main.sqlite_sequence SET seq = seq + ? WHERE name = 'inode'", [count])
        guard let last = try one("SELECT seq FROM main.sqlite_sequence WHERE name = 'inode'", [], { $0[0] as Int64 }),
            last > count
        else { throw ReplicaDefect("the database does not say which inode numbers were given") }
        return (last - count + 1)..<(last + 1)
    }
}
