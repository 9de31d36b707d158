import FileProvider
import ProviderDescriptors

package struct S3ProviderFactory: ProviderFactory {
    package init() {}

    package var descriptor: ProviderDescriptor { .s3 }

    package func make(
        for manager: any FileProviderManager, _ settings: ProviderSettings, findings: ProviderFindings?
    ) throws -> any FileProviderReplicatedExtension {
        try S3Provider.make(
            S3Provider.Options(settings.options), for: manager, environment: settings.environmentWithKeys,
            logger: settings.logger)
    }

    package func probe(_ source: String, _ settings: ProviderSettings) async throws -> ProviderFindings? {
        try await S3Provider.tryOut(
            source, S3Provider.Options(settings.options), environment: settings.environmentWithKeys(),
            logger: settings.logger)
        return nil
    }
}

extension S3Provider.Options {
    fileprivate init(_ values: [String: String]) {
        // A profile comes before the keys of the environment, but not before those of the options.
        let profile = values["access-key"] == nil ? values["profile"] : nil
        self.init(endpoint: values["endpoint"], region: values["region"], profile: profile)
    }
}

extension ProviderSettings {
    /// The environment, in which the keys of the options replace those of the shell.
    fileprivate var environmentWithKeys: @Sendable () -> [String: String] {
        guard let key = options["access-key"], !key.isEmpty else { return environment }
        return { [environment, secrets] in
            var variables = environment()
            variables["AWS_ACCESS_KEY_ID"] = key
            variables["AWS_SECRET_ACCESS_KEY"] = secrets()["secret-key"]
            variables["AWS_SESSION_TOKEN"] = nil
            return variables
        }
    }
}
