import FileProvider
import FileProviderPaths
import ProviderDescriptors

/// Makes the providers of `sftp://` sources, which are reached through the user's own `ssh`.
package struct SFTPProviderFactory: ProviderFactory {
    package init() {}

    package var descriptor: ProviderDescriptor { .sftp }

    package func make(
        for manager: any FileProviderManager, _ settings: ProviderSettings, findings: ProviderFindings?
    ) throws -> any FileProviderReplicatedExtension {
        PathAddressedProvider(
            remote: try Self.remote(manager.domain.source, settings.environment), manager: manager)
    }

    package func probe(_ source: String, _ settings: ProviderSettings) async throws -> ProviderFindings? {
        let environment = settings.environment()
        let remote = try Self.remote(source) { environment }
        let entry = try await closing(remote.close) { try await remote.entry(at: .root) }
        guard entry.kind == .directory else { throw FileProviderError(.noSuchItem, "the path is no directory") }
        return nil
    }

    /// - Parameter environment: of `ssh`, looked up for each connection. `YONDER_SSH` is a program in its place.
    static func remote(
        _ source: String, _ environment: @escaping @Sendable () -> [String: String]
    ) throws -> SFTPRemote {
        let source = try SFTPSource(source)
        return SFTPRemote(root: source.path) {
            var variables = environment()
            // What ssh says is read here.
            variables["LC_ALL"] = "C"
            return try await SFTPSession.open(
                [variables["YONDER_SSH"] ?? "ssh"] + source.arguments, environment: variables, host: source.host)
        }
    }
}
