import Control
import Foundation
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// How items and domains are named on the command line.
    @Suite struct NamedPaths {
        @Test("CMD-1: a symbolic link to a mount, into it or in it names what it leads to") func links() async throws {
            try await Installation.mounted(["directory/file": "x"]) { yonder async throws in
                try await yonder.shell("ls directory; ln -s directory inside")
                let (mount, inside) = (yonder.directory["mount-link"].string, yonder.directory["inside-link"].string)
                for (link, target) in [(mount, yonder.mount.string), (inside, yonder["directory"])] {
                    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: target)
                }
                for words in [["status", mount], ["wait", mount + "/"], ["ls", inside], ["info", inside + "/file"]] {
                    let outcome = try await yonder.yonder(words[0], words[1])
                    #expect(outcome.status == 0, "\(words): \(outcome.errors)")
                }
                #expect(try await yonder.yonder("mkdir", yonder["inside/new"]).status == 0)
                #expect(try await yonder.isThere(yonder["directory/new"]))
                // A link in the mount is an item of its own, and what removes a link does not follow it.
                #expect(try await yonder.info("inside").kind == "symlink")
                #expect(try await yonder.yonder("delete", inside).status == 69)
                #expect(try await yonder.isThere(yonder["directory/new"]))
                #expect(try await yonder.yonder("unmount", mount).status == 0)
            }
        }

        @Test("CMD-1: a slash at the end names a directory") func slashes() async throws {
            try await Installation.mounted(["hello.txt": "x", "d/file": "xyz"]) { yonder async throws in
                try await yonder.shell("cat hello.txt d/file >/dev/null; ln -s d link; ln -s hello.txt to-file")
                for (command, name) in [
                    ("delete", "hello.txt/"), ("delete", "link/"), ("delete", "to-file/"), ("evict", "hello.txt/"),
                    ("download", "to-file/"), ("tag", "hello.txt/."), ("rename", "hello.txt/"), ("rename", "link/"),
                    ("move", "hello.txt/"), ("move", "to-file/."),
                ] {
                    let rest = ["tag": ["--set", "a"], "rename": ["new"], "move": [yonder["d"]]]
                    let words = [command, yonder.mount.string + "/" + name] + (rest[command] ?? [])
                    let outcome = try await yonder.yonder(words: words)
                    #expect(outcome.status == 1, "\(words): \(outcome.errors)")
                    #expect(outcome.errors.contains("not a directory"), "\(words): \(outcome.errors)")
                }
                try await yonder.yonder("wait", "--timeout", "20").expectSuccess()
                #expect(try await yonder.shell("ls") == "d\nhello.txt\nlink\nto-file\n")
                // Where the link leads.
                let before = try await yonder.status().bytes.local
                try await yonder.yonder("evict", yonder["link"] + "/").expectSuccess()
                #expect(try await yonder.status().bytes.local == before - 3)
                try await yonder.yonder("download", yonder["link"] + "/").expectSuccess()
                #expect(try await yonder.status().bytes.local == before)
                try await yonder.yonder("rename", yonder["d"] + "/", "e").expectSuccess()
                try await yonder.yonder("mkdir", yonder["f"]).expectSuccess()
                try await yonder.yonder("move", yonder["e"] + "/", yonder["f"] + "/").expectSuccess()
                #expect(try await yonder.shell("ls . f") == ".:\nf\nhello.txt\nlink\nto-file\n\nf:\ne\n")
                try await yonder.yonder("delete", yonder["link"], yonder["f"] + "/").expectSuccess()
                #expect(try await yonder.shell("ls") == "hello.txt\nto-file\n")
            }
        }

        @Test("CMD-1: a slash at the end names a directory, also to a command that only looks") func slashesOfLooks()
            async throws
        {
            try await Installation.mounted(["hello.txt": "x", "d/file": "xyz"]) { yonder async throws in
                try await yonder.shell("ls d; cat hello.txt d/file >/dev/null; ln -s d link")
                for command in ["ls", "du", "info", "why"] {
                    let outcome = try await yonder.yonder(command, yonder["hello.txt"] + "/")
                    #expect(outcome.status == 1 && outcome.errors.contains("not a directory"), "\(outcome.errors)")
                }
                let link = yonder["link"] + "/"
                let listed = try await yonder.json([ItemInformation].self, "ls", link)
                #expect(listed.map(\.path) == [yonder["link/file"]])
                let usage = try await yonder.json([LocalUsage.Entry].self, "du", link).first
                #expect(usage?.path == yonder["link"] && usage?.local == 3)
                let item = try await yonder.json(ItemInformation.self, "info", link)
                #expect(item.path == yonder["link"] && item.kind == "directory")
                #expect(try await yonder.info("link").kind == "symlink")
                #expect(try await yonder.yonder("why", link).output.contains("  A directory, "))
            }
        }

        @Test("CMD-1: '..' behind a symbolic link leads to the directory above its target") func parents() async throws
        {
            try await Installation.mounted(["d/inner/f": "f", "d/x": "in d", "x": "above"]) { yonder async throws in
                try await yonder.shell("ls -R >/dev/null; ln -s d/inner link")
                let path = yonder["link"] + "/../x"
                #expect(try await yonder.json(ItemInformation.self, "info", path).size == 4)
                #expect(try await yonder.json(ItemInformation.self, "info", yonder["d"] + "/../x").size == 5)
                let names = try await yonder.json([ItemInformation].self, "ls", yonder["link"] + "/..").map(\.path)
                #expect(names == [yonder["link"] + "/../inner", path])
                try await yonder.yonder("info", yonder["x"] + "/../d").expectFailure(saying: "not a directory")
                // The working directory is known without links.
                let near = try await yonder.run("cd \"$1\" && yonder ls ..", yonder["link"])
                #expect(near.status == 0 && near.output.hasSuffix("  x\n"), "\(near.output)\(near.errors)")
                try await yonder.yonder("mkdir", yonder["link"] + "/../made").expectSuccess()
                try await yonder.yonder("delete", path).expectSuccess()
                #expect(try await yonder.shell("ls . d") == ".:\nd\nlink\nx\n\nd:\ninner\nmade\n")
                // Out of the mount, and into it again.
                let again = yonder["d"] + "/../../mount/x"
                #expect(try await yonder.json(ItemInformation.self, "info", again).path == yonder["x"])
            }
        }

        @Test("MOUNT-1: a known domain is mounted by the path of its directory") func mountsByPath() async throws {
            try await Installation.mounted(["file": "x"]) { yonder async throws in
                let path = yonder.mount.string
                #expect(try await yonder.yonder("unmount", path).status == 0)
                #expect(try await yonder.yonder("mount", path).status == 0)
                #expect(try await Command.run("cat", yonder["file"]).output == "x")
                let none = try await yonder.yonder("mount", yonder.directory["other"].string)
                #expect(none.status == 1 && none.errors.contains("no such domain"), "\(none.errors)")
            }
        }

        @Test("CMD-17: a path in a mount where nothing is does not fail as an unknown domain")
        func missing() async throws {
            try await Installation.mounted(["file": "x"]) { yonder async throws in
                #expect(try await yonder.shell("ls") == "file\n")
                let commands = ["wait", "retry", "pending", "status", "signal", "pause", "show", "unmount"]
                for command in commands + ["remove", "check"] {
                    let path = try await yonder.yonder(command, yonder["nosuch"])
                    #expect(path.status == 1, "\(command): \(path.errors)")
                    #expect(path.errors.contains("no such file or directory"), "\(command): \(path.errors)")
                    #expect(!path.errors.contains("nor a path in a mounted one"), "\(command): \(path.errors)")
                    let name = try await yonder.yonder(command, "nosuch")
                    #expect(name.status == (commands.contains(command) ? 69 : 1), "\(command): \(name.errors)")
                    #expect(name.errors.contains("no such domain, nor a path"), "\(command): \(name.errors)")
                }
            }
        }

        @Test("CMD-8: an option that 'yonder set' does not know is answered with the command that shows them")
        func unknownOption() async throws {
            try await Installation.mounted { yonder async throws in
                let outcome = try await yonder.yonder("set", "mount", "foo=1")
                #expect(outcome.status == 64, "\(outcome.errors)")
                let advice = "'foo' is no option of such a source; 'yonder show mount' shows"
                #expect(outcome.errors.contains(advice), "\(outcome.errors)")
                #expect(!outcome.errors.contains("--foo"), "\(outcome.errors)")
            }
        }

        @Test(
            "CMD-8: a mistake in the arguments is answered with what is wrong",
            arguments: [
                ("help nonsense", 64, "there is no command 'nonsense'"),
                ("help trash bogus", 64, "there is no command 'trash bogus'"),
                ("help trash pit", 64, "did you mean 'trash put'?"), ("mount S D -o foo", 64, "takes NAME=VALUE"),
                ("mount ''", 64, "the source is empty"), ("mount S D --limit-up 1", 64, "at least 32K"),
                ("provider check nonsense", 1, "neither a program nor"),
                ("provider check /bin/sh", 64, "give location=LOCATION"),
                ("provider check /bin/sh location=", 64, "give location=LOCATION"),
                ("set NAME cache-limit", 64, "yonder set NAME OPTION=VALUE"),
                ("set NAME cache-limit", 64, "'cache-limit' is not OPTION=VALUE"),
                ("wait --timeout -1", 64, "--timeout takes a number of seconds"),
                ("du -d -1", 64, "--depth takes a number from 0"), ("log -n -2", 64, "--lines takes a number from 0"),
                ("favorite --rank 5 --remove FILE", 64, "give --rank or --remove"),
                ("remove NAME --keep none --to DIR", 64, "'--keep none' keeps none"),
                ("used --at 2026-02-30T12:00:00Z FILE", 64, "is not a time in RFC 3339 format"),
                ("mount S D --poll -1", 64, "--poll takes a number of seconds"),
                ("mount S D --cache-limit -1", 64, "'-1' is invalid for '--cache-limit <size>'"),
                ("mount S D --umask -1", 64, "'-1' is invalid for '--umask <mask>'"),
                ("dashboard --port -1", 64, "'-1' is invalid for '--port <port>'"),
                ("download --range -1:10 FILE", 64, "'-1:10' is not a range: OFFSET:LENGTH"),
                ("used --at -1 FILE", 64, "'-1' is not a time in RFC 3339 format"),
                ("allow 5 --bytes -1", 64, "'-1' is invalid for '--bytes <size>'"),
                ("allow -- -1", 64, "-1 is no process ID"), ("allow 0", 64, "0 is no process ID"),
                ("mount S D --read-only --no-read-only", 64, "already been set with flag '--read-only'"),
                ("mount S D --no-suid --suid", 64, "already been set with flag '--no-suid'"),
                ("set NAME read-only=yes read-only=no", 64, "read-only is given twice"),
            ])
        func mistakes(line: String, status: Int32, words: String) async throws {
            let outcome = try await Command.shell("'\(Installation.program)' \(line)")
            #expect(outcome.status == status && outcome.errors.contains(words), "\(outcome.errors)")
        }
    }
}
