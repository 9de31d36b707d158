import FileProvider
import SystemPackage

/// A remote of its own for one check, empty at the beginning, with a way to change it behind the provider's back. Paths
/// are names from its root, separated by slashes.
public protocol RemoteUnderTest: Sendable {
    /// The domain whose source is this remote.
    var domain: FileProviderDomain { get }
    /// A folder for what the provider remembers; there, and this remote's own.
    var stateDirectory: FilePath { get }

    /// A new instance of the provider.
    func makeProvider(for manager: any FileProviderManager) async throws -> any FileProviderReplicatedExtension

    func makeDirectory(_ path: String) async throws
    /// Makes a file, or gives one new content.
    func write(_ bytes: [UInt8], to path: String) async throws
    func rename(_ path: String, to newPath: String) async throws
    /// Deletes an item with all below it.
    func delete(_ path: String) async throws

    /// Gives others access to an item, as its owner would on the remote.
    ///
    /// - Returns: false where the remote has no such thing.
    func share(_ path: String) async throws -> Bool

    /// The check is over, however it ended.
    func dispose() async
}

extension RemoteUnderTest {
    public func share(_ path: String) async throws -> Bool { false }
}
