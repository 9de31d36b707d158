import Crypto
import FileProvider
import Foundation
import HTTPTransport
import SystemPackage

/// The role of a profile in the IAM Identity Center, with the token that `aws sso login` has stored.
struct SingleSignOn {
    private let profile: String
    private let account: String
    private let role: String
    private let endpoint: HTTPURL
    private let tokenEndpoint: HTTPURL
    private let tokenPath: FilePath

    private struct Answer: Decodable {
        struct Credentials: Decodable {
            var accessKeyId: String
            var secretAccessKey: String
            var sessionToken: String
            /// Milliseconds since 1970.
            var expiration: Int64
        }
        var roleCredentials: Credentials
    }

    /// - Returns: nil for a profile without single sign-on.
    /// - Throws: `notAuthenticated` for a profile in which a setting is missing.
    init?(_ profile: AWSProfile, environment: [String: String]) throws {
        let settings = profile.settings
        guard let account = settings["sso_account_id"], let role = settings["sso_role_name"] else { return nil }
        let session = settings["sso_session"]
        let place = session.map { profile.section("sso-session", $0) } ?? settings
        guard let place, let region = place["sso_region"], let start = place["sso_start_url"] else {
            throw FileProviderError(
                .notAuthenticated,
                "the profile '\(profile.name)' has no sso_region or no sso_start_url: run `aws configure sso`")
        }
        self.profile = profile.name
        self.account = account
        self.role = role
        let domain = region.hasPrefix("cn-") ? "amazonaws.com.cn" : "amazonaws.com"
        endpoint =
            try profile.endpoint(of: "sso", environment: environment)
            ?? HTTPURL(isSecure: true, host: "portal.sso.\(region).\(domain)")
        tokenEndpoint =
            try profile.endpoint(of: "sso_oidc", environment: environment)
            ?? HTTPURL(isSecure: true, host: "oidc.\(region).\(domain)")
        let name = Insecure.SHA1.hash(data: Data((session ?? start).utf8)).hexadecimal
        tokenPath = FilePath("\(environment["HOME"] ?? NSHomeDirectory())/.aws/sso/cache/\(name).json")
    }

    /// GetRoleCredentials.
    ///
    /// - Throws: `notAuthenticated` if the user has to sign in.
    func credentials(over transport: CredentialTransport, now: Int64) async throws -> S3Credentials {
        guard var token = SingleSignOnToken(at: tokenPath) else { throw signIn("there is no valid SSO token") }
        try await token.renewIfNeeded(at: tokenEndpoint, over: transport, now: now)
        guard token.expiration > now else { throw signIn("the SSO token has expired") }
        var url = endpoint
        url.path += (url.path.hasSuffix("/") ? "" : "/") + "federation/credentials"
        url.query = "role_name=\(PercentEncoding.encode(role))&account_id=\(PercentEncoding.encode(account))"
        var request = HTTPRequest("GET", url)
        request.fields["x-amz-sso_bearer_token"] = token.accessToken
        let response = try await transport.send(request, to: .service)
        if response.status == 401 { throw signIn("SSO refuses the token") }
        guard response.status == 200 else { throw CredentialTransport.refusal(by: "SSO", response) }
        guard let found = try? JSONDecoder().decode(Answer.self, from: Data(response.body)).roleCredentials else {
            throw FileProviderError(.notAuthenticated, "SSO gives a malformed document instead of credentials")
        }
        return S3Credentials(
            accessKeyID: found.accessKeyId, secretAccessKey: found.secretAccessKey, sessionToken: found.sessionToken,
            expiration: found.expiration / 1000)
    }

    private func signIn(_ reason: String) -> FileProviderError {
        FileProviderError(
            .notAuthenticated, "\(reason) of the profile '\(profile)': run `aws sso login --profile \(profile)`")
    }
}
