import Control
import Foundation
import Syscalls
import SystemPackage
import TestSupport
import Testing

/// Whose directories the daemon believes.
@Suite struct TrustedDirectoryTests {
    private func withDirectory(
        _ mode: UInt16, _ test: (FilePath) throws -> Void
    ) throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let path = try directory.makeDirectory("place")
        try path.setPermissions(mode)
        try test(path)
    }

    private func error(of path: FilePath, _ content: TrustedDirectory.Content) -> ControlError? {
        do throws(ControlError) {
            try TrustedDirectory.check(path.string, for: content)
            return nil
        } catch {
            return error
        }
    }

    @Test(
        "ACCESS-1: a directory that others can write is refused, with what to do, and stays as it is",
        arguments: [0o777, 0o770, 0o775, 0o757, 0o722] as [UInt16])
    func refusesWritable(mode: UInt16) throws {
        try withDirectory(mode) { path throws in
            for content in [TrustedDirectory.Content.secrets, .file] {
                let refusal = error(of: path, content)
                #expect(refusal?.code == .notPermitted)
                #expect(refusal?.message.contains("chmod") == true)
            }
            #expect(try FileStatus(at: path).permissions == mode)
        }
    }

    @Test(
        "ACCESS-1: a directory of secrets that others can read gets mode 0700",
        arguments: [0o755, 0o711, 0o750] as [UInt16])
    func tightens(mode: UInt16) throws {
        try withDirectory(mode) { path throws in
            #expect(error(of: path, .file) == nil)
            #expect(try FileStatus(at: path).permissions == mode)
            #expect(error(of: path, .secrets) == nil)
            #expect(try FileStatus(at: path).permissions == 0o700)
        }
    }

    @Test("ACCESS-1: a directory like /tmp may hold the configuration and the socket, and no secrets")
    func sticky() throws {
        try withDirectory(0o1777) { path in
            #expect(error(of: path, .file) == nil)
            #expect(error(of: path, .secrets)?.code == .notPermitted)
        }
    }

    @Test("ACCESS-1: one that is missing is fine, and one that is no directory is not") func missing() throws {
        try withDirectory(0o700) { path throws in
            #expect(error(of: path.appending("none"), .secrets) == nil)
            try Data().write(to: URL(fileURLWithPath: path.appending("file").string))
            #expect(error(of: path.appending("file"), .secrets)?.code == .notPermitted)
            #expect(error(of: path.appending("file/below"), .secrets)?.code == .notPermitted)
        }
    }

    @Test("ACCESS-1: a place that may not be written is not permitted, and a full disk is another failure")
    func codes() {
        let denials: [Errno] = [
            .permissionDenied, .notPermitted, .readOnlyFileSystem, .notDirectory, .noSuchFileOrDirectory,
        ]
        for error in denials { #expect(ControlError.Code(of: error) == .notPermitted) }
        for error in [Errno.noSpace, .ioError] { #expect(ControlError.Code(of: error) == .failed) }
    }

    @Test(
        "ACCESS-1: a directory of another user is refused, also by root and behind a link",
        .enabled("only root can make one") { FUSEAvailability.isRoot })
    func refusesOthers() async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let path = try directory.makeDirectory("place")
        let made = try await Command.shell(
            "chmod 700 \"$1\" && chown 65534 \"$1\" && ln -s place \"$1.link\"", path.string)
        #expect(made.status == 0)
        for path in [path, directory["place.link"]] {
            for content in [TrustedDirectory.Content.secrets, .file] {
                let refusal = error(of: path, content)
                #expect(refusal?.code == .notPermitted)
                #expect(refusal?.message.contains("65534") == true)
            }
        }
    }

    @Test("ACCESS-1: a configuration file that others can write is refused") func file() throws {
        try withDirectory(0o755) { path throws in
            let file = path.appending("config.toml")
            #expect(throws: Never.self) { try TrustedDirectory.checkFile(file.string) }
            try Data().write(to: URL(fileURLWithPath: file.string))
            try file.setPermissions(0o644)
            #expect(throws: Never.self) { try TrustedDirectory.checkFile(file.string) }
            try file.setPermissions(0o666)
            #expect(throws: ControlError.self) { try TrustedDirectory.checkFile(file.string) }
        }
    }
}
