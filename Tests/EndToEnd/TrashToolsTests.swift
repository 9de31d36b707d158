import Control
import Foundation
import SystemPackage
import TestSupport
import Testing

extension Installation {
    /// A path in the trash of who runs the tests.
    func trashed(_ name: String) -> String { self[".Trash-\(getuid())/files/\(name)"] }

    func remote(_ name: String) -> String { source.appending(name).string }

    func remoteTrash(_ name: String) -> String { remote(".Trash-\(getuid())/\(name)") }

    func isThere(_ path: String) async throws -> Bool { try await Command.run("test", "-e", path).status == 0 }
}

/// Why the usual trash programs cannot be tried; nil when all are there.
private let missingTools: String? = {
    let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
    for tool in ["gio", "trash-put", "trash-list", "trash-restore", "trash-rm"] {
        let isThere = path.split(separator: ":").contains {
            FileManager.default.isExecutableFile(atPath: "\($0)/\(tool)")
        }
        if !isThere { return "\(tool) is not installed" }
    }
    return nil
}()

extension RealMount {
    /// The trash as people use it: with the usual programs, as they are, and with `yonder trash`.
    @Suite struct TrashTools {
        @Test(
            "gio and trash-cli trash, list, restore and delete",
            .enabled("\(missingTools ?? "")") { missingTools == nil })
        func usualProgramsWork() async throws {
            try await Installation.run { yonder in
                let name = "note-\(UUID().uuidString).txt"
                try yonder.write("one", to: "dir with blank/é \(name)")
                try yonder.write("two", to: "tree/sub/two")
                try yonder.write("three", to: name)
                try await yonder.mountSource()
                let shell = { (line: String) async throws -> Command.Outcome in
                    let own = ["HOME": yonder.directory.path.string, "XDG_DATA_HOME": yonder.directory["data"].string]
                    return try await Command(
                        ["sh", "-c", "cd \"$0\" && " + line, yonder.mount.string], environment: own, seconds: 30
                    ).run()
                }
                #expect(try await shell("gio trash 'dir with blank/é \(name)'").status == 0)
                #expect(try await shell("trash-put tree \(name)").status == 0)
                #expect(try await shell("ls").output == "dir with blank\n")
                let listed = try await shell("trash-list").output
                for path in ["dir with blank/é \(name)", "tree", name] {
                    #expect(listed.contains(" \(yonder[path])\n"), "\(path) in \(listed)")
                }
                #expect(try await yonder.yonder("wait", "--timeout", "20").status == 0)
                #expect(try String(contentsOfFile: yonder.remoteTrash("files/\(name)"), encoding: .utf8) == "three")
                #expect(try await yonder.isThere(yonder.remoteTrash("files/tree/sub/two")))

                let restored = try await shell("echo 0 | (cd 'dir with blank' && trash-restore)")
                #expect(try await shell("cat 'dir with blank/é \(name)'").output == "one", "\(restored)")
                #expect(try await shell("trash-rm '\(name)'").status == 0)
                #expect(try await shell("ls .Trash-*/files .Trash-*/info").output.contains(name) == false)
                #expect(try await yonder.yonder("wait", "--timeout", "20").status == 0)
                #expect(try await yonder.isThere(yonder.remote("dir with blank/é \(name)")))
                #expect(try await !yonder.isThere(yonder.remoteTrash("files/\(name)")))
                #expect(try await !yonder.isThere(yonder.remoteTrash("info/\(name).trashinfo")))

                // What the command line trashes they find, too.
                #expect(try await yonder.yonder("trash", "put", yonder["dir with blank"]).status == 0)
                #expect(try await shell("trash-list").output.contains(" \(yonder["dir with blank"])\n"))
            }
        }

