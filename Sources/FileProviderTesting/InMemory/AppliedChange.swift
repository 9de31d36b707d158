import FileProvider

/// A change that was made through the provider and applied to the remote.
public struct AppliedChange: Hashable, Sendable {
    /// `create`, `modify` or `delete`.
    public var kind: ProviderCallKind
    /// The identifier of the item after the change.
    public var identifier: ItemIdentifier
    /// The identifier in the call: the template's for a new item.
    public var sentIdentifier: ItemIdentifier
    /// The stored fields.
    public var fields: ItemFields
    /// The size of the contents in bytes; nil if the call had none.
    public var size: Int64?
}
