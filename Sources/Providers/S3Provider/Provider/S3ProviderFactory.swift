import FileProvider
import FileProviderPaths
import HTTPTransport
import Logging
import ProviderDescriptors

/// Makes the providers of `s3://` sources: a bucket, or the keys with a prefix in it.
package struct S3ProviderFactory: ProviderFactory {
    /// The user's options for a bucket. None of them is secret.
    struct Options: Sendable, Hashable {
        /// The server, if not Amazon's: `https://HOST:PORT`.
        var endpoint: String?
        var region: String?
        /// In `~/.aws`.
        var profile: String?
    }

    package init() {}

    package var descriptor: ProviderDescriptor { .s3 }

    package func make(
        for manager: any FileProviderManager, _ settings: ProviderSettings, findings: ProviderFindings?
    ) throws -> any FileProviderReplicatedExtension {
        let remote = try Self.remote(
            Options(settings.options), for: manager, environment: settings.environmentWithKeys,
            logger: settings.logger)
        return PathAddressedProvider(remote: remote, manager: manager, ledger: remote.client.ledger)
    }

    package func probe(_ source: String, _ settings: ProviderSettings) async throws -> ProviderFindings? {
        try await Self.tryOut(
            source, Options(settings.options), environment: settings.environmentWithKeys(), logger: settings.logger)
        return nil
    }

    /// Sends a mount's first request.
    ///
    /// - Throws: its error: no such bucket, credentials that are refused, an unreachable server.
    static func tryOut(
        _ source: String, _ options: Options, environment: [String: String], logger: Logger
    ) async throws {
        let client = try client(source, options, environment: { environment }, logger: logger)
        try await closing(client.transport.close) {
            do {
                _ = try await client.list(prefix: client.location.prefix, isFlat: true, limit: 1)
            } catch let failure as S3Failure {
                throw failure.error
            }
        }
    }

    /// - Parameter environment: for `AWS_*`, proxies, and the place of certificates; read again when credentials have
    ///   expired.
    static func remote(
        _ options: Options, for manager: any FileProviderManager,
        environment: @escaping @Sendable () -> [String: String], logger: Logger,
        settings: S3Settings = S3Settings()
    ) throws -> S3Remote {
        let client = try client(
            manager.domain.source, options, environment: environment, logger: logger,
            store: ReportingStore(of: manager))
        return S3Remote(client: client, manager: manager, settings: settings)
    }

    private static func client(
        _ source: String, _ options: Options, environment: @escaping @Sendable () -> [String: String], logger: Logger,
        store: ReportingStore = .temporary
    ) throws -> S3Client {
        let variables = environment()
        let profile = AWSProfile(named: options.profile, environment: variables)
        func said(_ name: String) -> String? { variables[name].flatMap { $0.isEmpty ? nil : $0 } }
        let region =
            options.region ?? said("AWS_REGION") ?? said("AWS_DEFAULT_REGION") ?? profile.settings["region"]
        let endpoint =
            options.endpoint ?? said("AWS_ENDPOINT_URL_S3") ?? said("AWS_ENDPOINT_URL")
            ?? profile.settings["s3.endpoint_url"] ?? profile.settings["endpoint_url"]
        let style: Bool? =
            switch profile.settings["s3.addressing_style"] {
            case "path": false
            case "virtual": true
            default: nil
            }
        let location = try S3Location(source: source, endpoint: endpoint, region: region, usesHostNames: style)
        var configuration = HTTPTransport.Configuration()
        configuration.environment = variables
        configuration.connections = S3Remote.concurrentCalls
        if let bundle = said("AWS_CA_BUNDLE"), said("SSL_CERT_FILE") == nil {
            configuration.environment["SSL_CERT_FILE"] = bundle
        }
        let transport = HTTPTransport(configuration, logger: logger)
        return S3Client(
            location, isRegionKnown: region != nil, profile: options.profile, environment: environment,
            transport: transport, logger: logger, store: store)
    }
}

extension S3ProviderFactory.Options {
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
