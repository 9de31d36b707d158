/// The flags of `setxattr(2)`.
package struct ExtendedAttributeOptions: OptionSet, Hashable, Sendable {
    package var rawValue: Int32

    package init(rawValue: Int32) { self.rawValue = rawValue }

    /// EEXIST when it exists.
    package static var create: ExtendedAttributeOptions { ExtendedAttributeOptions(rawValue: 1) }
    /// ENODATA when it does not exist.
    package static var replace: ExtendedAttributeOptions { ExtendedAttributeOptions(rawValue: 2) }
}
