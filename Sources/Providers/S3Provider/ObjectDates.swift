import FileProvider
import HTTPTransport
import PathAddressing

/// The modification dates in the metadata of objects, which listings do not show and a HEAD request for each object would
/// find. Without a record the date of the upload is shown.
final class ObjectDates: Sendable {
    private struct Entry: Codable {
        /// The ETag of the content that has the date.
        var tag: String
        /// Nanoseconds since 1970.
        var date: Int64
    }

    private let entries: ObjectNotes<Entry>

    init(in store: ReportingStore) {
        entries = ObjectNotes("s3.dates", in: store)
    }

    /// The recorded date of an object's content.
    func noted(of object: S3Object) -> FileTimestamp? {
        guard let noted = entries[object.key], noted.tag == object.tag else { return nil }
        return FileTimestamp(nanosecondsSince1970: noted.date)
    }

    func note(_ dates: [(key: String, tag: String, date: FileTimestamp)]) {
        entries.note(dates.map { ($0.key, Entry(tag: $0.tag, date: $0.date.nanosecondsSince1970)) })
    }

    func remove(_ keys: [String]) {
        entries.note(keys.map { ($0, nil) })
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
