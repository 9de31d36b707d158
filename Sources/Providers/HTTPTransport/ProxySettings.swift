import AsyncHTTPClient
import FileProvider

/// The proxies in `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy`, interpreted as by curl.
package struct ProxySettings: Sendable {
    private let proxies: [String: HTTPClient.Configuration.Proxy]
    private let exceptions: [Substring]
    /// A sentence about each invalid variable, without its value, which may be secret.
    package let complaints: [String]

    /// Lower-case names take precedence. `HTTP_PROXY` in upper case is ignored, because the client of a CGI program can set it.
    package init(environment: [String: String]) {
        var proxies: [String: HTTPClient.Configuration.Proxy] = [:]
        var complaints: [String] = []
        let names = ["http": ["http_proxy"], "https": ["https_proxy", "HTTPS_PROXY"]]
        for (scheme, own) in names.sorted(by: { $0.key < $1.key }) {
            for name in own + ["all_proxy", "ALL_PROXY"] {
                guard let text = environment[name], !text.isEmpty else { continue }
                if let proxy = Self.proxy(text) {
                    proxies[scheme] = proxy
                } else {
                    complaints.append("\(name) names no proxy that can be used: http://HOST:PORT is understood")
                }
                break
            }
        }
        self.proxies = proxies
        self.complaints = complaints
        let listed = environment["no_proxy"] ?? environment["NO_PROXY"] ?? ""
        exceptions = listed.lowercased().split { $0 == "," || $0 == " " }
    }

    func proxy(for url: HTTPURL) -> HTTPClient.Configuration.Proxy? {
        guard let proxy = proxies[url.scheme], !isExcepted(url) else { return nil }
        return proxy
    }

    package func usesProxy(for url: HTTPURL) -> Bool { proxy(for: url) != nil }

    private func isExcepted(_ url: HTTPURL) -> Bool {
        if url.isLoopback { return true }
        return exceptions.contains { exception in
            if exception == "*" { return true }
            var name = exception
            let colon = name.lastIndex(of: ":")
            if let colon, let port = Int(name[name.index(after: colon)...]), name.firstIndex(of: ":") == colon {
                guard port == url.port else { return false }
                name = name[..<colon]
            }
            while name.first == "." || name.first == "*" { name = name.dropFirst() }
            guard !name.isEmpty else { return false }
            return url.host == name || url.host.hasSuffix(".\(name)")
        }
    }

    private static func proxy(_ text: String) -> HTTPClient.Configuration.Proxy? {
        var rest = Substring(text)
        if let scheme = rest.firstIndex(of: ":"), rest[scheme...].hasPrefix("://") {
            guard rest[..<scheme].lowercased() == "http" else { return nil }
            rest = rest[rest.index(scheme, offsetBy: 3)...]
        }
        rest = rest.prefix { $0 != "/" }
        var authorization: HTTPClient.Authorization?
        if let at = rest.lastIndex(of: "@") {
            let parts = rest[..<at].split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            let decoded = parts.compactMap { PercentEncoding.decode($0).map { String(decoding: $0, as: UTF8.self) } }
            guard decoded.count == parts.count else { return nil }
            authorization = .basic(username: decoded[0], password: decoded.count > 1 ? decoded[1] : "")
            rest = rest[rest.index(after: at)...]
        }
        guard let address = HTTPURL("http://\(rest)") else { return nil }
        let port = rest.contains(":") ? address.port : 1080
        return authorization.map { .server(host: address.host, port: port, authorization: $0) }
            ?? .server(host: address.host, port: port)
    }
}
