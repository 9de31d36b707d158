/// The flags of `renameat2(2)`.
package struct RenameOptions: OptionSet, Hashable, Sendable {
    package var rawValue: UInt32

    package init(rawValue: UInt32) { self.rawValue = rawValue }

    /// EEXIST when the new name exists.
    package static var noReplace: RenameOptions { RenameOptions(rawValue: 1 << 0) }
    /// Both names exist and are exchanged.
    package static var exchange: RenameOptions { RenameOptions(rawValue: 1 << 1) }
}
