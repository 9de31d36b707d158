import FileProvider

extension RemoteAttributes {
    /// What of an item's fields is an attribute of the remote's.
    init(_ item: FileProviderItem, _ fields: ItemFields) {
        self.init(
            contentModificationDate: fields.contains(.contentModificationDate) ? item.contentModificationDate : nil,
            permissions: fields.contains(.permissions) ? item.permissions : nil,
            extendedAttributes: fields.contains(.extendedAttributes) ? item.extendedAttributes ?? [:] : nil)
    }

    /// Whether nothing is to be changed.
    var isNothing: Bool { self == RemoteAttributes() }

    /// The fields that a remote can store at all.
    static func storable(by traits: RemoteTraits) -> ItemFields {
        var fields: ItemFields = []
        if traits.storesModificationDates { fields.insert(.contentModificationDate) }
        if traits.storesPermissions { fields.insert(.permissions) }
        if traits.storesExtendedAttributes { fields.insert(.extendedAttributes) }
        return fields
    }
}
