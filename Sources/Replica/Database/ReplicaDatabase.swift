import Dispatch
import FileProvider
import GRDB
import Synchronization
import SystemPackage

/// The domain's database: what the mount shows, what the provider agreed to, and what of it is here.
///
/// Reading runs on the calling thread and does not wait for a writer (WAL), but where local changes are not committed yet:
/// then it takes turns with the writers. Every method that takes a `Database` runs inside a transaction of the caller's.
package final class ReplicaDatabase: Sendable {
    package static let fileName = "replica.sqlite"

    /// Nil after ``close()``. A query that is running then keeps the connections until it ends.
    private let connections: Mutex<Connections?>
    private let noticedDamage = Mutex<ReplicaDamage?>(nil)
    /// When the index of content versions is tried again after a failure.
    let nextIndexOfVersions = Mutex<ContinuousClock.Instant?>(nil)
    let newFiles = NewFiles()
    let group = WriteGroup()
    let uncommitted = UncommittedChanges()
    package let unplacedItems = UnplacedItems()
    /// Notified after each commit, and by Sync after changes of other state that the same tasks wait for.
    package let changes = ChangeSignal()
    /// The creation log: files that were created and are not in the database yet.
    let newFileLog: FilePath
    /// The redo log: local changes that are not committed yet.
    let redoLog: FilePath
    /// The write-ahead log.
    let log: FilePath
    let withdrawn: WithdrawnFiles
    /// The directories between which content files are renamed that are withdrawn.
    let withdrawalDirectories: [FilePath]
    /// Called before a file or directory is put on the disk.
    let onSync: @Sendable (FilePath) -> Void
    let reserve: MetadataReserve
    /// Why changes of the redo log could not be made once more, in words for the user.
    let redoFinding: String?

    /// Opens the database, or makes it, and brings its schema up to date.
    ///
    /// - Parameters:
    ///   - readers: how many threads read at once without waiting for each other.
    ///   - busyTimeout: how many seconds a statement waits for a lock of another process.
    ///   - withdrawn: for files that wait to be deleted.
    ///   - onSync: called before a file or directory is put on the disk, for tests.
    /// - Throws: GRDB's `DatabaseError`; a database of a newer Yonder is refused.
    init(
        at path: FilePath, readers: Int, busyTimeout: Double = 10, withdrawn: WithdrawnFiles = WithdrawnFiles(),
        onSync: @escaping @Sendable (FilePath) -> Void = { _ in }
    ) throws {
        self.withdrawn = withdrawn
        self.onSync = onSync
        // The new names first: on a file system without a journal a power cut between the two would leave neither.
        withdrawalDirectories = [WithdrawnFiles.directory, WithdrawnFiles.contentDirectory].map {
            path.removingLastComponent().appending($0)
        }
        newFileLog = FilePath(path.string + "-new")
        redoLog = FilePath(path.string + "-redo")
        log = FilePath(path.string + "-wal")
        let reserve = MetadataReserve(in: path.removingLastComponent())
        self.reserve = reserve
        let connections = try reserve.using {
            try Connections(path: path.string, readers: readers, busyTimeout: busyTimeout) { db in
                try db.execute(sql: "PRAGMA cache_size = -4096")
                // Moving the log into the database syncs both: seldom.
                try db.execute(sql: "PRAGMA wal_autocheckpoint = 8000")
            }
        }
        // Its statements are of the schema that it was written with.
        let checkpoint = {
            try connections.writer.writeWithoutTransaction { db in _ = try db.checkpoint(.restart) }
        }
        redoFinding = try reserve.using(checkpoint: checkpoint) { [uncommitted, redoLog] in
            try connections.writer.writeWithoutTransaction { db in
                try Connections.refuseNewer(db, than: Schema.migrator, at: path.string)
                return try uncommitted.recover(from: redoLog, in: db)
            }
        }
        try reserve.using(checkpoint: checkpoint) { try connections.migrate(with: Schema.migrator) }
        self.connections = Mutex(connections)
        reserve.keepRoom(
            5, for: path, checkpoint: { [weak self] in self?.checkpointEarly(longest: $0) },
            addFreePages: { [weak self] in try self?.addFreePages(of: $0) })
    }

    // MARK: - Reading

    /// Runs a reading transaction on the calling thread.
    func read<Value>(_ body: (Database) throws -> Value) throws -> Value {
        writeNewFiles()
        return try queryWithoutNewFiles { db in
            try db.isInsideTransaction ? body(db) : db.transaction(beginning: "BEGIN DEFERRED", body)
        }
    }

    /// Runs a reading transaction that takes long, on the calling thread: of what is committed, with all that was changed
    /// before.
    func readCommitted<Value>(_ body: (Database) throws -> Value) throws -> Value {
        // If it cannot be written, everything else can still be read.
        try? commitAll()
        return try watching { try current().read { db in try db.transaction(beginning: "BEGIN DEFERRED", body) } }
    }

    /// Runs a single query on the calling thread: one statement needs no transaction around it to see one state.
    func query<Value>(_ body: (Database) throws -> Value) throws -> Value {
        writeNewFiles()
        return try queryWithoutNewFiles(body)
    }

    /// The first row of a single query; nil for none.
    func one<Value>(
        _ sql: String, _ arguments: [(any DatabaseValueConvertible)?], _ decode: (Columns) throws -> Value
    ) throws -> Value? {
        try query { db in try db.one(sql, arguments, decode) }
    }

    /// All rows of a single query.
    func all<Value>(
        _ sql: String, _ arguments: [(any DatabaseValueConvertible)?], _ decode: (Columns) throws -> Value
    ) throws -> [Value] {
        try query { db in try db.all(sql, arguments, decode) }
    }

    /// As ``query(_:)``, of what has nothing to do with new files.
    func queryWithoutNewFiles<Value>(_ body: (Database) throws -> Value) throws -> Value {
        try watching {
            let connections = try current()
            // What is answered and committed after this was not known to any process when the query began.
            guard uncommitted.isOpen else { return try connections.read(body) }
            return try connections.writer.unsafeReentrantRead { db in
                try uncommitted.apply(in: db)
                return try body(db)
            }
        }
    }

    // MARK: - Writing

    /// Makes a local change, on the writer's own queue, and waits for it: it survives the daemon's death when this returns, and
    /// is committed soon, with others.
    func change<Value>(
        _ reach: WriteReach = .everything, undoing undo: TransactionUndo? = nil,
        _ body: (Database) throws -> Value
    ) throws -> Value {
        guard uncommitted.isReady else { return try write(reach, undoing: undo, body) }
        do {
            return try changeBeforeCommit(reach, undo, body)
        } catch Errno.noSpace {
            // Behind the end of the database's own log there is room.
            return try write(reach, undoing: undo, body)
        }
    }

    private func changeBeforeCommit<Value>(
        _ reach: WriteReach, _ undo: TransactionUndo?, _ body: (Database) throws -> Value
    ) throws -> Value {
        defer { changes.notify() }
        defer { if uncommitted.isOpen, uncommitted.takeSchedule() { commitSoon() } }
        return try usingWriter { db in
            if uncommitted.isFull { try uncommitted.commit(in: db) }
            return try WriteTurn.run(reach, of: newFiles, in: db, as: uncommitted, undoing: undo) { db, _ in
                try body(db)
            }
        }
    }

    /// Runs a writing transaction, on the writer's own queue, and waits for it.
    ///
    /// - Parameter undo: called if the body fails or is not committed, before the writer is released.
    func write<Value>(
        _ reach: WriteReach = .everything, undoing undo: TransactionUndo? = nil,
        _ body: (Database) throws -> Value
    ) throws -> Value {
        defer { changes.notify() }
        return try usingWriter { db in
            try uncommitted.commit(in: db)
            return try WriteTurn.run(reach, of: newFiles, in: db, undoing: undo) { db, _ in try body(db) }
        }
    }

    /// Runs a body in a writing transaction, which it may share with others, without blocking the calling thread. Nothing
    /// is done when the task has been cancelled before.
    func write<Value: Sendable>(
        undoing undo: TransactionUndo? = nil, async body: @escaping @Sendable (Database) throws -> Value
    ) async throws -> Value {
        try await write(async: .everything, undoing: undo) { db, _ in try body(db) }
    }

    /// As ``write(async:)``, with the turn of the transaction.
    func write<Value: Sendable>(
        async reach: WriteReach, undoing undo: TransactionUndo? = nil,
        _ body: @escaping @Sendable (Database, WriteTurn) throws -> Value
    ) async throws -> Value {
        defer { changes.notify() }
        do {
            return try await reserve.using(checkpoint: checkpoint) {
                try await group.write(
                    with: current().writer, newFiles, after: uncommitted, reach, undoing: undo, body)
            }
        } catch {
            note(error)
            throw error
        }
    }

    /// Writes the new files that wait, and commits what was changed.
    ///
    /// - Throws: what the database says: then they wait on.
    package func commitAll() throws {
        guard !newFiles.isEmpty || uncommitted.isOpen else { return }
        defer { changes.notify() }
        try usingWriter { db in
            try uncommitted.commit(in: db)
            if !newFiles.isEmpty { try WriteTurn.run(.contents, of: newFiles, in: db) { _, _ in } }
        }
    }

    /// Runs what writes on the writer's own queue, on a full disk once more with the reserve's room, and waits for it.
    private func usingWriter<Value>(_ body: (Database) throws -> Value) throws -> Value {
        try reserve.using(checkpoint: checkpoint) {
            try watching { try current().writer.writeWithoutTransaction(body) }
        }
    }

    /// As ``commitAll()``, soon, on another thread.
    func commitAllSoon(after pause: DispatchTimeInterval = .milliseconds(20)) {
        DispatchQueue.global(qos: .userInitiated).asyncAfter(deadline: .now() + pause) { [weak self] in
            guard let self else { return }
            self.newFiles.beginScheduled()
            // On a full disk there may be room again.
            if (try? self.commitAll()) == nil { self.commitAllSoon(after: .seconds(1)) }
        }
    }

    /// Commits what was changed, soon, on another thread.
    private func commitSoon(after pause: DispatchTimeInterval = .milliseconds(50)) {
        DispatchQueue.global(qos: .userInitiated).asyncAfter(deadline: .now() + pause) { [weak self] in
            guard let self else { return }
            self.uncommitted.beginScheduled()
            do {
                try self.usingWriter(self.uncommitted.commit)
            } catch {
                // On a full disk there may be room again.
                if self.uncommitted.isOpen, self.uncommitted.takeSchedule() { self.commitSoon(after: .seconds(1)) }
            }
        }
    }

    /// Moves the log into the database: it is written from its beginning again. What is not committed is made once more.
    func checkpoint() throws {
        try current().writer.writeWithoutTransaction { db in
            uncommitted.rollBack(in: db)
            _ = try db.checkpoint(.restart)
        }
    }

    private func checkpointEarly(longest: Int64?) {
        try? current().writer.writeWithoutTransaction { db in
            try? uncommitted.commit(in: db)
            try db.checkpointEarly(longest: longest)
        }
        try? deleteWithdrawnFilesSoon()
    }

    /// Gives the database free pages, for a disk that gets full.
    private func addFreePages(of bytes: Int64) throws {
        try current().writer.writeWithoutTransaction { db in
            guard try db.lacksFreePages(of: bytes) else { return }
            try uncommitted.commit(in: db)
            try db.addFreePages(
                of: bytes, inserting: "INSERT INTO domain (key, value) VALUES ('freePages', zeroblob(?))",
                deleting: "DELETE FROM domain WHERE key = 'freePages'")
        }
    }

    /// If they cannot be written, everything else can still be read.
    private func writeNewFiles() {
        if !newFiles.isEmpty { try? change(.contents) { _ in } }
    }

    // MARK: - Damage

    /// The first damage that a query found since the database was opened.
    package var damage: ReplicaDamage? { noticedDamage.withLock { $0 } }

    private func watching<Value>(_ body: () throws -> Value) throws -> Value {
        do {
            return try body()
        } catch {
            note(error)
            throw error
        }
    }

    private func note(_ error: any Error) {
        guard let damage = ReplicaDamage(error) else { return }
        noticedDamage.withLock { $0 = $0 ?? damage }
    }

    /// Checkpoints the WAL and closes the database. Later queries throw.
    func close() throws {
        if connections.withLock({ $0 != nil }) { try commitAll() }
        newFiles.close()
        uncommitted.close()
        let last = connections.withLock { $0.take() }
        changes.notify()
        var isDurable = false
        defer { withdrawn.close(isDurable: isDurable) }
        do {
            try reserve.using { try last?.writer.writeWithoutTransaction { db in _ = try db.checkpoint(.truncate) } }
            isDurable = true
        } catch Errno.noSpace {
            // The changes stay in the log, which is as durable.
        }
        reserve.prepareForClosing()
    }

    private func current() throws -> Connections {
        guard let current = connections.withLock({ $0 }) else { throw FileProviderError(.domainDisabled) }
        return current
    }
}
