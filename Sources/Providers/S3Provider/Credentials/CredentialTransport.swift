import FileProvider
import Foundation
import HTTPTransport
import Logging

/// Sends requests for credentials, over connections of their own: those of the bucket may all be in use by requests that wait for
/// the credentials.
struct CredentialTransport: Sendable {
    enum Server: Sendable {
        case service
        /// The host of this container.
        case container
        /// The metadata of this instance, if this machine is one. Gets this time for a connection and for a response.
        case instance(timeout: Duration)
    }

    private let configuration: HTTPTransport.Configuration
    private let logger: Logger

    init(_ configuration: HTTPTransport.Configuration, logger: Logger) {
        self.configuration = configuration
        self.logger = logger
    }

    /// - Returns: a response of any status.
    func send(_ request: HTTPRequest, to server: Server) async throws -> HTTPResponse {
        var request = request
        request.followsRedirects = false
        var configuration = configuration
        configuration.connections = 1
        switch server {
        case .service: break
        case .container:
            configuration.environment = Self.withoutProxies(configuration.environment)
            configuration.connectTimeout = .seconds(2)
            configuration.stallTimeout = min(configuration.stallTimeout, .seconds(10))
        case .instance(let timeout):
            configuration.environment = Self.withoutProxies(configuration.environment)
            configuration.connectTimeout = timeout
            configuration.stallTimeout = timeout
            configuration.retries.attempts = 1
        }
        let transport = HTTPTransport(configuration, logger: logger)
        return try await closing(transport.close) { try await transport.send(request, bodyLimit: 256 << 10) }
    }

    /// A proxy would get the credentials, and is another machine.
    private static func withoutProxies(_ environment: [String: String]) -> [String: String] {
        environment.filter { !$0.key.lowercased().hasSuffix("_proxy") }
    }

    /// The error for a response without credentials.
    ///
    /// - Parameter reason: the server's code for it.
    static func refusal(by server: String, _ response: HTTPResponse, reason: String? = nil) -> FileProviderError {
        let words = reason.map { "\($0.prefix(100)), status \(response.status)" } ?? "status \(response.status)"
        let isPassing = response.status >= 500 || response.status == 429
        return FileProviderError(
            isPassing ? .serverUnreachable : .notAuthenticated, "\(server) gives no credentials (\(words))")
    }
}

/// Credentials as JSON, from a container, an instance or a program.
struct CredentialDocument: Decodable {
    var Version: Int?
    var AccessKeyId: String
    var SecretAccessKey: String
    var Token: String?
    var SessionToken: String?
    var Expiration: String?

    /// - Parameter giver: names the origin of the document in errors.
    /// - Throws: `notAuthenticated` for a document without credentials.
    static func credentials(
        in bytes: [UInt8], of giver: String, version: Int? = nil
    ) throws(FileProviderError) -> S3Credentials {
        guard let document = try? JSONDecoder().decode(Self.self, from: Data(bytes)), !document.AccessKeyId.isEmpty,
            !document.SecretAccessKey.isEmpty, version == nil || document.Version == version
        else {
            // The document may contain secrets.
            throw FileProviderError(.notAuthenticated, "\(giver) gives a malformed document instead of credentials")
        }
        var expiration: Int64?
        if let text = document.Expiration {
            expiration = try CredentialDocument.expiration(text, of: giver)
        }
        return S3Credentials(
            accessKeyID: document.AccessKeyId, secretAccessKey: document.SecretAccessKey,
            sessionToken: document.Token ?? document.SessionToken, expiration: expiration)
    }

    static func expiration(_ text: String, of giver: String) throws(FileProviderError) -> Int64 {
        guard let date = HTTPDate.timestamp(iso8601: text) else {
            throw FileProviderError(.notAuthenticated, "\(giver) gives credentials that expire at an invalid time")
        }
        return date.seconds
    }
}
