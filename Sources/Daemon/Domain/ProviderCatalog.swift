import Control
import DirectoryProvider
import FileProvider
import HTTPTransport
import Logging
import PathAddressing
import SystemPackage
import WebDAVProvider

/// Which provider serves which source: the one place that knows them all.
struct ProviderCatalog: Sendable {
    let credentials: CredentialStore
    let logger: Logger

    /// Makes the provider for a domain. Asks nothing of a network.
    ///
    /// - Throws: `providerNotFound` for a source that nobody serves; what the provider says.
    func provider(for manager: any FileProviderManager) throws -> any FileProviderReplicatedExtension {
        let domain = manager.domain
        if domain.source.utf8.first == UInt8(ascii: "/") {
            return try DirectoryProvider(root: FilePath(domain.source), manager: manager)
        }
        if WebDAVSource.isOne(domain.source) {
            return try WebDAVProvider.make(
                for: manager, credentials: { credentials.webDAV(domain.identifier) }, logger: logger)
        }
        throw Self.noProvider(domain.source)
    }

    /// Connects to a remote once, so that whoever mounts it hears what is wrong: an unknown host, a wrong password.
    ///
    /// - Parameter given: credentials that are not kept yet.
    /// - Throws: what is wrong, in a sentence for the user.
    func tryOut(_ domain: FileProviderDomain, given: GivenCredentials?) async throws {
        guard WebDAVSource.isOne(domain.source) else { return }
        try await WebDAVProvider.tryOut(
            domain.source,
            credentials: {
                given.map { WebDAVCredentials(user: $0.user, password: $0.password) }
                    ?? credentials.webDAV(domain.identifier)
            }, logger: logger)
    }

    private static func noProvider(_ source: String) -> FileProviderError {
        FileProviderError(
            .providerNotFound,
            "no provider serves '\(source)': a source is the absolute path of a folder, webdav://HOST/PATH or "
                + "webdavs://HOST/PATH")
    }
}

extension CredentialStore {
    fileprivate func webDAV(_ domain: String) -> WebDAVCredentials? {
        credentials(of: domain).map { WebDAVCredentials(user: $0.user, password: $0.password) }
    }
}
