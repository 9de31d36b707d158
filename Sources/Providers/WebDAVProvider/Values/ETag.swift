import FileProvider
import HTTPTransport

/// Entity tags, as servers write them.
enum ETag {
    /// The opaque part without quotes and weakness mark, because servers write one tag differently in a header and in a
    /// property.
    static func opaque(_ text: String) -> String {
        var bytes = text.utf8[...]
        if bytes.starts(with: "W/".utf8) || bytes.starts(with: "w/".utf8) { bytes = bytes.dropFirst(2) }
        let quote = UInt8(ascii: "\"")
        if bytes.count >= 2, bytes.first == quote, bytes.last == quote { bytes = bytes.dropFirst().dropLast() }
        return String(Substring(bytes))
    }

    /// Whether a tag is only a date in seconds and a size, in decimal or hexadecimal digits, as several servers make it.
    private static func isMadeOf(_ opaque: String, seconds: Int64, size: Int64) -> Bool {
        let last = opaque.utf8.split(separator: UInt8(ascii: "-")).suffix(2).map { String(Substring($0)) }
        return [10, 16].contains { last == [String(seconds, radix: $0), String(size, radix: $0)] }
    }

    /// Whether a tag holds a time in microseconds, as Apache's do, that is a whole second. Programs that copy set such
    /// times, and many files have the same.
    static func isOfWholeSecond(_ etag: String?, _ seconds: Int64?) -> Bool {
        guard let etag, let seconds else { return false }
        let (microseconds, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000)
        return !overflow
            && opaque(etag).utf8.split(separator: UInt8(ascii: "-")).last.map { String(Substring($0)) }
                == String(microseconds, radix: 16)
    }

    /// The tag of an entry's content: `e`, the length and the ETag; or `m`, the time and the length, also where the ETag is
    /// made of these alone, because such an ETag may change with a rename.
    static func contentTag(_ kind: ItemKind, _ etag: String?, _ modifiedAt: Int64?, _ length: Int64?) -> String {
        let date = modifiedAt.map(String.init) ?? "?"
        guard let etag else { return kind == .directory ? "m\(date)" : "m\(date)-\(length ?? 0)" }
        let opaque = opaque(etag)
        guard kind == .file else { return "e\(opaque)" }
        if let modifiedAt, let length, isMadeOf(opaque, seconds: modifiedAt, size: length) {
            return "m\(date)-\(length)"
        }
        return "e\(length ?? 0)-\(opaque)"
    }

    /// The header fields of a request that is conditional on a resource's tag; none where the server cannot check it.
    static func condition(
        _ conditions: ServerCapabilities.Conditions, _ etag: String, of url: HTTPURL
    ) -> HTTPFields {
        let quoted = etag.hasSuffix("\"") ? etag : "\"\(etag)\""
        switch conditions {
        case .none: return [:]
        case .tagged: return ["If": "<\(url)> ([\(quoted)])"]
        // A weak tag matches nothing (RFC 9110, 13.1.1).
        case .match: return quoted.hasPrefix("W/") ? [:] : ["If-Match": quoted]
        }
    }
}
