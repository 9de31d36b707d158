/// A provider's identifier of an item: opaque, stable for the item's life, and never a path that a rename would
/// change.
///
/// At most ``maximumLength`` bytes of UTF-8. Identifiers are logged and must not contain secrets. Two identifiers are
/// equal if their bytes are; Swift's string comparison would treat two Unicode forms of a text as equal.
public struct ItemIdentifier: RawRepresentable, Hashable, Sendable, Codable, CustomStringConvertible {
    /// The text of the identifier.
    public let rawValue: String

    /// An identifier with this text.
    public init(rawValue: String) {
        self.rawValue = rawValue
    }

    /// An identifier with this text.
    public init(_ rawValue: String) {
        self.rawValue = rawValue
    }

    /// The root directory of the mount.
    public static let rootContainer = ItemIdentifier("yonder.root")
    /// The container of all items whose changes the provider reports. It is not part of the tree.
    public static let workingSet = ItemIdentifier("yonder.workingSet")
    /// The parent of trashed items.
    public static let trashContainer = ItemIdentifier("yonder.trash")

    /// The maximum length in bytes.
    public static let maximumLength = 1024

    /// Compares the bytes of two identifiers.
    public static func == (one: ItemIdentifier, other: ItemIdentifier) -> Bool {
        one.rawValue.utf8.elementsEqual(other.rawValue.utf8)
    }

    public func hash(into hasher: inout Hasher) {
        for byte in rawValue.utf8 { hasher.combine(byte) }
    }

    public var description: String { rawValue }

    /// Whether the identifier is one of the containers defined by the system.
    public var isReserved: Bool {
        self == .rootContainer || self == .workingSet || self == .trashContainer
    }
}

extension ItemIdentifier: ExpressibleByStringLiteral {
    public init(stringLiteral value: String) {
        self.init(value)
    }
}
