/// Options of a creation.
public struct CreateItemOptions: OptionSet, Hashable, Sendable {
    /// The bits of the set.
    public let rawValue: UInt32

    /// A set of these bits.
    public init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// The remote may already have the item: look for it first, by the cheapest reliable test.
    public static let mayAlreadyExist = CreateItemOptions(rawValue: 1 << 0)
    /// The remote has deleted the item while it was edited locally. The template has its old identifier.
    public static let deletionConflicted = CreateItemOptions(rawValue: 1 << 1)
    /// An existing item stays unchanged and is returned; local changes follow later. Comes with `mayAlreadyExist`. A
    /// file is the same item if it has the template's content version or the same bytes; without contents, if it has
    /// the same size. Another item with the name is a `filenameCollision`.
    public static let keepExisting = CreateItemOptions(rawValue: 1 << 16)
    /// Nothing is created: if the item does not exist, return ``ItemChange/refused(reason:)``. Comes with
    /// `mayAlreadyExist` for dataless items.
    public static let recognizeOnly = CreateItemOptions(rawValue: 1 << 17)
}

/// Options of a modification.
public struct ModifyItemOptions: OptionSet, Hashable, Sendable {
    /// The bits of the set.
    public let rawValue: UInt32

    /// A set of these bits.
    public init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// The item's parent is being merged with another directory.
    public static let mayAlreadyExist = ModifyItemOptions(rawValue: 1 << 0)
    /// Fail with `localVersionConflictingWithServer` if the remote has a newer version than the base version.
    public static let failOnConflict = ModifyItemOptions(rawValue: 1 << 1)
}

/// Options of a deletion.
public struct DeleteItemOptions: OptionSet, Hashable, Sendable {
    /// The bits of the set.
    public let rawValue: UInt32

    /// A set of these bits.
    public init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// Delete the descendants, too. Without it, a directory with children fails with `directoryNotEmpty`.
    public static let recursive = DeleteItemOptions(rawValue: 1 << 0)
    /// The item was deleted as one that is in the trash. Fail with `deletionRejected` if another client has restored it.
    public static let onlyFromTrash = DeleteItemOptions(rawValue: 1 << 1)
}

/// The result of a creation or modification.
public enum ItemChange: Hashable, Sendable {
    /// The remote has the item.
    ///
    /// - `item`: the current item on the remote.
    /// - `stillPending`: fields that were not stored. Attributes stay on this machine. Contents, name and parent are sent again:
    ///   after a creation at once, after a modification as one that was refused.
    /// - `shouldFetchContent`: the remote's bytes differ from the uploaded ones.
    case applied(FileProviderItem, stillPending: ItemFields, shouldFetchContent: Bool)
    /// The remote refuses the item. The local content stays where the user finds it.
    case refused(reason: String)
}
