import FileProvider

extension ItemFields {
    static func ofNewItem(_ kind: InodeKind) -> ItemFields {
        let fields: ItemFields = [
            .filename, .parentItemIdentifier, .creationDate, .contentModificationDate, .permissions, .ownership,
        ]
        return kind == .file ? fields.union(.contents) : fields
    }
}

extension ItemFields {
    /// The fields that are stored here if the remote cannot hold them: all but content, name and parent.
    static let attributes: ItemFields = [
        .lastUsedDate, .tagData, .favoriteRank, .creationDate, .contentModificationDate, .fileSystemFlags,
        .extendedAttributes, .permissions, .ownership,
    ]
}
