import Foundation

/// The state of an item. Absent values are null.
package struct ItemInformation: Codable, Hashable, Sendable {
    package struct Failure: Codable, Hashable, Sendable {
        package var code: String
        package var message: String
        package var attempts: Int
        @ExplicitNull package var nextTry: String?

        package init(code: String, message: String, attempts: Int, nextTry: String?) {
            self.code = code
            self.message = message
            self.attempts = attempts
            self.nextTry = nextTry
        }
    }

    package var path: String
    package var inode: Int64
    @ExplicitNull package var identifier: String?
    /// `file`, `directory`, `symlink`.
    package var kind: String
    package var size: Int64
    /// The modification time of the content, RFC 3339.
    package var modified: String
    /// `dataless`, `partial`, `materialized`.
    package var content: String
    package var localBytes: Int64
    /// `synced`, `pending`, `uploading`, `failed`, `excluded`.
    package var sync: String
    package var pendingFields: [String]
    package var policy: String
    package var effectivePolicy: String
    @ExplicitNull package var contentVersion: String?
    @ExplicitNull package var metadataVersion: String?
    package var isTrashed: Bool
    @ExplicitNull package var trashParent: String?
    @ExplicitNull package var error: Failure?
    /// The rank among the user's favourites; absent if it is none.
    package var favoriteRank: Int64?
    /// The tags, if the tag data is text with one tag per line.
    package var tags: [String]?
    package var tagData: Data?
    /// The time of the last use, RFC 3339.
    package var lastUsed: String?
    /// The permissions that `stat` shows, in octal, such as `0644`. Absent from an older daemon, as `uid` and `gid`.
    package var mode: String?
    package var uid: UInt32?
    package var gid: UInt32?

    package init(
        path: String, inode: Int64, identifier: String?, kind: String, size: Int64, modified: String, content: String,
        localBytes: Int64, sync: String, pendingFields: [String], policy: String, effectivePolicy: String,
        contentVersion: String?, metadataVersion: String?, isTrashed: Bool, trashParent: String?, error: Failure?,
        favoriteRank: Int64? = nil, tagData: Data? = nil, lastUsed: String? = nil, mode: String? = nil,
        uid: UInt32? = nil, gid: UInt32? = nil
    ) {
        self.path = path
        self.inode = inode
        self.identifier = identifier
        self.kind = kind
        self.size = size
        self.modified = modified
        self.content = content
        self.localBytes = localBytes
        self.sync = sync
        self.pendingFields = pendingFields
        self.policy = policy
        self.effectivePolicy = effectivePolicy
        self.contentVersion = contentVersion
        self.metadataVersion = metadataVersion
        self.isTrashed = isTrashed
        self.trashParent = trashParent
        self.error = error
        self.favoriteRank = favoriteRank
        self.tagData = tagData
        tags = tagData.flatMap(Tags.tags)
        self.lastUsed = lastUsed
        self.mode = mode
        self.uid = uid
        self.gid = gid
    }
}
