/// A command for the trash. Paths are absolute.
package enum TrashCommand: Codable, Hashable, Sendable {
    case put(paths: [String])
    case list(DomainReference?)
    /// Items by path in the trash, by name or by original path; to their original directories, or to the given one.
    case restore(items: [DomainReference], directory: String?)
    case empty(DomainReference)
}

/// A trashed item. Absent values are null.
package struct TrashedItem: Codable, Hashable, Sendable {
    package var path: String
    package var name: String
    /// The original path, as far as its directories still exist.
    package var originalPath: String
    package var inode: Int64
    @ExplicitNull package var identifier: String?
    /// The identifier of the original parent.
    @ExplicitNull package var trashParent: String?
    package var kind: String
    package var size: Int64
    /// The time of trashing, RFC 3339.
    @ExplicitNull package var trashed: String?

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
}
