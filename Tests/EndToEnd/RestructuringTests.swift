import Foundation
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// Random sequences of calls on a few names (Programs/remotes/restructurings.py).
    @Suite struct Restructurings {
        /// A folder on this machine, and the servers; with YONDER_REMOTE only the one that it names.
        private static var places: [String] {
            let chosen = ProcessInfo.processInfo.environment["YONDER_REMOTE"]
            return [chosen ?? "folder"].filter { $0 == "folder" } + FarRemote.Kind.installed.map(\.rawValue)
        }

        @Test(
            "SEND-7: whatever is renamed, exchanged, replaced and made again, before its upload and after it, arrives, also over a SIGKILL",
            .timeLimit(.minutes(25)), arguments: places)
        func arrive(at place: String) async throws {
            try await withPlace(place) { yonder, mount, address in
                try await mount(yonder.mount.string)
                let plain = try yonder.directory.makeDirectory("plain")
                try await run("restructurings.py", yonder, [yonder.mount.string, plain.string] + address, seconds: 20)
            }
        }

        @Test(
            "CONFLICT-6: what two clients restructure without hearing of each other comes to be the same, and no content is lost, also over a SIGKILL",
            .timeLimit(.minutes(25)), arguments: places)
        func twoClients(on place: String) async throws {
            try await withPlace(place) { yonder, mount, address in
                let other = yonder.directory["other"].string
                try await mount(yonder.mount.string)
                try await mount(other)
                let plain = try yonder.directory.makeDirectory("plain")
                let lacks = ["sftp": ["--coarse"], "webDAV": ["--no-links"]][place] ?? []
                let words = [yonder.mount.string, other, plain.string] + address + lacks
                do {
                    try await run("two_clients.py", yonder, words, seconds: 15)
                } catch {
                    _ = try? await Command.run("umount", "-l", other)
                    throw error
                }
                #expect(try await yonder.yonder("unmount", other).status == 0)
            }
        }

        @Test(
            "PATH-2: what is changed or read below a directory that another client has moved elsewhere is found there",
            arguments: FarRemote.Kind.installed.filter { $0 != .s3 }, [true, false])
        func movedElsewhere(on kind: FarRemote.Kind, wasRead: Bool) async throws {
            try await FarRemote.run(kind) { remote, yonder async throws in
                let folder = try #require(remote.folder).string
                let fill =
                    "cd \"$1\" && mkdir x y && echo first > x/one && echo second file > x/two && touch -d 2020-01-02 x/* && chmod -R 777 ."
                #expect(try await Command.shell(fill, folder).status == 0)
                try await remote.mount(yonder)
                _ = try await yonder.shell("find . >/dev/null; \(wasRead ? "cat x/*" : "true") >/dev/null")
                #expect(try await Command.shell("mv \"$1/x\" \"$1/y/x\"", folder).status == 0)
                let place = wasRead ? "x" : "y/x"
                // Several wait for one comparison.
                let changes =
                    "cat x/two >/dev/null & cat x/two & echo changed >> x/one; wait; echo new > \(place)/new; "
                    + "mkdir \(place)/made; echo in > \(place)/made/in"
                #expect(try await yonder.shell(changes) == "second file\n")
                #expect(try await yonder.yonder("wait", "--timeout", "50").status == 0)
                let found = try await Command.shell("cd \"$1\" && find . -type f | sort && cat y/x/one", folder)
                #expect(found.output == "./y/x/made/in\n./y/x/new\n./y/x/one\n./y/x/two\nfirst\nchanged\n")
            }
        }

        @Test(
            "PATH-2, CHANGE-4: what another client has moved into a new directory is found there and is no mass deletion, also where its files cannot be told apart",
            arguments: FarRemote.Kind.installed.filter { $0 != .s3 }, [false, true])
        func movedIntoANewDirectory(on kind: FarRemote.Kind, areAlike: Bool) async throws {
            try await FarRemote.run(kind) { remote, yonder async throws in
                let folder = try #require(remote.folder).string
                let date = areAlike ? "2020-01-02" : "@$((1500000000 + 60 * i))"
                let fill =
                    "cd \"$1\" && mkdir P && for i in $(seq 150); do echo content $i > P/f$i; touch -d \(date) P/f$i; done; chmod -R 777 ."
                #expect(try await Command.shell(fill, folder).status == 0)
                try await remote.mount(yonder)
                let number = try await yonder.shell("find . >/dev/null; cat P/* >/dev/null; stat -c %i P/f7")
                let move = "cd \"$1\" && mv P Q && mkdir P && mkdir Q/below && mv Q/f8 Q/below && chmod -R 777 ."
                #expect(try await Command.shell(move, folder).status == 0)
                #expect(try await yonder.yonder("signal", "--wait").status == 0)
                let status = try await yonder.yonder("status")
                #expect(!status.output.contains("vanished"), "\(status.output)")
                if !areAlike {
                    let states =
                        "stat -c %i Q/f7; cd Q; getfattr --only-values -n user.yonder.content f7 below/f8 2>/dev/null"
                    #expect(try await yonder.shell(states) == "\(number)materializedmaterialized")
                }
                let shown = "ls P; ls Q | wc -l; cat Q/f7 Q/below/f8"
                #expect(try await yonder.shell(shown) == "150\ncontent 7\ncontent 8\n")
            }
        }

        /// - Parameter test: receives how to mount the place, and how the programs call it.
        private func withPlace(
            _ place: String, _ test: (Installation, (String) async throws -> Void, [String]) async throws -> Void
        ) async throws {
            guard let kind = FarRemote.Kind(rawValue: place) else {
                return try await Installation.run { yonder in
                    try await test(
                        yonder,
                        { mountpoint in
                            let name = FilePath(mountpoint).lastComponent?.string ?? ""
                            let mounting = try await yonder.yonder(
                                "mount", yonder.source.string, mountpoint, "--name", name)
                            try #require(mounting.status == 0, "\(mounting.errors)")
                        }, ["--folder", yonder.source.string])
                }
            }
            try await FarRemote.run(kind) { remote, yonder async throws in
                try await test(yonder, { try await remote.mount(yonder, at: $0) }, remote.place)
            }
        }

        private func run(
            _ program: String, _ yonder: Installation, _ arguments: [String], seconds: Int
        ) async throws {
            let seconds = FaultRun.seconds ?? (hasTimeForLongTests ? 600 : seconds)
            let words =
                ["python3", Relay.programs + "/" + program] + arguments + ["--yonder", Installation.program]
                + (canContinueMounts ? ["--kill"] : [])
                + ["--seconds", String(seconds), "--seed", String(FaultRun.seed(usually: 1))]
            let outcome = try await Command(words, environment: yonder.environment, seconds: seconds + 300).run()
            #expect(outcome.status == 0, "\(outcome.output)\n\(outcome.errors)")
        }
    }
}
