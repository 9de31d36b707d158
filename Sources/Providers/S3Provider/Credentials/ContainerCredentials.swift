import FileProvider
import Foundation
import HTTPTransport

/// The credentials of this container: of ECS, Fargate, or a pod of EKS.
struct ContainerCredentials {
    private let url: HTTPURL
    private let token: String?

    /// - Returns: nil outside of a container.
    /// - Throws: `notAuthenticated` for an address that is not safe, and for a token that cannot be read.
    init?(environment: [String: String]) throws {
        func value(_ name: String) -> String? { environment[name].flatMap { $0.isEmpty ? nil : $0 } }
        let address: String
        if let path = value("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"), path.hasPrefix("/") {
            address = "http://169.254.170.2\(path)"
        } else if let whole = value("AWS_CONTAINER_CREDENTIALS_FULL_URI") {
            address = whole
        } else {
            return nil
        }
        guard let url = HTTPURL(address), url.isSecure || Self.isNear(url) else {
            throw FileProviderError(.notAuthenticated, "AWS_CONTAINER_CREDENTIALS_FULL_URI is no address that is safe")
        }
        self.url = url
        if let path = value("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE") {
            guard let text = try? String(contentsOfFile: path, encoding: .utf8) else {
                throw FileProviderError(.notAuthenticated, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE cannot be read")
            }
            token = text.trimmingCharacters(in: .whitespacesAndNewlines)
        } else {
            token = value("AWS_CONTAINER_AUTHORIZATION_TOKEN")
        }
        guard token?.contains(where: \.isNewline) != true else {
            throw FileProviderError(.notAuthenticated, "the container's authorization token has several lines")
        }
    }

    func credentials(over transport: CredentialTransport) async throws -> S3Credentials {
        var request = HTTPRequest("GET", url)
        request.fields["Authorization"] = token
        let response = try await transport.send(request, to: .container)
        guard response.status == 200 else { throw CredentialTransport.refusal(by: url.host, response) }
        return try CredentialDocument.credentials(in: response.body, of: url.host)
    }

    /// Whether a host is this machine, or an address at which hosts of containers serve credentials.
    private static func isNear(_ url: HTTPURL) -> Bool {
        // A name below `localhost` may be another machine's where only DNS knows it.
        url.isLoopback && !url.host.hasSuffix(".localhost")
            || ["169.254.170.2", "169.254.170.23", "fd00:ec2::23"].contains(url.host)
    }
}