        @Test(
            "another user has a trash of his own",
            .enabled("\(missingTools ?? "only root can play another user")") {
                missingTools == nil && FUSEAvailability.isRoot
            })
        func anotherUserTrashes() async throws {
            try await Installation.run { yonder in
                try yonder.write("his", to: "his")
                #expect(
                    try await Command.shell(
                        "chmod 777 \"$1\" && chown 65534 \"$1/his\" && chmod 755 \"$2\"", yonder.source.string,
                        yonder.directory.path.string
                    ).status == 0)
                try await yonder.mountSource("--allow-other")
                let user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"]
                try await Command(
                    user + ["gio", "trash", yonder["his"]], environment: ["HOME": yonder.directory.path.string]
                ).run().expectSuccess()
                #expect(try await Command.run("stat", "-c", "%u %a", yonder[".Trash-65534"]).output == "65534 700\n")
                #expect(try await Command.run("cat", yonder[".Trash-65534/files/his"]).output == "his")
                #expect(try await yonder.yonder("wait", "--timeout", "20").status == 0)
                #expect(try await yonder.isThere(yonder.remoteTrash("files/his")))
                #expect(try await Command.run("rm", yonder[".Trash-65534/files/his"]).status == 0)
                #expect(try await yonder.yonder("wait", "--timeout", "20").status == 0)
                #expect(try await !yonder.isThere(yonder.remoteTrash("files/his")))
            }
        }

        @Test("yonder trash puts, lists, restores and empties") func commandLine() async throws {
            try await Installation.mounted(["d/one": "one", "two": "two"]) { yonder async throws in
                let put = try await yonder.json(
                    ItemsReport<TrashedItem>.self, "trash", "put", yonder["d/one"], yonder["two"])
                #expect(put.refusals.isEmpty)
                #expect(put.items.map(\.path) == [yonder.trashed("one"), yonder.trashed("two")])
                let listed = try await yonder.json([TrashedItem].self, "trash", "list", "mount")
                #expect(listed.map(\.originalPath) == [yonder["d/one"], yonder["two"]])
                #expect(try await yonder.yonder("trash", "list").output.contains(yonder["d/one"]))
                let info = try await yonder.info(".Trash-\(getuid())/files/two")
                #expect(info.isTrashed)
                #expect(info.trashParent == "yonder.root")
                #expect(try await yonder.yonder("trash", "restore", yonder.trashed("one")).status == 0)
                #expect(try await Command.run("cat", yonder["d/one"]).output == "one")
                #expect(try await yonder.yonder("trash", "restore", "two", "--to", yonder["d"]).status == 0)
                #expect(try await Command.run("cat", yonder["d/two"]).output == "two")
                #expect(try await !yonder.info("d/two").isTrashed)
                try await yonder.yonder("trash", "restore", "two").expectFailure(saying: "not in the trash")

                #expect(try await yonder.yonder("trash", "put", yonder["d"]).status == 0)
                #expect(try await yonder.yonder("wait", "--timeout", "20").status == 0)
                #expect(try await yonder.isThere(yonder.remoteTrash("files/d/two")))
                #expect(try await yonder.yonder("trash", "empty", "mount").status == 0)
                #expect(try await yonder.yonder("wait", "--timeout", "20").status == 0)
                #expect(try await !yonder.isThere(yonder.remoteTrash("files/d")))
                #expect(try await yonder.json([TrashedItem].self, "trash", "list").isEmpty)
            }
        }

        @Test("CMD-8: a name in two trashes is answered with the paths, and one that the list prints is restored")
        func ambiguousNames() async throws {
            try await Installation.mounted(["b": "one", "d/x": "two"]) { yonder async throws in
                let other = try yonder.directory.makeDirectory("other").string
                try Data("other".utf8).write(to: URL(fileURLWithPath: other + "/b"))
                let place = yonder.directory["place"].string
                try await yonder.yonder("mount", other, place).expectSuccess()
                try await yonder.yonder("trash", "put", yonder["b"], place + "/b").expectSuccess()
                let several = try await yonder.yonder("trash", "restore", "b")
                #expect(several.status == 1, "\(several.errors)")
                for path in [yonder.trashed("b"), "\(place)/.Trash-\(getuid())/files/b"] {
                    #expect(several.errors.contains("'\(path)'"), "\(several.errors)")
                }
                try await yonder.yonder("trash", "restore", yonder["b"]).expectSuccess()
                #expect(try await Command.run("cat", yonder["b"]).output == "one")
                try await yonder.yonder("trash", "restore", place + "/b").expectSuccess()
                #expect(try await Command.run("cat", place + "/b").output == "other")
                // Two items that had one path.
                try await yonder.yonder("trash", "put", yonder["d/x"]).expectSuccess()
                try await Command.shell("echo new > \"$1\"", yonder["d/x"]).expectSuccess()
                try await yonder.yonder("trash", "put", yonder["d/x"]).expectSuccess()
                try await yonder.yonder("trash", "restore", yonder["d/x"]).expectFailure(saying: yonder.trashed("x"))
                #expect(try await yonder.json([TrashedItem].self, "trash", "list").count == 2)
                try await yonder.yonder("unmount", "place").expectSuccess()
            }
        }

