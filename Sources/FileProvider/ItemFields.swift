/// A set of fields of an item.
///
/// The raw values are Apple's for the fields that exist on Linux; those from bit 16 on are additions.
public struct ItemFields: OptionSet, Hashable, Sendable, Codable {
    /// The bits of the set.
    public let rawValue: UInt32

    /// A set of these bits.
    public init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// The bytes of a file.
    public static let contents = ItemFields(rawValue: 1 << 0)
    /// The name.
    public static let filename = ItemFields(rawValue: 1 << 1)
    /// The parent directory.
    public static let parentItemIdentifier = ItemFields(rawValue: 1 << 2)
    /// The time of the last use.
    public static let lastUsedDate = ItemFields(rawValue: 1 << 3)
    /// The tags.
    public static let tagData = ItemFields(rawValue: 1 << 4)
    /// The rank among the favourites.
    public static let favoriteRank = ItemFields(rawValue: 1 << 5)
    /// The time of creation.
    public static let creationDate = ItemFields(rawValue: 1 << 6)
    /// The modification time of the content.
    public static let contentModificationDate = ItemFields(rawValue: 1 << 7)
    /// Apple's file system flags; the system does not send them.
    public static let fileSystemFlags = ItemFields(rawValue: 1 << 8)
    /// The extended attributes, including POSIX ACLs.
    public static let extendedAttributes = ItemFields(rawValue: 1 << 9)
    /// The permission bits.
    public static let permissions = ItemFields(rawValue: 1 << 16)
    /// Owner and group.
    public static let ownership = ItemFields(rawValue: 1 << 17)

    /// The names of the fields in the order of their bits, for messages and JSON.
    public var names: [String] {
        Self.named.filter { contains($0.field) }.map(\.name)
    }

    /// The field with a name of ``names``; nil if there is none.
    public init?(name: String) {
        guard let known = Self.named.first(where: { $0.name == name }) else { return nil }
        self = known.field
    }

    /// The names of all fields.
    public static var allNames: [String] { named.map(\.name) }

    private static let named: [(field: ItemFields, name: String)] = [
        (.contents, "contents"), (.filename, "filename"), (.parentItemIdentifier, "parentItemIdentifier"),
        (.lastUsedDate, "lastUsedDate"), (.tagData, "tagData"), (.favoriteRank, "favoriteRank"),
        (.creationDate, "creationDate"), (.contentModificationDate, "contentModificationDate"),
        (.fileSystemFlags, "fileSystemFlags"), (.extendedAttributes, "extendedAttributes"),
        (.permissions, "permissions"), (.ownership, "ownership"),
    ]
}
