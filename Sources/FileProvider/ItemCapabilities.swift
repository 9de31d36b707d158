/// What may be done with an item. Enforced on the system call, for every process.
///
/// The raw values are Apple's.
public struct ItemCapabilities: OptionSet, Hashable, Sendable, Codable {
    public let rawValue: UInt32

    public init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    public static let allowsReading = ItemCapabilities(rawValue: 1 << 0)
    /// For directories: the same bit as ``allowsReading``.
    public static let allowsContentEnumerating = ItemCapabilities(rawValue: 1 << 0)
    public static let allowsWriting = ItemCapabilities(rawValue: 1 << 1)
    /// For directories: the same bit as ``allowsWriting``.
    public static let allowsAddingSubItems = ItemCapabilities(rawValue: 1 << 1)
    public static let allowsReparenting = ItemCapabilities(rawValue: 1 << 2)
    public static let allowsRenaming = ItemCapabilities(rawValue: 1 << 3)
    public static let allowsTrashing = ItemCapabilities(rawValue: 1 << 4)
    public static let allowsDeleting = ItemCapabilities(rawValue: 1 << 5)
    public static let allowsEvicting = ItemCapabilities(rawValue: 1 << 6)
    public static let allowsExcludingFromSync = ItemCapabilities(rawValue: 1 << 7)

    /// All that an ordinary item on a remote without a trash allows.
    public static let ordinary: ItemCapabilities = [
        .allowsReading, .allowsWriting, .allowsReparenting, .allowsRenaming, .allowsDeleting, .allowsEvicting,
        .allowsExcludingFromSync,
    ]
    /// What an item on a remote that cannot be changed allows.
    public static let readOnly: ItemCapabilities = [.allowsReading, .allowsEvicting]
}
