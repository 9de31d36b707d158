import FileProvider

struct PathChange: Sendable {
    var item: FileProviderItem
    /// The content version that it was made on.
    var base: [UInt8]
    var fields: ItemFields
    var contents: ContentSource?

    var goesToTrash: Bool {
        fields.contains(.parentItemIdentifier) && item.parentItemIdentifier == .trashContainer
    }
    var mayMove: Bool { !fields.isDisjoint(with: [.filename, .parentItemIdentifier]) }
    var attributes: RemoteAttributes { RemoteAttributes(item, fields) }
    /// What of the attributes is sent.
    var sent: RemoteAttributes { attributes.withoutSetID(ofOthers: item) }
}
