import Crypto
import FileProvider
import Foundation
import HTTPTransport

/// AWS Signature Version 4.
struct Signature {
    var region: String
    var service = "s3"
    var credentials: S3Credentials
    /// Seconds since 1970, by the server's clock.
    var time: Int64

    /// Stands for a body's hash where TLS protects the body.
    static let unsignedPayload = "UNSIGNED-PAYLOAD"

    /// Signs a request: sets `x-amz-date`, `Authorization` and their companions.
    ///
    /// - Parameter payloadHash: SHA-256 of the body as hexadecimal digits, or ``unsignedPayload``.
    func sign(_ request: inout HTTPRequest, payloadHash: String) {
        request.fields["x-amz-content-sha256"] = payloadHash
        request.fields["x-amz-date"] = HTTPDate.compact(time)
        request.fields["x-amz-security-token"] = credentials.sessionToken
        request.fields["Authorization"] = authorization(of: request, payloadHash: payloadHash)
    }

    func authorization(of request: HTTPRequest, payloadHash: String) -> String {
        let date = HTTPDate.compact(time)
        let signed = signedFields(of: request)
        let names = signed.map(\.name).joined(separator: ";")
        let canonical = [
            request.method, request.url.path, canonicalQuery(request.url.query),
            signed.map { "\($0.name):\($0.value)\n" }.joined(), names, payloadHash,
        ].joined(separator: "\n")
        let scope = "\(date.prefix(8))/\(region)/\(service)/aws4_request"
        let text = ["AWS4-HMAC-SHA256", date, scope, Self.hash(Array(canonical.utf8))].joined(separator: "\n")
        var key = SymmetricKey(data: Data("AWS4\(credentials.secretAccessKey)".utf8))
        for part in [String(date.prefix(8)), region, service, "aws4_request"] {
            key = SymmetricKey(data: Self.code(part, with: key))
        }
        let signature = Self.code(text, with: key).hexadecimal
        return "AWS4-HMAC-SHA256 Credential=\(credentials.accessKeyID)/\(scope),SignedHeaders=\(names),"
            + "Signature=\(signature)"
    }

    private func signedFields(of request: HTTPRequest) -> [(name: String, value: String)] {
        var fields: [String: [String]] = ["host": [request.url.authority]]
        for field in request.fields {
            let name = field.name.lowercased()
            guard name.hasPrefix("x-amz-") || ["content-md5", "content-type", "range", "date", "host"].contains(name)
            else {
                continue
            }
            if name == "host" { fields[name] = nil }
            let words = field.value.split(separator: " ", omittingEmptySubsequences: true)
            fields[name, default: []].append(words.joined(separator: " "))
        }
        return fields.sorted { $0.key < $1.key }.map { ($0.key, $0.value.joined(separator: ",")) }
    }

    private func canonicalQuery(_ query: String?) -> String {
        guard let query, !query.isEmpty else { return "" }
        return query.split(separator: "&").map { $0.contains("=") ? String($0) : "\($0)=" }.sorted {
            $0.utf8.lexicographicallyPrecedes($1.utf8)
        }.joined(separator: "&")
    }

    private static func code(_ text: String, with key: SymmetricKey) -> Data {
        Data(HMAC<SHA256>.authenticationCode(for: Data(text.utf8), using: key))
    }

    static func hash(_ bytes: [UInt8]) -> String { SHA256.hash(data: bytes).hexadecimal }
}

/// The credentials of a request. They are never printed.
package struct S3Credentials: Sendable, Hashable, CustomStringConvertible, CustomDebugStringConvertible,
    CustomReflectable
{
    package var accessKeyID: String
    package var secretAccessKey: String
    package var sessionToken: String?
    /// Seconds since 1970.
    package var expiration: Int64?

    package init(accessKeyID: String, secretAccessKey: String, sessionToken: String? = nil, expiration: Int64? = nil) {
        self.accessKeyID = accessKeyID
        self.secretAccessKey = secretAccessKey
        self.sessionToken = sessionToken
        self.expiration = expiration
    }

    package var description: String { "credentials" }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: []) }
}
