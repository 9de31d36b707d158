import FileProvider
import FileProviderTesting
import Foundation
import Replica
import Synchronization
import SystemPackage
import TestSupport
import Testing

@testable import Daemon
@testable import Sync

extension RealMount {
    /// What the kernel still knows of names when a command that has changed them is over.
    @Suite struct KernelNames {
        @Test("CMD-4: a change is over for the mount only when the kernel has forgotten the name, however busy it is")
        func theKernelIsWaitedFor() async throws {
            try await ProvidedMount.run(options: ProvidedMount.trashing) { tree in
                tree.addFile("file", content: RemoteContent("old"), identifier: "file")
                tree.addDirectory("dir", identifier: "dir")
            } _: { mount async throws in
                #expect(try await Command.run("ls", mount.path.string).output == "dir\nfile\n")
                #expect(try await Command.run("cat", mount["file"]).output == "old")
                // Who looks for a name in a directory keeps it locked, and with it the queue of what is to be forgotten.
                let gate = mount.provider.faults.hold(.enumerate, of: "dir", heedsCancellation: false)
                defer { gate.open() }
                let looker = try await BackgroundProgram("stat", mount["dir/name"])
                defer { looker.kill() }
                #expect(await mount.provider.log.waits(.enumerate, "dir"))
                let directory = try #require(try mount.host.replica.database.known("dir"))
                var effects = ReplicaEffects()
                effects.invalidations = [.entry(parent: directory.inode.number, name: "name")]
                mount.host.engine.commits.publish(effects)

                try mount.host.trashItem(withIdentifier: "file")
                let isTold = Flag()
                let telling = Task {
                    await mount.host.tellKernel()
                    isTold.set()
                }
                #expect(await !eventually(within: .milliseconds(300)) { isTold.isSet })
                gate.open()
                await telling.value
                _ = try await Command.shell("echo new > \"$1\"", mount["file"])
                #expect(try await Command.run("cat", mount["file"]).output == "new\n")
                #expect(try await Command.run("cat", mount.trashed("file")).output == "old")
            }
        }

        @Test("CMD-4: what is written under a name after `yonder trash put` is no other item")
        func commandsWaitForTheKernel() async throws {
            try await Installation.mounted(["file": "first"], options: ["--name", "home"]) { yonder async throws in
                #expect(try await yonder.shell("cat file") == "first")
                _ = try await yonder.yonder("pause", "home")
                let rounds = 12
                let trashed = yonder[".Trash-\(getuid())/files"]
                for round in 1...rounds {
                    let before = round == 1 ? "first" : "text \(round - 1)\n"
                    let outcome = try await yonder.run(
                        "yonder trash put \"$1/file\" >/dev/null; echo text $2 > \"$1/file\" && cat \"$1/file\"",
                        yonder.mount.string, "\(round)")
                    #expect(outcome.output == "text \(round)\n", "\(outcome.errors)")
                    // Nothing is sent meanwhile.
                    #expect(yonder.sourceText("file") == "first")
                    #expect(
                        try await Command.shell("grep -lxF \"$2\" -r \"$1\" | wc -l", trashed, before.trimmed).line
                            == "1")
                }
            }
        }
    }

    /// Something that has happened.
    private final class Flag: Sendable {
        private let value = Atomic(false)
        var isSet: Bool { value.load(ordering: .acquiring) }
        func set() { value.store(true, ordering: .releasing) }
    }
}

extension String {
    fileprivate var trimmed: String { hasSuffix("\n") ? String(dropLast()) : self }
}
