import FileProvider
import ProviderDescriptors

/// Makes the providers of `s3://` sources.
package struct S3ProviderFactory: ProviderFactory {
    package init() {}

    package var descriptor: ProviderDescriptor { .s3 }

    package func make(
        for manager: any FileProviderManager, _ settings: ProviderSettings, findings: ProviderFindings?
    ) throws -> any FileProviderReplicatedExtension {
        try S3Provider.make(
            S3Provider.Options(settings.options), for: manager, environment: settings.environment,
            logger: settings.logger)
    }

    package func probe(_ source: String, _ settings: ProviderSettings) async throws -> ProviderFindings? {
        try await S3Provider.tryOut(
            source, S3Provider.Options(settings.options), environment: settings.environment(), logger: settings.logger)
        return nil
    }
}

extension S3Provider.Options {
    fileprivate init(_ values: [String: String]) {
        self.init(endpoint: values["endpoint"], region: values["region"], profile: values["profile"])
    }
}
