import FileProvider

/// The record of a write in place that has begun.
struct InPlaceEdit: Codable, Sendable {
    /// The names from the root down to its directory.
    var directory: [String]
    var name: String
    /// As ``FolderItems/file(_:)``.
    var file: String
    /// The hidden name of the complete new content.
    var copy: String
    /// The names from the root down to the directory of the copy; nil if that is ``directory``.
    var holder: [String]?
    /// Seconds since 1970. Renewed while the file is being written (``Folder/noteWriting(_:now:)``), and set back when the write has failed
    /// (``Folder/noteFailure(of:_:)``).
    var begun: Int64
    /// The size of the file before; nil in a record that does not have it.
    var size: Int64?

    static let namespace = ProviderStoreNamespace<InPlaceEdit>("folder.edits")
    var key: ProviderStoreKey { ProviderStoreKey(copy) }

    /// How the hidden names of copies begin. Another domain of the same folder has no record of them.
    private static let copyPrefix = HiddenName.prefix + "copy-"

    /// Returns a new hidden name for a copy.
    static func makeCopyName() -> String { copyPrefix + String(UInt64.random(in: .min ... .max), radix: 16) }

    /// Whether a hidden name is that of a copy.
    static func isCopyName(_ name: String) -> Bool { name.utf8.starts(with: copyPrefix.utf8) }
}
