import Daemon
import FileProvider
import FileProviderTesting
import Logging
import Replica
import SystemPackage
import TestSupport
import Testing

/// A mount whose remote is in memory, so that a test decides what the remote does and sees what it is asked. The mount is
/// touched by other processes only: when something goes wrong they hang, and not the tests.
struct ProvidedMount {
    let provider: InMemoryProvider
    let host: DomainHost
    let path: FilePath

    enum Listed { case root, everything }

    /// A path in the mount.
    subscript(_ name: String) -> String { path.appending(name).string }

    /// Mounts, runs the test, and unmounts whatever the test did.
    ///
    /// - Parameters:
    ///   - mounted: how it is mounted.
    ///   - listed: what a process lists before the test.
    ///   - build: makes the remote.
    static func run(
        options: InMemoryProvider.Options = InMemoryProvider.Options(),
        mounted: DomainOptions = DomainOptions(), listing listed: Listed? = nil, _ build: (inout RemoteTree) -> Void,
        _ test: (ProvidedMount) async throws -> Void
    ) async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let provider = InMemoryProvider(options: options)
        provider.change(build)
        try await run(provider: provider, mounted: mounted, in: directory) { mount in
            try await mount.firstRoundIsOver()
            switch listed {
            case .root: _ = try await Command.run("ls", mount.path.string)
            case .everything: _ = try await Command.run("ls", "-R", mount.path.string)
            case nil: break
            }
            try await test(mount)
        }
    }

    /// Mounts a provider with the replica that a directory holds.
    static func run(
        provider: InMemoryProvider, mounted: DomainOptions = DomainOptions(), in directory: TemporaryDirectory,
        _ test: (ProvidedMount) async throws -> Void
    ) async throws {
        let mountpoint = try directory.makeDirectory("mount")
        var logger = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
        logger.logLevel = .critical
        let host = try DomainHost(
            domain: FileProviderDomain(identifier: "test", source: "memory"), directory: directory["replica"],
            mountpoint: mountpoint, options: mounted, logger: logger
        ) { manager in
            provider.attach(manager)
            return provider
        }
        try await withCleanUp({ await end(host, provider) }) {
            try await test(ProvidedMount(provider: provider, host: host, path: mountpoint))
        }
        #expect(!host.isMounted)
    }

    /// Waits for the first round of a new domain. It begins with the mount and lists again whatever was listed before it, so it would be
    /// seen in the calls that a test counts, and meet the faults that are made for others.
    private func firstRoundIsOver() async throws {
        // It stores the anchor after its last call.
        _ = try await eventually { try host.replica.database.bytes(of: .syncAnchor) != nil }
    }

    /// Reimports items, as the provider would ask for it.
    func reimport(below identifier: ItemIdentifier) async throws {
        try await #require(provider.manager).reimportItems(below: identifier)
    }

    private static func end(_ host: DomainHost, _ provider: InMemoryProvider) async {
        provider.faults.clear()
        await host.stop()
    }
}

extension DomainHost {
    func item(for identifier: ItemIdentifier) throws -> FileProviderItem {
        if let item = try replica.database.describe(identifier) { return item }
        throw FileProviderError(.noSuchItem, itemIdentifier: identifier)
    }
}

extension RemoteTree {
    /// A file's content as text; nil for what is not there.
    func text(at path: String) -> String? {
        guard case .bytes(let bytes) = identifier(at: path).flatMap({ content(of: $0) }) else { return nil }
        return String(decoding: bytes, as: UTF8.self)
    }
}
