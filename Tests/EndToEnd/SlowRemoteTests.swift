import FUSE
import FileProvider
import FileProviderTesting
import Mount
import Replica
import SystemPackage
import TestSupport
import Testing

@testable import Daemon

extension RealMount {
    /// A remote that answers late or never: local content works, and no process hangs.
    @Suite(.tags(.timing)) struct SlowRemote {
        @Test("ERROR-2: what is known answers at once while the remote thinks; Ctrl-C ends the wait; the mount can go")
        func noProcessHangs() async throws {
            try await ProvidedMount.run { tree in
                tree.addFile("here", content: RemoteContent("here"), identifier: "here")
                tree.addFile("away", content: RemoteContent("away"), identifier: "away")
                tree.addDirectory("dir", identifier: "dir")
            } _: { mount async throws in
                #expect(try await Command.run("ls", mount.path.string).output == "away\ndir\nhere\n")
                #expect(try await Command.run("cat", mount["here"]).output == "here")
                let gate = mount.provider.faults.hold(.fetch, heedsCancellation: false)
                let listing = mount.provider.faults.hold(.enumerate, heedsCancellation: false)
                let reader = try await BackgroundProgram("cat", mount["away"])
                defer { reader.kill() }
                let lister = try await BackgroundProgram("ls", mount["dir"])
                defer { lister.kill() }
                #expect(await mount.provider.log.waits(.fetch, "away"))
                #expect(await mount.provider.log.waits(.enumerate, "dir"))

                for command in [
                    ["ls", "-l", mount.path.string], ["cat", mount["here"]], ["stat", mount["away"]],
                    ["df", mount.path.string], ["getfattr", "-n", "user.yonder.content", mount["away"]],
                ] {
                    let outcome = try await Command(command).run()
                    #expect(outcome.status == 0)
                    // The remote answers nothing meanwhile: what waited for it would not end at all.
                    #expect(outcome.duration < .seconds(5), "\(command)")
                }
                // One second, with time for a busy machine: the remote would not answer at all.
                reader.interrupt()
                #expect(await reader.ends(within: .seconds(5)))
                lister.interrupt()
                #expect(await lister.ends(within: .seconds(5)))

                let stubborn = try await BackgroundProgram("cat", mount["away"])
                defer { stubborn.kill() }
                #expect(await mount.provider.log.waits(for: 2, .fetch, "away"))
                let start = ContinuousClock.now
                await mount.host.stop()
                #expect(ContinuousClock.now - start < .seconds(5))
                #expect(await stubborn.ends())
                #expect(stubborn.status != 0)
                gate.open()
                listing.open()
            }
        }

        @Test("ERROR-2: the reader's leaving cancels the transfer") func cancelsTransfers() async throws {
            try await ProvidedMount.run { tree in
                tree.addFile("file", content: .pattern(size: 1 << 20, seed: 1), identifier: "file")
            } _: { mount async throws in
                let gate = mount.provider.faults.hold(.fetch)
                let reader = try await BackgroundProgram("md5sum", mount["file"])
                defer { reader.kill() }
                #expect(await mount.provider.log.waits(.fetch))
                reader.interrupt()
                #expect(await reader.ends(within: .seconds(5)))
                #expect(await eventually { !mount.provider.log.calls(of: .fetch).contains { !$0.wasCancelled } })
                gate.open()
                mount.provider.faults.clear()
                #expect(try await Command.run("md5sum", mount["file"]).status == 0)
            }
        }

        @Test("READ-4: ten readers at once make one transfer") func oneTransfer() async throws {
            try await ProvidedMount.run { tree in
                tree.addFile("file", content: .pattern(size: 3 << 20, seed: 2), identifier: "file")
            } _: { mount async throws in
                let gate = mount.provider.faults.hold(.fetch)
                let read = """
                    for i in 1 2 3 4 5 6 7 8 9 10; do md5sum < "$1" & done; wait
                    """
                async let outcome = Command.shell(read, mount["file"])
                #expect(await mount.provider.log.waits(.fetch))
                gate.open()
                let lines = try await outcome.output.split(separator: "\n")
                #expect(lines.count == 10)
                #expect(Set(lines).count == 1)
                let fetched = mount.provider.log.calls(of: .fetch).map { ($0.range ?? 0..<(3 << 20)) }
                #expect(fetched.reduce(0) { $0 + $1.count } == 3 << 20, "each byte is fetched once: \(fetched)")
            }
        }

        /// Runs a test while the kernel does not learn that `b/grown` grows (``grow(_:)``): it waits for bytes of another file.
        private func runBehindASlowFile(_ test: (ProvidedMount) async throws -> Void) async throws {
            try await ProvidedMount.run { tree in
                // Each has a directory of its own, so that none is fetched ahead.
                tree.addDirectory("a", identifier: "a")
                tree.addFile("slow", in: "a", content: .pattern(size: 30_000, seed: 4), identifier: "slow")
                tree.addDirectory("b", identifier: "b")
                tree.addFile("grown", in: "b", content: .pattern(size: 30_000, seed: 5), identifier: "grown")
            } _: { mount async throws in
                let sizes = try await Command.run("stat", "-c", "%s", mount["a/slow"], mount["b/grown"])
                #expect(sizes.output == "30000\n30000\n")
                let notifications = mount.host.mounted.session.notifications
                let (slow, grown) = (try mount.node(of: "slow"), try mount.node(of: "grown"))
                let gate = mount.provider.faults.hold(.fetch, of: "slow")
                let reader = try await BackgroundProgram("cat", mount["a/slow"])
                defer { reader.kill() }
                #expect(await mount.provider.log.waits(.fetch, "slow"))
                // The kernel does not end this invalidation before it has the bytes, and the next one waits for that.
                notifications.invalidateContents(slow)
                try await test(mount)
                #expect(notifications.isInvalidating(grown), "the kernel has the size from the invalidation")
                gate.open()
            }
        }

        /// Has `b/grown` get 300,000 bytes on the remote, and waits until they are known here.
        private func grow(_ mount: ProvidedMount) async throws {
            let (notifications, grown) = (mount.host.mounted.session.notifications, try mount.node(of: "grown"))
            mount.provider.change { $0.write(.pattern(size: 300_000, seed: 7), to: "grown") }
            #expect(await eventually { notifications.isInvalidating(grown) })
            #expect(try mount.host.item(for: "grown").documentSize == 300_000)
        }

        @Test("OPEN-1: a file that has grown is read to its end while the kernel waits for bytes of another one")
        func grownBehindASlowFile() async throws {
            try await runBehindASlowFile { mount async throws in
                try await grow(mount)
                #expect(try await Command.shell("cat \"$1\" | wc -c", mount["b/grown"]).line == "300000")
            }
        }

        @Test("OPEN-7: what is appended to a file that has grown goes to its end meanwhile")
        func appendedBehindASlowFile() async throws {
            try await runBehindASlowFile { mount async throws in
                try await grow(mount)
                let outcome = try await Command.shell(Self.append, mount["b/grown"])
                #expect(outcome.output == "300003\nend", "\(outcome.errors)")
            }
        }

        @Test("OPEN-7: an append that waits for content while the kernel is not told of a change is opened anew once")
        func appendedWhileItGrows() async throws {
            try await runBehindASlowFile { mount async throws in
                let gate = mount.provider.faults.hold(.fetch, of: "grown")
                async let appending = Command.shell(Self.append, mount["b/grown"])
                #expect(await mount.provider.log.waits(.fetch, "grown"))
                try await grow(mount)
                gate.open()
                let outcome = try await appending
                #expect(outcome.output == "300003\nend", "\(outcome.errors)")
            }
        }

        /// Appends to a file, and writes its size and its end to standard output.
        private static let append = "printf end >> \"$1\" && stat -c %s \"$1\" && tail -c 3 \"$1\""

        @Test("a reader gets bytes as they arrive") func streams() async throws {
            try await ProvidedMount.run(options: .with(\.chunkSize, 64 << 10)) { tree in
                tree.addFile("file", content: .pattern(size: 4 << 20, seed: 3), identifier: "file")
            } _: { mount async throws in
                let gate = Gate()
                mount.provider.faults.add(.holdTransfer(after: 512 << 10, gate), to: .fetch)
                let head = try await Command.run("head", "-c", "1000", mount["file"])
                #expect(head.outputBytes == RemoteContent.pattern(size: 4 << 20, seed: 3)[0..<1000])
                gate.open()
            }
        }
    }
}

extension ProvidedMount {
    /// The kernel's number for an item.
    fileprivate func node(of identifier: ItemIdentifier) throws -> NodeID {
        let item = try #require(try host.replica.database.item(identifier))
        return NodeID(UInt64(bitPattern: item.inode.number.rawValue))
    }
}
