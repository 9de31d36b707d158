import FileProvider
import FileProviderPaths
import HTTPTransport

/// The date and mode of an item, stored in a dead property of Yonder's own (RFC 4918, 4.4), because WebDAV has no property
/// for them that clients can set. They are valid for the content that the property names: another client that writes the
/// file does not update them.
struct StoredAttributes: Hashable, Sendable {
    private static let windows = "urn:schemas-microsoft-com:"

    var date: FileTimestamp?
    var permissions: UInt16?
    /// The content for which they are valid; empty for a directory.
    var state: String

    init(_ attributes: RemoteAttributes, of resource: DAVResource) {
        date = resource.isCollection ? nil : attributes.contentModificationDate
        permissions = attributes.permissions
        state = Self.state(of: resource)
    }

    /// - Returns: nil when the resource has no attributes for its present content.
    init?(of resource: DAVResource) {
        guard let text = resource.storedAttributes else { return nil }
        let words = text.split(separator: " ", omittingEmptySubsequences: false)
        guard words.count == 3, words[2] == Self.state(of: resource) else { return nil }
        permissions = UInt16(words[0], radix: 8).map { $0 & 0o7777 }
        date = Int64(words[1]).map { FileTimestamp(nanosecondsSince1970: $0) }
        state = String(words[2])
    }

    private static func state(of resource: DAVResource) -> String {
        if resource.isCollection { return "" }
        return (resource.modifiedAt.map(String.init) ?? "?") + "-" + (resource.length.map(String.init) ?? "?")
    }

    private var text: String {
        (permissions.map { String($0, radix: 8) } ?? "-") + " "
            + (date.map { String($0.nanosecondsSince1970) } ?? "-") + " " + state
    }

    /// The body of a PROPPATCH that sets them, the date also in the property that Windows uses.
    var update: [UInt8] {
        var properties = "<y:attributes xmlns:y=\"\(DAVNamespace.yonder)\">\(text)</y:attributes>"
        if let date {
            let name = "Win32LastModifiedTime"
            properties += "<w:\(name) xmlns:w=\"\(Self.windows)\">\(HTTPDate.text(date.seconds))</w:\(name)>"
        }
        return Array(
            (#"<?xml version="1.0" encoding="utf-8"?><D:propertyupdate xmlns:D="DAV:"><D:set><D:prop>"# + properties
                + "</D:prop></D:set></D:propertyupdate>").utf8)
    }

    /// Whether they justify a request. A usual mode, and a date close to the server's own, do not.
    func areWorthStoring(for resource: DAVResource) -> Bool {
        let usual: Set<UInt16> = resource.isCollection ? [0o755, 0o775] : [0o644, 0o664]
        if let permissions, !usual.contains(permissions) { return true }
        guard let date else { return false }
        guard let remote = resource.modifiedAt else { return true }
        return abs(date.seconds - remote) > Self.closeness
    }

    /// In seconds.
    private static let closeness: Int64 = 60
}

extension RemoteEntry {
    func with(_ stored: StoredAttributes?) -> RemoteEntry {
        var entry = self
        if let date = stored?.date { entry.attributes.contentModificationDate = date }
        if let permissions = stored?.permissions { entry.attributes.permissions = permissions }
        return entry
    }
}
