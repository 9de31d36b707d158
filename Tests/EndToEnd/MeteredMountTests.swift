import Control
import Foundation
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// Domains that wait while the network connection is metered.
    @Suite(
        .tags(.server),
        .enabled(if: PlayedSystemBus.obstacle == nil, "\(PlayedSystemBus.obstacle ?? "")"))
    struct MeteredMounts {
        /// Runs a test with an installation that uses a bus, and with a program that serves its source folder.
        private func run(
            _ first: String, _ test: (PlayedSystemBus, Installation) async throws -> Void
        ) async throws {
            try await PlayedSystemBus.run(first) { bus in
                try await Installation.run { installation in
                    let folder = try installation.directory.makeDirectory("config/yonder/providers")
                    let program = FilePath(#filePath).removingLastComponent()
                        .appending("../ProgramProviderTests/Programs/folder.py")
                    try FileManager.default.createSymbolicLink(
                        atPath: folder.appending("yonder-provider-folder").string,
                        withDestinationPath: program.string)
                    let configuration = ["XDG_CONFIG_HOME": installation.directory["config"].string]
                    try await test(bus, installation.with(configuration.merging(bus.environment) { $1 }))
                }
            }
        }

        private func mount(_ yonder: Installation, _ reaction: String) async throws {
            let mounted = try await yonder.yonder(
                "mount", "folder:\(yonder.source.string)", yonder.mount.string, "--metered", reaction)
            try #require(mounted.status == 0, "\(mounted.errors)")
        }

        private func becomes(_ connection: DomainStatus.Connection, _ yonder: Installation) async throws -> Bool {
            try await eventually(within: .seconds(20)) { try await yonder.status().connection == connection }
        }

        @Test("LIMIT-6: a domain waits while the network connection is metered, says so, and goes on by itself")
        func waits() async throws {
            try await run("0") { bus, yonder in
                try await mount(yonder, "pause")
                #expect(try await yonder.yonder("show", "mount").output.contains("metered=pause\n"))
                #expect(try await yonder.status().connection == .online)
                try await yonder.shell("ls")
                for (metered, other, name) in [("1", "2", "sure"), ("3", "4", "guessed")] {
                    try await bus.set(metered)
                    #expect(try await becomes(.paused, yonder))
                    try await yonder.shell("echo text > \(name)")
                    for words in [["status"], ["why", yonder[name]], ["top"], ["doctor"]] {
                        let told = try await yonder.yonder(words: words).output
                        #expect(told.contains("metered") && told.contains("yonder resume"), "\(words): \(told)")
                    }
                    #expect(try await yonder.yonder("wait", "--timeout", "2").status == 75)
                    #expect(yonder.sourceText(name) == nil)
                    try await bus.set(other)
                    #expect(try await becomes(.online, yonder))
                    #expect(try await yonder.yonder("wait", "--timeout", "30").status == 0)
                    #expect(yonder.sourceText(name) == "text\n")
                }
            }
        }

        @Test("LIMIT-6: the user resumes a domain on a metered connection, and pauses it on any")
        func resumes() async throws {
            try await run("1") { bus, yonder in
                try await mount(yonder, "pause")
                #expect(try await becomes(.paused, yonder))
                #expect(try await yonder.yonder("resume", "mount").status == 0)
                #expect(try await yonder.status().connection == .online)
                try await yonder.shell("echo text > file")
                #expect(try await yonder.yonder("wait", "--timeout", "30").status == 0)
                #expect(yonder.sourceText("file") == "text\n")
                // It counts until the connection is not metered any more.
                try await bus.setAndAwaitReader("2")
                // The daemon handles one value after the other, and has handled the first when it reads the second.
                try await bus.setAndAwaitReader("4")
                try await bus.set("1")
                #expect(try await becomes(.paused, yonder))
                #expect(try await yonder.yonder("set", "mount", "metered=ignore").status == 0)
                #expect(try await yonder.status().connection == .online)
                #expect(await eventually { bus.clients == 0 })
                #expect(try await yonder.yonder("set", "mount", "metered=pause").status == 0)
                #expect(try await becomes(.paused, yonder))
                #expect(try await yonder.yonder("pause", "mount").status == 0)
                for value in ["2", "4"] { try await bus.setAndAwaitReader(value) }
                #expect(try await yonder.status().connection == .paused)
                #expect(try await yonder.yonder("resume", "mount").status == 0)
                #expect(try await yonder.status().connection == .online)
                try await yonder.yonder("set", "mount", "metered=stop").expectFailure(64, saying: "metered")
            }
        }

        @Test("LIMIT-6: on a metered connection a known domain begins paused, and a check leaves the remote alone")
        func begins() async throws {
            try await run("2") { bus, yonder in
                try yonder.write("x", to: "there/file")
                try await mount(yonder, "pause")
                #expect(try await Command.run("ls", yonder.mount.string).output == "there\n")
                #expect(try await yonder.yonder("unmount", "mount").status == 0)
                #expect(await eventually { bus.clients == 0 })
                try await bus.set("1")
                let checked = try await yonder.yonder("check", "mount")
                #expect(checked.status == 1 && (checked.output + checked.errors).contains("metered"), "\(checked)")
                #expect(try await yonder.yonder("mount", "mount").status == 0)
                #expect(try await becomes(.paused, yonder))
                try await yonder.shell("echo text > new")
                #expect(try await yonder.yonder("wait", "--timeout", "2").status == 75)
                #expect(yonder.sourceText("new") == nil)
            }
        }

        @Test("LIMIT-6: the bus and NetworkManager may come and go, and what follows them ends with the daemon")
        func busRestarts() async throws {
            try await run("1") { bus, yonder in
                try await mount(yonder, "pause")
                #expect(try await becomes(.paused, yonder))
                try await bus.set("bus")
                #expect(try await becomes(.online, yonder))
                try await bus.set("1")
                #expect(try await becomes(.paused, yonder))
                try await bus.set("none")
                #expect(try await becomes(.online, yonder))
                try await bus.set("1")
                #expect(try await becomes(.paused, yonder))
                #expect(await eventually { bus.clients == 1 })
                try await yonder.killDaemon()
                #expect(await eventually { bus.clients == 0 })
                #expect(try await yonder.yonder("mount", "mount").status == 0)
                #expect(try await becomes(.paused, yonder))
                #expect(try await yonder.yonder("shutdown").status == 0)
                #expect(await eventually { bus.clients == 0 })
            }
        }

        @Test("LIMIT-6: a folder is not affected, and nothing is asked for domains that go on")
        func unaffected() async throws {
            try await run("1") { bus, yonder in
                try await yonder.mountSource("--metered", "pause")
                #expect(try await yonder.status().connection == .online)
                #expect(bus.clients == 0)
                try await yonder.shell("echo text > file")
                try await yonder.expectSent()
                #expect(try await yonder.yonder("remove", "mount").status == 0)
                try await mount(yonder, "ignore")
                #expect(try await yonder.status().connection == .online)
                #expect(bus.clients == 0)
            }
        }

        @Test("LIMIT-6: without a bus no connection is metered, which the status tells once and the log does not")
        func withoutBus() async throws {
            try await run("none") { _, yonder in
                try await mount(yonder, "pause")
                #expect(try await yonder.status().connection == .online)
                try await yonder.shell("echo text > file")
                #expect(try await yonder.yonder("wait", "--timeout", "30").status == 0)
                let log = try await yonder.yonder("log").output
                #expect(!log.contains("metered") && !log.contains("gdbus"), "\(log)")
                let words = "'--metered pause' has no effect: NetworkManager does not say"
                // A mount does not wait long for what the bus says.
                let isTold = try await eventually(within: .seconds(20)) {
                    try await yonder.yonder("status").output.contains(words)
                }
                #expect(isTold)
                for command in ["status", "doctor"] {
                    let told = try await yonder.yonder(command).output
                    #expect(told.components(separatedBy: words).count == 2, "\(command): \(told)")
                }
                #expect(try await yonder.yonder("mount", "mount").errors.contains("warning: " + words))
                #expect(try await yonder.yonder("set", "mount", "metered=ignore").status == 0)
                #expect(try await !yonder.yonder("status").output.contains(words))
            }
        }
    }
}
