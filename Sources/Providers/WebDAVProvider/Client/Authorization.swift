import FileProvider
import Foundation
import HTTPTransport
import Synchronization

/// Adds credentials to requests by the methods that the server offers: none before its first challenge, none to another
/// server. The strongest method is used first, the next one when it is refused.
final class Authorization: Sendable {
    private enum Scheme: Sendable {
        case basic
        case digest(DigestAnswer, clientNonce: String)

        /// The name in ``State/refused``.
        var name: String {
            switch self {
            case .basic: "basic"
            case .digest(let answer, _): answer.name
            }
        }
    }

    private struct State {
        var scheme: Scheme?
        var credentials: WebDAVCredentials?
        /// The schemes that the server has refused with these credentials.
        var refused: Set<String> = []
        /// The number of changes of the scheme.
        var generation = 0
        /// The number of requests with the present nonce.
        var count = 0
    }

    private let state = Mutex(State())
    private let find: @Sendable () -> WebDAVCredentials?

    /// - Parameter find: looks the credentials up at each challenge, because they may have changed.
    init(_ find: @escaping @Sendable () -> WebDAVCredentials?) {
        self.find = find
    }

    /// The authorization of one request.
    struct Pass: RequestAuthorizer {
        fileprivate let owner: Authorization
        fileprivate let generation: Int
        fileprivate let credentials: WebDAVCredentials?

        func authorize(_ request: inout HTTPRequest) async throws {
            request.fields["Authorization"] = owner.authorization(for: request)
        }
    }

    func pass() -> Pass {
        state.withLock { Pass(owner: self, generation: $0.generation, credentials: $0.credentials) }
    }

    private func authorization(for request: HTTPRequest) -> String? {
        state.withLock { state in
            guard let credentials = state.credentials else { return nil }
            switch state.scheme {
            case nil: return nil
            case .basic:
                return "Basic " + Data("\(credentials.user):\(credentials.password)".utf8).base64EncodedString()
            case .digest(let answer, let clientNonce):
                state.count += 1
                return answer.authorization(
                    request.method, request.url.target, credentials, count: state.count,
                    // The secret of a session includes the client nonce of its first request (RFC 7616, 3.4.2).
                    clientNonce: answer.isSession ? clientNonce : Self.makeNonce())
            }
        }
    }

    private static func makeNonce() -> String { String(UInt64.random(in: .min ... .max), radix: 16) }

    /// Learns from the challenge of a refused request (401).
    ///
    /// - Parameter isAgain: earlier attempts were refused for a stale nonce, so another nonce would not help.
    /// - Returns: normally when the request should be repeated.
    /// - Throws: `notAuthenticated` when it should not.
    func learn(_ head: HTTPResponseHead, refused pass: Pass, isAgain: Bool = false) throws {
        let host = head.url.host
        // Another request has learned meanwhile.
        if state.withLock({ $0.generation != pass.generation }) { return }
        guard let credentials = find() else {
            throw FileProviderError(
                .notAuthenticated,
                "\(host) wants credentials: put them into ~/.netrc, or mount again with --password-stdin")
        }
        let challenges = Challenge.all(in: head.fields)
        let schemes = Self.schemes(for: challenges)
        guard let strongest = schemes.first else {
            throw FileProviderError(
                .notAuthenticated,
                "\(host) wants credentials of a kind that is not known here: "
                    + challenges.map(\.scheme).joined(separator: ", "))
        }
        let isStale = !isAgain && challenges.contains { $0.parameters["stale"]?.lowercased() == "true" }
        let mayRepeat = state.withLock { state in
            guard state.generation == pass.generation else { return true }
            if state.credentials != credentials { state.refused = [] }
            if let name = state.scheme?.name, pass.credentials == credentials, !isStale { state.refused.insert(name) }
            let next = schemes.first { scheme in
                // An attacker on the network may have had a stronger scheme refused to get the password.
                !state.refused.contains(scheme.name)
                    && (scheme.name != "basic" || state.refused.isEmpty || head.url.isSecure || head.url.isLoopback)
            }
            (state.credentials, state.count) = (credentials, 0)
            state.generation += 1
            // After a final refusal the next request starts again: the server may accept it then.
            state.scheme = next ?? strongest
            if next == nil { state.refused = [] }
            return next != nil
        }
        guard mayRepeat else { throw refusal(by: host) }
    }

    /// The error for credentials that the server refuses.
    func refusal(by host: String) -> FileProviderError {
        let user = find()?.user ?? ""
        // The user may not have entered it.
        let hint =
            user == NSUserName()
            ? "; this is the login name, which is used where no user is named: another is given as 'USER:PASSWORD', or in the URL"
            : ""
        return FileProviderError(
            .notAuthenticated, "\(host) does not let '\(user)' in with the password that is known here\(hint)")
    }

    /// The offered schemes that are supported, the strongest first.
    private static func schemes(for challenges: [Challenge]) -> [Scheme] {
        let digests = challenges.compactMap(DigestAnswer.init)
        return (digests.filter { $0.algorithm == .sha256 } + digests.filter { $0.algorithm != .sha256 })
            .map { .digest($0, clientNonce: makeNonce()) }
            + (challenges.contains { $0.scheme == "basic" } ? [.basic] : [])
    }
}
