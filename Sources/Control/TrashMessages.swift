/// What a client wants done with the trash. Paths are absolute.
package enum TrashCommand: Codable, Hashable, Sendable {
    case put(paths: [String])
    case list(DomainReference?)
    /// Items by their paths in the trash or by their names; to where they were, or into a directory.
    case restore(items: [DomainReference], directory: String?)
    case empty(DomainReference)
}

/// Something that lies in the trash. Absent is null.
package struct TrashedItem: Codable, Hashable, Sendable {
    /// Where it is now.
    package var path: String
    /// The name that it had.
    package var name: String
    /// Where it was, as far as its directories are still there.
    package var originalPath: String
    package var inode: Int64
    package var identifier: String?
    /// The identifier that its parent had.
    package var trashParent: String?
    package var kind: String
    package var size: Int64
    /// When it was trashed, RFC 3339.
    package var trashed: String?

    package init(
        path: String, name: String, originalPath: String, inode: Int64, identifier: String?, trashParent: String?,
        kind: String, size: Int64, trashed: String?
    ) {
        self.path = path
        self.name = name
        self.originalPath = originalPath
        self.inode = inode
        self.identifier = identifier
        self.trashParent = trashParent
        self.kind = kind
        self.size = size
        self.trashed = trashed
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(path, forKey: .path)
        try container.encode(name, forKey: .name)
        try container.encode(originalPath, forKey: .originalPath)
        try container.encode(inode, forKey: .inode)
        try container.encode(identifier, forKey: .identifier)
        try container.encode(trashParent, forKey: .trashParent)
        try container.encode(kind, forKey: .kind)
        try container.encode(size, forKey: .size)
        try container.encode(trashed, forKey: .trashed)
    }
}

/// What trashing, restoring or emptying came to.
package struct TrashReport: Codable, Hashable, Sendable {
    /// What was done, each as it is now; what was deleted as it was.
    package var items: [TrashedItem]
    /// What was not done, each with its reason.
    package var refusals: [Refusal]

    package init(items: [TrashedItem] = [], refusals: [Refusal] = []) {
        self.items = items
        self.refusals = refusals
    }
}
