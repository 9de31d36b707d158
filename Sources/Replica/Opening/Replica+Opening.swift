import FileProvider
import Foundation
import GRDB
import Logging
import Synchronization
import Syscalls
import SystemPackage

extension Replica {
    /// Opens a domain's replica, or makes a new one, and mends what a crash left behind.
    ///
    /// Content files are compared with their rows in ``finishRecovery()``, because that takes long in a large replica.
    ///
    /// - Parameters:
    ///   - readers: how many threads read at once.
    ///   - open: the inodes that processes on the mount have open since before a daemon that was killed.
    ///   - isTakenOver: whether the mount lives on: then not all that is open need be known yet.
    ///   - mayWait: asked again and again while another process has locked the database of a mount that lives on.
    ///   - finishesRecovery: whether to call ``finishRecovery()``; else the caller does, once the replica is in use, but for
    ///     a database that was rebuilt.
    ///   - busyTimeout: how many seconds a statement waits for a lock of another process. The opening of a replica whose mount
    ///     lives on waits longer (``waitingForLocks(_:_:_:)``).
    /// - Throws: ``ReplicaDamage`` for a database that has to be rebuilt, `DatabaseError` for one that cannot be read for
    ///   any other reason, `Errno` for a folder that cannot.
    package convenience init(
        at directory: FilePath, readers: Int = 12, open: any OpenInodes = NothingOpen(), isTakenOver: Bool = false,
        mayWait: () -> Bool = { true }, finishesRecovery: Bool = true, busyTimeout: Double = 10, logger: Logger
    ) throws {
        try directory.makeDirectory()
        try RebuiltDatabase.adopt(in: directory)
        try ReplicaDatabase.refuseDamagedFile(in: directory)
        let contents = try ContentStore(in: directory)
        let (database, store, findings, comparison) = try Replica.waitingForLocks({ isTakenOver && mayWait() }, logger)
        {
            try ReplicaDatabase.namingDamage {
                let database = try ReplicaDatabase(
                    at: directory.appending(ReplicaDatabase.fileName), readers: readers, busyTimeout: busyTimeout)
                do {
                    var recovery = Recovery(
                        database: database, contents: contents, open: open, isTakenOver: isTakenOver, logger: logger)
                    try recovery.run()
                    let comparison = try ContentComparison(
                        database: database, contents: contents, open: open, logger: logger)
                    let (store, finding) = try database.openProviderStore(in: directory)
                    return (database, store, recovery.findings + [finding].compactMap(\.self), comparison)
                } catch {
                    try? database.close()
                    throw error
                }
            }
        }
        self.init(
            database, store, contents, in: directory, findings: findings, remainingRecovery: comparison,
            lastSync: comparison.lastSync)
        do {
            // In a rebuilt database, what was written to a file can lie where its content from the remote would be put.
            let isRebuilt = try database.value(of: .isRebuilt) != nil
            guard finishesRecovery || isRebuilt else { return }
            while try ReplicaDatabase.namingDamage({ try stepRecovery() }) != nil {}
            if isRebuilt { try database.set(.isRebuilt, to: nil as String?) }
        } catch {
            try? database.close()
            throw error
        }
    }

    /// Opens the database of a mount that lives on again and again while another process has locked it.
    ///
    /// A thread of the killed daemon that the disk holds up, as in fdatasync(2), keeps the descriptors of its process and with them
    /// the locks of SQLite, and ends by itself. The mount must not end because of it: processes would lose what they have open.
    private static func waitingForLocks<Value>(
        _ mayWait: () -> Bool, _ logger: Logger, _ open: () throws -> Value
    ) throws -> Value {
        var end: ContinuousClock.Instant?
        while true {
            do {
                return try open()
            } catch let error as DatabaseError where error.resultCode == .SQLITE_BUSY && mayWait() {
                if end == nil {
                    logger.warning("the database is locked, perhaps by a thread of the killed daemon; the mount waits")
                }
                let last = end ?? ContinuousClock.now + longestWaitForLocks
                guard ContinuousClock.now < last else { throw error }
                end = last
                Thread.sleep(forTimeInterval: 0.1)
            }
        }
    }

    /// A thread that waits for an answer of this very mount would keep the locks until the mount has ended.
    private static let longestWaitForLocks = Duration.seconds(300)

    /// Compares all content files with their rows. The replica may be in use meanwhile.
    ///
    /// - Returns: the defects that were found and corrected, in words for the user; ``findings`` has them, too.
    @discardableResult
    package func finishRecovery() async throws -> [String] {
        var found: [String] = []
        while let some = try stepRecovery() {
            found += some
            try Task.checkCancellation()
            await Task.yield()
        }
        return found
    }

    /// As ``finishRecovery()``, again and again after a pause until it succeeds. When it is cancelled, the next opening compares the
    /// content files again.
    ///
    /// - Parameter report: gets what was found, and why it could not be done, in words for the user.
    /// - Returns: whether all content files were compared.
    package func finishRecovery(
        retryingAfter pause: Duration, report: @Sendable (String) -> Void
    ) async -> Bool {
        while !Task.isCancelled {
            do {
                for finding in try await finishRecovery() { report(finding) }
                return true
            } catch is CancellationError {
                return false
            } catch {
                report("the content files cannot be compared with their rows: \(error)")
            }
            try? await Task.sleep(for: pause)
        }
        return false
    }

    /// - Returns: what was found and corrected; nil when nothing is left to do.
    private func stepRecovery() throws -> [String]? {
        let found = try remainingRecovery.withLock { try $0?.step() }
        if let found {
            recovered.withLock { $0 += found }
        } else {
            remainingRecovery.withLock { $0 = nil }
            lastSync.withLock { $0 = nil }
        }
        return found
    }

    /// Puts everything on the disk and closes. Nothing may be under way, and nothing may follow.
    ///
    /// - Throws: what could not be put on the disk. It is closed all the same, and the next opening checks more.
    package func close() throws {
        let result = Result { try prepareForClosing() }
        try database.close()
        try result.get()
    }

    private func prepareForClosing() throws {
        let folder = try FileDescriptor.open(contents.directory, .readOnly, options: [.directory, .closeOnExec])
        defer { try? folder.close() }
        // The checkpoint before the file system is synced.
        try providerStore.close()
        let time = try timeOfSync()
        try folder.syncFileSystem()
        try database.write { db in
            // The next opening compares all content files again, with the time of the sync before the power cut.
            if try DomainKey.mayMissBytes.bytes(in: db) == nil { try db.noteDurableContents(at: time) }
            try DomainKey.wasClosed.set("1", in: db)
        }
    }
}
