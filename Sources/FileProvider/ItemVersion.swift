/// A pair of opaque strings of bytes that change when the item does.
///
/// The content version changes when the bytes of a file do, and with it what is materialized becomes old. The metadata
/// version is stored and handed back as the base of a change; a difference in metadata is applied even when it is equal.
public struct ItemVersion: Hashable, Sendable, Codable {
    public var contentVersion: [UInt8]
    public var metadataVersion: [UInt8]

    public init(contentVersion: [UInt8], metadataVersion: [UInt8]) {
        self.contentVersion = contentVersion
        self.metadataVersion = metadataVersion
    }

    /// Both components given as text.
    public init(contentVersion: String, metadataVersion: String) {
        self.init(contentVersion: Array(contentVersion.utf8), metadataVersion: Array(metadataVersion.utf8))
    }

    /// The longest component that is accepted, in bytes.
    public static let maximumComponentLength = 128

    /// The base of an item that the provider and the disk never agreed on.
    public static let beforeFirstSync = ItemVersion(contentVersion: [], metadataVersion: [])
}
