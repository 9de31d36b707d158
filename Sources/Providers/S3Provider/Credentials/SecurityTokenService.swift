import FileProvider
import HTTPTransport

/// The Security Token Service (STS), which gives credentials for a role.
struct SecurityTokenService {
    struct Role {
        var arn: String
        var sessionName: String
        var externalID: String?
        /// Seconds.
        var duration: String?

        init(arn: String, sessionName: String?) {
            self.arn = arn
            self.sessionName = sessionName ?? "yonder"
        }

        /// - Parameter settings: of a profile.
        init(arn: String, _ settings: [String: String]) {
            self.init(arn: arn, sessionName: settings["role_session_name"])
            externalID = settings["external_id"]
            duration = settings["duration_seconds"]
        }
    }

    let endpoint: HTTPURL
    let region: String
    let transport: CredentialTransport

    static func endpoint(in region: String) -> HTTPURL {
        HTTPURL(isSecure: true, host: "sts.\(region).amazonaws.com\(region.hasPrefix("cn-") ? ".cn" : "")")
    }

    func assume(_ role: Role, with credentials: S3Credentials) async throws -> S3Credentials {
        try await call("AssumeRole", role, [("ExternalId", role.externalID)], signedWith: credentials)
    }

    /// AssumeRoleWithWebIdentity. The request has no signature: the token proves the identity.
    func assume(_ role: Role, withWebIdentity token: String) async throws -> S3Credentials {
        try await call("AssumeRoleWithWebIdentity", role, [("WebIdentityToken", token)], signedWith: nil)
    }

    private func call(
        _ action: String, _ role: Role, _ more: [(String, String?)], signedWith credentials: S3Credentials?
    ) async throws -> S3Credentials {
        let parameters: [(String, String?)] =
            [
                ("Action", action), ("Version", "2011-06-15"), ("RoleArn", role.arn),
                ("RoleSessionName", role.sessionName), ("DurationSeconds", role.duration),
            ] + more
        let form = parameters.compactMap { name, value in value.map { "\(name)=\(PercentEncoding.encode($0))" } }
        let body = Array(form.joined(separator: "&").utf8)
        // The answer to a repeated request has other credentials, which are as good.
        var request = HTTPRequest(
            "POST", endpoint, fields: ["Content-Type": "application/x-www-form-urlencoded; charset=utf-8"],
            body: .bytes(body), repetition: .harmless)
        if let credentials {
            let time = FileTimestamp.now.seconds
            Signature(region: region, service: "sts", credentials: credentials, time: time)
                .sign(&request, payloadHash: Signature.hash(body))
        }
        let response = try await transport.send(request, to: .service)
        let document = try? XMLReader.document(response.body)
        guard response.status == 200 else {
            throw CredentialTransport.refusal(
                by: "STS", response, reason: document?.child("Error")?.child("Code")?.trimmedText)
        }
        let found = document?.child("\(action)Result")?.child("Credentials")
        guard let key = found?.child("AccessKeyId")?.trimmedText, !key.isEmpty,
            let secret = found?.child("SecretAccessKey")?.trimmedText, !secret.isEmpty,
            let token = found?.child("SessionToken")?.trimmedText,
            let end = found?.child("Expiration")?.trimmedText
        else {
            throw FileProviderError(.notAuthenticated, "STS gives a malformed document instead of credentials")
        }
        return S3Credentials(
            accessKeyID: key, secretAccessKey: secret, sessionToken: token,
            expiration: try CredentialDocument.expiration(end, of: "STS"))
    }
}
