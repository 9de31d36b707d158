/// The text of a file in the trash's `info`, which says where an item was. (The FreeDesktop.org Trash specification)
enum TrashInformation {
    private static let start = "[Trash Info]\nPath="
    /// In bytes: of a path of 4,096 bytes that are all escaped.
    static let longest: Int64 = 16 << 10

    /// - Parameters:
    ///   - path: escaped.
    ///   - date: in local time.
    static func text(path: String, date: String) -> String { "\(start)\(path)\nDeletionDate=\(date)\n" }

    /// Whether a file holds what ``text(path:date:)`` returns.
    static func isText(_ bytes: [UInt8]) -> Bool {
        let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        return bytes.starts(with: start.utf8) && lines.count == 4 && lines[3].isEmpty
            && lines[2].starts(with: "DeletionDate=".utf8)
    }
}
