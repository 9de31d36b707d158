import Daemon
import FileProvider
import FileProviderTesting
import Foundation
import Glibc
import Logging
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// Mounts below a mount, and mounts of what lies in a mount.
    @Suite(.enabled(if: geteuid() == 0, "only root may mount other file systems")) struct NestedMounts {
        @Test("MOUNT-5: another file system can be mounted on a directory of a mount") func otherFileSystems()
            async throws
        {
            try await Installation.mounted(["below/file": "hidden", "beside": "x"]) { yonder async throws in
                let below = yonder["below"]
                #expect(try await Command.run("mount", "-t", "tmpfs", "none", below).status == 0)
                do {
                    try await yonder.shell("echo -n text > below/own; [ ! -e below/file ]")
                    // News of its surroundings, and of the directory itself, do not take it away.
                    try yonder.write("new", to: "new")
                    try yonder.write("hidden, too", to: "below/file")
                    try yonder.write("hidden as well", to: "below/other")
                    #expect(try await yonder.yonder("signal", "--wait").status == 0)
                    #expect(try await yonder.shell("cat new below/own; ls below") == "newtextown\n")
                    #expect(try await Command.run("rmdir", below).errors.contains("busy"))
                    #expect(try await Command.run("umount", below).status == 0)
                    #expect(try await yonder.shell("cat below/file; ls below") == "hidden, toofile\nother\n")
                } catch {
                    _ = try? await Command.run("umount", "-l", below)
                    throw error
                }
                #expect(try await yonder.pending().isEmpty)
            }
        }

        @Test("MOUNT-3: a mount on a mount fails, takes nothing from the one that is there, and ends its provider")
        func onAnotherMount() async throws {
            try await ProvidedMount.run { tree in
                tree.addFile("file", content: RemoteContent("text"))
            } _: { mount in
                let directory = try TemporaryDirectory()
                defer { directory.remove() }
                let other = InMemoryProvider()
                #expect(throws: FileProviderError.self) {
                    _ = try DomainHost(
                        domain: FileProviderDomain(identifier: "other", source: "memory"),
                        directory: directory["replica"], mountpoint: mount.path, options: DomainOptions(),
                        logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
                    ) { manager in
                        other.attach(manager)
                        return other
                    }
                }
                #expect(await eventually { other.isInvalidated })
                #expect(try await Command.run("cat", mount["file"]).output == "text")
            }
        }

        @Test("MOUNT-5: a mount is unmounted with what is mounted below it") func unmounting() async throws {
            try await Installation.mounted(["below/file": "hidden"]) { yonder async throws in
                #expect(try await Command.run("ls", yonder.mount.string).status == 0)
                #expect(try await Command.run("mount", "-t", "tmpfs", "none", yonder["below"]).status == 0)
                #expect(try await yonder.yonder("unmount", "mount").status == 0)
                let table = try String(contentsOfFile: "/proc/mounts", encoding: .utf8)
                #expect(!table.contains(yonder.mount.string))
                #expect(try await yonder.yonder("mount", "mount").status == 0)
                #expect(try await Command.run("cat", yonder["below/file"]).output == "hidden")
            }
        }

        @Test("MOUNT-5: a domain in the mount of another is refused in words, also behind a symbolic link")
        func refused()
            async throws
        {
            try await Installation.run { yonder in
                try yonder.write("x", to: "below/file")
                try FileManager.default.createDirectory(
                    atPath: yonder.source.appending("empty").string, withIntermediateDirectories: false)
                try await yonder.mountSource()
                let other = try yonder.directory.makeDirectory("other").string
                let link = yonder.directory["link"].string
                try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: yonder.mount.string)
                let dangling = yonder.directory["dangling"].string
                try FileManager.default.createSymbolicLink(atPath: dangling, withDestinationPath: yonder["absent"])
                let whole = yonder.directory["whole"].string
                try FileManager.default.createSymbolicLink(atPath: whole, withDestinationPath: yonder["empty"])
                for place in [yonder["below"], yonder["absent"], link + "/below", link + "/absent", dangling, whole] {
                    let outcome = try await yonder.yonder("mount", other, place, "--name", "inner")
                    #expect(outcome.status == 1)
                    #expect(
                        outcome.errors.contains("it lies in the mount of another domain, '\(yonder.mount.string)'"),
                        "\(outcome.errors)")
                }
                #expect(try yonder.sourceNames() == ["below", "empty"])
                // The source and what is in it are no place for it either.
                for place in [yonder.source.appending("inner").string, yonder.source.string] {
                    try await yonder.yonder("mount", yonder.source.string, place, "--name", "inner")
                        .expectFailure(saying: "would contain itself")
                }
            }
        }

        @Test("MOUNT-5: a folder in a mount can be mounted, listed before or not, and both mounts end")
        func mountOfAMount()
            async throws
        {
            try await Installation.mounted(["directory/deep/file": "text"]) { yonder async throws in
                let upper = yonder.directory["upper"].string
                #expect(try await yonder.yonder("mount", yonder["directory/deep"], upper).status == 0)
                #expect(try await Command.run("cat", upper + "/file").output == "text")
                #expect(try await Command.shell("echo -n more > \"$1\"/new", upper).status == 0)
                #expect(try await yonder.yonder("wait", "upper", "--timeout", "20").status == 0)
                #expect(try await yonder.yonder("wait", "mount", "--timeout", "20").status == 0)
                #expect(yonder.sourceText("directory/deep/new") == "more")
                // The lower one first: the upper one has lost its source then, and says so.
                #expect(try await yonder.yonder("unmount", "mount").status == 0)
                #expect(try await yonder.yonder("unmount", "upper").status == 0)
                let table = try String(contentsOfFile: "/proc/mounts", encoding: .utf8)
                #expect(!table.contains(yonder.directory.path.string))
            }
        }
    }
}

extension Installation {
    fileprivate func sourceNames() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: source.string).sorted()
    }
}
