import FileProvider
import HTTPTransport

/// What a multistatus says of one resource.
struct DAVResource: Sendable, Hashable {
    var href: String
    /// Of the resource itself, where it has one of its own.
    var status: Int?
    var isCollection = false
    /// Whether the server said what it is.
    var hasType = false
    var etag: String?
    var length: Int64?
    /// Seconds since 1970.
    var modifiedAt: Int64?
    var fileIdentifier: String?
    /// Letters, as ownCloud has them.
    var permissions: String?
    /// Of what lies in a trash bin: the name that it had, and where it was among the user's files.
    var trashedName: String?
    var trashedLocation: String?
    /// Seconds since 1970; 0 for what only holds what was thrown away.
    var trashedAt: Int64?
    /// Our own property, as it was set.
    var heldAttributes: String?
    var quotaAvailable: Int64?
    var quotaUsed: Int64?
    /// RFC 6578: of a collection.
    var syncToken: String?
    /// Whether it can be asked what has changed in it.
    var reportsChanges = false

    static let ownCloud = "http://owncloud.org/ns"
    static let nextcloud = "http://nextcloud.org/ns"

    /// - Returns: nil for what is no response.
    init?(_ element: XMLElement) {
        guard element.name.isCalled("response", in: "DAV:"), let href = element.child("DAV:", "href") else {
            return nil
        }
        self.href = href.trimmedText
        status = element.child("DAV:", "status").flatMap { Self.status($0.trimmedText) }
        for part in element.children("DAV:", "propstat") {
            guard let status = part.child("DAV:", "status").flatMap({ Self.status($0.trimmedText) }),
                (200..<300).contains(status), let properties = part.child("DAV:", "prop")
            else { continue }
            for property in properties.children { take(property) }
        }
    }

    /// What the fields of an answer say of a file.
    init(_ head: HTTPResponseHead) {
        href = head.url.path
        hasType = true
        etag = head.fields["ETag"]
        length = head.contentLength
        modifiedAt = head.fields["Last-Modified"].flatMap { HTTPDate.seconds(from: $0) }
    }

    private mutating func take(_ property: XMLElement) {
        let text = property.trimmedText
        if property.name.namespace == Self.ownCloud {
            switch property.name.local {
            case "id", "fileid":
                if fileIdentifier == nil || property.name.local == "fileid", !text.isEmpty { fileIdentifier = text }
            case "permissions": permissions = text
            default: takeTrashed(property.name.local, text)
            }
            return
        }
        if property.name.namespace == Self.nextcloud { return takeTrashed(property.name.local, text) }
        if property.name.isCalled(HeldAttributes.name, in: HeldAttributes.namespace) { heldAttributes = text }
        guard property.name.namespace == "DAV:" else { return }
        switch property.name.local {
        case "resourcetype":
            hasType = true
            isCollection = property.child("DAV:", "collection") != nil
        case "getetag": if !text.isEmpty { etag = text }
        case "getcontentlength": length = Int64(text).flatMap { $0 >= 0 ? $0 : nil }
        case "getlastmodified": modifiedAt = HTTPDate.seconds(from: text)
        case "quota-available-bytes": quotaAvailable = Int64(text)
        case "quota-used-bytes": quotaUsed = Int64(text)
        case "sync-token": if !text.isEmpty { syncToken = text }
        case "supported-report-set":
            reportsChanges = property.children("DAV:", "supported-report").contains {
                $0.child("DAV:", "report")?.child("DAV:", "sync-collection") != nil
            }
        default: break
        }
    }

    private mutating func takeTrashed(_ property: String, _ text: String) {
        switch property {
        case "trashbin-filename", "trashbin-original-filename": trashedName = text
        case "trashbin-original-location": trashedLocation = text
        case "trashbin-deletion-time", "trashbin-delete-timestamp": trashedAt = Int64(text)
        default: break
        }
    }

