import Foundation
import GRDB

/// The keys of the table `domain`: facts about the domain as a whole.
package enum DomainKey: String, Sendable, CaseIterable {
    /// Where the remote is, as the user named it.
    case source
    case mountpoint
    /// How the domain is mounted, as JSON.
    case options
    /// Whether the domain was mounted and not unmounted by a command since: then the next daemon mounts it.
    case isToBeMounted
    /// The point in the provider's history up to which its changes are in this database.
    case syncAnchor
    /// A number that a rebuilt database would not share.
    case identity
    /// Whether the database was rebuilt and the contents were not compared since: a row without content can have a content file
    /// with what was written here.
    case isRebuilt
    /// Whether a power cut may have taken bytes of content files that were not compared with their rows since.
    case mayMissBytes
    /// When all content files were put on the disk last, in nanoseconds since 1970.
    case contentsSyncedAt
    /// The boot of the machine during which the database was used last.
    case bootIdentifier
    /// Whether it was closed in order since.
    case wasClosed
    case hasTrash
    /// Whether a provider follows the sets of materialized and pending items: their histories are kept from then on.
    case setsAreFollowed
    /// Whether a provider searches for items by their content versions: these are indexed from then on.
    case versionsAreIndexed
    /// The folder that the domain was made of, as long as something is left to remove there.
    case importedFrom
    /// Up to which of the new files' log all is in the database.
    case newFilesWritten
    /// Up to which of the log of changes all is in the database.
    case changesWritten
    /// The names that are never sent, separated by slashes, as they were applied last.
    case ignoredNames
    case wasReadOnly
    /// Whether the provider's store was made: a missing file is damage from then on.
    case hasProviderStore
    /// The inodes below which the provider has asked for a reimport before the domain was mounted, separated by spaces.
    case askedReimports
    /// How much was held that is missing on the remote; absent where nothing is.
    case changesAreHeld
    /// The warnings that the next process gives again, as JSON.
    case warnings

    func bytes(in db: Database) throws -> [UInt8]? {
        try db.one("SELECT value FROM domain WHERE key = ?", [rawValue], { [UInt8]($0[0] as Data) })
    }

    func string(in db: Database) throws -> String? {
        try bytes(in: db).map { String(decoding: $0, as: UTF8.self) }
    }

    func set(_ value: String?, in db: Database) throws {
        try set(bytes: value.map { Array($0.utf8) }, in: db)
    }

    func set(bytes: [UInt8]?, in db: Database) throws {
        if let bytes {
            try db.run("INSERT OR REPLACE INTO domain (key, value) VALUES (?, ?)", [rawValue, Data(bytes)])
        } else {
            try db.run("DELETE FROM domain WHERE key = ?", [rawValue])
        }
    }
}
