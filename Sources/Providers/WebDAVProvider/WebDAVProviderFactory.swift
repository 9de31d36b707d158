import FileProvider
import HTTPTransport
import ProviderDescriptors

/// Makes the providers of `webdav://` and `webdavs://` sources.
package struct WebDAVProviderFactory: ProviderFactory {
    package init() {}

    package var descriptor: ProviderDescriptor { .webDAV }

    package func make(
        for manager: any FileProviderManager, _ settings: ProviderSettings, findings: ProviderFindings?
    ) throws -> any FileProviderReplicatedExtension {
        try WebDAVProvider.make(
            for: manager, configuration: configuration(settings), findings: findings as? WebDAVProvider.Findings,
            credentials: { WebDAVCredentials(settings.secrets()) }, logger: settings.logger)
    }

    package func probe(_ source: String, _ settings: ProviderSettings) async throws -> ProviderFindings? {
        try await WebDAVProvider.tryOut(
            source, configuration: configuration(settings), credentials: { WebDAVCredentials(settings.secrets()) },
            logger: settings.logger)
    }

    private func configuration(_ settings: ProviderSettings) -> HTTPTransport.Configuration {
        var configuration = HTTPTransport.Configuration()
        configuration.environment = settings.environment()
        return configuration
    }
}

extension WebDAVCredentials {
    fileprivate init?(_ secrets: [String: String]) {
        guard let password = secrets["password"] else { return nil }
        self.init(user: secrets[ProviderOption.userName] ?? "", password: password)
    }
}
