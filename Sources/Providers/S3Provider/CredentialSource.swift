import FileProvider
import Foundation
import HTTPTransport

/// Finds credentials where Amazon's own tools find them, and again when they have expired: a named profile, the environment,
/// the default profile, the container that this runs in.
actor CredentialSource {
    private let profile: String?
    private let surroundings: @Sendable () -> [String: String]
    private var environment: [String: String] = [:]
    private let transport: HTTPTransport
    private var current: S3Credentials?
    /// When files were last read, in seconds since 1970.
    private var readAt: Int64 = 0
    /// How many seconds before they expire credentials are replaced.
    private static let margin: Int64 = 300
    /// Files are read again after so many seconds: other tools put new tokens there.
    private static let fileAge: Int64 = 60

    /// - Parameter profile: the one that the user chose.
    init(profile: String?, environment: @escaping @Sendable () -> [String: String], transport: HTTPTransport) {
        self.profile = profile
        surroundings = environment
        self.transport = transport
    }

    /// - Throws: `notAuthenticated` with the places that were searched.
    func credentials(now: Int64) async throws -> S3Credentials {
        if let current {
            if let end = current.expiration {
                if end - now > Self.margin { return current }
            } else if now - readAt < Self.fileAge {
                return current
            }
        }
        do {
            let found = try await find()
            current = found
            readAt = now
            return found
        } catch {
            // Credentials that are valid for a while are better than none.
            if let current, let end = current.expiration, end > now { return current }
            throw error
        }
    }

    /// The server does not accept the credentials any more.
    func forget(_ credentials: S3Credentials) {
        if current == credentials { current = nil }
    }

    private func find() async throws -> S3Credentials {
        environment = surroundings()
        if profile == nil, let key = environment["AWS_ACCESS_KEY_ID"], !key.isEmpty {
            guard let secret = environment["AWS_SECRET_ACCESS_KEY"], !secret.isEmpty else {
                throw FileProviderError(.notAuthenticated, "AWS_ACCESS_KEY_ID is set and AWS_SECRET_ACCESS_KEY is not")
            }
            let token = environment["AWS_SESSION_TOKEN"].flatMap { $0.isEmpty ? nil : $0 }
            return S3Credentials(accessKeyID: key, secretAccessKey: secret, sessionToken: token)
        }
        let named = AWSProfile(named: profile, environment: environment)
        if let credentials = named.credentials { return credentials }
        guard profile == nil else {
            throw FileProviderError(
                .notAuthenticated,
                named.isMissing
                    ? "there is no profile '\(named.name)' in ~/.aws" : "the profile '\(named.name)' has no access key")
        }
        if let credentials = try await containerCredentials() { return credentials }
        throw FileProviderError(
            .notAuthenticated,
            "no credentials for S3: neither AWS_ACCESS_KEY_ID, a profile in ~/.aws nor a container's address has any; set "
                + "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a profile with --profile")
    }

    private struct ContainerAnswer: Decodable {
        var AccessKeyId: String
        var SecretAccessKey: String
        var Token: String?
        var Expiration: String?
    }

    private func containerCredentials() async throws -> S3Credentials? {
        let address: String
        if let path = environment["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"], path.hasPrefix("/") {
            address = "http://169.254.170.2\(path)"
        } else if let whole = environment["AWS_CONTAINER_CREDENTIALS_FULL_URI"], !whole.isEmpty {
            address = whole
        } else {
            return nil
        }
        guard let url = HTTPURL(address), url.isSecure || Self.isNear(url.host) else {
            throw FileProviderError(.notAuthenticated, "AWS_CONTAINER_CREDENTIALS_FULL_URI is no address that is safe")
        }
        var request = HTTPRequest("GET", url)
        request.followsRedirects = false
        request.fields["Authorization"] = try containerToken()
        // Connections of its own: those of the bucket may all be in use by requests that wait for the credentials.
        let own = HTTPTransport(transport.configuration, logger: transport.logger)
        let answer: HTTPResponse
        do {
            answer = try await own.send(request, bodyLimit: 64 << 10)
        } catch {
            await own.close()
            throw error
        }
        await own.close()
        guard answer.status == 200,
            let found = try? JSONDecoder().decode(ContainerAnswer.self, from: Data(answer.body))
        else {
            throw FileProviderError(.notAuthenticated, "\(url.host) gives no credentials (status \(answer.status))")
        }
        return S3Credentials(
            accessKeyID: found.AccessKeyId, secretAccessKey: found.SecretAccessKey, sessionToken: found.Token,
            expiration: found.Expiration.flatMap { HTTPDate.timestamp(iso8601: $0)?.seconds })
    }

    private func containerToken() throws -> String? {
        if let path = environment["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"], !path.isEmpty {
            guard let text = try? String(contentsOfFile: path, encoding: .utf8) else {
                throw FileProviderError(.notAuthenticated, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE cannot be read")
            }
            return text.trimmingCharacters(in: .whitespacesAndNewlines)
        }
        return environment["AWS_CONTAINER_AUTHORIZATION_TOKEN"].flatMap { $0.isEmpty ? nil : $0 }
    }

    /// This machine, or an address at which hosts of containers serve credentials.
    private static func isNear(_ host: String) -> Bool {
        host == "localhost" || host == "::1" || host.hasPrefix("127.") || host == "169.254.170.2"
            || host == "169.254.170.23" || host == "fd00:ec2::23"
    }
}
