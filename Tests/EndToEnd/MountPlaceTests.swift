import Control
import Foundation
import Glibc
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// To which mount a path leads: the one that the kernel finds.
    @Suite struct MountPlaces {
        @Test(
            "CMD-19: a path that leads to another file system names nothing of the domain that it hides",
            .enabled(if: FUSEAvailability.isRoot, "only root mounts on it"), arguments: ["mount", "mount/directory"])
        func hidden(place: String) async throws {
            try await Installation.mounted(["directory/document": "remote", "local": "local"]) { yonder async throws in
                let document = yonder["directory/document"]
                #expect(try await Command.run("cat", document).output == "remote")
                let cover = yonder.directory[place].string
                #expect(try await Command.run("mount", "-t", "tmpfs", "cover", cover).status == 0)
                var isCovered = true
                defer { if isCovered { _ = umount2(cover, Int32(MNT_DETACH)) } }
                _ = try await Command.shell("mkdir -p \"$(dirname \"$1\")\" && echo mine > \"$1\"", document)
                for words in [
                    ["delete", document], ["rename", document, "other"], ["trash", "put", document],
                    ["evict", document],
                    ["add", yonder.source.appending("local").string, yonder["directory"]],
                    ["mkdir", yonder["directory/new"]],
                ] {
                    let refused = try await yonder.yonder(words: words)
                    #expect(refused.status == 69, "\(words): \(refused.output)")
                    #expect(
                        refused.errors.contains("another file system is mounted there"), "\(words): \(refused.errors)")
                }
                #expect(try await Command.run("cat", document).output == "mine\n")
                #expect(try await Command.run("umount", cover).status == 0)
                isCovered = false
                #expect(try await yonder.shell("ls directory; cat directory/document") == "document\nremote")
                #expect(yonder.sourceText("directory/document") == "remote")
            }
        }

        @Test("CMD-19: a mount is found where it is after a directory above it was renamed, and mounted there again")
        func renamed() async throws {
            try await Installation.run { yonder async throws in
                try yonder.write("remote", to: "document")
                let (old, new) = (yonder.directory["old/m"].string, yonder.directory["new/m"].string)
                let mounted = try await yonder.yonder("mount", yonder.source.string, old, "--name", "moved")
                #expect(mounted.status == 0, "\(mounted.errors)")
                #expect(try await Command.run("cat", old + "/document").output == "remote")
                try FileManager.default.moveItem(
                    atPath: yonder.directory["old"].string, toPath: yonder.directory["new"].string)
                _ = try await Command.shell("mkdir -p \"$1\" && echo mine > \"$1\"/document", old)
                let refused = try await yonder.yonder("delete", old + "/document")
                #expect(refused.status == 69 && refused.errors.contains("not in a mounted domain"), "\(refused.errors)")
                #expect(
                    try await Command.shell("cat \"$1\"/document \"$2\"/document", old, new).output == "mine\nremote")
                for words in [["ls", new], ["why", new + "/document"], ["wait", new], ["mount", "moved"]] {
                    let outcome = try await yonder.yonder(words: words)
                    #expect(outcome.status == 0, "\(words): \(outcome.errors)")
                    #expect(!outcome.output.contains(old), "\(words): \(outcome.output)")
                }
                let summary = try #require(try await yonder.json([DomainSummary].self, "domains").first)
                #expect(summary.mountpoint == new)
                #expect(try await yonder.yonder("unmount", new).status == 0)
                #expect(try await yonder.yonder("mount", "moved").status == 0)
                #expect(try await Command.run("cat", new + "/document").output == "remote")
                #expect(try await Command.run("cat", old + "/document").output == "mine\n")
                #expect(try await yonder.yonder("unmount", "moved").status == 0)
            }
        }

        @Test(
            "CMD-19: a domain that is mounted on a symbolic link keeps that place, and paths through the link are in it"
        )
        func linked() async throws {
            try await Installation.run { yonder async throws in
                try yonder.write("x", to: "file")
                let (target, link) = (yonder.directory["target"].string, yonder.directory["link"].string)
                try FileManager.default.createDirectory(atPath: target, withIntermediateDirectories: false)
                try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: target)
                for _ in 1...2 {
                    try await yonder.yonder("mount", yonder.source.string, link).expectSuccess()
                    #expect(try await Command.run("cat", link + "/file").output == "x")
                    for path in [link, target] {
                        #expect(try await yonder.yonder("ls", path).output.contains("file"))
                        #expect(try await yonder.yonder("evict", path + "/file").status == 0)
                    }
                    let domains = try await yonder.json([DomainSummary].self, "domains")
                    #expect(domains.map(\.name) == ["link"] && domains.map(\.mountpoint) == [link])
                    if canContinueMounts {
                        let daemon = String(try #require(yonder.daemon))
                        #expect(try await Command.run("kill", "-9", daemon).status == 0)
                        #expect(try await Command.run("cat", link + "/file").output == "x")
                        let next = try await yonder.json([DomainSummary].self, "domains")
                        #expect(next.map(\.mountpoint) == [link])
                    }
                    #expect(try await yonder.yonder("unmount", "link").status == 0)
                }
            }
        }

        @Test("CMD-19: a symbolic link to the directory of a domain names the domain, mounted, dead or not mounted")
        func namedByLink() async throws {
            try await Installation.run { yonder async throws in
                try yonder.write("x", to: "file")
                let (source, target) = (yonder.source.string, yonder.directory["target"].string)
                let link = yonder.directory["link"].string
                try FileManager.default.createDirectory(atPath: target, withIntermediateDirectories: false)
                try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: target)
                let other = try yonder.directory.makeDirectory("other").string
                for place in [target, link] {
                    try await yonder.yonder("mount", source, place, "--name", "domain").expectSuccess()
                    for path in [target, link] {
                        try await yonder.yonder("mount", source, path).expectSuccess()
                        let domains = try await yonder.json([DomainSummary].self, "domains")
                        #expect(domains.map(\.name) == ["domain"] && domains.map(\.mountpoint) == [place])
                        try await yonder.yonder("mount", other, path, "--name", "other")
                            .expectFailure(saying: "'domain' is mounted there")
                    }
                    try await yonder.yonder("unmount", link).expectSuccess()
                    try await yonder.yonder("unmount", link).expectFailure(69, saying: "not mounted")
                    try await yonder.yonder("mount", source, link).expectSuccess()
                    try await yonder.yonder("unmount", target).expectSuccess()
                    try await yonder.yonder("mount", link).expectSuccess()
                    #expect(try await Command.run("cat", link + "/file").output == "x")
                    try await yonder.killDaemon()
                    try await yonder.yonder("mount", source, link).expectSuccess()
                    #expect(try await Command.run("cat", link + "/file").output == "x")
                    try await yonder.killDaemon()
                    try await yonder.yonder("unmount", link).expectSuccess()
                    #expect(try await Command.run("ls", "-A", target).output == "")
                    let domains = try await yonder.json([DomainSummary].self, "domains")
                    #expect(domains.map(\.name) == ["domain"] && domains.map(\.mountpoint) == [place])
                    try await yonder.yonder("remove", link).expectSuccess()
                }
            }
        }

        @Test(
            "CMD-19: a bind mount of the whole mount leads to the domain's items",
            .enabled(if: FUSEAvailability.isRoot, "only root makes bind mounts"))
        func bound() async throws {
            try await Installation.mounted(["file": "x"]) { yonder async throws in
                #expect(try await yonder.shell("cat file") == "x")
                let mount = yonder.mount.string
                #expect(try await Command.run("mount", "--bind", mount, mount).status == 0)
                defer { _ = umount2(mount, Int32(MNT_DETACH)) }
                try await yonder.yonder("evict", yonder["file"]).expectSuccess()
            }
        }

        @Test("FOLDER-19: a folder with the state directory, or in it, is no source; what was kept is one")
        func sourceWithTheState() async throws {
            try await Installation.mounted(["file": "x"]) { yonder async throws in
                let (whole, state) = (yonder.directory.path.string, yonder.directory["state"].string)
                let elsewhere = try TemporaryDirectory()
                defer { elsewhere.remove() }
                let (link, folder) = (elsewhere["link"].string, try elsewhere.makeDirectory("folder").string)
                try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: whole)
                let place = elsewhere["other"].string
                for source in [whole, link, state, state + "/domains/mount", "rclone::local:" + whole] {
                    for words in [["mount"], ["import", "--yes", folder]] {
                        try await yonder.yonder(words: words + [source, place, "--name", "other"])
                            .expectFailure(saying: "the daemon's own state directory")
                    }
                }
                #expect(try await yonder.json([DomainSummary].self, "domains").map(\.name) == ["mount"])
                #expect(!FileManager.default.fileExists(atPath: place))
                let removed = try await yonder.json(RemoveReport.self, "remove", "mount", "--keep", "downloaded")
                let kept = try #require(removed.directory)
                #expect(kept.hasPrefix(state + "/kept/"))
                try await yonder.yonder("mount", kept, yonder.mount.string).expectSuccess()
            }
        }

        @Test("FOLDER-19: a known domain whose source has got the state directory is mounted, with a warning")
        func stateMovedIntoTheSource() async throws {
            try await Installation.mounted(["file": "x"]) { yonder async throws in
                try await yonder.yonder("shutdown").expectSuccess()
                let state = yonder.source.appending("state").string
                try FileManager.default.moveItem(atPath: yonder.directory["state"].string, toPath: state)
                let moved = yonder.with(["YONDER_STATE_DIR": state])
                try await moved.yonder("mount", "mount").expectSuccess()
                #expect(try await moved.status().warnings.contains { $0.contains("the daemon's own state directory") })
                try await moved.yonder("shutdown").expectSuccess()
            }
        }

        @Test("MOUNT-9: the state directory is not moved into a mount with what is found in the directory")
        func stateMovedIntoTheDirectory() async throws {
            try await Installation.mounted(["file": "x"]) { yonder async throws in
                try await yonder.yonder("unmount", "mount").expectSuccess()
                try await yonder.yonder("shutdown").expectSuccess()
                let state = yonder.mount.appending("state").string
                let outcome = try await Command.shell(
                    "chmod u+w \"$1\" && mv \"$2\" \"$3\"", yonder.mount.string,
                    yonder.directory["state"].string, state)
                #expect(outcome.status == 0, "\(outcome.errors)")
                let moved = yonder.with(["YONDER_STATE_DIR": state])
                try await moved.yonder("mount", "mount", "--move-found")
                    .expectFailure(saying: "the daemon's own state directory")
                #expect(FileManager.default.fileExists(atPath: state + "/domains/mount/replica.sqlite"))
                try await moved.yonder("shutdown").expectSuccess()
            }
        }

        @Test("CMD-19: no domain is mounted or imported where one is, and none is kept in its own mount")
        func taken() async throws {
            try await Installation.mounted(["file": "x"]) { yonder async throws in
                let other = yonder.directory["other"].string
                _ = try await Command.shell("mkdir \"$1\"; echo y > \"$1\"/y; mkdir \"$1\"2", other)
                for words in [["mount", other], ["import", "--yes", other, other + "2"]] {
                    let refused = try await yonder.yonder(words: words + [yonder.mount.string, "--name", "second"])
                    #expect(
                        refused.status == 1 && refused.errors.contains("'mount' is mounted there"), "\(refused.errors)")
                }
                let refused = try await yonder.yonder("remove", "mount", "--to", yonder["kept"])
                #expect(
                    refused.status == 1 && refused.errors.contains("in the mount that is to be removed"),
                    "\(refused.errors)")
                #expect(try await yonder.shell("ls") == "file\n")
            }
        }
    }
}
