import Foundation
import GRDB
import Synchronization
import SystemPackage

/// The local changes that are answered and not committed yet.
///
/// A change is made in an open transaction of the writer, its statements are appended to a log, and its caller gets the
/// answer; the transaction is committed some milliseconds later with many others. Its invariants:
///
/// 1. A change is in the log before its caller knows that it is made, and stays there until a transaction with it has been
///    committed: no answered change is lost when the daemon is killed.
/// 2. While ``isOpen``, what was answered can only be seen through the writer's connection.
/// 3. The statements of `records`, run in their order on the database as it is committed, make what the open transaction
///    has made.
///
/// The database and the records are used on the writer's queue alone.
final class UncommittedChanges: Sendable {
    private struct State {
        var log: RedoLog?
        /// Those that were made since the last commit.
        var records: [RedoRecord] = []
        var lastSequence: Int64 = 0
        /// As of the database when the open transaction began.
        var givenBefore: Int64?
        /// Whether the open transaction has them: SQLite itself rolls back after some errors.
        var isApplied = true
        /// Whether a change in it has failed after its first statement: each of the next has a savepoint then.
        var hasFailed = false
        var isScheduled = false
    }

    private let state = Mutex(State())
    private let hasBegun = Atomic<Bool>(false)
    /// A transaction with so many changes, or so long a log, is committed before the next change.
    private static let most = 512
    private static let longestLog: Int64 = 2 << 20

    /// Whether there may be a change that is not committed.
    var isOpen: Bool { hasBegun.load(ordering: .acquiring) }

    /// Whether changes can be made before they are committed.
    var isReady: Bool { state.withLock { $0.log != nil } }

    /// Whether it is time to commit.
    var isFull: Bool {
        state.withLock { $0.records.count >= Self.most || $0.log?.size ?? 0 >= Self.longestLog }
    }

    /// - Returns: whether the caller has to schedule the commit.
    func takeSchedule() -> Bool {
        state.withLock { !exchange(&$0.isScheduled, with: true) }
    }

    /// The scheduled task has begun.
    func beginScheduled() { state.withLock { $0.isScheduled = false } }

    /// Changes are logged from now on.
    func begin(_ log: RedoLog, after sequence: Int64) {
        state.withLock { state in
            state.log = log
            state.lastSequence = sequence
        }
    }

    /// Makes the changes that were not committed before the daemon died, and logs others from now on; not in a new
    /// database, which has no identity yet.
    ///
    /// - Returns: why they could not be made, in words for the user. The log is set aside then.
    /// - Throws: ``ReplicaDamage``, or what the system says.
    func recover(from path: FilePath, in db: Database) throws -> String? {
        guard try db.tableExists("domain"), let identity = try DomainKey.identity.string(in: db) else { return nil }
        var (log, records) = try RedoLog.open(at: path, of: identity)
        let written = try DomainKey.changesWritten.string(in: db).flatMap(Int64.init) ?? 0
        let missing = records.filter { $0.sequence > written }
        guard let first = missing.first, let last = missing.last else {
            begin(log, after: written)
            return nil
        }
        /// What is changed from now on follows what the database has.
        func setAside(_ reason: String) throws -> String {
            let names = [path.string + ".rejected"] + (2...9).map { path.string + ".rejected.\($0)" }
            let aside = names.first { !FileManager.default.fileExists(atPath: $0) } ?? names[0]
            // On a full disk, or with as many of them, the domain is opened without the copy.
            let isKept = (try? FileManager.default.copyItem(atPath: path.string, toPath: aside)) != nil
            try log.removeAll()
            begin(log, after: written)
            return
                "\(missing.count) changes that were made just before the daemon died could not be made again"
                + (isKept ? ", and are kept in '\(aside)'" : "") + ": \(reason)"
        }
        // After a power cut the log may be newer than the database. What is made again on a database without the rows of another
        // transaction gives its own rows other numbers than its later statements name.
        let isNext = try first.givenBefore.map { try $0 == db.givenRowNumbers() } ?? true
        guard first.sequence == written + 1, isNext else {
            return try setAside("what was changed before them is not in the database")
        }
        do {
            try db.transaction(beginning: "BEGIN IMMEDIATE") { db in
                try db.repeatChanges(missing)
                try DomainKey.changesWritten.set(String(last.sequence), in: db)
            }
        } catch let error as DatabaseError
            where error.resultCode == .SQLITE_CONSTRAINT || error.resultCode == .SQLITE_ERROR
        {
            return try setAside("\(error)")
        } catch {
            log.close()
            throw error
        }
        begin(log, after: last.sequence)
        return nil
    }

    /// Closes the log. Precondition: nothing is open.
    func close() {
        state.withLock { state in
            state.log?.close()
            state.log = nil
        }
    }

    // MARK: - In the writer's queue

