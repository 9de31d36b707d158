import Foundation

/// All that is known of an item. Absent is null.
package struct ItemInformation: Codable, Hashable, Sendable {
    package struct Failure: Codable, Hashable, Sendable {
        package var code: String
        package var message: String
        package var attempts: Int
        package var nextTry: String?

        package init(code: String, message: String, attempts: Int, nextTry: String?) {
            self.code = code
            self.message = message
            self.attempts = attempts
            self.nextTry = nextTry
        }

        package func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(code, forKey: .code)
            try container.encode(message, forKey: .message)
            try container.encode(attempts, forKey: .attempts)
            try container.encode(nextTry, forKey: .nextTry)
        }
    }

    package var path: String
    package var inode: Int64
    package var identifier: String?
    /// `file`, `directory`, `symlink`.
    package var kind: String
    package var size: Int64
    /// When the content was modified, RFC 3339.
    package var modified: String
    /// `dataless`, `partial`, `materialized`.
    package var content: String
    package var localBytes: Int64
    /// `synced`, `pending`, `uploading`, `failed`, `excluded`.
    package var sync: String
    package var pendingFields: [String]
    package var policy: String
    package var effectivePolicy: String
    package var contentVersion: String?
    package var metadataVersion: String?
    package var isTrashed: Bool
    package var trashParent: String?
    package var error: Failure?
    /// The place among the user's favourites; absent for what is none.
    package var favoriteRank: Int64?
    /// The tags, when the tag data is text, a line each.
    package var tags: [String]?
    /// The tag data as the provider has it.
    package var tagData: Data?
    /// When it was last used, RFC 3339.
    package var lastUsed: String?

    package init(
        path: String, inode: Int64, identifier: String?, kind: String, size: Int64, modified: String, content: String,
        localBytes: Int64, sync: String, pendingFields: [String], policy: String, effectivePolicy: String,
        contentVersion: String?, metadataVersion: String?, isTrashed: Bool, trashParent: String?, error: Failure?,
        favoriteRank: Int64? = nil, tagData: Data? = nil, lastUsed: String? = nil
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
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(path, forKey: .path)
        try container.encode(inode, forKey: .inode)
        try container.encode(identifier, forKey: .identifier)
        try container.encode(kind, forKey: .kind)
        try container.encode(size, forKey: .size)
        try container.encode(modified, forKey: .modified)
        try container.encode(content, forKey: .content)
        try container.encode(localBytes, forKey: .localBytes)
        try container.encode(sync, forKey: .sync)
        try container.encode(pendingFields, forKey: .pendingFields)
        try container.encode(policy, forKey: .policy)
        try container.encode(effectivePolicy, forKey: .effectivePolicy)
        try container.encode(contentVersion, forKey: .contentVersion)
        try container.encode(metadataVersion, forKey: .metadataVersion)
        try container.encode(isTrashed, forKey: .isTrashed)
        try container.encode(trashParent, forKey: .trashParent)
        try container.encode(error, forKey: .error)
        try container.encodeIfPresent(favoriteRank, forKey: .favoriteRank)
        try container.encodeIfPresent(tags, forKey: .tags)
        try container.encodeIfPresent(tagData, forKey: .tagData)
        try container.encodeIfPresent(lastUsed, forKey: .lastUsed)
    }
}
