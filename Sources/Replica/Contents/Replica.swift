import FileProvider
import Synchronization
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
    package let providerStore: ProviderDatabase
    /// The folder that holds database, contents and what was recovered.
    package let directory: FilePath
    /// The defects that were found when the replica was opened, in words for the user.
    package var findings: [String] { recovered.withLock { $0 } }
    let recovered: Mutex<[String]>
    /// The recovery that is left to do; nil when it is done.
    let remainingRecovery: Mutex<(any RecoveryWork)?>
    /// The last sync of all contents before a power cut; nil if there was none since the last comparison of all content files, and
    /// once that has ended.
    let lastSync: Mutex<FileTimestamp?>
    let contents: ContentStore
    /// The names that are never sent.
    let ignored = Mutex(IgnoredNames.none)
    package let ordering = RemoteOrdering()

    init(
        _ database: ReplicaDatabase, _ providerStore: ProviderDatabase, _ contents: ContentStore,
        in directory: FilePath,
        findings: [String], remainingRecovery: (any RecoveryWork)?, lastSync: FileTimestamp?
    ) {
        self.database = database
        self.providerStore = providerStore
        self.contents = contents
        self.directory = directory
        recovered = Mutex(findings)
        self.remainingRecovery = Mutex(remainingRecovery)
        self.lastSync = Mutex(lastSync)
    }

    /// Whether the disk has room for something new.
    package var hasRoom: Bool { database.reserve.hasRoom }
}
