/// A provider's name for an item: opaque, stable for the item's whole life, never a path that a rename would change.
///
/// At most ``maximumLength`` bytes of UTF-8. It is logged, so it holds no secrets. Two identifiers are equal when their
/// bytes are: Swift's own string comparison would take two Unicode forms of one text for the same item.
public struct ItemIdentifier: RawRepresentable, Hashable, Sendable, Codable, CustomStringConvertible {
    public let rawValue: String

    public init(rawValue: String) {
        self.rawValue = rawValue
    }

    public init(_ rawValue: String) {
        self.rawValue = rawValue
    }

    /// The directory that the mount shows as its root.
    public static let rootContainer = ItemIdentifier("yonder.root")
    /// Everything whose changes the provider reports; has no place in the tree.
    public static let workingSet = ItemIdentifier("yonder.workingSet")
    /// The parent of trashed items.
    public static let trashContainer = ItemIdentifier("yonder.trash")

    /// The longest identifier that is accepted, in bytes.
    public static let maximumLength = 1024

    public static func == (one: ItemIdentifier, other: ItemIdentifier) -> Bool {
        one.rawValue.utf8.elementsEqual(other.rawValue.utf8)
    }

    public func hash(into hasher: inout Hasher) {
        for byte in rawValue.utf8 { hasher.combine(byte) }
    }

    public var description: String { rawValue }

    /// Whether the system, rather than a provider, gives this identifier its meaning.
    public var isReserved: Bool {
        self == .rootContainer || self == .workingSet || self == .trashContainer
    }
}

extension ItemIdentifier: ExpressibleByStringLiteral {
    public init(stringLiteral value: String) {
        self.init(value)
    }
}
