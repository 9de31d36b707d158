import FileProvider
import FileProviderPaths
import HTTPTransport
import Logging

/// A bucket, or the keys with a prefix in it.
package enum S3Provider {
    /// The user's options for a bucket. None of them is secret.
    package struct Options: Sendable, Hashable {
        /// The server, if not Amazon's: `https://HOST:PORT`.
        package var endpoint: String?
        package var region: String?
        /// In `~/.aws`.
        package var profile: String?
    }

    /// Makes the provider. Sends no request.
    ///
    /// - Parameter environment: for `AWS_*`, proxies, and the place of certificates; read again when credentials have
    ///   expired.
    /// - Throws: `providerNotFound` for an invalid source or option.
    package static func make(
        _ options: Options, for manager: any FileProviderManager,
        environment: @escaping @Sendable () -> [String: String], logger: Logger
    ) throws -> PathAddressedProvider {
        let remote = try remote(options, for: manager, environment: environment, logger: logger)
        return PathAddressedProvider(remote: remote, manager: manager, ledger: remote.client.ledger)
    }

    /// Sends a mount's first request.
    ///
    /// - Throws: its error: no such bucket, credentials that are refused, an unreachable server.
    package static func tryOut(
        _ source: String, _ options: Options, environment: [String: String], logger: Logger
    ) async throws {
        let client = try client(source, options, environment: { environment }, logger: logger)
        do {
            _ = try await client.list(prefix: client.location.prefix, isFlat: true, limit: 1)
        } catch {
            await client.transport.close()
            throw (error as? S3Failure)?.error ?? error
        }
        await client.transport.close()
    }

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
