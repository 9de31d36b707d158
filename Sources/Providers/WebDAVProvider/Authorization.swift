import FileProvider
import Foundation
import HTTPTransport
import Synchronization

/// Lets a server see who asks, in the way that it wants: nothing until it asks for it, and nothing to any other server.
final class Authorization: Sendable {
    private enum Scheme: Sendable {
        case none
        case basic
        case digest(DigestAnswer)
    }

    private struct State {
        var scheme = Scheme.none
        var credentials: WebDAVCredentials?
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
            case .digest(let answer):
                state.count += 1
                return answer.authorization(
                    request.method, request.url.target, credentials, count: state.count,
                    clientNonce: String(UInt64.random(in: .min ... .max), radix: 16))
            }
        }
    }

    /// A request was refused with 401.
    ///
    /// - Returns: when it is worth while to send it again.
    /// - Throws: `notAuthenticated` when it is not.
    func learn(_ head: HTTPResponseHead, refused pass: Pass) throws {
        let host = head.url.host
        // Another request has learned meanwhile.
        if state.withLock({ $0.generation != pass.generation }) { return }
        guard let credentials = find() else {
            throw FileProviderError(
                .notAuthenticated,
                "\(host) wants credentials: put them into ~/.netrc, or mount again with --password-stdin")
        }
        let challenges = Challenge.all(in: head.fields)
        let scheme: Scheme
        // The stronger first.
        let answers = challenges.compactMap(DigestAnswer.init)
        if let answer = answers.first(where: { $0.algorithm == .sha256 }) ?? answers.first {
            scheme = .digest(answer)
        } else if challenges.contains(where: { $0.scheme == "basic" }) {
            scheme = .basic
        } else {
            throw FileProviderError(
                .notAuthenticated,
                "\(host) wants credentials of a kind that is not known here: "
                    + challenges.map(\.scheme).joined(separator: ", "))
        }
        let isStale = challenges.contains { $0.parameters["stale"]?.lowercased() == "true" }
        let isNew = state.withLock { state in
            guard state.generation == pass.generation else { return true }
            // The same again would be refused again.
            if case .none = state.scheme {} else if pass.credentials == credentials, !isStale { return false }
            (state.scheme, state.credentials, state.count) = (scheme, credentials, 0)
            state.generation += 1
            return true
        }
        guard isNew else {
            throw FileProviderError(
                .notAuthenticated, "\(host) does not let '\(credentials.user)' in with the password that is known here")
        }
    }
}
