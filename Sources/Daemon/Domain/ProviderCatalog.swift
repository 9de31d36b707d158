import Control
import DirectoryProvider
import FileProvider
import Foundation
import HTTPTransport
import Logging
import PathAddressing
import S3Provider
import SystemPackage
import TarArchive
import WebDAVProvider

/// Which provider serves which source: the one place that knows them all.
struct ProviderCatalog: Sendable {
    let credentials: CredentialStore
    let logger: Logger

    /// What trying a remote out has shown.
    typealias Findings = WebDAVProvider.Findings

    /// Makes the provider for a domain. Asks nothing of a network.
    ///
    /// - Parameter findings: of a remote that was just tried out.
    /// - Throws: `providerNotFound` for a source that nobody serves; what the provider says.
    func provider(
        for manager: any FileProviderManager, _ options: DomainOptions, _ findings: Findings? = nil
    ) throws -> any FileProviderReplicatedExtension {
        let domain = manager.domain
        if domain.source.utf8.first == UInt8(ascii: "/") {
            return try DirectoryProvider(root: FilePath(domain.source), manager: manager)
        }
        if WebDAVSource.isOne(domain.source) {
            return try WebDAVProvider.make(
                for: manager, findings: findings, credentials: { credentials.webDAV(domain.identifier) },
                logger: logger)
        }
        if S3Provider.serves(domain.source) {
            return try S3Provider.make(
                S3Provider.Options(options), for: manager,
                environment: { Self.environment(credentials.credentials(of: domain.identifier)) }, logger: logger)
        }
        if domain.source.utf8.starts(with: TarArchiveProvider.scheme.utf8) {
            return try TarArchiveProvider(manager: manager)
        }
        throw Self.noProvider(domain.source)
    }

    /// This process's environment with the variables of the shell that mounted in place of its own.
    private static func environment(_ given: GivenCredentials?) -> [String: String] {
        let own = ProcessInfo.processInfo.environment
        guard let variables = given?.variables else { return own }
        return own.filter { !$0.key.hasPrefix("AWS_") }.merging(variables) { $1 }
    }

    /// Connects to a remote once, so that whoever mounts it hears what is wrong: an unknown host, a wrong password.
    ///
    /// - Parameter given: credentials that are not kept yet.
    /// - Returns: what its provider has to know before it can ask.
    /// - Throws: what is wrong, in a sentence for the user.
    @discardableResult
    func tryOut(
        _ domain: FileProviderDomain, _ options: DomainOptions, given: GivenCredentials?
    ) async throws -> Findings? {
        if let given, given.variables == nil, !WebDAVSource.isOne(domain.source) {
            throw FileProviderError(
                .notAuthenticated, "nobody asks for a password there: --password-stdin is for webdav:// and webdavs://")
        }
        if S3Provider.serves(domain.source) {
            try await S3Provider.tryOut(
                domain.source, S3Provider.Options(options),
                environment: Self.environment(given ?? credentials.credentials(of: domain.identifier)), logger: logger)
            return nil
        }
        guard WebDAVSource.isOne(domain.source) else { return nil }
        return try await WebDAVProvider.tryOut(
            domain.source,
            credentials: {
                given.map { WebDAVCredentials(user: $0.user, password: $0.password) }
                    ?? credentials.webDAV(domain.identifier)
            }, logger: logger)
    }

    private static func noProvider(_ source: String) -> FileProviderError {
        FileProviderError(
            .providerNotFound,
            "no provider serves '\(source)': a source is the absolute path of a folder, webdav://HOST/PATH, "
                + "webdavs://HOST/PATH, s3://BUCKET/PREFIX, or tar:// and the path of an archive")
    }
}

extension S3Provider.Options {
    fileprivate init(_ options: DomainOptions) {
        let place = options.objectStore
        self.init(endpoint: place?.endpoint, region: place?.region, profile: place?.profile)
    }
}

extension CredentialStore {
    fileprivate func webDAV(_ domain: String) -> WebDAVCredentials? {
        credentials(of: domain).map { WebDAVCredentials(user: $0.user, password: $0.password) }
    }
}
