import FileProvider
import ProviderDescriptors

/// Makes the providers of `sftp://` sources.
package struct SFTPProviderFactory: ProviderFactory {
    package init() {}

    package var descriptor: ProviderDescriptor { .sftp }

    package func make(
        for manager: any FileProviderManager, _ settings: ProviderSettings, findings: ProviderFindings?
    ) throws -> any FileProviderReplicatedExtension {
        try SFTPProvider.make(for: manager, environment: settings.environment)
    }

    package func probe(_ source: String, _ settings: ProviderSettings) async throws -> ProviderFindings? {
        try await SFTPProvider.tryOut(source, environment: settings.environment())
        return nil
    }
}
