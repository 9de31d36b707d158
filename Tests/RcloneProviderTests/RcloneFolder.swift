import FileProvider
import FileProviderTesting
import Foundation
import Logging
import ProviderDescriptors
import Synchronization
import SystemPackage
import TestSupport

@testable import RcloneProvider

/// A remote in a configuration of rclone's that belongs to one test.
final class RcloneFolder: RemoteUnderTest {
    /// The backends that tests know to configure.
    enum Backend: String, Sendable, CaseIterable, CustomStringConvertible {
        case local, crypt, webdav, union, s3

        var description: String { rawValue }
    }

    static var isInstalled: Bool { program != nil }
    static var program: String? {
        (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").map { $0 + "/rclone" }
            .first { FileManager.default.isExecutableFile(atPath: $0) }
    }
    /// Object stores on request only, because they are not known to pass yet.
    static var backends: [Backend] {
        Backend.allCases.filter {
            $0 != .s3 || ProcessInfo.processInfo.environment["YONDER_TEST_RCLONE_S3"] != nil
        }
    }

    let backend: Backend
    let directory: TemporaryDirectory
    let stateDirectory: FilePath
    /// The folder below the backend, except for `s3`.
    let root: FilePath
    let domain: FileProviderDomain
    private let server: DAVServer?
    private let program: String?
    private static let store = Mutex<Task<ObjectStoreProgram, any Error>?>(nil)

    /// - Parameters:
    ///   - program: stands in rclone's place, with rclone's path as `RCLONE`.
    ///   - folder: the name of the mounted folder.
    init(_ backend: Backend = .local, program: String? = nil, folder: String = "a folder") async throws {
        BrokenPipes.areIgnored
        self.backend = backend
        directory = try TemporaryDirectory()
        stateDirectory = try directory.makeDirectory("state")
        var lines = ["[test]"]
        var place = folder
        switch backend {
        case .local:
            server = nil
            root = try directory.makeDirectory("files").appending(folder)
            lines += ["type = alias", "remote = \(root.removingLastComponent())"]
        case .crypt:
            server = nil
            root = try directory.makeDirectory("files")
            let password = try await Command.run(Self.program ?? "rclone", "obscure", "secret word").output
            lines += ["type = crypt", "remote = \(root)", "password = \(password)"]
        case .webdav:
            // wsgidav moves to a wrong name where that has a question mark.
            let started = try await DAVServer.start(DAVServer.Kind.apache.program == nil ? .rclone : .apache)
            server = started
            root = started.root.appending(folder)
            lines += ["type = webdav", "vendor = other", "url = http://\(started.authority)/"]
        case .union:
            server = nil
            root = try directory.makeDirectory("files").appending(folder)
            let upstreams = "\(root.removingLastComponent()) \(try directory.makeDirectory("more")):ro"
            lines += ["type = union", "upstreams = \(upstreams)", "create_policy = ff"]
        case .s3:
            server = nil
            root = directory["nowhere"]
            let endpoint = try await Self.sharedStore().endpoint
            lines += [
                "type = s3", "provider = Other", "endpoint = \(endpoint)", "region = \(ObjectStoreProgram.region)",
                "access_key_id = \(ObjectStoreProgram.accessKey)",
                "secret_access_key = \(ObjectStoreProgram.secretKey)", "list_version = 1",
            ]
            place = "bucket-\(UUID().uuidString.lowercased())"
        }
        _ = try directory.makeFile("rclone.conf", (lines.joined(separator: "\n") + "\n").utf8)
        if let program {
            let path = try directory.makeFile("program", "#!/bin/sh\n\(program)\n".utf8)
            try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: path.string)
            self.program = path.string
        } else {
            self.program = nil
        }
        domain = FileProviderDomain(identifier: "test", source: "rclone:test:\(place)")
        switch backend {
        case .s3, .crypt: try await run("mkdir", path(""))
        case .local, .union, .webdav:
            try FileManager.default.createDirectory(atPath: root.string, withIntermediateDirectories: true)
            // The server may run as another user.
            try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: root.string)
        }
    }

    private static func sharedStore() async throws -> ObjectStoreProgram {
        let task = store.withLock { store in
            let task = store ?? Task { try await ObjectStoreProgram(.swift) }
            store = task
            return task
        }
        return try await task.value
    }

    var environment: [String: String] {
        var environment = ProcessInfo.processInfo.environment
        environment["RCLONE_CONFIG"] = directory["rclone.conf"].string
        environment["YONDER_RCLONE"] = program
        environment["RCLONE"] = Self.program
        environment["AWS_CA_BUNDLE"] = ""
        return environment
    }

    var settings: ProviderSettings {
        let environment = environment
        return ProviderSettings(
            options: [:], secrets: { [:] }, environment: { environment }, logger: Logger(label: "test"))
    }

    subscript(_ path: String) -> String { root.string + "/" + path }

    /// A path as rclone's commands take it.
    func path(_ path: String) -> String {
        domain.source.dropFirst("rclone:".count) + (path.isEmpty ? "" : "/" + path)
    }

    /// Runs a command of rclone's.
    func run(_ words: String...) async throws {
        let outcome = try await Command([Self.program ?? "rclone"] + words, environment: environment).run()
        guard outcome.status == 0 else { throw TestFailure("\(words): \(outcome.errors)") }
    }

    /// Runs a test with a folder and a remote of its own.
    ///
    /// - Parameters:
    ///   - program: as of ``init(_:program:folder:)``.
    ///   - source: nil for the folder.
    static func withRemote(
        program: String? = nil, source: String? = nil, report: @escaping @Sendable (String) -> Void = { _ in },
        _ test: (RcloneFolder, RcloneRemote) async throws -> Void
    ) async throws {
        let folder = try await RcloneFolder(program: program)
        let remote = try RcloneProviderFactory.remote(
            source ?? folder.domain.source, folder.settings, in: folder.directory["remote"], nil, report: report
        ) { _ in }
        try await withCleanUp({
            await remote.close()
            await folder.dispose()
        }) {
            try await test(folder, remote)
        }
    }

    func remote() throws -> RcloneRemote {
        try RcloneProviderFactory.remote(domain.source, settings, in: directory["remote"], nil) { _ in }
    }

    func makeProvider(for manager: any FileProviderManager) async throws -> any FileProviderReplicatedExtension {
        try RcloneProviderFactory().make(for: manager, settings, findings: nil)
    }

    private var isOnDisk: Bool { backend != .crypt && backend != .s3 }

    func makeDirectory(_ path: String) async throws {
        if isOnDisk {
            try FileManager.default.createDirectory(atPath: self[path], withIntermediateDirectories: false)
            try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: self[path])
        } else if backend == .s3 {
            let empty = try directory.makeFile("empty", "".utf8)
            try await run("copyto", empty.string, self.path(path) + "/" + RcloneRemote.marker)
        } else {
            try await run("mkdir", self.path(path))
        }
    }

    func write(_ bytes: [UInt8], to path: String) async throws {
        let file = isOnDisk ? self[path] : directory["content \(UUID().uuidString)"].string
        try Data(bytes).write(to: URL(fileURLWithPath: file))
        try FileManager.default.setAttributes(
            [.modificationDate: WriteClock.next(), .posixPermissions: 0o666],
            ofItemAtPath: file)
        if !isOnDisk { try await run("copyto", "--ignore-times", file, self.path(path)) }
    }

    func rename(_ path: String, to newPath: String) async throws {
        if isOnDisk { return try FileManager.default.moveItem(atPath: self[path], toPath: self[newPath]) }
        try await run("moveto", self.path(path), self.path(newPath))
    }

    func delete(_ path: String) async throws {
        if isOnDisk { return try FileManager.default.removeItem(atPath: self[path]) }
        do { try await run("deletefile", self.path(path)) } catch { try await run("purge", self.path(path)) }
    }

    func dispose() async {
        await server?.stop()
        directory.remove()
    }
}
