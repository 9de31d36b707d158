import FileProvider

extension RemoteAttributes {
    /// The attributes among some fields of an item.
    init(_ item: FileProviderItem, _ fields: ItemFields) {
        self.init(
            contentModificationDate: fields.contains(.contentModificationDate) ? item.contentModificationDate : nil,
            permissions: fields.contains(.permissions) ? item.permissions : nil,
            extendedAttributes: fields.contains(.extendedAttributes) ? item.extendedAttributes ?? [:] : nil)
    }

    /// Whether no attribute is to be changed.
    var isNothing: Bool { self == RemoteAttributes() }

    /// The fields of an item that a remote can store at all.
    static func storable(by traits: RemoteTraits) -> ItemFields {
        var fields: ItemFields = [.contents, .filename, .parentItemIdentifier]
        if traits.storesModificationDates { fields.insert(.contentModificationDate) }
        if traits.storesPermissions { fields.insert(.permissions) }
        if traits.storesExtendedAttributes { fields.insert(.extendedAttributes) }
        return fields
    }
}
