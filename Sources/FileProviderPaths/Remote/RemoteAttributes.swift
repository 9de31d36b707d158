import FileProvider
import Foundation

/// The attributes of an item. One that is nil is unknown, or is not to be changed.
public struct RemoteAttributes: Hashable, Sendable {
    /// When the content was changed last.
    public var contentModificationDate: FileTimestamp?
    /// When the item was made.
    public var creationDate: FileTimestamp?
    /// The lower twelve bits of a POSIX mode.
    public var permissions: UInt16?
    /// Where a symbolic link leads to.
    public var symbolicLinkTarget: String?
    /// The extended attributes in the `user.` namespace, by their names without it.
    public var extendedAttributes: [String: [UInt8]]?

    /// Attributes, of which none is known unless given.
    public init(
        contentModificationDate: FileTimestamp? = nil, creationDate: FileTimestamp? = nil, permissions: UInt16? = nil,
        symbolicLinkTarget: String? = nil, extendedAttributes: [String: [UInt8]]? = nil
    ) {
        self.contentModificationDate = contentModificationDate
        self.creationDate = creationDate
        self.permissions = permissions
        self.symbolicLinkTarget = symbolicLinkTarget
        self.extendedAttributes = extendedAttributes
    }

    /// The fields of an item that these attributes set.
    public var fields: ItemFields {
        var fields: ItemFields = []
        if contentModificationDate != nil { fields.insert(.contentModificationDate) }
        if creationDate != nil { fields.insert(.creationDate) }
        if permissions != nil { fields.insert(.permissions) }
        if extendedAttributes != nil { fields.insert(.extendedAttributes) }
        return fields
    }
}

extension RemoteAttributes {
    /// The attributes among some fields of an item.
    init(_ item: FileProviderItem, _ fields: ItemFields) {
        self.init(
            contentModificationDate: fields.contains(.contentModificationDate) ? item.contentModificationDate : nil,
            permissions: fields.contains(.permissions) ? item.permissions : nil,
            extendedAttributes: fields.contains(.extendedAttributes) ? item.extendedAttributes ?? [:] : nil)
    }

    /// As they are sent. A remote that knows only paths stores no owner: a set-ID file of another user would run as the user of
    /// the remote there.
    func withoutSetID(ofOthers item: FileProviderItem) -> RemoteAttributes {
        guard item.kind == .file, permissions != nil else { return self }
        var attributes = self
        if let owner = item.owner, owner != geteuid() { attributes.permissions? &= ~0o4000 }
        if let group = item.group, group != getegid() { attributes.permissions? &= ~0o2000 }
        return attributes
    }

    var isNothing: Bool { self == RemoteAttributes() }

    static func storable(by traits: RemoteTraits) -> ItemFields {
        var fields: ItemFields = [.contents, .filename, .parentItemIdentifier]
        if traits.storesModificationDates { fields.insert(.contentModificationDate) }
        if traits.storesPermissions { fields.insert(.permissions) }
        if traits.storesExtendedAttributes { fields.insert(.extendedAttributes) }
        return fields
    }
}