    /// Makes a change: when this returns it survives the daemon's death.
    ///
    /// A savepoint for each change would cost more than some of the changes: SQLite copies every page that is changed in one.
    /// After a change that fails halfway, which few do, all before it are made again.
    ///
    /// - Throws: what `body` throws, or the database or the log says: nothing of the change is made then.
    func change<Value>(in db: Database, _ body: (Database) throws -> Value) throws -> Value {
        try apply(in: db)
        if !db.isInsideTransaction {
            let given = try db.givenRowNumbers()
            state.withLock { $0.givenBefore = given }
            try db.run("BEGIN IMMEDIATE", [])
            hasBegun.store(true, ordering: .releasing)
        }
        let (size, hasSavepoint) = state.withLock { ($0.log?.size ?? 0, $0.hasFailed) }
        let (recorder, before) = (RedoRecorder(), db.totalChangesCount)
        do {
            if hasSavepoint { try db.run("SAVEPOINT change", []) }
            let value = try RedoRecorder.$current.withValue(recorder) { try body(db) }
            assert(db.totalChangesCount - before == recorder.changedRows, "a statement was not recorded")
            try append(recorder.statements)
            if hasSavepoint { try db.run("RELEASE change", []) }
            endIfEmpty(in: db)
            return value
        } catch {
            takeBack(to: size, hasChanged: db.totalChangesCount != before, hasSavepoint: hasSavepoint, in: db)
            throw error
        }
    }

    /// Commits all changes.
    ///
    /// - Throws: what the database says: then they stay uncommitted.
    func commit(in db: Database) throws {
        guard isOpen else { return }
        try apply(in: db)
        let (isEmpty, last) = state.withLock { ($0.records.isEmpty, $0.lastSequence) }
        do {
            if !isEmpty { try DomainKey.changesWritten.set(String(last), in: db) }
            try db.run("COMMIT", [])
        } catch {
            if db.isInsideTransaction { try? db.run("ROLLBACK", []) }
            state.withLock { $0.isApplied = false }
            throw error
        }
        state.withLock { state in
            state.records = []
            state.log?.clear()
            state.hasFailed = false
        }
        hasBegun.store(false, ordering: .releasing)
    }

    /// Makes the changes once more, if they were rolled back.
    func apply(in db: Database) throws {
        guard isOpen else { return }
        let missing = state.withLock { $0.isApplied && db.isInsideTransaction ? nil : $0.records }
        guard let missing else { return }
        if db.isInsideTransaction { try db.run("ROLLBACK", []) }
        try db.run("BEGIN IMMEDIATE", [])
        do {
            try db.repeatChanges(missing)
        } catch {
            if db.isInsideTransaction { try? db.run("ROLLBACK", []) }
            throw error
        }
        state.withLock { $0.isApplied = true }
    }

    /// Ends the open transaction. Its changes are made once more with the next one.
    func rollBack(in db: Database) {
        guard db.isInsideTransaction else { return }
        try? db.run("ROLLBACK", [])
        state.withLock { $0.isApplied = false }
    }

    private func append(_ statements: [RecordedStatement]) throws {
        guard !statements.isEmpty else { return }
        try state.withLock { state in
            let record = RedoRecord(
                sequence: state.lastSequence + 1, statements: statements,
                givenBefore: state.records.isEmpty ? state.givenBefore : nil)
            guard try state.log?.append(record) != nil else { throw ReplicaDefect("the log of changes is closed") }
            state.lastSequence += 1
            state.records.append(record)
        }
    }

    private func takeBack(to size: Int64, hasChanged: Bool, hasSavepoint: Bool, in db: Database) {
        if db.isInsideTransaction {
            if hasSavepoint {
                if (try? db.run("ROLLBACK TO change", [])) == nil || (try? db.run("RELEASE change", [])) == nil {
                    try? db.run("ROLLBACK", [])
                }
            } else if hasChanged {
                try? db.run("ROLLBACK", [])
                state.withLock { $0.hasFailed = !$0.records.isEmpty }
            }
        }
        state.withLock { state in
            // It was appended when only its release has failed.
            if let end = state.log?.size, end > size {
                try? state.log?.takeBack(to: size)
                state.records.removeLast()
                state.lastSequence -= 1
            }
            if !db.isInsideTransaction { state.isApplied = false }
        }
        endIfEmpty(in: db)
    }

    /// Ends a transaction that has changed nothing.
    private func endIfEmpty(in db: Database) {
        guard state.withLock({ $0.records.isEmpty }) else { return }
        if db.isInsideTransaction { try? db.run("ROLLBACK", []) }
        state.withLock { $0.isApplied = true }
        hasBegun.store(false, ordering: .releasing)
    }
}

extension Database {
    /// The sum of the highest row numbers that the tables have given, which grows with each insertion.
    fileprivate func givenRowNumbers() throws -> Int64 {
        try one("SELECT TOTAL(seq) FROM main.sqlite_sequence", [], { $0[0] as Int64 }) ?? 0
    }

    /// Runs the statements of changes that were made before.
    func repeatChanges(_ records: [RedoRecord]) throws {
        for record in records {
            for statement in record.statements { try run(statement.sql, statement.arguments) }
        }
    }
}
