import FileProvider
import Foundation
import HTTPTransport
import PathAddressing
import Synchronization
import SystemPackage

/// The dates of files that are not the ones that listings show: what was written, copied or read here has its own written
/// beside it, where only a request for each object would find it. A small file for each directory, in the provider's folder;
/// of what is lost the upload's date is shown again.
final class DateBook: Sendable {
    private struct Entry: Codable {
        /// Of the content that it is about.
        var tag: String
        /// Nanoseconds since 1970.
        var date: Int64
    }

    /// By what follows the last slash.
    private typealias Page = [String: Entry]

    private let directory: FilePath
    private let pages = Mutex<[String: Page]>([:])
    private static let mostPages = 100

    init(directory: FilePath) {
        self.directory = directory.appending("dates")
    }

    /// The date of an object's content: what was noted of it, else what the listing says.
    func date(of object: S3Object) -> FileTimestamp? {
        let (prefix, name) = Self.split(object.key)
        let noted = pages.withLock { page(prefix, &$0)[name] }
        guard let noted, noted.tag == object.tag else { return object.modified }
        return FileTimestamp(nanosecondsSince1970: noted.date)
    }

    func note(_ dates: [(key: String, tag: String, date: FileTimestamp)]) {
        change(dates.map { ($0.key, Entry(tag: $0.tag, date: $0.date.nanosecondsSince1970)) })
    }

    func remove(_ keys: [String]) {
        change(keys.map { ($0, nil) })
    }

    private func change(_ changes: [(key: String, entry: Entry?)]) {
        pages.withLock { pages in
            for (prefix, some) in Dictionary(grouping: changes, by: { Self.split($0.key).prefix }) {
                var page = page(prefix, &pages)
                let before = page.count
                var isChanged = false
                for (key, entry) in some {
                    let name = Self.split(key).name
                    isChanged = isChanged || entry != nil || page[name] != nil
                    page[name] = entry
                }
                guard isChanged else { continue }
                pages[prefix] = page
                if page.isEmpty, before > 0 {
                    try? FileManager.default.removeItem(atPath: path(of: prefix))
                } else if !page.isEmpty {
                    try? FileManager.default.createDirectory(
                        atPath: directory.string, withIntermediateDirectories: true)
                    try? JSONEncoder().encode(page).write(to: URL(fileURLWithPath: path(of: prefix)), options: .atomic)
                }
            }
        }
    }

    private func page(_ prefix: String, _ pages: inout [String: Page]) -> Page {
        if let page = pages[prefix] { return page }
        let data = try? Data(contentsOf: URL(fileURLWithPath: path(of: prefix)))
        let page = data.flatMap { try? JSONDecoder().decode(Page.self, from: $0) } ?? [:]
        if pages.count >= Self.mostPages { pages.removeAll() }
        pages[prefix] = page
        return page
    }

    private func path(of prefix: String) -> String {
        directory.appending(String(Signature.hash(Array(prefix.utf8)).prefix(32)) + ".json").string
    }

    private static func split(_ key: String) -> (prefix: String, name: String) {
        guard let slash = key.utf8.lastIndex(of: UInt8(ascii: "/")) else { return ("", key) }
        let after = key.utf8.index(after: slash)
        return (String(key[..<after]), String(key[after...]))
    }
}

/// Date and mode beside an object, as rclone and s3fs write them.
enum ObjectMetadata {
    static func fields(_ attributes: RemoteAttributes) -> HTTPFields {
        var fields = HTTPFields()
        if let date = attributes.contentModificationDate {
            let digits = String(date.nanoseconds)
            let fraction = String(repeating: "0", count: 9 - digits.utf8.count) + digits
            fields["x-amz-meta-mtime"] = date.nanoseconds == 0 ? "\(date.seconds)" : "\(date.seconds).\(fraction)"
        }
        if let permissions = attributes.permissions {
            // s3fs has the whole mode, in decimal digits, with what says that it is a file.
            fields["x-amz-meta-mode"] = String(0o100000 | UInt32(permissions))
        }
        return fields
    }

    /// The date that somebody has written beside an object: seconds since 1970, with or without a fraction.
    static func date(_ fields: HTTPFields) -> FileTimestamp? {
        guard let text = fields["x-amz-meta-mtime"] else { return nil }
        let parts = text.split(separator: ".", maxSplits: 1)
        guard let first = parts.first, let seconds = Int64(first) else { return nil }
        let fraction = parts.count > 1 ? String(parts[1].prefix(9)) : ""
        guard fraction.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        let padded = fraction + String(repeating: "0", count: 9 - fraction.utf8.count)
        let nanoseconds = Int64(padded) ?? 0
        return FileTimestamp(seconds: seconds, nanoseconds: text.hasPrefix("-") ? -nanoseconds : nanoseconds)
    }
}
