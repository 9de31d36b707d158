import FileProvider
import FileProviderPaths

/// A directory on a server that is reached through the user's own `ssh`.
package enum SFTPProvider {
    /// Makes the provider. Starts no program.
    ///
    /// - Parameter environment: of `ssh`, looked up for each connection. `YONDER_SSH` is a program in its place.
    /// - Throws: `providerNotFound` for an invalid source.
    package static func make(
        for manager: any FileProviderManager, environment: @escaping @Sendable () -> [String: String]
    ) throws -> PathAddressedProvider {
        PathAddressedProvider(remote: try remote(manager.domain.source, environment), manager: manager)
    }

    /// Connects to a server, and disconnects again.
    ///
    /// - Throws: why the source cannot be mounted, in words for the user.
    package static func tryOut(_ source: String, environment: [String: String]) async throws {
        let remote = try remote(source) { environment }
        let entry: RemoteEntry
        do {
            entry = try await remote.entry(at: .root)
        } catch {
            await remote.close()
            throw error
        }
        await remote.close()
        guard entry.kind == .directory else { throw FileProviderError(.noSuchItem, "the path is no directory") }
    }

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
