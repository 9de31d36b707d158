import Foundation

/// The environment variables for certificates, proxies and credential files. They are sent with a mount command and
/// stored with the domain.
enum RemoteEnvironment {
    /// - Returns: the variables that are set. An empty one removes a stored one.
    static func variables(
        for source: String, in environment: [String: String] = ProcessInfo.processInfo.environment
    ) -> [String: String] {
        guard schemes.contains(where: source.hasPrefix) else { return [:] }
        var variables = environment.filter { plain.contains($0.key) || files.contains($0.key) }
        // Made absolute, because the daemon has another working directory.
        for name in files {
            if let path = variables[name], !path.isEmpty { variables[name] = AbsolutePath.resolving(path) }
        }
        return variables
    }

    private static let schemes = ["s3://", "sftp://", "webdav://", "webdavs://"]
    private static let plain: Set<String> = [
        "http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY",
        "SSH_AUTH_SOCK",
    ]
    private static let files: Set<String> = [
        "SSL_CERT_FILE", "SSL_CERT_DIR", "NETRC", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_CA_BUNDLE",
    ]
}
