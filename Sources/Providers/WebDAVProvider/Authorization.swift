import FileProvider
import Foundation
import HTTPTransport
import Synchronization

/// Lets a server see who asks, in the way that it wants: nothing until it asks for it, and nothing to any other server. Of
/// several ways the strongest comes first, and the next when that one is refused.
final class Authorization: Sendable {
    private enum Scheme: Sendable {
        case none
        case basic
        case digest(DigestAnswer, clientNonce: String)

        /// What it is called in ``State/refused``; nil for none.
        var name: String? {
            switch self {
            case .none: nil
            case .basic: "basic"
            case .digest(let answer, _): answer.name
            }
        }
    }

    private struct State {
        var scheme = Scheme.none
        var credentials: WebDAVCredentials?
        /// The schemes that the server refused with these credentials.
        var refused: Set<String> = []
        /// How often the scheme was learned.
        var generation = 0
        /// How often the present nonce was used.
        var count = 0
    }

    private let state = Mutex(State())
    private let find: @Sendable () -> WebDAVCredentials?

    /// - Parameter find: looks the credentials up, whenever a server asks: they may have been changed.
    init(_ find: @escaping @Sendable () -> WebDAVCredentials?) {
        self.find = find
    }

    /// What one request is sent with.
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
            case .none: return nil
            case .basic:
                return "Basic " + Data("\(credentials.user):\(credentials.password)".utf8).base64EncodedString()
            case .digest(let answer, let clientNonce):
                state.count += 1
                return answer.authorization(
                    request.method, request.url.target, credentials, count: state.count,
                    // A session's secret is made with the client's nonce of its first request (RFC 7616 3.4.2).
                    clientNonce: answer.isSession ? clientNonce : Self.makeNonce())
            }
        }
    }

    private static func makeNonce() -> String { String(UInt64.random(in: .min ... .max), radix: 16) }

    /// A request was refused with 401.
    ///
    /// - Parameter isAgain: the request was refused before for no more than an old nonce: another one would not help.
    /// - Returns: when it is worth while to send it again.
    /// - Throws: `notAuthenticated` when it is not.
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
        let isNew = state.withLock { state in
            guard state.generation == pass.generation else { return true }
            if state.credentials != credentials { state.refused = [] }
            // The same again would be refused again.
            if let name = state.scheme.name, pass.credentials == credentials, !isStale { state.refused.insert(name) }
            let next = schemes.first { scheme in
                guard let name = scheme.name, !state.refused.contains(name) else { return false }
                // Whoever listens in could have had the stronger one refused to get the password.
                return name != "basic" || state.refused.isEmpty || Self.isPrivate(head.url)
            }
            (state.credentials, state.count) = (credentials, 0)
            state.generation += 1
            guard let next else {
                // The next request begins anew: the server may have changed its mind.
                (state.scheme, state.refused) = (strongest, [])
                return false
            }
            state.scheme = next
            return true
        }
        guard isNew else { throw refusal(by: host) }
    }

    /// That a server refuses the credentials that are known here.
    func refusal(by host: String) -> FileProviderError {
        let user = find()?.user ?? ""
        return FileProviderError(
            .notAuthenticated, "\(host) does not let '\(user)' in with the password that is known here")
    }

    /// The ways that can be gone of those that a server offers, the strongest first.
    private static func schemes(for challenges: [Challenge]) -> [Scheme] {
        let digests = challenges.compactMap(DigestAnswer.init)
        return (digests.filter { $0.algorithm == .sha256 } + digests.filter { $0.algorithm != .sha256 })
            .map { .digest($0, clientNonce: makeNonce()) }
            + (challenges.contains { $0.scheme == "basic" } ? [.basic] : [])
    }

    /// Whether nobody on the way can read what is sent.
    private static func isPrivate(_ url: HTTPURL) -> Bool { url.isSecure || url.isLoopback }
}
