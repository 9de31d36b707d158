import FileProvider
import Foundation
import GRDB
import Logging
import Synchronization
import Syscalls
import SystemPackage

/// Recovery that runs in steps while the replica is in use.
protocol RecoveryWork: Sendable {
    /// - Returns: what was found and corrected, in words for the user; nil when nothing is left to do.
    mutating func step() throws -> [String]?
}

/// A domain's local copy: the database and the local contents, kept in step with each other.
///
/// Reads run on the calling thread. A method that changes something returns the ``ReplicaEffects`` on the kernel's caches;
/// effects on files are done before it returns.
package final class Replica: Sendable {
    package let database: ReplicaDatabase
    /// The store of the domain's provider.
    package let providerStore: ProviderDatabase
    /// The folder that holds database, contents and what was recovered.
    package let directory: FilePath
    /// The defects that were found when the replica was opened, in words for the user.
    package var findings: [String] { recovered.withLock { $0 } }
    let recovered: Mutex<[String]>
    /// The recovery that is left to do; nil when it is done.
    let remainingRecovery: Mutex<(any RecoveryWork)?>
    let contents: ContentStore
    /// The names that are never sent.
    let ignored = Mutex(IgnoredNames.none)
    /// Orders remote changes against operations.
    package let ordering = RemoteOrdering()

    init(
        _ database: ReplicaDatabase, _ providerStore: ProviderDatabase, _ contents: ContentStore,
        in directory: FilePath,
        findings: [String], remainingRecovery: (any RecoveryWork)?
    ) {
        self.database = database
        self.providerStore = providerStore
        self.contents = contents
        self.directory = directory
        recovered = Mutex(findings)
        self.remainingRecovery = Mutex(remainingRecovery)
    }

    /// The present time, as rows keep it.
    package static var now: FileTimestamp { .now }

    /// Removes the content files of generations that are over, and the rows of inodes that are gone with them.
    func removeObsoleteContents(_ effects: ReplicaEffects) async throws {
        guard !effects.obsoleteContents.isEmpty else { return }
        let (obsolete, contents) = (effects.obsoleteContents, contents)
        try await database.write { db in try Self.remove(obsolete, from: contents, in: db) }
    }

    /// As ``removeObsoleteContents(_:)``, on the calling thread.
    func removeObsoleteContents(_ effects: ReplicaEffects) throws {
        guard !effects.obsoleteContents.isEmpty else { return }
        try database.change { db in try Self.remove(effects.obsoleteContents, from: contents, in: db) }
    }

    static func remove(_ obsolete: [ObsoleteContent], from contents: ContentStore, in db: Database) throws {
        for content in obsolete {
            // Content that was begun anew meanwhile has a file of its own by now, and the old one is gone.
            let generation = try db.one(
                "SELECT contentGeneration FROM inode WHERE number = ?", [content.inode.rawValue], { $0[0] as Int64 })
            guard generation == content.generation else { continue }
            try contents.remove(content.inode)
            try db.finishRemovingContent(of: content.inode)
        }
    }
}
