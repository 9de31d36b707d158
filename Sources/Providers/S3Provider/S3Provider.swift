import FileProvider
import Foundation
import HTTPTransport
import Logging
import PathAddressing

/// A bucket, or what lies below a prefix of it.
package enum S3Provider {
    /// What the user said of a bucket. Nothing of it is secret.
    package struct Options: Sendable, Hashable {
        /// The server, when it is not Amazon's: `https://HOST:PORT`.
        package var endpoint: String?
        package var region: String?
        /// In `~/.aws`.
        package var profile: String?

        package init(endpoint: String? = nil, region: String? = nil, profile: String? = nil) {
            self.endpoint = endpoint
            self.region = region
            self.profile = profile
        }
    }

    /// Whether a source is a bucket's.
    package static func serves(_ source: String) -> Bool { source.hasPrefix("s3://") }

    /// Makes the provider. Nothing is asked of the server yet.
    ///
    /// - Parameter environment: for `AWS_*`, proxies, and where certificates are; looked at again when credentials have run
    ///   out.
    /// - Throws: `providerNotFound` for a source or an option that cannot be right.
    package static func make(
        _ options: Options, for manager: any FileProviderManager,
        environment: @escaping @Sendable () -> [String: String], logger: Logger
    ) throws -> PathAddressedProvider {
        PathAddressedProvider(
            remote: try remote(options, for: manager, environment: environment, logger: logger), manager: manager)
    }

    /// Asks the server once, with what a mount would ask it.
    ///
    /// - Throws: what is wrong: no such bucket, credentials that are refused, a server that is not there.
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
        settings: S3Remote.Settings = S3Remote.Settings()
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