    /// `HTTP/1.1 404 Not Found`.
    private static func status(_ line: String) -> Int? {
        let words = line.utf8.split(separator: 0x20, maxSplits: 2)
        return words.count >= 2 ? Int(Substring(words[1])) : nil
    }

    /// The properties that are asked for.
    static func request(
        withIdentifiers: Bool, withQuota: Bool, withHeld: Bool = false, withReports: Bool = false
    ) -> [UInt8] {
        // Not the creation date: servers give the time of the last change to the file's place for it.
        var names = ["resourcetype", "getcontentlength", "getlastmodified", "getetag"]
        if withReports { names += ["supported-report-set"] }
        if withQuota { names += ["quota-available-bytes", "quota-used-bytes"] }
        var text = #"<?xml version="1.0" encoding="utf-8"?><D:propfind xmlns:D="DAV:"><D:prop>"#
        text += names.map { "<D:\($0)/>" }.joined()
        if withIdentifiers {
            text += #"<o:fileid xmlns:o="\#(ownCloud)"/><o:permissions xmlns:o="\#(ownCloud)"/>"#
        }
        if withHeld { text += #"<y:\#(HeldAttributes.name) xmlns:y="\#(HeldAttributes.namespace)"/>"# }
        return Array((text + "</D:prop></D:propfind>").utf8)
    }

    /// Likewise, of what lies in a trash bin.
    static let requestForTrash = Array(
        (#"<?xml version="1.0" encoding="utf-8"?><D:propfind xmlns:D="DAV:" xmlns:o="\#(ownCloud)" "#
            + #"xmlns:n="\#(nextcloud)"><D:prop><D:resourcetype/><D:getcontentlength/><D:getetag/><o:fileid/>"#
            + "<n:trashbin-filename/><n:trashbin-original-location/><n:trashbin-deletion-time/>"
            + "<o:trashbin-original-filename/><o:trashbin-original-location/><o:trashbin-delete-timestamp/>"
            + "</D:prop></D:propfind>").utf8)

    static let requestForToken = Array(
        (#"<?xml version="1.0" encoding="utf-8"?><D:propfind xmlns:D="DAV:"><D:prop><D:sync-token/></D:prop>"#
            + "</D:propfind>").utf8)
}

/// Entity tags.
enum ETag {
    /// What is between the quotes, without a mark of weakness: servers differ in how they write one tag in different
    /// places.
    static func opaque(_ text: String) -> String {
        var bytes = text.utf8[...]
        if bytes.starts(with: "W/".utf8) || bytes.starts(with: "w/".utf8) { bytes = bytes.dropFirst(2) }
        let quote = UInt8(ascii: "\"")
        if bytes.count >= 2, bytes.first == quote, bytes.last == quote { bytes = bytes.dropFirst().dropLast() }
        return String(Substring(bytes))
    }

    /// Whether a tag is nothing but a date in seconds and a size, as several servers make it, in decimal or hexadecimal
    /// numbers.
    static func isMadeOf(_ opaque: String, seconds: Int64, size: Int64) -> Bool {
        let parts = opaque.utf8.split(separator: UInt8(ascii: "-")).map { String(Substring($0)) }
        guard parts.count >= 2 else { return false }
        let last = parts.suffix(2)
        for radix in [10, 16] where last == [String(seconds, radix: radix), String(size, radix: radix)][...] {
            return true
        }
        return false
    }

    /// Whether a tag holds a time in microseconds, as Apache's do, and just a whole second: such times were set by programs
    /// that copy, and many files have the same.
    static func isOfWholeSecond(_ etag: String?, _ seconds: Int64?) -> Bool {
        guard let etag, let seconds else { return false }
        let (microseconds, isTooMuch) = seconds.multipliedReportingOverflow(by: 1_000_000)
        return !isTooMuch
            && opaque(etag).utf8.split(separator: UInt8(ascii: "-")).last.map { String(Substring($0)) }
                == String(microseconds, radix: 16)
    }
}
