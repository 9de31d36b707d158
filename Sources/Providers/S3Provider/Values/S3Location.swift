import FileProvider
import HTTPTransport
import ProviderDescriptors

/// Where a domain's objects are: a bucket, a prefix in it, and the server that has it.
package struct S3Location: Sendable, Hashable {
    package var bucket: String
    /// The prefix of the domain's keys; empty, or ends with a slash.
    package var prefix: String
    /// Nil for Amazon's servers.
    package var endpoint: HTTPURL?
    package var region: String
    /// The bucket is part of the host's name, not of the path.
    package var usesHostNames: Bool

    /// - Parameters:
    ///   - source: `s3://BUCKET` or `s3://BUCKET/PREFIX`.
    ///   - usesHostNames: nil for the default: Amazon's buckets have host names, others' are paths.
    /// - Throws: `providerNotFound` for an invalid address.
    package init(
        source: String, endpoint: String? = nil, region: String? = nil, usesHostNames: Bool? = nil
    ) throws(FileProviderError) {
        guard source.hasPrefix("s3://") else { throw Self.wrong("'\(source)' is no s3://BUCKET/PREFIX") }
        let parts = source.dropFirst(5).split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        bucket = String(parts[0])
        guard (1...255).contains(bucket.utf8.count), bucket.utf8.allSatisfy(Self.isBucketByte) else {
            throw Self.wrong("'\(bucket)' cannot be the name of a bucket")
        }
        var prefix = parts.count > 1 ? String(parts[1]) : ""
        while prefix.hasSuffix("/") { prefix.removeLast() }
        guard prefix.split(separator: "/", omittingEmptySubsequences: false).allSatisfy({ $0 != "." && $0 != ".." })
        else { throw Self.wrong("'\(prefix)' cannot be a prefix: it has a '.' or '..' in it") }
        self.prefix = prefix.isEmpty ? "" : prefix + "/"
        if let endpoint {
            let text = endpoint.contains("://") ? endpoint : "https://\(endpoint)"
            guard let url = HTTPURL(text), url.query == nil else {
                throw Self.wrong(
                    AddressPassword.isIn(text)
                        ? "an endpoint has no password" : "'\(endpoint)' cannot be an endpoint")
            }
            self.endpoint = url
        } else {
            self.endpoint = nil
        }
        self.region = region ?? "us-east-1"
        guard Self.isRegion(self.region) else { throw Self.wrong("'\(self.region)' cannot be a region") }
        self.usesHostNames = usesHostNames ?? (self.endpoint == nil && Self.isHostLabel(bucket))
    }

    /// Whether a text can be the name of a region: it becomes a part of a host's name, and of each signature.
    static func isRegion(_ text: String) -> Bool {
        (1...64).contains(text.utf8.count)
            && text.utf8.allSatisfy { isBucketByte($0) && $0 != UInt8(ascii: ".") }
    }

    private static func wrong(_ message: String) -> FileProviderError { FileProviderError(.providerNotFound, message) }

    private static func isBucketByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        default: "-._".utf8.contains(byte)
        }
    }

    /// A host name with another dot would not match the certificate.
    private static func isHostLabel(_ bucket: String) -> Bool {
        bucket.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x7A).contains($0) || $0 == UInt8(ascii: "-") }
    }

    /// The address of a key, or of the bucket.
    ///
    /// - Parameters:
    ///   - key: whole, with the prefix; nil for the bucket.
    ///   - query: pairs that are not encoded yet.
    func url(of key: String?, query: [(String, String)] = []) -> HTTPURL {
        var url = endpoint ?? HTTPURL(isSecure: true, host: amazonHost)
        var path = url.path
        while path.hasSuffix("/") { path.removeLast() }
        if usesHostNames { url.host = "\(bucket).\(url.host)" } else { path += "/\(bucket)" }
        path += "/" + PercentEncoding.encode(key ?? "", keeping: "/")
        if key == nil, !usesHostNames { path.removeLast() }
        url.path = path
        url.query =
            query.isEmpty
            ? nil
            : query.map { "\(PercentEncoding.encode($0))=\(PercentEncoding.encode($1))" }.sorted().joined(
                separator: "&")
        return url
    }

    private var amazonHost: String {
        region.hasPrefix("cn-") ? "s3.\(region).amazonaws.com.cn" : "s3.\(region).amazonaws.com"
    }
}
