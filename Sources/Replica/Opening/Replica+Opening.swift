import FileProvider
import Foundation
import Logging
import Syscalls
import SystemPackage

extension Replica {
    /// Opens a domain's replica, or makes a new one, and mends what a crash left behind.
    ///
    /// - Parameter readers: how many threads read at once.
    /// - Throws: ``ReplicaDamage`` for a database that has to be rebuilt, `DatabaseError` for one that cannot be read for
    ///   any other reason, `Errno` for a folder that cannot.
    package convenience init(at directory: FilePath, readers: Int = 12, logger: Logger) throws {
        try directory.makeDirectory()
        try ReplicaDatabase.refuseDamagedFile(in: directory)
        let contents = try ContentStore(in: directory)
        let (database, store, findings) = try ReplicaDatabase.namingDamage(isOpening: true) {
            let database = try ReplicaDatabase(at: directory.appending(ReplicaDatabase.fileName), readers: readers)
            do {
                var recovery = Recovery(database: database, contents: contents, logger: logger)
                try recovery.run()
                let (store, finding) = try database.openProviderStore(in: directory, recovered: contents.recovered)
                return (database, store, recovery.findings + [finding].compactMap(\.self))
            } catch {
                try? database.close()
                throw error
            }
        }
        self.init(database, store, contents, in: directory, findings: findings)
    }

    /// Puts everything on the disk and closes. Nothing may be under way, and nothing may follow.
    package func close() throws {
        let folder = try FileDescriptor.open(contents.directory, .readOnly, options: [.directory, .closeOnExec])
        defer { try? folder.close() }
        // The checkpoint before the file system is synced.
        try providerStore.close()
        try folder.syncFileSystem()
        try database.write { db in
            try db.noteDurableContents()
            try DomainKey.wasClosed.set("1", in: db)
        }
        try database.close()
    }
}