        @Test("TRASH-3: names of 255 bytes that differ at the end only are in the trash, and come back as they were")
        func longNames() async throws {
            try await Installation.run { yonder in
                let names = ["a", "b"].map { String(repeating: "x", count: 254) + $0 }
                for name in names { try yonder.write(name, to: name) }
                try await yonder.mountSource()
                for name in names { #expect(try await yonder.yonder("trash", "put", yonder[name]).status == 0) }
                let listed = try await yonder.json([TrashedItem].self, "trash", "list", "mount")
                #expect(Set(listed.map(\.originalPath)) == Set(names.map { yonder[$0] }))
                #expect(try await yonder.yonder("wait", "--timeout", "20").status == 0)
                // In the mount's trash and in the source's.
                let line =
                    "cd \"$1\"/.Trash-*/ && [ \"$(ls files | sed 's/$/.trashinfo/')\" = \"$(ls info)\" ] && ls info | wc -Ll"
                for top in [yonder.mount.string, yonder.source.string] {
                    let counts = try await Command.shell(line, top)
                    #expect(counts.output.split(separator: " ").joined(separator: " ") == "2 255\n", "\(counts)")
                }
                for item in listed { #expect(try await yonder.yonder("trash", "restore", item.path).status == 0) }
                #expect(try await yonder.yonder("wait", "--timeout", "20").status == 0)
                for name in names {
                    #expect(try await Command.run("cat", yonder[name]).output == name)
                    #expect(try String(contentsOfFile: yonder.source.appending(name).string, encoding: .utf8) == name)
                }
            }
        }

        @Test("TRASH-2: what was restored into a directory is there when that is listed from the remote")
        func restoredBeforeListing() async throws {
            try await Installation.mounted(["d/e/g": "precious", "d/f": "other"]) { yonder async throws in
                try await yonder.shell("ls -R")
                #expect(try await yonder.yonder("trash", "put", yonder["d/e"]).status == 0)
                #expect(try await yonder.yonder("wait", "--timeout", "20").status == 0)
                #expect(try await yonder.yonder("evict", yonder["d"]).status == 0)
                #expect(try await yonder.yonder("trash", "restore", "e").status == 0)
                #expect(try await yonder.shell("ls d; cat d/e/g") == "e\nf\nprecious")
                #expect(try await yonder.yonder("wait", "--timeout", "20").status == 0)
                #expect(yonder.sourceText("d/e/g") == "precious")
            }
        }

        @Test("where there is no trash, the command says so and no trash can be made") func readOnlySource()
            async throws
        {
            try await Installation.mounted(["file": "x"], options: ["--read-only"]) { yonder async throws in
                let put = try await yonder.json(ItemsReport<TrashedItem>.self, "trash", "put", yonder["file"])
                #expect(put.items.isEmpty)
                #expect(put.refusals.count == 1)
                #expect(try await Command.run("mkdir", yonder[".Trash-0"]).status != 0)
            }
        }

        @Test("killed right after trashing, it is trashed; and so it is offline") func survivesSIGKILL() async throws {
            try await Installation.mounted(["d/one": "one", "two": "two"]) { yonder async throws in
                _ = try await Command.run("ls", "-R", yonder.mount.string)
                #expect(try await yonder.yonder("pause", "mount").status == 0)
                #expect(try await yonder.yonder("trash", "put", yonder["d"], yonder["two"]).status == 0)
                try await yonder.killDaemon()
                #expect(try await yonder.isThere(yonder.remote("d/one")))
                #expect(try await yonder.yonder("mount", "mount").status == 0)
                #expect(try await Command.run("ls", yonder.mount.string).output == "")
                #expect(try await yonder.yonder("resume", "mount").status == 0)
                #expect(try await Command.run("cat", yonder.trashed("d/one")).output == "one")
                #expect(
                    try await Command.run("cat", yonder[".Trash-\(getuid())/info/two.trashinfo"]).output
                        .contains("\nPath=two\n"))
                #expect(try await yonder.yonder("wait", "--timeout", "20").status == 0)
                #expect(try await yonder.isThere(yonder.remoteTrash("files/d/one")))
                #expect(try await !yonder.isThere(yonder.remote("two")))

                // Offline both ways.
                #expect(try await yonder.yonder("pause", "mount").status == 0)
                #expect(try await yonder.yonder("trash", "restore", "two", "d").status == 0)
                #expect(try await Command.run("cat", yonder["two"]).output == "two")
                #expect(try await yonder.isThere(yonder["d/one"]))
                #expect(try await yonder.isThere(yonder.remoteTrash("files/two")))
                #expect(try await yonder.yonder("resume", "mount").status == 0)
                #expect(try await yonder.yonder("wait", "--timeout", "20").status == 0)
                #expect(try await yonder.isThere(yonder.remote("two")))
                #expect(try await yonder.isThere(yonder.remote("d/one")))
                #expect(try await yonder.status().warnings == [])
            }
        }

        @Test(
            "what is trashed in the source itself is in the mount's trash",
            .enabled("\(missingTools ?? "")") { missingTools == nil })
        func followsTheSource() async throws {
            try await Installation.mounted(["d/one": "one"]) { yonder async throws in
                _ = try await Command.run("ls", "-R", yonder.mount.string)
                let inode = try await yonder.info("d").inode
                // As a program does that finds the source on a file system of its own.
                let trash = """
                    cd "$1" && mkdir -p .Trash-$(id -u)/files .Trash-$(id -u)/info &&
                    printf '[Trash Info]\\nPath=d\\nDeletionDate=2026-01-01T00:00:00\\n' \\
                        > .Trash-$(id -u)/info/d.trashinfo &&
                    mv d .Trash-$(id -u)/files/d
                    """
                #expect(try await Command.shell(trash, yonder.source.string).status == 0)
                #expect(try await eventually { try await yonder.isThere(yonder.trashed("d/one")) })
                #expect(try await eventually { try await !yonder.isThere(yonder["d"]) })
                #expect(try await yonder.info(".Trash-\(getuid())/files/d").inode == inode)
                #expect(try await Command.run("cat", yonder.trashed("d/one")).output == "one")
                #expect(try await yonder.yonder("trash", "restore", "d").status == 0)
                #expect(try await yonder.yonder("wait", "--timeout", "20").status == 0)
                #expect(try await yonder.isThere(yonder.remote("d/one")))
                #expect(try await !yonder.isThere(yonder.remoteTrash("info/d.trashinfo")))
            }
        }

        @Test("TRASH-6: what was in the trash before the first mount keeps its date") func dateOfTheSource()
            async throws
        {
            try await Installation.run { yonder in
                let trash = ".Trash-\(getuid())"
                try yonder.write("old", to: trash + "/files/old")
                // Years apart from now in each time zone.
                try yonder.write(
                    "[Trash Info]\nPath=old\nDeletionDate=2020-03-14T05:06:07\n", to: trash + "/info/old.trashinfo")
                try yonder.write("no date", to: trash + "/files/other")
                try yonder.write(
                    "[Trash Info]\nPath=other\nDeletionDate=2020-02-30T05:06:07\n", to: trash + "/info/other.trashinfo")
                try await yonder.mountSource()
                func dates() async throws -> [String: String] {
                    let items = try await yonder.json([TrashedItem].self, "trash", "list")
                    return Dictionary(items.map { ($0.name, String(($0.trashed ?? "").prefix(8))) }) { $1 }
                }
                #expect(try await eventually { try await dates().count == 2 })
                let shown = try await dates()
                #expect(shown["old"] == "2020-03-")
                #expect(shown["other"]?.hasPrefix("2020") == false)
                let information = try await Command.run("cat", yonder[trash + "/info/old.trashinfo"]).output
                #expect(information.hasSuffix("DeletionDate=2020-03-14T05:06:07\n"))
            }
        }

        @Test("TRASH-6: what another program trashes is in the trash here, also where nothing was listed before")
        func unlistedSource() async throws {
            try await Installation.mounted(["d/one": "one"]) { yonder async throws in
                let trash =
                    "cd \"$1\" && mkdir -p .Trash-$(id -u)/files .Trash-$(id -u)/info && mv d/one .Trash-$(id -u)/files/one"
                #expect(try await Command.shell(trash, yonder.source.string).status == 0)
                #expect(
                    try await eventually {
                        try await yonder.json([TrashedItem].self, "trash", "list").map(\.path) == [
                            yonder.trashed("one")
                        ]
                    })
                #expect(try await Command.run("cat", yonder.trashed("one")).output == "one")
            }
        }
    }
}
