import FileProvider
import FileProviderPaths
import Foundation
import SystemPackage
import TestSupport
import Testing

@testable import SFTPProvider

/// What goes wrong between `ssh` and a real server.
@Suite(.tags(.server), .serialized, .enabled(if: SSHServer.Kind.openSSH.program != nil, "sshd is not installed"))
struct SSHServerTests {
    private func withRemote(
        _ kind: SSHServer.Kind = .openSSH, subsystem: String = "internal-sftp",
        _ test: (SFTPRemote, SFTPFolder) async throws -> Void
    ) async throws {
        let folder = try SFTPFolder(try await SSHServer.start(kind, subsystem: subsystem))
        try await folder.withRemote { try await test($0, folder) }
    }

    /// Expects a failure whose description contains some words.
    private func expectFailure(
        _ code: FileProviderError.Code, _ words: String, sourceLocation: SourceLocation = #_sourceLocation,
        _ call: () async throws -> Void
    ) async {
        let error = await #expect(throws: FileProviderError.self, sourceLocation: sourceLocation) { try await call() }
        let said = error.map { "\($0)" } ?? "no error"
        #expect(error?.code == code && said.contains(words), "\(said)", sourceLocation: sourceLocation)
    }

    private func write(_ count: Int, to name: String, _ remote: SFTPRemote, _ folder: SFTPFolder) async throws {
        let path = try folder.directory.makeFile("contents", [UInt8](repeating: 7, count: count))
        let descriptor = try FileDescriptor.open(path, .readOnly)
        _ = try await remote.write(
            ContentSource(descriptor: descriptor, size: Int64(count)), to: RemotePath([name]),
            attributes: RemoteAttributes(), if: .absent)
    }

    @Test("SFTP-4: a changed host key is refused, says what to do, and is taken when it is right again")
    func changedHostKey() async throws {
        try await withRemote { remote, folder in
            let server = try #require(folder.server)
            _ = try await remote.entry(at: .root)
            await server.halt()
            try await server.exchangeHostKeys()
            let impostor = try await server.again()
            await expectFailure(.notAuthenticated, "the host key of 'server' has changed") {
                _ = try await remote.entry(at: .root)
            }
            await impostor.halt()
            try await server.exchangeHostKeys()
            let itself = try await server.again()
            #expect(try await remote.entry(at: .root).kind == .directory)
            await itself.halt()
        }
    }

    @Test("SFTP-4: an unknown host key is refused, and says what to do")
    func unknownHostKey() async throws {
        try await withRemote { remote, folder in
            _ = try folder.directory.makeFile("known", [])
            await expectFailure(.notAuthenticated, "the host key of 'server' is not known: run `ssh` for it once") {
                _ = try await remote.entry(at: .root)
            }
        }
    }

    @Test("SFTP-4: a key that the server does not accept is refused, and is used when it does")
    func refusedKey() async throws {
        try await withRemote { remote, folder in
            let server = try #require(folder.server)
            try await server.authorize(false)
            await expectFailure(.notAuthenticated, "accepts no key that ssh offers") {
                _ = try await remote.entry(at: .root)
            }
            try await server.authorize(true)
            #expect(try await remote.entry(at: .root).kind == .directory)
        }
    }

    @Test("SFTP-4: a server that stops answering is noticed, and used when it answers again")
    func deadLine() async throws {
        try await withRemote { remote, folder in
            let server = try #require(folder.server)
            _ = try await remote.entry(at: .root)
            try await server.signalSessions("STOP")
            // Reading opens another session by itself, which the stopped ones do not disturb.
            #expect(try await remote.entry(at: .root).kind == .directory)
            try await server.signalSessions("STOP")
            await expectFailure(.serverUnreachable, "server") {
                _ = try await remote.makeDirectory(at: RemotePath(["new"]), attributes: RemoteAttributes())
            }
            let made = try await remote.makeDirectory(at: RemotePath(["newer"]), attributes: RemoteAttributes())
            #expect(made.kind == .directory)
        }
    }

    @Test("SFTP-4: a server that is stopped cannot be reached, and is used when it was started again")
    func restart() async throws {
        try await withRemote { remote, folder in
            let server = try #require(folder.server)
            _ = try await remote.entry(at: .root)
            await server.halt()
            await expectFailure(.serverUnreachable, "'server' cannot be reached: ssh: connect to host 127.0.0.1") {
                _ = try await remote.entry(at: .root)
            }
            let restarted = try await server.again()
            try await write(100_000, to: "file", remote, folder)
            #expect(FileManager.default.fileExists(atPath: folder["file"]))
            await restarted.halt()
        }
    }

    @Test(
        "SFTP-4: a server that permits no changes says so, and can be read",
        arguments: ["internal-sftp -R", SFTPFolder.program + " -R"])
    func readOnlyServer(_ subsystem: String) async throws {
        try await withRemote(subsystem: subsystem) { remote, folder in
            try await folder.write([1, 2], to: "file")
            await expectFailure(.fileReadNoPermission, "the server does not allow it") {
                try await write(10, to: "new", remote, folder)
            }
            await expectFailure(.fileReadNoPermission, "the server does not allow it") {
                try await remote.delete(RemotePath(["file"]), kind: .file, if: .always)
            }
            #expect(try await remote.entry(at: RemotePath(["file"])).size == 2)
        }
    }

    @Test(
        "SFTP-4: an ordinary user's missing permission concerns one item",
        .enabled(if: SSHServer.Kind.ordinaryUser.program != nil))
    func missingPermission() async throws {
        try await withRemote(.ordinaryUser) { remote, folder in
            try FileManager.default.createDirectory(atPath: folder["root's"], withIntermediateDirectories: false)
            try await folder.write([1], to: "root's/file")
            await expectFailure(.fileReadNoPermission, "the server does not allow it") {
                try await remote.delete(RemotePath(["root's", "file"]), kind: .file, if: .always)
            }
            #expect(try await remote.entry(at: RemotePath(["root's", "file"])).size == 1)
            try await write(10, to: "own", remote, folder)
        }
    }

    @Test(
        "SFTP-4: a full disk is a quota, nothing is left of the upload, and it succeeds when there is space",
        arguments: SSHServer.Kind.installed)
    func fullDisk(_ kind: SSHServer.Kind) async throws {
        try await withRemote(kind) { remote, folder in
            let root = folder.root.string
            guard FUSEAvailability.isRoot,
                try await Command.run("mount", "-t", "tmpfs", "-o", "size=1m,nr_inodes=8,mode=777", "tmpfs", root)
                    .status == 0
            else { return }
            try await withCleanUp({ _ = try await Command.run("umount", "-l", root) }) {
                try await write(700_000, to: "first", remote, folder)
                await expectFailure(.insufficientQuota, "disk is full") {
                    try await write(700_000, to: "second", remote, folder)
                }
                #expect(await eventually { (try? FileManager.default.contentsOfDirectory(atPath: root)) == ["first"] })
                try await remote.delete(RemotePath(["first"]), kind: .file, if: .always)
                try await write(700_000, to: "second", remote, folder)
                await expectFailure(.insufficientQuota, "disk is full") {
                    for number in 0..<9 { try await write(1, to: "\(number)", remote, folder) }
                }
                await expectFailure(.insufficientQuota, "disk is full") {
                    for number in 10..<19 {
                        _ = try await remote.makeDirectory(
                            at: RemotePath(["\(number)"]), attributes: RemoteAttributes())
                    }
                }
            }
        }
    }
}
