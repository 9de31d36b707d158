import FileProvider
import FileProviderPaths
import HTTPTransport
import Logging
import SystemPackage

package enum WebDAVProvider {
    /// What was detected about a server before its domain exists.
    package struct Findings: Hashable, Sendable {
        var trashBin: TrashBin.Kind?
    }

    /// Makes the provider of a domain, without a request.
    ///
    /// - Parameters:
    ///   - findings: the result of ``tryOut(_:configuration:credentials:logger:)``, if it was called.
    ///   - credentials: the credentials of the domain, looked up whenever the server requires them; without any, those in
    ///     `~/.netrc` are used.
    /// - Throws: `providerNotFound` for an invalid source.
    package static func make(
        for manager: any FileProviderManager, configuration: HTTPTransport.Configuration? = nil,
        findings: Findings? = nil, credentials: @escaping @Sendable () -> WebDAVCredentials?, logger: Logger
    ) throws -> PathAddressedProvider {
        var settings = configuration ?? HTTPTransport.Configuration()
        settings.connections = WebDAVServer.concurrentCalls
        let remote = try remote(
            manager.domain.source, settings, store: ReportingStore(of: manager),
            spoolDirectory: manager.stateDirectory, isReadOnly: manager.domain.isReadOnly, credentials, logger,
            report: { manager.report($0) })
        if let findings { remote.server.trash.store.note(findings.trashBin) }
        return PathAddressedProvider(remote: remote, manager: manager)
    }

    /// Connects to a server and disconnects again.
    ///
    /// - Throws: why the source cannot be mounted, in words for the user.
    @discardableResult
    package static func tryOut(
        _ source: String, configuration: HTTPTransport.Configuration? = nil,
        credentials: @escaping @Sendable () -> WebDAVCredentials?, logger: Logger
    ) async throws -> Findings {
        var settings = configuration ?? HTTPTransport.Configuration()
        // The user waits for the result.
        settings.retries.attempts = 2
        let remote = try remote(
            source, settings, store: .temporary, spoolDirectory: "/nonexistent", isReadOnly: false, credentials,
            logger, report: { _ in })
        try await closing(remote.close) { try await remote.server.connect() }
        return Findings(trashBin: remote.server.trash.store.kind)
    }

    private static func remote(
        _ source: String, _ settings: HTTPTransport.Configuration, store: ReportingStore, spoolDirectory: FilePath,
        isReadOnly: Bool, _ credentials: @escaping @Sendable () -> WebDAVCredentials?, _ logger: Logger,
        report: @escaping @Sendable (String) -> Void
    ) throws -> WebDAVRemote {
        let source = try WebDAVSource(source)
        let environment = settings.environment
        return WebDAVRemote(
            source: source, transport: HTTPTransport(settings, logger: logger), store: store,
            spoolDirectory: spoolDirectory, isReadOnly: isReadOnly,
            credentials: {
                credentials()
                    ?? Netrc.credentials(for: source.url.host, user: source.user, environment: environment)
            },
            report: report)
    }
}
