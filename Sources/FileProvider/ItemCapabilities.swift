/// The operations that an item allows. Enforced on system calls of every process.
///
/// The raw values are Apple's.
public struct ItemCapabilities: OptionSet, Hashable, Sendable, Codable {
    /// The bits of the set.
    public let rawValue: UInt32

    /// A set of these bits.
    public init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// The content of a file can be read.
    public static let allowsReading = ItemCapabilities(rawValue: 1 << 0)
    /// For directories: the same bit as ``allowsReading``.
    public static let allowsContentEnumerating = ItemCapabilities(rawValue: 1 << 0)
    /// The content of a file can be changed.
    public static let allowsWriting = ItemCapabilities(rawValue: 1 << 1)
    /// For directories: the same bit as ``allowsWriting``.
    public static let allowsAddingSubItems = ItemCapabilities(rawValue: 1 << 1)
    /// The item can be moved to another directory.
    public static let allowsReparenting = ItemCapabilities(rawValue: 1 << 2)
    /// The item can be renamed.
    public static let allowsRenaming = ItemCapabilities(rawValue: 1 << 3)
    /// The item can be moved to the trash.
    public static let allowsTrashing = ItemCapabilities(rawValue: 1 << 4)
    /// The item can be deleted.
    public static let allowsDeleting = ItemCapabilities(rawValue: 1 << 5)
    /// The local content can be evicted.
    public static let allowsEvicting = ItemCapabilities(rawValue: 1 << 6)
    /// The item can be excluded from sync.
    public static let allowsExcludingFromSync = ItemCapabilities(rawValue: 1 << 7)

    /// The capabilities of an ordinary item on a remote without a trash.
    public static let ordinary: ItemCapabilities = [
        .allowsReading, .allowsWriting, .allowsReparenting, .allowsRenaming, .allowsDeleting, .allowsEvicting,
        .allowsExcludingFromSync,
    ]
    /// The capabilities of an item on a remote that cannot be written.
    public static let readOnly: ItemCapabilities = [.allowsReading, .allowsEvicting]
}
