import FileNames
import FileProvider
import FileProviderPaths

/// The hidden name of a file while it is removed. It says which version is to be removed and what the file was called: after a broken
/// connection, or in another process, another version gets its name back.
struct RemovalName: Hashable {
    /// The tag of the version that is to be removed.
    let tag: [UInt8]
    /// The name of the file; its beginning if all of it did not fit.
    let original: String
    let isWhole: Bool

    /// How long a name may be in an encrypted directory of eCryptfs, in bytes.
    static let shortLength = 143
    private static let prefix = HiddenName.prefix + "removed-"

    /// Returns a new hidden name for a file.
    ///
    /// - Parameters:
    ///   - tag: of a file; the numbers of its time and its size.
    ///   - length: the most bytes that it may have.
    static func make(of name: String, tag: [UInt8], length: Int = FileProviderItem.maximumFilenameLength) -> String {
        // Once: its length counts.
        let number = String(UInt32.random(in: .min ... .max), radix: 16)
        func text(_ start: Substring) -> String {
            let extent = start.utf8.count == name.utf8.count ? "all" : "cut"
            return "\(prefix)\(number)-\(extent)-\(String(decoding: tag, as: UTF8.self))-\(start)"
        }
        var start = name[...]
        while FileNameText.byteCount(of: text(start)) > length, !start.isEmpty { start.removeLast() }
        return text(start)
    }

    /// - Returns: nil for any other name.
    init?(_ name: String) {
        guard name.utf8.starts(with: Self.prefix.utf8) else { return nil }
        // A dash and an accent that follows it are one character.
        let parts = name.utf8.dropFirst(Self.prefix.utf8.count)
            .split(separator: UInt8(ascii: "-"), maxSplits: 4, omittingEmptySubsequences: false)
            .map { String(Substring($0)) }
        guard parts.count == 5, ["all", "cut"].contains(parts[1]) else { return nil }
        tag = Array("\(parts[2])-\(parts[3])".utf8)
        (original, isWhole) = (parts[4], parts[1] == "all")
        guard !isWhole || FileProviderItem.defect(ofFilename: original) == nil else { return nil }
    }

    /// Whether an item in a listing is not the version that was to be removed: another one, or no file.
    static func isOfOther(_ entry: RemoteEntry) -> Bool {
        guard let removal = RemovalName(entry.name) else { return false }
        return entry.kind != .file || entry.tag != removal.tag
    }
}
