import FileProvider

extension ItemFields {
    /// What a new item tells the remote.
    static func ofNewItem(_ kind: InodeKind) -> ItemFields {
        let fields: ItemFields = [
            .filename, .parentItemIdentifier, .creationDate, .contentModificationDate, .permissions, .ownership,
        ]
        return kind == .file ? fields.union(.contents) : fields
    }
}

extension ItemFields {
    /// What is kept here when the remote cannot hold it: everything but what an item is.
    static let attributes: ItemFields = [
        .lastUsedDate, .tagData, .favoriteRank, .creationDate, .contentModificationDate, .fileSystemFlags,
        .extendedAttributes, .permissions, .ownership,
    ]
}
