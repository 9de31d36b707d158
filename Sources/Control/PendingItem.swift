/// A change that is not on the remote yet. Absent is null.
package struct PendingItem: Codable, Hashable, Sendable {
    /// Where it is, or was when it was removed.
    package var path: String
    /// Null for what was removed.
    package var inode: Int64?
    package var identifier: String?
    /// What changed; `deletion` for what was removed.
    package var fields: [String]
    /// Since when it waits, RFC 3339.
    package var since: String
    /// Why it is not there, when it was tried.
    package var error: ItemInformation.Failure?

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

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(path, forKey: .path)
        try container.encode(inode, forKey: .inode)
        try container.encode(identifier, forKey: .identifier)
        try container.encode(fields, forKey: .fields)
        try container.encode(since, forKey: .since)
        try container.encode(error, forKey: .error)
    }
}

/// What was written here while the remote changed the same file, kept beside it.
package struct ConflictCopy: Codable, Hashable, Sendable {
    package var path: String
    /// Where the file is that it is a copy of.
    package var original: String

    package init(path: String, original: String) {
        self.path = path
        self.original = original
    }
}
