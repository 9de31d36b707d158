import FileProvider
import HTTPTransport

/// A source as the user names it: `webdav://` or `webdavs://`, a server, and the path of a collection on it.
package struct WebDAVSource: Hashable, Sendable {
    /// The collection; its path ends in a slash.
    package var url: HTTPURL
    package var user: String?

    /// - Throws: `providerNotFound` with the reason for an invalid source. A password in it is refused, because sources are
    ///   shown and logged.
    package init(_ source: String) throws(FileProviderError) {
        func wrong(_ why: String) -> FileProviderError {
            FileProviderError(.providerNotFound, "no such WebDAV source: \(why)")
        }
        let isSecure = source.utf8.starts(with: "webdavs://".utf8)
        guard isSecure || Self.isOne(source) else {
            throw wrong("it begins neither with webdav:// nor with webdavs://")
        }
        var rest = source.dropFirst(isSecure ? 10 : 9)
        let authority = rest.prefix { $0 != "/" && $0 != "?" && $0 != "#" }
        if let at = authority.lastIndex(of: "@") {
            let name = authority[..<at]
            guard !name.contains(":") else {
                throw wrong("a password has no place in it: use ~/.netrc, or --password-stdin")
            }
            guard let bytes = PercentEncoding.decode(name), let text = String(validating: bytes, as: UTF8.self),
                !text.isEmpty
            else { throw wrong("the user name cannot be read") }
            user = text
            rest = rest[authority.index(after: at)...]
        }
        guard !rest.contains("?"), !rest.contains("#") else {
            throw wrong("a path has neither ? nor #: write %3F, %23")
        }
        guard var url = HTTPURL((isSecure ? "https://" : "http://") + Self.encoded(rest)) else {
            throw wrong("the address cannot be read")
        }
        if !url.path.hasSuffix("/") { url.path += "/" }
        self.url = url
    }

    package static func isOne(_ source: String) -> Bool {
        source.utf8.starts(with: "webdav://".utf8) || source.utf8.starts(with: "webdavs://".utf8)
    }

    /// Blanks and characters outside of ASCII need not be percent-encoded in a source.
    private static func encoded(_ text: Substring) -> String {
        var out = ""
        for scalar in text.unicodeScalars {
            if scalar.isASCII, scalar.value > 0x20, scalar.value < 0x7F {
                out.unicodeScalars.append(scalar)
            } else {
                out += PercentEncoding.encode(String(Character(scalar)))
            }
        }
        return out
    }
}
