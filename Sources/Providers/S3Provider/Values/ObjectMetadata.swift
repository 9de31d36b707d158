import FileProvider
import FileProviderPaths
import HTTPTransport

/// Date and mode in an object's metadata, as rclone and s3fs write them, and the headers that its new content keeps.
enum ObjectMetadata {
    /// Which rename has made a copy: ``MoveRecord/mark(at:ofCopied:)``.
    static let rename = "x-amz-meta-yonder-rename"

    /// How the object is served, whatever its bytes are. Not `Content-Encoding`, which says how the replaced bytes are encoded, and
    /// no other metadata, which may have a checksum of them, as that of rclone and s3cmd.
    private static let keptHeaders = [
        "content-type", "cache-control", "content-disposition", "content-language", "expires",
    ]

    /// The headers of an object that its new content keeps, by their names in lower case.
    static func headers(_ fields: HTTPFields) -> [String: String] {
        var headers: [String: String] = [:]
        for name in keptHeaders { headers[name] = fields[name] }
        // What a server gives an object without one.
        if headers["content-type"] == "binary/octet-stream" { headers["content-type"] = nil }
        return headers
    }

    static func fields(_ attributes: RemoteAttributes, headers: [String: String] = [:]) -> HTTPFields {
        var fields = HTTPFields()
        for (name, value) in headers.sorted(by: { $0.key < $1.key }) { fields[name] = value }
        if let date = attributes.contentModificationDate {
            // The sign is that of the fraction, too.
            let sign = date.nanosecondsSince1970 < 0 ? "-" : ""
            let (seconds, rest) = date.nanosecondsSince1970.magnitude.quotientAndRemainder(dividingBy: 1_000_000_000)
            fields["x-amz-meta-mtime"] = "\(sign)\(seconds)" + (rest == 0 ? "" : "." + rest.padded(to: 9))
        }
        if let permissions = attributes.permissions {
            // s3fs has the whole mode, with the file type, in decimal digits.
            fields["x-amz-meta-mode"] = String(0o100000 | UInt32(permissions))
        }
        return fields
    }

    /// The date and the mode in an object's metadata, as far as it has them.
    static func attributes(_ fields: HTTPFields) -> RemoteAttributes {
        RemoteAttributes(contentModificationDate: date(fields), permissions: permissions(fields))
    }

    /// s3fs writes the mode of a file in decimal digits, rclone in octal ones.
    private static func permissions(_ fields: HTTPFields) -> UInt16? {
        guard let text = fields["x-amz-meta-mode"] else { return nil }
        let modes = [UInt32(text, radix: 10), UInt32(text, radix: 8)]
        return modes.compactMap(\.self).first { $0 & ~0o7777 == 0o100000 }.map { UInt16($0 & 0o7777) }
    }

    /// The date in an object's metadata: seconds since 1970, with or without a fraction.
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
