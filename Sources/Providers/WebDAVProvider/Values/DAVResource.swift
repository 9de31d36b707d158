import HTTPTransport

/// One response element of a multistatus: a resource with its properties (RFC 4918, 14.24).
struct DAVResource: Sendable, Hashable {
    var href: String
    /// The status of the resource itself; nil where only its properties have one.
    var status: Int?
    /// The status with which the server refuses all requested properties that the resource may have; nil where it gives any.
    var statusOfProperties: Int?
    var isCollection = false
    /// Whether the server sent `resourcetype`.
    var hasType = false
    var etag: String?
    var length: Int64?
    /// Seconds since 1970.
    var modifiedAt: Int64?
    var fileIdentifier: String?
    /// ownCloud's permission letters.
    var permissions: String?
    /// Of an item in a trash bin: its former name, and its former path among the user's files.
    var trashedName: String?
    var trashedLocation: String?
    /// Seconds since 1970; 0 for a directory that only holds trashed items.
    var trashedAt: Int64?
    /// The value of Yonder's own property; see ``StoredAttributes``.
    var storedAttributes: String?
    var quotaAvailable: Int64?
    var quotaUsed: Int64?
    /// The collection's sync token (RFC 6578).
    var syncToken: String?
    /// Whether the collection supports the sync-collection report.
    var reportsChanges = false

    /// - Returns: nil for any other element.
    init?(_ element: XMLElement) {
        guard element.name.isCalled("response", in: "DAV:"), let href = element.child("DAV:", "href") else {
            return nil
        }
        self.href = href.trimmedText
        status = element.child("DAV:", "status").flatMap { Self.status($0.trimmedText) }
        var isAnswered = false
        for part in element.children("DAV:", "propstat") {
            guard let status = part.child("DAV:", "status").flatMap({ Self.status($0.trimmedText) }) else { continue }
            guard (200..<300).contains(status) else {
                // 404 says that the resource has no such property.
                if status != 404 { statusOfProperties = statusOfProperties ?? status }
                continue
            }
            isAnswered = true
            for property in part.child("DAV:", "prop")?.children ?? [] { take(property) }
        }
        if isAnswered { statusOfProperties = nil }
    }

    /// A file, as the headers of a response to HEAD describe it.
    init(_ head: HTTPResponseHead) {
        href = head.url.path
        hasType = true
        etag = head.fields["ETag"]
        length = head.contentLength
        modifiedAt = head.lastModified
    }

    /// Whether it is a collection, by its URL where the server sends no type.
    var isDirectory: Bool { isCollection || !hasType && href.hasSuffix("/") }

    var isMissing: Bool { status == 404 || status == 410 }

    /// Whether the server describes the resource. It may list one and refuse to.
    var isDescribed: Bool { (200..<300).contains(status ?? statusOfProperties ?? 200) }

    private mutating func take(_ property: XMLElement) {
        let text = property.trimmedText
        switch property.name.namespace {
        case DAVNamespace.ownCloud, DAVNamespace.nextcloud:
            switch property.name.local {
            case "id" where fileIdentifier != nil: break
            case "id", "fileid": fileIdentifier = text.isEmpty ? fileIdentifier : text
            case "permissions": permissions = text
            case "trashbin-filename", "trashbin-original-filename": trashedName = text
            case "trashbin-original-location": trashedLocation = text
            case "trashbin-deletion-time", "trashbin-delete-timestamp": trashedAt = Int64(text)
            default: break
            }
        case DAVNamespace.yonder: if property.name.local == "attributes" { storedAttributes = text }
        case "DAV:":
            switch property.name.local {
            case "resourcetype":
                hasType = true
                isCollection = property.child("DAV:", "collection") != nil
            case "getetag": etag = text.isEmpty ? nil : text
            case "getcontentlength": length = Int64(text).flatMap { $0 >= 0 ? $0 : nil }
            case "getlastmodified": modifiedAt = HTTPDate.seconds(from: text)
            case "quota-available-bytes": quotaAvailable = Int64(text)
            case "quota-used-bytes": quotaUsed = Int64(text)
            case "sync-token": syncToken = Self.token(text)
            case "supported-report-set":
                reportsChanges = property.children("DAV:", "supported-report").contains {
                    $0.child("DAV:", "report")?.child("DAV:", "sync-collection") != nil
                }
            default: break
            }
        default: break
        }
    }

    /// A sync token; nil for an empty text, and for one that is too long to be kept for each directory and sent with each request.
    static func token(_ text: String) -> String? { (1...longestToken).contains(text.utf8.count) ? text : nil }

    static let longestToken = 4096

    /// The code in a line such as `HTTP/1.1 404 Not Found`.
    private static func status(_ line: String) -> Int? {
        let words = line.utf8.split(separator: 0x20, maxSplits: 2)
        return words.count >= 2 ? Int(Substring(words[1])) : nil
    }
}

/// The XML namespaces besides `DAV:`.
enum DAVNamespace {
    static let ownCloud = "http://owncloud.org/ns"
    static let nextcloud = "http://nextcloud.org/ns"
    static let yonder = "urn:yonder"
}

struct PropertyRequest: Sendable {
    private var properties: [(namespace: String, name: String)]

    /// Not `creationdate`: for it, servers give the time at which the file came to its path.
    static let usual = PropertyRequest("DAV:", "resourcetype", "getcontentlength", "getlastmodified", "getetag")
    static let identifiers = PropertyRequest(DAVNamespace.ownCloud, "fileid", "permissions")
    static let attributes = PropertyRequest(DAVNamespace.yonder, "attributes")
    static let quota = PropertyRequest("DAV:", "quota-available-bytes", "quota-used-bytes")
    static let reports = PropertyRequest("DAV:", "supported-report-set")
    static let syncToken = PropertyRequest("DAV:", "sync-token")
    static let trash =
        PropertyRequest("DAV:", "resourcetype", "getcontentlength", "getetag")
        + PropertyRequest(
            DAVNamespace.nextcloud, "trashbin-filename", "trashbin-original-location", "trashbin-deletion-time")
        + PropertyRequest(
            DAVNamespace.ownCloud, "fileid", "trashbin-original-filename", "trashbin-original-location",
            "trashbin-delete-timestamp")

    private init(_ namespace: String, _ names: String...) {
        properties = names.map { (namespace, $0) }
    }

    static func + (one: PropertyRequest, other: PropertyRequest) -> PropertyRequest {
        var sum = one
        sum.properties += other.properties
        return sum
    }

    var body: [UInt8] {
        let names = properties.map {
            $0.namespace == "DAV:" ? "<D:\($0.name)/>" : "<p:\($0.name) xmlns:p=\"\($0.namespace)\"/>"
        }
        return Array(
            (#"<?xml version="1.0" encoding="utf-8"?><D:propfind xmlns:D="DAV:"><D:prop>"# + names.joined()
                + "</D:prop></D:propfind>").utf8)
    }
}
