/// Which parts of an item a change is about.
///
/// The raw values are Apple's, for those of its fields that mean something on Linux; those from bit 16 on are ours.
public struct ItemFields: OptionSet, Hashable, Sendable, Codable {
    public let rawValue: UInt32

    public init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    public static let contents = ItemFields(rawValue: 1 << 0)
    public static let filename = ItemFields(rawValue: 1 << 1)
    public static let parentItemIdentifier = ItemFields(rawValue: 1 << 2)
    public static let lastUsedDate = ItemFields(rawValue: 1 << 3)
    public static let tagData = ItemFields(rawValue: 1 << 4)
    public static let favoriteRank = ItemFields(rawValue: 1 << 5)
    public static let creationDate = ItemFields(rawValue: 1 << 6)
    public static let contentModificationDate = ItemFields(rawValue: 1 << 7)
    public static let fileSystemFlags = ItemFields(rawValue: 1 << 8)
    public static let extendedAttributes = ItemFields(rawValue: 1 << 9)
    /// Permission bits beyond what `fileSystemFlags` can say.
    public static let permissions = ItemFields(rawValue: 1 << 16)
    /// Owner and group.
    public static let ownership = ItemFields(rawValue: 1 << 17)

    /// The names of the fields in this set, in the order of their bits, as messages and JSON show them.
    public var names: [String] {
        Self.named.filter { contains($0.field) }.map(\.name)
    }

    /// The field that has a name of those in ``names``; nil when none has.
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
