import Foundation

/// The variables of this shell that say how a server is reached: certificates, proxies, and where passwords are looked up.
/// They go to the daemon with the command that mounts, and are kept with the domain.
enum RemoteEnvironment {
    /// - Returns: the variables that are set, those that are empty included: they take back what was kept.
    static func variables(
        for source: String, in environment: [String: String] = ProcessInfo.processInfo.environment
    ) -> [String: String] {
        guard schemes.contains(where: source.hasPrefix) else { return [:] }
        var variables = environment.filter { plain.contains($0.key) || files.contains($0.key) }
        // The daemon has another working directory.
        for name in files {
            if let path = variables[name], !path.isEmpty { variables[name] = AbsolutePath.resolving(path) }
        }
        return variables
    }

    private static let schemes = ["s3://", "webdav://", "webdavs://"]
    private static let plain: Set<String> = [
        "http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY",
    ]
    private static let files: Set<String> = [
        "SSL_CERT_FILE", "SSL_CERT_DIR", "NETRC", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_CA_BUNDLE",
    ]
}
