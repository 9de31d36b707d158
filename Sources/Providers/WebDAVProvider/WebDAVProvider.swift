import FileProvider
import HTTPTransport
import Logging
import PathAddressing
import SystemPackage

/// The provider for collections on WebDAV servers.
package enum WebDAVProvider {
    /// What was found out about a server by trying it out, and has to be known before it is asked again.
    package struct Findings: Hashable, Sendable {
        var trashBin: TrashBin.Kind?
    }

    /// Makes the provider of a domain. Asks nothing of the server.
    ///
    /// - Parameters:
    ///   - findings: of a server that was just tried out.
    ///   - credentials: what was given for the domain; without any `~/.netrc` is looked at. Called whenever the server
    ///     wants credentials.
    /// - Throws: `providerNotFound` for a source that is none.
    package static func make(
        for manager: any FileProviderManager, configuration: HTTPTransport.Configuration? = nil,
        findings: Findings? = nil, credentials: @escaping @Sendable () -> WebDAVCredentials?, logger: Logger
    ) throws -> PathAddressedProvider {
        let remote = try remote(
            for: manager, configuration: configuration, findings: findings, credentials: credentials, logger: logger)
        return PathAddressedProvider(remote: remote, manager: manager)
    }

    /// Connects to a server, and leaves it again.
    ///
    /// - Throws: what keeps the source from being mounted, in words for the user.
    @discardableResult
    package static func tryOut(
        _ source: String, configuration: HTTPTransport.Configuration? = nil,
        credentials: @escaping @Sendable () -> WebDAVCredentials?, logger: Logger
    ) async throws -> Findings {
        let source = try WebDAVSource(source)
        var settings = configuration ?? HTTPTransport.Configuration()
        let environment = settings.environment
        // Somebody waits.
        settings.retries.attempts = 2
        let remote = WebDAVRemote(
            source: source, transport: HTTPTransport(settings, logger: logger), store: .temporary,
            spoolDirectory: "/nonexistent",
            credentials: {
                credentials()
                    ?? Netrc.credentials(for: source.url.host, user: source.user, environment: environment)
            },
            report: { _ in })
        do {
            try await remote.connect()
        } catch {
            await remote.close()
            throw error
        }
        await remote.close()
        return Findings(trashBin: remote.trashBins.bin?.kind)
    }

    /// The remote alone.
    package static func remote(
        for manager: any FileProviderManager, configuration: HTTPTransport.Configuration? = nil,
        findings: Findings? = nil, credentials: @escaping @Sendable () -> WebDAVCredentials?, logger: Logger
    ) throws -> WebDAVRemote {
        let source = try WebDAVSource(manager.domain.source)
        var settings = configuration ?? HTTPTransport.Configuration()
        settings.connections = WebDAVRemote.concurrentCalls
        let environment = settings.environment
        return WebDAVRemote(
            source: source, transport: HTTPTransport(settings, logger: logger),
            store: ReportingStore(of: manager), spoolDirectory: manager.stateDirectory, findings: findings,
            isReadOnly: manager.domain.isReadOnly,
            credentials: {
                credentials()
                    ?? Netrc.credentials(for: source.url.host, user: source.user, environment: environment)
            },
            report: { manager.report($0) })
    }
}
