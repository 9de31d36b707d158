import FileProvider
import FileProviderPaths
import FileProviderTesting
import Foundation
import SystemPackage
import TestSupport
import Testing

@testable import SFTPProvider

/// Directories whose modes deny writing, on a server where this user is not root.
@Suite(.enabled(if: SFTPFolder.isInstalled, "OpenSSH's SFTP server is not installed"))
struct SFTPReadOnlyTests {
    /// Runs a body with a folder that belongs to the server's user.
    private func withFolder(_ body: (SFTPFolder, SFTPRemote) async throws -> Void) async throws {
        let isRoot = geteuid() == 0
        let folder = try SFTPFolder(
            isRoot ? "setpriv --reuid=65534 --regid=65534 --clear-groups \(SFTPFolder.program)" : SFTPFolder.program)
        let files = FileManager.default
        try files.setAttributes([.posixPermissions: 0o755], ofItemAtPath: folder.directory.path.string)
        if isRoot {
            try files.setAttributes(
                [.ownerAccountID: 65534, .groupOwnerAccountID: 65534], ofItemAtPath: folder.root.string)
        }
        try await folder.withRemote { try await body(folder, $0) }
    }

    private func mode(_ folder: SFTPFolder, _ path: String) throws -> Int? {
        try FileManager.default.attributesOfItem(atPath: folder[path])[.posixPermissions] as? Int
    }

    private func write(_ text: String, to path: RemotePath, if condition: RemoteCondition, _ remote: SFTPRemote)
        async throws
        -> RemoteEntry
    {
        let content = try TestContent(Array(text.utf8))
        return try await remote.write(
            content.source, to: path, attributes: RemoteAttributes(permissions: 0o444), if: condition)
    }

