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
    ///
    /// - Throws: an error if the provider cannot be created; the check then fails.
    func makeProvider(for manager: any FileProviderManager) async throws -> any FileProviderReplicatedExtension

    /// Creates a directory in an existing one.
    ///
    /// - Throws: any error, as the other changes of the remote; the check then fails.
    func makeDirectory(_ path: String) async throws
    /// Creates a file, or replaces its content: the file stays the same item.
    ///
    /// - Throws: any error.
    func write(_ bytes: [UInt8], to path: String) async throws
    /// Renames or moves an item.
    ///
    /// - Throws: any error.
    func rename(_ path: String, to newPath: String) async throws
    /// Deletes an item recursively.
    ///
    /// - Throws: any error.
    func delete(_ path: String) async throws

    /// Shares an item, as its owner would on the remote.
    ///
    /// - Returns: false (the default) if the remote does not support sharing.
    /// - Throws: any error.
    func share(_ path: String) async throws -> Bool

    /// Removes the remote at the end of the check, also after a failure.
    func dispose() async
}

extension RemoteUnderTest {
    public func share(_ path: String) async throws -> Bool { false }
}
