/// Where a server listens: `HOST:PORT`, as `127.0.0.1:9464`, `localhost:9464` or `[::1]:9464`.
package struct ListeningAddress: Hashable, Sendable, CustomStringConvertible {
    package let host: String
    package let port: Int

    package init(host: String, port: Int) {
        self.host = host
        self.port = port
    }

    /// - Returns: nil for any other text.
    package init?(_ text: String) {
        guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]), port > 0 else {
            return nil
        }
        var host = text[..<colon]
        let isBracketed = host.hasPrefix("[") && host.hasSuffix("]")
        if isBracketed { host = host.dropFirst().dropLast() }
        guard !host.isEmpty, host.contains(":") == isBracketed, !host.contains(where: { "[]/ ".contains($0) }) else {
            return nil
        }
        self.init(host: String(host), port: Int(port))
    }

    package var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
}
