import FileProvider
import SystemPackage

/// The remote of one check: initially empty, with a way to change it without the provider. Paths are names from its
/// root, separated by slashes.
public protocol RemoteUnderTest: Sendable {
    /// The domain with this remote as its source.
    var domain: FileProviderDomain { get }
    /// An existing directory for the provider's files, used by this remote only.
    var stateDirectory: FilePath { get }

    /// Creates an instance of the provider.
    func makeProvider(for manager: any FileProviderManager) async throws -> any FileProviderReplicatedExtension

    func makeDirectory(_ path: String) async throws
    /// Creates or replaces a file.
    func write(_ bytes: [UInt8], to path: String) async throws
    func rename(_ path: String, to newPath: String) async throws
    /// Deletes an item recursively.
    func delete(_ path: String) async throws

    /// Shares an item, as its owner would on the remote.
    ///
    /// - Returns: false if the remote does not support sharing.
    func share(_ path: String) async throws -> Bool

    /// Removes the remote at the end of the check, also after a failure.
    func dispose() async
}

extension RemoteUnderTest {
    public func share(_ path: String) async throws -> Bool { false }
}
