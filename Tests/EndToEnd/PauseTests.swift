import Control
import Daemon
import FileProvider
import FileProviderTesting
import Foundation
import Replica
import Sync
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// Domains that send nothing, because they are paused or not mounted.
    @Suite struct Pausing {
        @Test("CMD-20: changes of a domain that is not mounted are reported, because nothing sends them")
        func unsent() async throws {
            try await Installation.mounted(["file": "x"]) { yonder async throws in
                #expect(try await yonder.yonder("pause", "mount").status == 0)
                // The file, and the date of its directory.
                try await yonder.shell("echo y > new")
                #expect(try await yonder.yonder("pending").errors == "")
                #expect(try await yonder.yonder("unmount", "mount").status == 0)
                let line =
                    "yonder: mount: not mounted, and 2 changes are not sent; 'yonder mount mount' mounts it\n"
                for (command, status) in [("pending", 0), ("status", 0), ("wait", 1)] as [(String, Int32)] {
                    let outcome = try await yonder.yonder(command)
                    #expect(outcome.status == status && outcome.errors == line, "\(command): \(outcome.errors)")
                }
                let report = try await yonder.json(WaitReport.self, "wait")
                #expect(report.unsent.map(\.name) == ["mount"] && !report.hasTimedOut, "\(report)")
                let named = try await yonder.yonder("pending", "mount")
                #expect(named.status == 69 && named.errors == line, "\(named.errors)")
                #expect(try await yonder.yonder("domains").output.contains("not mounted, 2 changes not sent"))
                #expect(try await yonder.yonder("doctor").output.contains("has changes that are not sent"))
                #expect(try await yonder.json([DomainSummary].self, "domains").map(\.unsent) == [2])
                #expect(try await yonder.yonder("mount", "mount").status == 0)
                #expect(try await yonder.yonder("resume", "mount").status == 0)
                let sent = try await yonder.yonder("wait")
                #expect(sent.status == 0 && sent.errors == "" && yonder.sourceText("new") == "y\n", "\(sent.errors)")
                #expect(try await yonder.json(WaitReport.self, "wait") == WaitReport(hasTimedOut: false))
                #expect(try await yonder.json(SignalReport.self, "signal", "--wait").heldRemovals == [])
                // Only the name of a listed directory is found while the domain is paused.
                try await yonder.shell("ls")
                #expect(try await yonder.yonder("pause", "mount").status == 0)
                try await yonder.shell("echo z > new")
                let ended = try await yonder.yonder("wait", "mount", "--timeout", "0", "--json")
                #expect(ended.status == 75 && ended.output.contains("\"hasTimedOut\" : true"), "\(ended)")
                try await yonder.yonder("wait", "mount", "--timeout", "3")
                    .expectFailure(75, saying: "mount: waits for the remote: ")
                #expect(try await yonder.yonder("resume", "mount").status == 0)
                #expect(try await yonder.yonder("wait").status == 0)
                #expect(try await yonder.yonder("unmount", "mount").status == 0)
                let nothing = try await yonder.yonder("wait")
                #expect(nothing.status == 0 && nothing.errors == "", "\(nothing.errors)")
            }
        }

        @Test("SEND-10: a wait for all domains tells of each why it waits")
        func severalDomains() async throws {
            try await Installation.mounted { yonder async throws in
                let source = try yonder.directory.makeDirectory("other source").string
                let other = yonder.directory["other"].string
                try await yonder.yonder("mount", source, other, "--name", "other").expectSuccess()
                for (name, place) in [("mount", yonder.mount.string), ("other", other)] {
                    try await yonder.yonder("pause", name).expectSuccess()
                    try await yonder.expectDone("echo x > \"$1\"/new", place)
                }
                let waited = try await yonder.yonder("wait", "--timeout", "3")
                for name in ["mount", "other"] { waited.expectFailure(75, saying: "\(name): waits for the remote: ") }
                try await yonder.yonder("unmount", "other").expectSuccess()
            }
        }

        @Test(
            "SEND-10: a domain that was paused stays so through a remount, SIGKILL and a restart, until it is resumed")
        func isKept() async throws {
            try await Installation.mounted(["there/file": "x"]) { yonder async throws in
                #expect(try await Command.run("ls", yonder.mount.string).output == "there\n")
                #expect(try await yonder.yonder("pause", "mount").status == 0)
                try await yonder.shell("echo here > new")
                for end in ["unmount", "kill", "shutdown"] {
                    switch end {
                    case "kill": try await yonder.killDaemon()
                    case "shutdown": #expect(try await yonder.yonder("shutdown").status == 0)
                    default: #expect(try await yonder.yonder("unmount", "mount").status == 0)
                    }
                    #expect(try await yonder.yonder("mount", "mount").status == 0)
                    #expect(try await yonder.status().connection == .paused, "\(end)")
                    // Other options are said without resuming it.
                    #expect(try await yonder.yonder("mount", "mount", "--cache-limit", "1G").status == 0)
                    #expect(try await yonder.status().connection == .paused, "\(end)")
                    let read = try await Command.run("ls", yonder["there"])
                    #expect(read.errors.contains("No route to host"), "\(end): \(read.output)\(read.errors)")
                    // A wait that times out shows that nothing is sent, also on request.
                    #expect(try await yonder.yonder("wait", "--timeout", "2").status == 75, "\(end)")
                    #expect(yonder.sourceText("new") == nil, "\(end)")
                }
                #expect(try await yonder.yonder("resume", "mount").status == 0)
                try await yonder.expectSent()
                #expect(yonder.sourceText("new") == "here\n")
                try await yonder.killDaemon()
                #expect(try await yonder.yonder("mount", "mount").status == 0)
                #expect(try await yonder.status().connection == .online)
            }
        }

        @Test(
            "SEND-10: a domain can be paused and resumed while it is not mounted, and a check leaves a paused one alone"
        )
        func whileUnmounted() async throws {
            try await Installation.mounted(["file": "x"]) { yonder async throws in
                #expect(try await yonder.yonder("unmount", "mount").status == 0)
                #expect(try await yonder.yonder("pause", "mount").status == 0)
                let checked = try await yonder.yonder("check", "mount")
                #expect(checked.status == 1 && (checked.output + checked.errors).contains("paused"), "\(checked)")
                #expect(try await yonder.yonder("mount", "mount").status == 0)
                #expect(try await yonder.status().connection == .paused)
                #expect(try await yonder.yonder("unmount", "mount").status == 0)
                #expect(try await yonder.yonder("resume", "mount").status == 0)
                #expect(try await yonder.yonder("check", "mount").status == 0)
                #expect(try await yonder.yonder("mount", "mount").status == 0)
                #expect(try await yonder.status().connection == .online)
                let unknown = try await yonder.yonder("pause", "nothing")
                #expect(unknown.status == 69, "\(unknown.errors)")
            }
        }

        @Test("CMD-24: pause, resume and retry print the domains with --json, and nothing without it") func asJSON()
            async throws
        {
            try await Installation.mounted(["file": "x"]) { yonder async throws in
                let paused = try await yonder.json(PauseReport.self, "pause", yonder.mount.string)
                #expect(paused == PauseReport(name: "mount", isPaused: true))
                try await yonder.shell("echo y > new")
                #expect(try await eventually { try await yonder.status().pending.items > 0 })
                for name in [[], ["mount"], [yonder["new"]]] {
                    let text = try await yonder.yonder(words: ["retry", "--json"] + name).outputBytes
                    let retried = try JSONDecoder().decode([RetryReport].self, from: Data(text))
                    #expect(retried.map(\.name) == ["mount"] && retried.map(\.connection) == [.paused], "\(name)")
                    #expect(retried.allSatisfy { $0.pending.items > 0 && $0.failed == 0 }, "\(retried)")
                }
                for command in ["pause", "resume", "retry"] {
                    let plain = try await yonder.yonder(command, "mount")
                    #expect(plain.status == 0 && plain.output == "" && plain.errors == "", "\(command)")
                }
                #expect(try await yonder.yonder("unmount", "mount").status == 0)
                let resumed = try await yonder.json(PauseReport.self, "resume", "mount")
                #expect(resumed == PauseReport(name: "mount", isPaused: false))
                #expect(try await yonder.json([RetryReport].self, "retry") == [])
                try await yonder.yonder("retry", "--json", "mount").expectFailure(69, saying: "mount")
            }
        }

        @Test("SEND-10: 'yonder why' says that the domain is paused, also in a directory that was never listed")
        func isTheReason() async throws {
            try await Installation.mounted(["there/file": "x"]) { yonder async throws in
                try await yonder.shell("ls")
                #expect(try await yonder.yonder("pause", "mount").status == 0)
                try await yonder.shell("echo here > there/new")
                for name in ["there/new", "there/file"] {
                    let why = try await yonder.yonder("why", yonder[name])
                    let text = why.output + why.errors
                    #expect(text.contains("the domain is paused"), "\(name): \(why)")
                    // What was made here is known.
                    #expect(text.contains("not known yet") == (name == "there/file"), "\(name): \(why)")
                }
            }
        }

        @Test("SEND-10: a call that is under way when the domain is paused ends by itself, and none begins after it")
        func callUnderWay() async throws {
            try await ProvidedMount.run(listing: .root) { _ in
            } _: { mount async throws in
                let gate = mount.provider.faults.hold(.create)
                try await Command.shell("echo new > \"$1\"", mount["new"]).expectSuccess()
                #expect(await eventually(within: .seconds(20)) { gate.waiting > 0 })
                mount.host.engine.pause(.user)
                try await Command.shell("echo late > \"$1\"", mount["late"]).expectSuccess()
                let calls = mount.provider.log.calls.count
                gate.open()
                let database = mount.host.replica.database
                #expect(
                    try await eventually { try database.item(named: "new", in: .root)?.identifier != nil })
                #expect(mount.provider.tree.text(at: "new") == "new\n")
                // An item is sent one second after its last change.
                #expect(try await !mount.host.engine.waitUntilSynced(within: .seconds(2)))
                #expect(mount.provider.log.calls.count == calls)
                mount.host.engine.pause(nil)
                #expect(try await mount.host.engine.waitUntilSynced(within: .seconds(20)))
                #expect(mount.provider.tree.text(at: "late") == "late\n")
            }
        }

        @Test("EVICT-5: what is not sent yet is not evicted by attribute: EINPROGRESS") func evictionWaits()
            async throws
        {
            try await Installation.mounted(["dir/file": "x"]) { yonder async throws in
                #expect(try await Command.run("cat", yonder["dir/file"]).output == "x")
                #expect(try await yonder.yonder("pause", "mount").status == 0)
                try await yonder.shell("echo more >> dir/file; mkdir new")
                for name in ["dir/file", "new"] {
                    var output = ""
                    // The kernel tells of a close a moment after it: until then it is open.
                    let isRefused = try await eventually {
                        output = try await Command.python(
                            """
                            import errno, os, sys
                            try: os.setxattr(sys.argv[1], 'user.yonder.evict', b'1')
                            except OSError as error: print(errno.errorcode[error.errno])
                            """, yonder[name]
                        ).output
                        return output != "EBUSY\n"
                    }
                    #expect(isRefused && output == "EINPROGRESS\n", "\(name): \(output)")
                }
                #expect(try await Command.run("cat", yonder["dir/file"]).output == "xmore\n")
                #expect(try await yonder.yonder("resume", "mount").status == 0)
                try await yonder.expectSent()
                // The comparison has read it: it is open until the kernel tells of the close.
                let isEvicted = try await eventually {
                    try await Command.run("setfattr", "-n", "user.yonder.evict", "-v", "1", yonder["dir/file"]).status
                        == 0
                }
                #expect(isEvicted)
            }
        }
    }
}
