import Foundation
import SystemPackage
import TestSupport
import Testing

/// A real server behind a line that a test may spoil, and how to mount what it serves.
struct FarRemote: Sendable {
    enum Kind: String, Sendable, CaseIterable, CustomStringConvertible {
        case webDAV, s3, sftp

        var description: String { rawValue }

        /// Whether requests and answers on the line can be told apart.
        var isHTTP: Bool { self != .sftp }

        private var isInstalled: Bool {
            switch self {
            case .webDAV: DAVServer.Kind.apache.program != nil
            case .s3: true
            case .sftp: SSHServer.Kind.openSSH.program != nil
            }
        }

        /// Those whose servers are installed; with YONDER_REMOTE only the one that it names.
        static var installed: [Kind] {
            let chosen = ProcessInfo.processInfo.environment["YONDER_REMOTE"]
            return allCases.filter { $0.isInstalled && (chosen == nil || $0.rawValue == chosen) }
        }
    }

    let kind: Kind
    let relay: Relay
    /// The folder that a WebDAV or SFTP server serves.
    let folder: FilePath?
    let store: ObjectStoreProgram?
    /// As `yonder mount` takes it, with what belongs to it.
    let source: [String]
    let environment: [String: String]

    /// Starts both, runs a test with an installation that has the credentials, and ends both whatever the test does.
    ///
    /// - Parameter server: which one for WebDAV.
    static func run(
        _ kind: Kind, on server: DAVServer.Kind = .apache, milliseconds: Int = 0,
        _ test: (FarRemote, Installation) async throws -> Void
    ) async throws {
        var ends: [() async -> Void] = []
        try await withCleanUp({ for end in ends.reversed() { await end() } }) {
            let remote = try await start(kind, server, milliseconds, &ends)
            try await Installation.run { installation in
                var environment = remote.environment
                environment["HOME"] = installation.directory.path.string
                try await test(remote, installation.with(environment))
            }
        }
    }

    private static func start(
        _ kind: Kind, _ dav: DAVServer.Kind, _ milliseconds: Int, _ ends: inout [() async -> Void]
    ) async throws -> FarRemote {
        switch kind {
        case .webDAV:
            let server = try await DAVServer.start(dav)
            ends.append { await server.stop() }
            let relay = try await Relay(to: server.port, milliseconds: milliseconds)
            ends.append { relay.stop() }
            return FarRemote(
                kind: kind, relay: relay, folder: server.root, store: nil,
                source: ["webdav://127.0.0.1:\(relay.port)/"], environment: ["NETRC": "/nonexistent"])
        case .sftp:
            let server = try await SSHServer.start()
            ends.append { await server.stop() }
            let relay = try await Relay(to: server.port, milliseconds: milliseconds)
            ends.append { relay.stop() }
            try server.connect(to: relay.port)
            return FarRemote(
                kind: kind, relay: relay, folder: server.root, store: nil, source: [server.source],
                environment: server.environment)
        case .s3:
            let store = try await ObjectStoreProgram()
            ends.append { store.stop() }
            let made = try await store.ask("ask -X PUT \"$at/bucket\" && ask -X PUT -d '' \"$at/bucket/top/\"")
            guard made.status == 0, let port = Int(store.endpoint.split(separator: ":").last ?? "") else {
                throw TestFailure("no bucket can be made: \(made.errors)")
            }
            let relay = try await Relay(to: port, milliseconds: milliseconds)
            ends.append { relay.stop() }
            return FarRemote(
                kind: kind, relay: relay, folder: nil, store: store,
                source: [
                    "s3://bucket/top", "--endpoint", "http://127.0.0.1:\(relay.port)", "--region",
                    ObjectStoreProgram.region,
                ],
                environment: [
                    "AWS_ACCESS_KEY_ID": ObjectStoreProgram.accessKey,
                    "AWS_SECRET_ACCESS_KEY": ObjectStoreProgram.secretKey,
                ])
        }
    }

    /// Mounts what is served, and fails the test if that fails.
    ///
    /// - Parameter mountpoint: nil is the installation's.
    func mount(
        _ yonder: Installation, at mountpoint: String? = nil, _ more: String...,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let place = mountpoint ?? yonder.mount.string
        let words = [Installation.program, "mount", source[0], place] + source.dropFirst() + more
        let outcome = try await Command(words, environment: yonder.environment, seconds: 60).run()
        try #require(outcome.status == 0, "\(outcome.errors)", sourceLocation: sourceLocation)
    }

    /// Whether the server has something of a name, whatever the line is like.
    func has(_ name: String) async throws -> Bool {
        if let folder { return FileManager.default.fileExists(atPath: folder.appending(name).string) }
        return try await store?.ask("ask -I \"$at/bucket/top/\(name)\"").status == 0
    }

    /// How the programs of Programs/remotes find the server's own state.
    var place: [String] {
        if let folder { return ["--folder", folder.string] }
        return ["--store", (store?.endpoint ?? "") + "/bucket/top"]
    }
}
