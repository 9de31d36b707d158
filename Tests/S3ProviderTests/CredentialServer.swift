import FileProvider
import Foundation
import HTTPTransport
import Logging
import SystemPackage
import TestSupport
import Testing

@testable import S3Provider

/// The services that give credentials (Programs/credential_server.py), and a home directory.
struct CredentialServer {
    let scratch: TemporaryDirectory
    let address: String

    static func run(_ body: (CredentialServer) async throws -> Void) async throws {
        let scratch = try TemporaryDirectory()
        defer { scratch.remove() }
        let script = FilePath(#filePath).removingLastComponent().appending("Programs/credential_server.py").string
        let (program, port) = try await BackgroundProgram.start(
            ["python3", script, scratch.path.string, ObjectStoreProgram.accessKey, ObjectStoreProgram.secretKey],
            until: scratch["port"])
        defer { program.kill() }
        _ = try scratch.makeDirectory(".aws")
        try await body(CredentialServer(scratch: scratch, address: "http://127.0.0.1:\(port)"))
    }

    /// An environment without credentials, in which all services are this server; the metadata service is off.
    func environment(_ more: [String: String] = [:]) -> [String: String] {
        [
            "HOME": scratch.path.string, "PATH": "/usr/bin:/bin", "AWS_ENDPOINT_URL_STS": address,
            "AWS_ENDPOINT_URL_SSO": address, "AWS_ENDPOINT_URL_SSO_OIDC": address, "AWS_EC2_METADATA_DISABLED": "true",
        ].merging(more) { $1 }
    }

    func write(_ text: String, to name: String) throws {
        let path = scratch[name].string
        let folder = URL(fileURLWithPath: path).deletingLastPathComponent()
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try Data(text.utf8).write(to: URL(fileURLWithPath: path), options: .atomic)
    }

    func configure(_ text: String) throws { try write(text, to: ".aws/config") }

    func setMode(_ words: String) throws { try write(words, to: "mode") }

    /// The requests that the server got.
    var log: [String] {
        let text = (try? String(contentsOfFile: scratch["log"].string, encoding: .utf8)) ?? ""
        return text.split(separator: "\n").map(String.init)
    }

    /// - Parameter environment: the variables of proxies.
    static func transport(
        _ environment: [String: String] = [:], logger: Logger = Logger(label: "test")
    ) -> HTTPTransport {
        var configuration = HTTPTransport.Configuration()
        configuration.environment = environment
        configuration.connectTimeout = .seconds(2)
        configuration.stallTimeout = .seconds(3)
        configuration.retries.attempts = 1
        return HTTPTransport(configuration, logger: logger)
    }

    func find(_ environment: [String: String], profile: String? = nil) async throws -> S3Credentials {
        let source = source(environment, profile: profile)
        return try await source.credentials(now: FileTimestamp.now.seconds)
    }

    /// - Parameter transport: nil for one that uses no proxy.
    func source(
        _ environment: [String: String], profile: String? = nil, transport: HTTPTransport? = nil
    ) -> CredentialSource {
        CredentialSource(
            profile: profile, region: "us-east-1", environment: { environment },
            transport: transport ?? Self.transport())
    }

    /// Why no credentials are found.
    func refusal(_ environment: [String: String], profile: String? = nil) async -> String {
        let error = await failure { _ = try await find(environment, profile: profile) }
        return error?.message ?? "nothing"
    }

    static let session = S3Credentials(
        accessKeyID: ObjectStoreProgram.accessKey, secretAccessKey: ObjectStoreProgram.secretKey,
        sessionToken: "session")

    /// Whether credentials are those of the server.
    static func isSession(_ credentials: S3Credentials) -> Bool {
        var credentials = credentials
        credentials.expiration = nil
        return credentials == session
    }
}
