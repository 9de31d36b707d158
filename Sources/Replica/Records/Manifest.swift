import Foundation

/// What a folder of kept data says of itself: JSON, an item a line, so that it can be read without holding it in memory.
/// Docs/Keeping.md explains it to other readers.
enum Manifest {
    static let fileName = "manifest.json"
    /// The folder beside it that holds the files.
    static let files = "files"
    static let format = "yonder-manifest"
    static let version = 1

    struct Header: Codable, Sendable {
        var format: String
        var version: Int
        var domain: String
        var source: String
        /// `dirty` or `downloaded`.
        var keep: String
    }

    /// An item. Absent is null; times are nanoseconds since 1970, byte strings in Base64.
    struct Item: Codable, Sendable {
        /// Below `files`, names separated by slashes.
        var path: String
        /// As in the database.
        var kind: Int
        var size: Int64
        /// Whether its content is here: a file's bytes below `files`, all of a directory's entries.
        var isHere: Bool
        /// Null for what the remote has never heard of.
        var identifier: String?
        /// The remote's name for it, where it has another than the path says.
        var remoteName: String?
        /// The path of the directory that holds it on the remote, where that is another.
        var remoteDirectory: String?
        /// The fields that the remote does not have, in bits as in the database.
        var changedFields: UInt32
        var heldFields: UInt32
        var isExcluded: Bool
        var contentVersion: Data?
        var metadataVersion: Data?
        var remoteSize: Int64?
        var remoteModified: Int64?
        var permissions: UInt16?
        var owner: UInt32?
        var group: UInt32?
        var modified: Int64
        /// The modification time of the file below `files` before it was given that of the item.
        var keptModified: Int64?
        var created: Int64
        var accessed: Int64?
        var linkTarget: String?
        var device: UInt32?
        var attributes: [String: Data]?
        /// Of what has several names: the same number for all of them.
        var link: Int64?
        var userPolicy: Int?
        var conflictOf: String?
        var favoriteRank: Int64?
        var tagData: Data?
        /// When it was moved into the trash here, where the remote has not heard of that; then `path` is where the remote
        /// has it, and nothing of it lies below `files`.
        var trashedAt: Int64?
        /// Whose trash it lies in.
        var trashOwner: UInt32?
    }

    /// Something that was removed here, and that the remote still has.
    struct Removed: Codable, Sendable {
        /// Where it was.
        var path: String
        var kind: Int
        var contentVersion: Data
        var metadataVersion: Data
    }

    /// Anything wrong with a manifest, in words.
    struct Defect: Error, CustomStringConvertible {
        var description: String
    }
}
