/// How creating an item is meant.
public struct CreateItemOptions: OptionSet, Hashable, Sendable {
    public let rawValue: UInt32

    public init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// The item may be on the remote already: look for it first, by the cheapest test.
    public static let mayAlreadyExist = CreateItemOptions(rawValue: 1 << 0)
    /// The remote deleted it while it was edited here. The template has its old identifier.
    public static let deletionConflicted = CreateItemOptions(rawValue: 1 << 1)
    /// What is there already stays as it is, and is answered so: what differs from it is sent as a change later, if it
    /// was changed here. Comes with `mayAlreadyExist`. A file is the same when it has the template's content version, or
    /// the same bytes; without its bytes when it has the same size. One that is not the same is a `filenameCollision`.
    public static let keepExisting = CreateItemOptions(rawValue: 1 << 16)
    /// Nothing is made: what is not there already is answered with ``ItemChange/refused(reason:)``. Comes with
    /// `mayAlreadyExist`, for what is known here and whose content is not.
    public static let recognizeOnly = CreateItemOptions(rawValue: 1 << 17)
}

/// How changing an item is meant.
public struct ModifyItemOptions: OptionSet, Hashable, Sendable {
    public let rawValue: UInt32

    public init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// The item's parent is being merged with another directory.
    public static let mayAlreadyExist = ModifyItemOptions(rawValue: 1 << 0)
    /// Fail with `localVersionConflictingWithServer` when the remote has moved on from the base version.
    public static let failOnConflict = ModifyItemOptions(rawValue: 1 << 1)
}

/// How deleting an item is meant.
public struct DeleteItemOptions: OptionSet, Hashable, Sendable {
    public let rawValue: UInt32

    public init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// With all that it contains. Without it, a directory that is not empty is refused with `directoryNotEmpty`.
    public static let recursive = DeleteItemOptions(rawValue: 1 << 0)
}

/// What became of a local change on the remote.
public enum ItemChange: Hashable, Sendable {
    /// The remote has it.
    ///
    /// - `item`: the item as the remote has it now.
    /// - `stillPending`: fields that were not stored yet and are to be sent again; all that were sent means that they
    ///   cannot be stored.
    /// - `shouldFetchContent`: the remote's bytes are not those that were sent.
    case applied(FileProviderItem, stillPending: ItemFields, shouldFetchContent: Bool)
    /// The remote will not have the item. The local content is kept where the user finds it, never dropped.
    case refused(reason: String)
}
