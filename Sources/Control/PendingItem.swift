/// A pending change. Absent values are null.
package struct PendingItem: Codable, Hashable, Sendable {
    /// The item's path, or its last path if it was removed.
    package var path: String
    /// Null for a removed item.
    @ExplicitNull package var inode: Int64?
    @ExplicitNull package var identifier: String?
    /// The changed fields; `deletion` for a removed item.
    package var fields: [String]
    /// The time of the change, RFC 3339.
    package var since: String
    /// The error of the last attempt.
    @ExplicitNull package var error: ItemInformation.Failure?

    package init(
        path: String, inode: Int64?, identifier: String?, fields: [String], since: String,
        error: ItemInformation.Failure?
    ) {
        self.path = path
        self.inode = inode
        self.identifier = identifier
        self.fields = fields
        self.since = since
        self.error = error
    }

    /// The words for the user of ``fields``, or of other fields by their names.
    package static func words(for fields: [String]) -> [String] { fields.map { words[$0] ?? $0 } }

    private static let words = [
        "filename": "name", "parentItemIdentifier": "place", "lastUsedDate": "use", "tagData": "tags",
        "favoriteRank": "rank", "creationDate": "created", "contentModificationDate": "date",
        "extendedAttributes": "attributes", "permissions": "mode", "ownership": "owner",
    ]
}

/// A conflict copy: content that was written here while the remote changed the same file.
package struct ConflictCopy: Codable, Hashable, Sendable {
    package var path: String
    package var original: String

    package init(path: String, original: String) {
        self.path = path
        self.original = original
    }
}
