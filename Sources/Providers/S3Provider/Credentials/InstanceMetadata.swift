import FileProvider
import HTTPTransport

/// The instance metadata service of EC2, version 2.
struct InstanceMetadata {
    private let base: HTTPURL
    private let timeout: Duration

    /// - Returns: nil if the user has disabled it.
    /// - Throws: `notAuthenticated` for an invalid address.
    init?(environment: [String: String]) throws {
        func value(_ name: String) -> String? { environment[name].flatMap { $0.isEmpty ? nil : $0 } }
        if value("AWS_EC2_METADATA_DISABLED")?.lowercased() == "true" { return nil }
        let usual =
            value("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE")?.lowercased() == "ipv6"
            ? "http://[fd00:ec2::254]" : "http://169.254.169.254"
        guard let base = HTTPURL(value("AWS_EC2_METADATA_SERVICE_ENDPOINT") ?? usual), base.query == nil else {
            throw FileProviderError(.notAuthenticated, "AWS_EC2_METADATA_SERVICE_ENDPOINT is no address")
        }
        self.base = base
        // A machine that is no instance must not wait for long.
        timeout = .seconds(min(10, max(1, value("AWS_METADATA_SERVICE_TIMEOUT").flatMap { Int($0) } ?? 1)))
    }

    /// - Returns: nil if this machine is no instance, or has no role.
    func credentials(over transport: CredentialTransport) async throws -> S3Credentials? {
        var login = request("PUT", "latest/api/token")
        login.fields["X-aws-ec2-metadata-token-ttl-seconds"] = "21600"
        // Other machines have another server at this address, or none.
        guard let answer = try? await send(login, transport), answer.status == 200, !answer.body.isEmpty,
            !answer.text.contains(where: \.isNewline)
        else {
            if Task.isCancelled { throw FileProviderError(.userCancelled) }
            return nil
        }
        let roles = "latest/meta-data/iam/security-credentials/"
        let list = try await send(request("GET", roles, token: answer.text), transport)
        if list.status == 404 { return nil }
        guard list.status == 200 else { throw Self.refusal(list) }
        guard let role = list.text.split(whereSeparator: \.isNewline).first else { return nil }
        let path = roles + PercentEncoding.encode(role)
        let document = try await send(request("GET", path, token: answer.text), transport)
        guard document.status == 200 else { throw Self.refusal(document) }
        return try CredentialDocument.credentials(in: document.body, of: Self.name)
    }

    private static let name = "the metadata service of EC2"

    private static func refusal(_ response: HTTPResponse) -> FileProviderError {
        CredentialTransport.refusal(by: name, response)
    }

    private func send(_ request: HTTPRequest, _ transport: CredentialTransport) async throws -> HTTPResponse {
        try await transport.send(request, to: .instance(timeout: timeout))
    }

    private func request(_ method: String, _ path: String, token: String? = nil) -> HTTPRequest {
        var url = base
        url.path += (url.path.hasSuffix("/") ? "" : "/") + path
        var request = HTTPRequest(method, url)
        request.fields["X-aws-ec2-metadata-token"] = token
        return request
    }
}
