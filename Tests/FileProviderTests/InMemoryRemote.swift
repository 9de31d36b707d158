import FileProvider
import FileProviderTesting
import SystemPackage

/// A remote in memory, as the conformance suite wants it: instances of the provider come and go, the remote stays.
final class InMemoryRemote: RemoteUnderTest {
    let domain = FileProviderDomain(identifier: "test", source: "memory")
    let stateDirectory: FilePath = "/nonexistent"
    private let provider: InMemoryProvider

    init(options: InMemoryProvider.Options) {
        provider = InMemoryProvider(options: options)
    }

    func makeProvider(for manager: any FileProviderManager) async throws -> any FileProviderReplicatedExtension {
        provider.attach(manager)
        return provider
    }

    func makeDirectory(_ path: String) async throws {
        try provider.change { tree in
            let (parent, name) = try Self.place(path, in: tree)
            tree.addDirectory(name, in: parent)
        }
    }

    func write(_ bytes: [UInt8], to path: String) async throws {
        try provider.change { tree in
            if let known = tree.identifier(at: path) { return tree.write(.bytes(bytes), to: known) }
            let (parent, name) = try Self.place(path, in: tree)
            tree.addFile(name, in: parent, content: .bytes(bytes))
        }
    }

    func rename(_ path: String, to newPath: String) async throws {
        try provider.change { tree in
            let (parent, name) = try Self.place(newPath, in: tree)
            tree.move(try Self.known(path, in: tree), to: parent, as: name)
        }
    }

    func delete(_ path: String) async throws {
        try provider.change { tree in tree.delete(try Self.known(path, in: tree)) }
    }

    func share(_ path: String) async throws -> Bool {
        try provider.change { tree in tree.share(try Self.known(path, in: tree)) }
        return true
    }

    func dispose() async {}

    private static func known(_ path: String, in tree: RemoteTree) throws -> ItemIdentifier {
        guard let identifier = tree.identifier(at: path) else { throw ConformanceFailure("no '\(path)'") }
        return identifier
    }

    private static func place(_ path: String, in tree: RemoteTree) throws -> (ItemIdentifier, String) {
        let names = path.split(separator: "/").map(String.init)
        return (try known(names.dropLast().joined(separator: "/"), in: tree), names.last ?? "")
    }
}
