import FileProvider
import Logging

package protocol ProviderFactory: Sendable {
    var descriptor: ProviderDescriptor { get }

    /// Makes the provider of a domain. Sends no request.
    ///
    /// - Parameter findings: what ``probe(_:_:)`` has returned, if it was called.
    /// - Throws: `providerNotFound` for an invalid source or option; the provider's errors.
    func make(
        for manager: any FileProviderManager, _ settings: ProviderSettings, findings: ProviderFindings?
    ) throws -> any FileProviderReplicatedExtension

    /// Connects to a remote once, so that `yonder mount` can report an unknown host or a wrong password.
    ///
    /// - Returns: what was detected about the remote.
    /// - Throws: the reason, in a sentence for the user.
    func probe(_ source: String, _ settings: ProviderSettings) async throws -> ProviderFindings?
}

extension ProviderFactory {
    package func probe(_ source: String, _ settings: ProviderSettings) async throws -> ProviderFindings? { nil }
}

/// What a probe has detected about a remote. Only the factory that made it knows its type.
package typealias ProviderFindings = any Sendable

/// What the user has given for a remote.
package struct ProviderSettings: Sendable {
    /// The values of the descriptor's options, without the secret ones.
    package var options: [String: String]
    /// Looks the secrets up by the names of their options, and the user's name under ``ProviderOption/userName``. They may
    /// change while the domain is mounted.
    package var secrets: @Sendable () -> [String: String]
    /// The environment of the domain: the daemon's own, and the variables of the shell that mounted it.
    package var environment: @Sendable () -> [String: String]
    /// Whether the domain is mounted read-only, as ``FileProviderDomain/isReadOnly`` says: a probe has no domain.
    package var isReadOnly: Bool
    package var logger: Logger

    package init(
        options: [String: String], secrets: @escaping @Sendable () -> [String: String],
        environment: @escaping @Sendable () -> [String: String], isReadOnly: Bool = false, logger: Logger
    ) {
        self.options = options
        self.secrets = secrets
        self.environment = environment
        self.isReadOnly = isReadOnly
        self.logger = logger
    }
}
