import Synchronization

/// Who may use the dashboard: the browser that was the first to show the token. It gets a cookie for it.
///
/// The token stands in an address, which other users may see among the arguments of the browser, and browsers send the cookie to
/// all ports of the host: only processes of the user may show either (``LocalPeer``). Once the token is used it is worth nothing.
final class DashboardSession: Sendable {
    private struct State {
        var token: String?
        var secret: String?
        var port = 0
    }

    private let state: Mutex<State>

    init(token: String) {
        state = Mutex(State(token: token))
    }

    /// The server listens.
    func begin(port: Int) {
        state.withLock { $0.port = port }
    }

    var port: Int { state.withLock { $0.port } }

    /// The name of the cookie. Cookies are shared by all ports of a host, so it contains the port.
    var cookie: String { "yonder-\(port)" }

    /// Exchanges the token for the value of the cookie, once.
    ///
    /// - Returns: nil for another token, and for one that was used.
    func redeem(_ token: String?) -> String? {
        state.withLock { state in
            guard let token, let expected = state.token, Self.isEqual(token, expected) else { return nil }
            let secret = Self.randomText()
            (state.token, state.secret) = (nil, secret)
            return secret
        }
    }

    func isValid(_ value: String?) -> Bool {
        state.withLock { state in
            guard let value, let secret = state.secret else { return false }
            return Self.isEqual(value, secret)
        }
    }

    /// Whether a request names this server as its host. A page of another site could reach it under a name of its own (DNS
    /// rebinding).
    func isOwn(host: String?) -> Bool {
        host.map { ["127.0.0.1:\(port)", "localhost:\(port)"].contains($0) } ?? false
    }

    /// Whether a request comes from a page of this server; browsers send the origin with each POST.
    func isOwn(origin: String?) -> Bool {
        origin.map { ["http://127.0.0.1:\(port)", "http://localhost:\(port)"].contains($0) } ?? false
    }

    /// 128 random bits in hexadecimal, from the system's generator.
    static func randomText() -> String {
        var generator = SystemRandomNumberGenerator()
        return (0..<2).map { _ in
            let digits = String(generator.next() as UInt64, radix: 16)
            return String(repeating: "0", count: 16 - digits.count) + digits
        }.joined()
    }

    /// Takes as long for a wrong guess whose beginning is right as for any other.
    private static func isEqual(_ one: String, _ other: String) -> Bool {
        guard one.utf8.count == other.utf8.count else { return false }
        return zip(one.utf8, other.utf8).reduce(0 as UInt8) { $0 | ($1.0 ^ $1.1) } == 0
    }
}
