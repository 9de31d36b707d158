import Control
import Foundation
import SystemPackage
import TestSupport
import Testing

/// What is mounted where, and what is refused.
extension RealMount.CommandLine {
    @Test("mounting twice is fine, and a known domain is mounted where it was") func mountsTwice() async throws {
        try await Installation.mounted(["file": "x"]) { yonder async throws in
            try await yonder.mountSource()
            let domains = try await yonder.json([DomainSummary].self, "domains")
            #expect(
                domains == [
                    DomainSummary(
                        name: "mount", source: yonder.source.string, mountpoint: yonder.mount.string,
                        isMounted: true, isToBeMounted: true)
                ])
            let table = try String(contentsOfFile: "/proc/mounts", encoding: .utf8)
            #expect(table.contains("//yonder/mount \(yonder.mount) fuse.yonder "))
            #expect(try await yonder.yonder("unmount", yonder.mount.string).status == 0)
            #expect(try await yonder.json([DomainSummary].self, "domains").first?.isMounted == false)
            #expect(try await yonder.yonder("mount", "mount").status == 0)
            #expect(try await Command.run("cat", yonder["file"]).output == "x")
        }
    }

    @Test("commands of all domains leave out one that is unmounted meanwhile") func unmountedMeanwhile() async throws {
        try await Installation.mounted { yonder async throws in
            for _ in 0..<5 {
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for command in [["status"], ["trash", "list"], ["pending"]] {
                        group.addTask {
                            for _ in 0..<8 { try await yonder.yonder(words: command).expectSuccess() }
                        }
                    }
                    try await yonder.yonder("unmount", "mount").expectSuccess()
                    try await group.waitForAll()
                }
                try await yonder.yonder("mount", "mount").expectSuccess()
            }
        }
    }

    @Test("NAME-2: domains whose names differ only in Unicode normalization are two") func normalizedNames()
        async throws
    {
        try await Installation.run { yonder in
            let names = ["caf\u{E9}", "cafe\u{301}"]
            for (number, name) in names.enumerated() {
                try yonder.write("\(number)", to: "\(number)/file")
                let place = yonder.directory["place\(number)"].string
                try await yonder.yonder(
                    "mount", yonder.source.appending("\(number)").string, place, "--name", name
                ).expectSuccess()
                #expect(try await Command.run("cat", place + "/file").output == "\(number)")
            }
            func mounted() async throws -> [Bool] {
                let domains = try await yonder.json([DomainSummary].self, "domains")
                return names.map { name in
                    domains.contains { $0.name.utf8.elementsEqual(name.utf8) && $0.isMounted }
                }
            }
            #expect(try await mounted() == [true, true])
            try await yonder.yonder("unmount", names[0]).expectSuccess()
            #expect(try await mounted() == [false, true])
            #expect(try await yonder.json([DomainSummary].self, "domains").count == 2)
            try await yonder.yonder("unmount", names[1]).expectSuccess()
        }
    }

    @Test("of two domains that are to be mounted on one directory at the same time, one is") func onePlace()
        async throws
    {
        try await Installation.run { yonder in
            for name in ["one", "two"] { try yonder.write(name, to: "\(name)/file") }
            for _ in 0..<3 {
                async let one = yonder.yonder(
                    "mount", yonder.source.appending("one").string, yonder.mount.string, "--name", "one")
                async let two = yonder.yonder(
                    "mount", yonder.source.appending("two").string, yonder.mount.string, "--name", "two")
                let outcomes = try await [one, two]
                #expect(outcomes.map(\.status).sorted() == [0, 1])
                #expect(outcomes.contains { $0.errors.contains("is mounted there") })
                let table = try String(contentsOfFile: "/proc/mounts", encoding: .utf8)
                let lines = table.split(separator: "\n")
                #expect(lines.filter { $0.contains(" \(yonder.mount) fuse.yonder ") }.count == 1)
                #expect(try await yonder.yonder("unmount", yonder.mount.string).status == 0)
            }
        }
    }

    @Test("MOUNT-8: mount(8) finds a helper that takes options of fstab and of yonder mount")
    func mountHelper() async throws {
        try await Installation.run { yonder in
            try yonder.write("x", to: "file")
            let helper = yonder.directory["mount.fuse.yonder"].string
            try FileManager.default.createSymbolicLink(atPath: helper, withDestinationPath: Installation.program)
            func mount(_ words: String...) async throws -> Command.Outcome {
                try await Command(
                    [helper, yonder.source.string, yonder.mount.string] + words, environment: yonder.environment,
                    seconds: 30
                ).run()
            }
            let plain = "defaults,nofail,_netdev,x-systemd.automount,x-gvfs-hide,noatime"
            let fake = try await mount("-f", "-o", "ro")
            #expect(fake.status == 0 && yonder.daemon == nil, "\(fake.errors)")
            for (option, words) in [
                ("noexec", "'noexec' is not supported"), ("user", "mounts with 'yonder mount'"),
                ("remount,ro", "'yonder set' changes"), ("frobnicate=5", "Unknown option '--frobnicate'"),
                ("cache_limit=10", "give a unit"),
            ] {
                let refused = try await mount("-o", option)
                #expect(refused.status == 64 && refused.errors.contains(words), "\(option): \(refused.errors)")
            }
            let mounted = try await mount(
                "-n", "-t", "fuse.yonder", "-o",
                "\(plain),ro,cache_limit=10G,metered=pause,name=other,ignore=\"*.a,b\"")
            #expect(mounted.status == 0 && mounted.output + mounted.errors == "", "\(mounted.errors)")
            #expect(try await Command.run("cat", yonder["file"]).output == "x")
            #expect(try await Command.run("touch", yonder["new"]).errors.contains("Read-only file system"))
            let shown = try await yonder.yonder("show", "other").output
            for line in ["cache-limit=\(10 << 30)", "ignore=*.a,b", "metered=pause", "read-only=yes"] {
                #expect(shown.contains(line + "\n"), "\(shown)")
            }
            // As 'mount -a' does it. Of options that contradict each other the last counts.
            #expect(try await mount("-o", "\(plain),rw,ro,ro,name=other").status == 0)
        }
    }

    @Test("what cannot be mounted is refused with the reason") func refusesToMount() async throws {
        try await Installation.run { yonder in
            let full = try yonder.directory.makeDirectory("full")
            _ = try yonder.directory.makeFile("full/thing", [1])
            func refusal(_ arguments: String...) async throws -> String {
                let outcome = try await Command(
                    [Installation.program, "mount"] + arguments, environment: yonder.environment
                ).run()
                #expect(outcome.status == 1)
                return outcome.errors
            }
            #expect(try await refusal(yonder.source.string, full.string).contains("not empty"))
            #expect(try await refusal("/no/such/folder", yonder.mount.string).contains("no such folder"))
            let inside = yonder.source.appending("inside").string
            #expect(try await refusal(yonder.source.string, inside).contains("would contain itself"))
            // What was made for a mount that did not come about is not left behind.
            let unmade = yonder.directory["unmade"].string
            #expect(try await refusal("tar:///no/such.tar", unmade).contains("there is no '/no/such.tar'"))
            #expect(!FileManager.default.fileExists(atPath: unmade))
            let line = "echo secret | \"$1\" mount \"$2\" \"$3\" --password-stdin"
            try await Command(
                ["sh", "-c", line, "sh", Installation.program, yonder.source.string, unmade],
                environment: yonder.environment
            ).run().expectFailure(saying: "--password-stdin is for")
            try await yonder.run("yonder mount \"$1\" \"$2\" --secret tok </dev/null", yonder.source.string, unmade)
                .expectFailure(saying: "--secret tok: the source takes no such secret")
            try await yonder.yonder("mount", yonder.source.string, unmade, "--option", "x=y")
                .expectFailure(64, saying: "'x' is no option of such a source")
            #expect(try await yonder.json([DomainSummary].self, "domains") == [])
            try await yonder.mountSource()
            let other = try yonder.directory.makeDirectory("other source")
            #expect(
                try await refusal(other.string, yonder.directory["x"].string, "--name", "mount")
                    .contains("another source"))
            #expect(
                try await refusal(yonder.source.string, yonder.directory["y"].string, "--name", "mount")
                    .contains("already"))
            // What is made in a mount would go to its remote.
            #expect(try await refusal(other.string, yonder["nested/deep"]).contains("the mount of another domain"))
            #expect(try await Command.run("ls", yonder.mount.string).output == "")
            let file = try yonder.directory.makeFile("file", [1])
            let below = try await refusal(other.string, file.string + "/x")
            #expect(below.contains(file.string + "/x") && below.contains("Not a directory"), "\(below)")
        }
    }
}
