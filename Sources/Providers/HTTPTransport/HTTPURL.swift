import FileProvider

/// The URL of a resource on an HTTP server. Path and query are percent-encoded and sent unchanged: `//`, `..` and `%2F` are
/// the server's to interpret, and a signature covers exactly these bytes.
package struct HTTPURL: Hashable, Sendable, CustomStringConvertible {
    /// `https`, else `http`.
    package var isSecure: Bool
    /// In lower case, an IPv6 address without its brackets.
    package var host: String
    package var port: Int
    /// Begins with a slash.
    package var path: String
    /// Without its question mark.
    package var query: String?
    /// The path of the Unix socket on which the server listens; nil for TCP.
    package var socketPath: String?

    package init(isSecure: Bool, host: String, port: Int? = nil, path: String = "/") {
        self.isSecure = isSecure
        self.host = host.lowercased()
        self.port = port ?? (isSecure ? 443 : 80)
        self.path = path
    }

    /// An `http` or `https` URL. A fragment is dropped. A user name or a password is refused, because URLs are logged.
    package init?(_ text: String) {
        var rest = Substring(text)
        guard let scheme = rest.firstRange(of: "://") else { return nil }
        switch rest[..<scheme.lowerBound].lowercased() {
        case "http": isSecure = false
        case "https": isSecure = true
        default: return nil
        }
        rest = rest[scheme.upperBound...]
        guard rest.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "\\") }) else { return nil }
        let authority = rest.prefix { $0 != "/" && $0 != "?" && $0 != "#" }
        guard let (host, port) = Self.split(authority: authority) else { return nil }
        self.host = host.lowercased()
        self.port = port ?? (isSecure ? 443 : 80)
        rest = rest[authority.endIndex...].prefix { $0 != "#" }
        let path = rest.prefix { $0 != "?" }
        self.path = path.isEmpty ? "/" : String(path)
        query = path.endIndex == rest.endIndex ? nil : String(rest[rest.index(after: path.endIndex)...])
    }

    private static func split(authority: Substring) -> (host: String, port: Int?)? {
        guard !authority.utf8.contains(UInt8(ascii: "@")) else { return nil }
        var rest = authority
        let host: Substring
        if rest.first == "[" {
            guard let end = rest.firstIndex(of: "]") else { return nil }
            host = rest[rest.index(after: rest.startIndex)..<end]
            rest = rest[rest.index(after: end)...]
        } else {
            host = rest.prefix { $0 != ":" }
            rest = rest[host.endIndex...]
        }
        guard !host.isEmpty else { return nil }
        if rest.isEmpty { return (String(host), nil) }
        guard rest.first == ":" else { return nil }
        let digits = rest.dropFirst()
        if digits.isEmpty { return (String(host), nil) }
        guard digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let port = Int(digits), (1...65535).contains(port)
        else { return nil }
        return (String(host), port)
    }

    package var scheme: String { isSecure ? "https" : "http" }

    /// The value of `Host`: with the port where it is not the default.
    package var authority: String {
        let name = host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]" : host
        return port == (isSecure ? 443 : 80) ? name : "\(name):\(port)"
    }

    /// Path and query as they are sent.
    package var target: String { query.map { "\(path)?\($0)" } ?? path }

    package var description: String {
        if let socketPath { return "http+unix://\(PercentEncoding.encode(socketPath))\(target)" }
        return "\(scheme)://\(authority)\(target)"
    }

    /// Whether the host is this machine by its name or address.
    package var isLoopback: Bool {
        let name = host.lowercased()
        if name == "localhost" || name.hasSuffix(".localhost") || name == "::1" || name == "[::1]" { return true }
        let parts = name.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4 && parts[0] == "127" && parts.allSatisfy { UInt8($0) != nil }
    }

    /// Whether scheme, host and port are the same.
    package func hasSameOrigin(as other: HTTPURL) -> Bool {
        isSecure == other.isSecure && host == other.host && port == other.port && socketPath == other.socketPath
    }

    /// Whether the paths are the same, however they are encoded, with or without slashes at the end.
    package func hasSamePlace(as other: HTTPURL) -> Bool {
        func place(_ url: HTTPURL) -> ArraySlice<UInt8> {
            var bytes = (PercentEncoding.decode(url.path) ?? Array(url.path.utf8))[...]
            while bytes.last == UInt8(ascii: "/") { bytes.removeLast() }
            return bytes
        }
        return place(self) == place(other)
    }

    /// The URL that a reference (`Location`, `href`) has relative to this one; nil for an invalid one.
    package func resolving(_ reference: String) -> HTTPURL? {
        if reference.contains("://"), let whole = HTTPURL(reference) { return whole }
        if reference.hasPrefix("//") { return HTTPURL("\(scheme):\(reference)") }
        var base = "\(scheme)://\(authority)"
        if reference.hasPrefix("/") {
            base += reference
        } else if reference.hasPrefix("?") {
            base += path + reference
        } else {
            let folder = path.prefix(upTo: path.lastIndex(of: "/").map { path.index(after: $0) } ?? path.endIndex)
            base += Self.withoutDots(folder + reference)
        }
        return HTTPURL(base)
    }

    /// Removes dot segments, for relative references only: an absolute path is unchanged.
    private static func withoutDots(_ path: String) -> String {
        let (way, tail) =
            path.firstIndex { $0 == "?" || $0 == "#" }.map { (path[..<$0], path[$0...]) } ?? (path[...], "")
        var names: [Substring] = []
        let parts = way.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
        for (index, part) in zip(parts.indices, parts) {
            let isLast = index == parts.indices.last
            switch part {
            case ".": if isLast { names.append("") }
            case "..":
                _ = names.popLast()
                if isLast { names.append("") }
            default: names.append(part)
            }
        }
        return "/" + names.joined(separator: "/") + tail
    }
}
