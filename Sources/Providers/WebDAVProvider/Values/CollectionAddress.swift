import FileProvider
import FileProviderPaths
import HTTPTransport

/// The URL of a collection, and the mapping between paths below it and URLs.
struct CollectionAddress: Hashable, Sendable {
    /// Ends in a slash.
    let url: HTTPURL
    /// The names in the URL's path; nil where it is not UTF-8.
    private let path: RemotePath?

    init(_ url: HTTPURL) {
        self.url = url
        path = Self.names(in: url.path).map(RemotePath.init)
    }

    func url(of path: RemotePath, isDirectory: Bool = false) -> HTTPURL {
        var url = url
        url.path += path.names.map { PercentEncoding.encode($0) }.joined(separator: "/")
        if isDirectory, !path.names.isEmpty { url.path += "/" }
        return url
    }

    /// The path that an `href` names.
    ///
    /// - Parameter page: the URL that sent it.
    /// - Returns: nil for a reference that leaves the collection or cannot be a path.
    func path(of href: String, on page: HTTPURL) -> RemotePath? {
        guard let top = path?.names else { return nil }
        var absolute = href
        if !Self.isPlainPath(href) {
            guard let target = page.resolving(href), target.host == url.host else { return nil }
            absolute = target.path
        }
        guard let names = Self.names(in: absolute), names.count >= top.count,
            RemotePath(Array(names.prefix(top.count))) == path
        else { return nil }
        return RemotePath(Array(names.dropFirst(top.count)))
    }

    /// Whether a reference is an absolute path and nothing else, as nearly all of the thousands in a listing are.
    private static func isPlainPath(_ href: String) -> Bool {
        let bytes = href.utf8
        guard bytes.first == UInt8(ascii: "/"), bytes.dropFirst().first != UInt8(ascii: "/") else { return false }
        return bytes.allSatisfy { byte in
            byte > 0x20 && byte < 0x7F && byte != UInt8(ascii: "?") && byte != UInt8(ascii: "#")
                && byte != UInt8(ascii: ":") && byte != UInt8(ascii: "\\")
        }
    }

    private static func names(in path: String) -> [String]? {
        var parts = path.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).dropFirst()
        if parts.last?.isEmpty == true { parts = parts.dropLast() }
        return decoded(parts.map { Substring($0) })
    }

    fileprivate static func decoded(_ parts: [Substring]) -> [String]? {
        var names: [String] = []
        for part in parts {
            guard let bytes = PercentEncoding.decode(part), let name = String(validating: bytes, as: UTF8.self) else {
                return nil
            }
            names.append(name)
        }
        return names
    }
}

/// The account on a Nextcloud or ownCloud server to which a collection belongs, as its URL names it:
/// `…/dav/files/USER/…`. The server's other collections of the account are beside `files`.
struct OwnCloudAccount: Hashable, Sendable {
    /// The path of the mounted collection among the user's files.
    let mounted: RemotePath
    private let base: HTTPURL
    /// The path of `…/dav`, without a slash at the end.
    private let service: String
    private let user: Substring

    /// - Returns: nil for a URL that does not name the user.
    init?(of base: HTTPURL) {
        let parts = base.path.split(separator: "/")
        guard
            let files = parts.indices.first(where: { index in
                parts[index] == "files" && index > 0 && parts[index - 1] == "dav" && index + 1 < parts.count
            }), let mounted = CollectionAddress.decoded(Array(parts[(files + 2)...]))
        else { return nil }
        self.base = base
        self.mounted = RemotePath(mounted)
        service = "/" + parts[..<files].joined(separator: "/")
        user = parts[files + 1]
    }

    var files: CollectionAddress { collection("files") }
    /// The chunked uploads in progress.
    var uploads: CollectionAddress { collection("uploads") }

    /// The address of a page of the server; nil where its path cannot be told from that of the WebDAV service.
    func page(_ name: String) -> HTTPURL? {
        let end = "/remote.php/dav"
        guard service.hasSuffix(end) else { return nil }
        var url = base
        url.path = service.dropLast(end.count) + "/index.php/" + name
        return url
    }

    func collection(_ kind: String, _ part: String? = nil) -> CollectionAddress {
        var url = base
        url.path = "\(service)/\(kind)/\(user)/" + (part.map { "\($0)/" } ?? "")
        return CollectionAddress(url)
    }
}
