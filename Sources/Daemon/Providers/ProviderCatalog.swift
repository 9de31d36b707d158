import Control
import DirectoryProvider
import FileProvider
import Foundation
import Logging
import ProgramProvider
import ProviderDescriptors
import RcloneProvider
import S3Provider
import SFTPProvider
import WebDAVProvider

/// Maps sources to providers. A new kind of remote is a line in ``factories`` and its descriptor; no other code knows the kinds.
struct ProviderCatalog: Sendable {
    let credentials: CredentialStore
    /// The values of options for all domains of a kind, from the configuration file, by the descriptor's name.
    let defaults: [String: [String: String]]
    /// The daemon's.
    let stateDirectory: String
    let logger: Logger

    static let factories: [any ProviderFactory] = [
        DirectoryProviderFactory(),
        WebDAVProviderFactory(),
        S3ProviderFactory(),
        SFTPProviderFactory(),
        RcloneProviderFactory(),
        TarArchiveFactory(),
        ProgramProviderFactory(),
    ]

    /// Creates the provider of a domain, without network access.
    ///
    /// - Parameter findings: what ``tryOut(_:_:given:)`` has returned, if it was called.
    /// - Throws: `providerNotFound` for an unknown kind of source; the provider's errors.
    func provider(
        for manager: any FileProviderManager, _ options: DomainOptions, _ findings: ProviderFindings? = nil
    ) throws -> any FileProviderReplicatedExtension {
        let domain = manager.domain
        let factory = try factory(of: domain.source)
        let credentials = credentials
        return try factory.make(
            for: manager,
            settings(of: factory, options, domain) { credentials.credentials(of: domain.identifier) },
            findings: findings)
    }

    /// Connects to a remote once, so that `yonder mount` can report an unknown host or a wrong password.
    ///
    /// - Parameter given: the domain's credentials.
    /// - Returns: what was detected about the remote.
    /// - Throws: the reason, in a sentence for the user.
    @discardableResult
    func tryOut(
        _ domain: FileProviderDomain, _ options: DomainOptions, given: GivenCredentials?
    ) async throws -> ProviderFindings? {
        let factory = try factory(of: domain.source)
        if let mistake = factory.descriptor.mistake(inSecrets: (given?.secrets ?? [:]).keys) {
            throw FileProviderError(.notAuthenticated, mistake)
        }
        return try await factory.probe(domain.source, settings(of: factory, options, domain) { given })
    }

    /// Verifies the options of a remote.
    ///
    /// - Throws: `usage` for a value or an option that the source does not take.
    static func check(_ options: DomainOptions, of source: String) throws(ControlError) {
        guard let mistake = ProviderDescriptor.serving(source)?.mistake(in: options.remote ?? [:]) else { return }
        throw ControlError(.usage, mistake, path: source)
    }

    /// Environment variables that replace each other as a whole.
    static func identityVariables(of source: String) -> Set<String> {
        ProviderDescriptor.serving(source)?.identity?.all ?? []
    }

    private func factory(of source: String) throws(FileProviderError) -> any ProviderFactory {
        let descriptor = ProviderDescriptor.serving(source)
        if let factory = Self.factories.first(where: { $0.descriptor == descriptor }) { return factory }
        throw FileProviderError(
            .providerNotFound,
            "no provider serves '\(source)': a source is \(ProviderDescriptor.allForms); 'yonder providers' lists all")
    }

    private func settings(
        of factory: any ProviderFactory, _ options: DomainOptions, _ domain: FileProviderDomain,
        _ kept: @escaping @Sendable () -> GivenCredentials?
    ) -> ProviderSettings {
        var logger = logger
        logger[metadataKey: "domain"] = "\(domain.identifier)"
        return ProviderSettings(
            options: (defaults[factory.descriptor.name] ?? [:]).merging(options.remote ?? [:]) { $1 },
            secrets: { kept()?.secrets ?? [:] },
            // Credentials, certificates and proxies of the shell that started the daemon are not used, because they may belong
            // to another domain.
            environment: { [stateDirectory] in
                DaemonEnvironment.of(ProcessInfo.processInfo.environment).merging(kept()?.variables ?? [:]) { $1 }
                    .merging([LeftPrograms.variable: stateDirectory]) { $1 }
            }, isReadOnly: options.isReadOnly, logger: logger)
    }
}
