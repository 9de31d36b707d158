/// The version of an item: two opaque byte strings of the provider.
///
/// The content version changes with the bytes of a file, and makes materialized content stale. The metadata version
/// is stored and returned as the base of a change; changed metadata is applied even if its version is equal.
public struct ItemVersion: Hashable, Sendable, Codable {
    /// Changes with the bytes of a file.
    public var contentVersion: [UInt8]
    /// Changes with any other property.
    public var metadataVersion: [UInt8]

    /// A version with both components.
    public init(contentVersion: [UInt8], metadataVersion: [UInt8]) {
        self.contentVersion = contentVersion
        self.metadataVersion = metadataVersion
    }

    /// A version of the UTF-8 bytes of two texts.
    public init(contentVersion: String, metadataVersion: String) {
        self.init(contentVersion: Array(contentVersion.utf8), metadataVersion: Array(metadataVersion.utf8))
    }

    /// The maximum length of a component in bytes.
    public static let maximumComponentLength = 128

    /// The base version of an item that has never been synchronized.
    public static let beforeFirstSync = ItemVersion(contentVersion: [], metadataVersion: [])
}