    @Test("SFTP-7: directories above, which cannot be searched, are in the way of no change below them")
    func above() async throws {
        try await withFolder { folder, remote in
            let parts = ["top", "middle", "low"]
            let paths = parts.indices.map { RemotePath(Array(parts[...$0])) }
            for path in paths { _ = try await remote.makeDirectory(at: path, attributes: RemoteAttributes()) }
            let file = paths[2].appending("file")
            let entry = try await write("one", to: file, if: .absent, remote)
            for (path, mode) in zip(paths, [UInt16(0o600), 0o600, 0o500]).reversed() {
                _ = try await remote.set(RemoteAttributes(permissions: mode), of: path, kind: .directory)
            }
            let context = CallContext(isChange: true, urgency: CallUrgency(false), wait: { _ in })
            try await CallContext.$current.withValue(context) {
                _ = try await write("three", to: file, if: .unchanged(tag: entry.tag), remote)
                _ = try await remote.makeSymbolicLink(
                    at: paths[2].appending("link"), to: "file",
                    attributes: RemoteAttributes(contentModificationDate: FileTimestamp(seconds: 1_500_000_000)))
                let other = paths[2].appending("other")
                _ = try await remote.move(file, to: other, kind: .file)
                _ = try await remote.set(RemoteAttributes(permissions: 0o640), of: other, kind: .file)
                try await remote.delete(other, kind: .file, if: .always)
            }
            #expect(try mode(folder, "top") == 0o600)
            try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: folder["top"])
            #expect(try mode(folder, "top/middle") == 0o600)
            try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: folder["top/middle"])
            #expect(try mode(folder, "top/middle/low") == 0o500)
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder["top/middle/low"]) == ["link"])
            for path in ["top", "top/middle"] {
                try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: folder[path])
            }
            try await CallContext.$current.withValue(context) {
                try await remote.delete(paths[0], kind: .directory, if: .always)
            }
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder.root.string) == [])
        }
    }

    @Test("SFTP-7: files, directories and links are made, replaced, moved and removed in read-only directories")
    func changes() async throws {
        try await withFolder { folder, remote in
            let (top, other) = (RemotePath(["top"]), RemotePath(["other"]))
            for path in [top, other, top.appending("d")] {
                let made = try await remote.makeDirectory(at: path, attributes: RemoteAttributes(permissions: 0o500))
                #expect(made.attributes.permissions == 0o500)
            }
            let file = top.appending("d").appending("file")
            let entry = try await write("one", to: file, if: .absent, remote)
            #expect(entry.attributes.permissions == 0o444)
            _ = try await write("three", to: file, if: .unchanged(tag: entry.tag), remote)
            #expect(try Data(contentsOf: URL(fileURLWithPath: folder["top/d/file"])) == Data("three".utf8))
            _ = try await remote.makeSymbolicLink(
                at: top.appending("link"), to: "d", attributes: RemoteAttributes())
            _ = try await remote.move(top.appending("d"), to: other.appending("e"), kind: .directory)
            #expect(try mode(folder, "other/e") == 0o500)
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder["other/e"]) == ["file"])
            try await remote.delete(top, kind: .directory, if: .always)
            for path in ["other", "other/e"] { #expect(try mode(folder, path) == 0o500) }
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder.root.string) == ["other"])
            try await remote.delete(other, kind: .directory, if: .always)
        }
    }

    @Test(
        "SFTP-7: a directory of any mode is changed and removed, and is not opened to be read",
        arguments: [0, 0o100, 0o300, 0o400, 0o600])
    func modes(mode: UInt16) async throws {
        try await withFolder { folder, remote in
            let directory = RemotePath(["directory"])
            _ = try await remote.makeDirectory(at: directory, attributes: RemoteAttributes(permissions: 0o700))
            for name in ["kept", "moved", "removed"] {
                _ = try await write(name, to: directory.appending(name), if: .absent, remote)
            }
            _ = try await remote.makeDirectory(
                at: directory.appending("inner"), attributes: RemoteAttributes(permissions: mode))
            _ = try await remote.set(RemoteAttributes(permissions: mode), of: directory, kind: .directory)
            if mode & 0o500 != 0o500 {
                // Not as an empty one.
                await #expect(throws: FileProviderError.self) {
                    _ = try await remote.entries(in: directory, from: nil, limit: 10)
                }
            }
            if mode & 0o100 == 0 {
                await #expect(throws: FileProviderError.self) {
                    _ = try await remote.entry(at: directory.appending("kept"))
                }
            }
            let context = CallContext(isChange: true, urgency: CallUrgency(false), wait: { _ in })
            try await CallContext.$current.withValue(context) {
                let present = try await remote.entry(at: directory.appending("kept"))
                _ = try await write(
                    "changed", to: directory.appending("kept"), if: .unchanged(tag: present.tag), remote)
                _ = try await remote.move(directory.appending("moved"), to: directory.appending("other"), kind: .file)
                try await remote.delete(directory.appending("removed"), kind: .file, if: .always)
                #expect(try self.mode(folder, "directory") == Int(mode))
                #expect(try await remote.entries(in: directory, from: nil, limit: 10).entries.count == 3)
                try await remote.delete(directory, kind: .directory, if: .always)
            }
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder.root.string) == [])
        }
    }

    @Test("SFTP-7: while changes are stored, the directory is shown with its own mode, and one that is stored stays")
    func shown() async throws {
        try await withFolder { folder, remote in
            let directory = RemotePath(["directory"])
            _ = try await remote.makeDirectory(at: directory, attributes: RemoteAttributes(permissions: 0o500))
            try await remote.connection.changing { session in
                var runs = 0
                try await remote.writing(to: [directory], session) {
                    runs += 1
                    if runs == 1 { throw SFTPStatus(code: SFTPStatus.permissionDenied, message: "") }
                    #expect(try mode(folder, "directory") == 0o700)
                    #expect(try await remote.entry(at: directory).attributes.permissions == 0o500)
                    let listed = try await remote.entries(in: .root, from: nil, limit: 10).entries
                    #expect(listed.map(\.attributes.permissions) == [0o500])
                    let stored = try await remote.set(
                        RemoteAttributes(permissions: 0o550), of: directory, kind: .directory)
                    #expect(stored.entry.attributes.permissions == 0o550)
                }
                #expect(runs == 2)
            }
            #expect(try mode(folder, "directory") == 0o550)
        }
    }

    @Test("SFTP-7: a directory has its own mode again after a change that fails because another directory is missing")
    func missing() async throws {
        try await withFolder { folder, remote in
            let (directory, other) = (RemotePath(["directory"]), RemotePath(["other"]))
            for path in [directory, other] {
                _ = try await remote.makeDirectory(at: path, attributes: RemoteAttributes(permissions: 0o700))
            }
            _ = try await write("one", to: directory.appending("file"), if: .absent, remote)
            _ = try await remote.set(RemoteAttributes(permissions: 0o600), of: directory, kind: .directory)
            await #expect(throws: FileProviderError.self) {
                let target = other.appending("missing").appending("file")
                _ = try await remote.move(directory.appending("file"), to: target, kind: .file)
            }
            #expect(try mode(folder, "directory") == 0o600)
            // A mode that is set later is stored as it is.
            _ = try await remote.set(RemoteAttributes(permissions: 0o400), of: directory, kind: .directory)
            #expect(try mode(folder, "directory") == 0o400)
        }
    }

    @Test(
        "SFTP-7: a directory of another user stays as it is, and the change is refused",
        .enabled("only root can make one") { geteuid() == 0 })
    func foreign() async throws {
        try await withFolder { folder, remote in
            try await folder.makeDirectory("foreign")
            try FileManager.default.setAttributes([.posixPermissions: 0o555], ofItemAtPath: folder["foreign"])
            await #expect(throws: FileProviderError.self) {
                _ = try await write("x", to: RemotePath(["foreign", "file"]), if: .absent, remote)
            }
            #expect(try mode(folder, "foreign") == 0o555)
        }
    }
}
