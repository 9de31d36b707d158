import FileProvider
import Foundation
import HTTPTransport
import Syscalls
import SystemPackage

/// The token of the IAM Identity Center that `aws sso login` has stored in a file. The tools of AWS share the file.
struct SingleSignOnToken {
    /// The fields that a renewal needs. Tokens of the old form have none of them.
    private struct Registration {
        var clientID: String
        var clientSecret: String
        var refreshToken: String
    }

    private struct Answer: Decodable {
        var accessToken: String
        /// In seconds.
        var expiresIn: Int64
        var refreshToken: String?
    }

    private let path: FilePath
    /// All fields of the file: a renewal keeps those that only other tools read.
    private var document: [String: Any]
    private(set) var accessToken: String
    /// In seconds since 1970.
    private(set) var expiration: Int64

    /// A token is renewed when it is valid for less than this, in seconds. The credentials of a role live an hour.
    private static let margin: Int64 = 900

    /// - Returns: nil if the file is missing or holds no token.
    init?(at path: FilePath) {
        guard let bytes = try? path.contents(),
            let document = try? JSONSerialization.jsonObject(with: Data(bytes)) as? [String: Any],
            let token = document["accessToken"] as? String, !token.contains(where: \.isNewline),
            let text = document["expiresAt"] as? String,
            let expiration = Self.seconds(text)
        else { return nil }
        (self.path, self.document, accessToken, self.expiration) = (path, document, token, expiration)
    }

    /// Version 1 of the AWS command line writes UTC for Z.
    private static func seconds(_ text: String) -> Int64? {
        HTTPDate.timestamp(iso8601: text.replacing("UTC", with: "Z"))?.seconds
    }

    private func registration(now: Int64) -> Registration? {
        guard let identifier = document["clientId"] as? String, let secret = document["clientSecret"] as? String,
            let token = document["refreshToken"] as? String,
            (document["registrationExpiresAt"] as? String).flatMap(Self.seconds).map({ $0 > now }) ?? true
        else { return nil }
        return Registration(clientID: identifier, clientSecret: secret, refreshToken: token)
    }

    /// Renews a token that expires soon, and stores the new one. Without the fields for it, or if the server refuses, the
    /// token stays as it is.
    ///
    /// - Parameter endpoint: of the service SSO OIDC.
    /// - Throws: `serverUnreachable` if the token has expired and the service gives no answer.
    mutating func renewIfNeeded(at endpoint: HTTPURL, over transport: CredentialTransport, now: Int64) async throws {
        guard expiration - now < Self.margin, let registration = registration(now: now) else { return }
        do {
            try await renew(registration, at: endpoint, over: transport, now: now)
        } catch {
            // Another tool may have renewed it meanwhile, which makes the old refresh token invalid.
            if let stored = SingleSignOnToken(at: path), stored.expiration > max(now, expiration) {
                self = stored
            } else if expiration <= now, (error as? FileProviderError)?.code != .notAuthenticated {
                throw error
            }
        }
    }

    /// CreateToken. The request is not repeated: a refresh token may be valid once.
    private mutating func renew(
        _ registration: Registration, at endpoint: HTTPURL, over transport: CredentialTransport, now: Int64
    ) async throws {
        let fields = [
            "clientId": registration.clientID, "clientSecret": registration.clientSecret,
            "grantType": "refresh_token", "refreshToken": registration.refreshToken,
        ]
        var url = endpoint
        url.path += (url.path.hasSuffix("/") ? "" : "/") + "token"
        let request = HTTPRequest(
            "POST", url, fields: ["Content-Type": "application/json"],
            body: .bytes(Array(try JSONEncoder().encode(fields))))
        let response = try await transport.send(request, to: .service)
        guard response.status == 200 else { throw CredentialTransport.refusal(by: "SSO", response) }
        guard let answer = try? JSONDecoder().decode(Answer.self, from: Data(response.body)),
            !answer.accessToken.contains(where: \.isNewline), answer.expiresIn > 0
        else {
            throw FileProviderError(.notAuthenticated, "SSO gives a malformed document instead of a token")
        }
        (accessToken, expiration) = (answer.accessToken, now + min(answer.expiresIn, 366 * 86_400))
        document["accessToken"] = accessToken
        document["expiresAt"] = HTTPDate.iso8601(expiration)
        document["refreshToken"] = answer.refreshToken ?? registration.refreshToken
        try store()
    }

    /// A new token that cannot be stored is lost with this process: the user has to sign in again then.
    private func store() throws {
        let bytes = try JSONSerialization.data(withJSONObject: document, options: [.sortedKeys])
        try? path.replaceDurably(with: Array(bytes), permissions: [.ownerReadWrite])
    }
}
