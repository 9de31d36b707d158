import FileProvider
import Foundation
import GRDB
import Logging
import Synchronization
import Syscalls
import SystemPackage

/// A domain's local copy: the database and the local contents, kept in step with each other.
///
/// Whatever is read here is read on the calling thread. What changes something returns the ``ReplicaEffects`` that are
/// left to the kernel; those on files are done before it returns.
package final class Replica: Sendable {
    package let database: ReplicaDatabase
    /// The folder that holds database, contents and what was recovered.
    package let directory: FilePath
    /// What was found wrong when the replica was opened, in words for the user.
    package let findings: [String]
    let contents: ContentStore
    /// The names that are never sent.
    let ignored = Mutex(IgnoredNames.none)
    /// Orders remote changes against operations.
    package let ordering = RemoteOrdering()

    /// Opens a domain's replica, or makes a new one, and mends what a crash left behind.
    ///
    /// - Parameter readers: how many threads read at once.
    /// - Throws: ``ReplicaDamage`` for a database that has to be rebuilt, `DatabaseError` for one that cannot be read for
    ///   any other reason, `Errno` for a folder that cannot.
    package init(at directory: FilePath, readers: Int = 12, logger: Logger) throws {
        try directory.makeDirectory()
        self.directory = directory
        try ReplicaDatabase.refuseDamagedFile(in: directory)
        let contents = try ContentStore(in: directory)
        self.contents = contents
        (database, findings) = try ReplicaDatabase.namingDamage(isOpening: true) {
            let database = try ReplicaDatabase(at: directory.appending(ReplicaDatabase.fileName), readers: readers)
            do {
                var recovery = Recovery(database: database, contents: contents, logger: logger)
                try recovery.run()
                return (database, recovery.findings)
            } catch {
                try? database.close()
                throw error
            }
        }
    }

    /// Puts everything on the disk and closes. Nothing may be under way, and nothing may follow.
    package func close() throws {
        let folder = try FileDescriptor.open(contents.directory, .readOnly, options: [.directory, .closeOnExec])
        defer { try? folder.close() }
        try folder.syncFileSystem()
        try database.write { db in
            try db.execute(sql: "UPDATE inode SET isDurable = 1 WHERE hasContentFile = 1 AND isDurable = 0")
            try DomainKey.wasClosed.set("1", in: db)
        }
        try database.close()
    }

    /// The present time, as rows keep it.
    package static var now: FileTimestamp {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return FileTimestamp(seconds: Int64(time.tv_sec), nanoseconds: Int64(time.tv_nsec))
    }

    /// Runs a batch of what the provider said in one transaction, and removes the files that it made obsolete.
    ///
    /// - Parameter changingNames: false for a batch that changes neither names nor directories, or says so itself before
    ///   it does (``Ingestion/willChangeNames()``).
    /// - Returns: what is left to tell the kernel, and what was wrong with the batch.
    package func ingest<Value: Sendable>(
        open: any OpenInodes, changingNames: Bool = true,
        _ body: @escaping @Sendable (inout Ingestion) throws -> Value
    ) async throws -> (Value, ReplicaEffects) {
        let (contents, ordering, hasByteNames) = (contents, ordering, ignoredNames.sendsByteNames)
        let (value, effects) = try await database.write(async: changingNames ? .everything : .contents) { db, turn in
            var ingestion = Ingestion(
                db: db, open: open, now: Self.now, contents: contents, turn: turn, ordering: ordering,
                hasByteNames: hasByteNames)
            let value = try body(&ingestion)
            return (value, ingestion.effects)
        }
        try await removeObsoleteContents(effects)
        return (value, effects)
    }

    /// Removes the content files of generations that are over, and the rows of inodes that are gone with them.
    func removeObsoleteContents(_ effects: ReplicaEffects) async throws {
        guard !effects.obsoleteContents.isEmpty else { return }
        let (obsolete, contents) = (effects.obsoleteContents, contents)
        try await database.write { db in try Self.remove(obsolete, from: contents, in: db) }
    }

    /// As the other, on the calling thread.
    func removeObsoleteContents(_ effects: ReplicaEffects) throws {
        guard !effects.obsoleteContents.isEmpty else { return }
        try database.write { db in try Self.remove(effects.obsoleteContents, from: contents, in: db) }
    }

    private static func remove(_ obsolete: [ObsoleteContent], from contents: ContentStore, in db: Database) throws {
        for content in obsolete {
            // Content that was begun anew meanwhile has a file of its own by now, and the old one is gone.
            let generation = try db.one(
                "SELECT contentGeneration FROM inode WHERE number = ?", [content.inode.rawValue], { $0[0] as Int64 })
            guard generation == content.generation else { continue }
            try contents.remove(content.inode)
            try db.run("UPDATE inode SET hasContentFile = 0 WHERE number = ?", [content.inode.rawValue])
            try db.run("DELETE FROM inode WHERE number = ? AND linkCount = 0", [content.inode.rawValue])
        }
    }
}
