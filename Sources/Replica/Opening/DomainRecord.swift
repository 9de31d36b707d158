import Foundation
import GRDB
import Syscalls
import SystemPackage

/// The domain's record in a replica that is not open.
package struct DomainRecord: Hashable, Sendable {
    package var source: String
    /// Where it was mounted last.
    package var mountpoint: String?
    /// How it was mounted, as JSON.
    package var options: String?
    /// The folder that it was made of, as long as something is left to remove there.
    package var importedFrom: String?
    /// Whether it was mounted and not unmounted by a command since.
    package var isToBeMounted = false
    /// The number of changes that the remote does not have, as far as the database can be read.
    package var pending = 0
}

extension DomainRecord {
    /// Reads the record of the replica in a folder; nil where there is none, or one that was never mounted.
    ///
    /// - Throws: ``ReplicaDamage`` for a file that is damaged.
    package init?(ofReplicaIn directory: FilePath) throws {
        try ReplicaDatabase.refuseDamagedFile(in: directory)
        let path = directory.appending(ReplicaDatabase.fileName).string
        guard FileManager.default.fileExists(atPath: path) else { return nil }
        let found = try ReplicaDatabase.namingDamage {
            try Self.read(path) { db -> DomainRecord? in
                guard try db.tableExists("domain"), let source = try DomainKey.source.string(in: db) else { return nil }
                return DomainRecord(
                    source: source, mountpoint: try DomainKey.mountpoint.string(in: db),
                    options: try DomainKey.options.string(in: db),
                    importedFrom: try DomainKey.importedFrom.string(in: db),
                    isToBeMounted: try DomainKey.isToBeMounted.string(in: db) != nil,
                    pending: (try? db.pendingCount()) ?? 0)
            }
        }
        guard let found else { return nil }
        self = found
    }

    /// Verifies that no newer Yonder has written the replica in a folder.
    ///
    /// - Throws: `FileProviderError` with the code `newerExtensionVersionFound`; other errors for a database that cannot be read.
    package static func refuseNewerReplica(in directory: FilePath) throws {
        try ReplicaDatabase.refuseDamagedFile(in: directory)
        let path = directory.appending(ReplicaDatabase.fileName)
        guard FileManager.default.fileExists(atPath: path.string) else { return }
        try read(path.string) { db in try Connections.refuseNewer(db, than: Schema.migrator, at: path.string) }
    }

    /// Reads a database that another process may have open.
    private static func read<Value>(_ path: String, _ body: (Database) throws -> Value) throws -> Value {
        var configuration = Configuration()
        configuration.busyMode = .timeout(5)
        // The last connection to be closed would remove the log, and with it the room that a killed daemon has kept behind it.
        let log = try? FileStatus(at: FilePath(path + "-wal"))
        configuration.readonly = log.map { $0.size > 0 } ?? false
        let queue = try DatabaseQueue(path: path, configuration: configuration)
        defer { try? queue.close() }
        return try queue.read(body)
    }
}
