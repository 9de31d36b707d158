import Control
import DirectoryProvider
import FileProvider
import Foundation
import HTTPTransport
import Logging
import PathAddressing
import S3Provider
import SFTPProvider
import SystemPackage
import TarArchive
import WebDAVProvider

/// Maps sources to providers. No other code knows the kinds of remotes.
struct ProviderCatalog: Sendable {
    let credentials: CredentialStore
    let logger: Logger

    /// What was detected about a remote.
    typealias Findings = WebDAVProvider.Findings

    /// Creates the provider of a domain, without network access.
    ///
    /// - Parameter findings: what ``tryOut(_:_:given:)`` has returned, if it was called.
    /// - Throws: `providerNotFound` for an unknown kind of source; the provider's errors.
    func provider(
        for manager: any FileProviderManager, _ options: DomainOptions, _ findings: Findings? = nil
    ) throws -> any FileProviderReplicatedExtension {
        let domain = manager.domain
        if domain.source.utf8.first == UInt8(ascii: "/") {
            return try DirectoryProvider(root: FilePath(domain.source), manager: manager)
        }
        if WebDAVSource.isOne(domain.source) {
            let kept = credentials.credentials(of: domain.identifier)
            return try WebDAVProvider.make(
                for: manager, configuration: Self.configuration(kept), findings: findings,
                credentials: { credentials.credentials(of: domain.identifier)?.webDAV }, logger: logger)
        }
        if S3Provider.serves(domain.source) {
            return try S3Provider.make(
                S3Provider.Options(options), for: manager,
                environment: { Self.environment(credentials.credentials(of: domain.identifier)) }, logger: logger)
        }
        if SFTPProvider.serves(domain.source) {
            return try SFTPProvider.make(for: manager) {
                Self.environment(credentials.credentials(of: domain.identifier))
            }
        }
        if domain.source.utf8.starts(with: TarArchiveProvider.scheme.utf8) {
            return try TarArchiveProvider(manager: manager)
        }
        throw Self.noProvider(domain.source)
    }

    /// The environment of a domain: the variables of the shell that mounted it. Credentials, certificates and proxies
    /// of the shell that started the daemon are not used, because they may belong to another domain.
    private static func environment(_ given: GivenCredentials?) -> [String: String] {
        DaemonEnvironment.of(ProcessInfo.processInfo.environment).merging(given?.variables ?? [:]) { $1 }
    }

    private static func configuration(_ given: GivenCredentials?) -> HTTPTransport.Configuration {
        var configuration = HTTPTransport.Configuration()
        configuration.environment = environment(given)
        return configuration
    }

    /// Connects to a remote once, so that `yonder mount` can report an unknown host or a wrong password.
    ///
    /// - Parameter given: the domain's credentials.
    /// - Returns: what was detected about the remote.
    /// - Throws: the reason, in a sentence for the user.
    @discardableResult
    func tryOut(
        _ domain: FileProviderDomain, _ options: DomainOptions, given: GivenCredentials?
    ) async throws -> Findings? {
        if let given, given.hasPassword, !WebDAVSource.isOne(domain.source) {
            throw FileProviderError(
                .notAuthenticated, "the source takes no password: --password-stdin is for webdav:// and webdavs://")
        }
        if S3Provider.serves(domain.source) {
            try await S3Provider.tryOut(
                domain.source, S3Provider.Options(options),
                environment: Self.environment(given), logger: logger)
            return nil
        }
        if SFTPProvider.serves(domain.source) {
            try await SFTPProvider.tryOut(domain.source, environment: Self.environment(given))
            return nil
        }
        guard WebDAVSource.isOne(domain.source) else { return nil }
        return try await WebDAVProvider.tryOut(
            domain.source, configuration: Self.configuration(given), credentials: { given?.webDAV }, logger: logger)
    }

    private static func noProvider(_ source: String) -> FileProviderError {
        FileProviderError(
            .providerNotFound,
            "no provider serves '\(source)': a source is the absolute path of a folder, webdav://HOST/PATH, "
                + "webdavs://HOST/PATH, s3://BUCKET/PREFIX, sftp://HOST/PATH, or tar:// and the path of an archive")
    }
}

extension S3Provider.Options {
    fileprivate init(_ options: DomainOptions) {
        let place = options.objectStore
        self.init(endpoint: place?.endpoint, region: place?.region, profile: place?.profile)
    }
}

extension GivenCredentials {
    fileprivate var webDAV: WebDAVCredentials? {
        hasPassword ? WebDAVCredentials(user: user, password: password) : nil
    }
}
