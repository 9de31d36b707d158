import Control
import FileProvider
import FileProviderTesting
import Foundation
import Logging
import Replica
import Sync
import SystemPackage
import TestSupport
import Testing

@testable import Daemon

extension RealMount {
    /// The contract of `reimportItems(below:)` on a real mount, by the numbers of its page.
    @Suite struct Reimporting {
        private static func fill(_ tree: inout RemoteTree) {
            tree.addFile("a", content: RemoteContent("first a"), identifier: "a")
            tree.addDirectory("d", identifier: "d")
            tree.addFile("x", in: "d", content: RemoteContent("first x"), identifier: "x")
            tree.addFile("y", in: "d", content: RemoteContent("first y"), identifier: "y")
        }

        private func isDone(_ mount: ProvidedMount) -> Bool {
            (try? mount.host.replica.database.reimports.requests().isEmpty) == true
        }

        /// Lists everything of a mount, and ends it.
        /// - Returns: the provider of the mount.
        private func mountOnce(in directory: TemporaryDirectory) async throws -> InMemoryProvider {
            let provider = InMemoryProvider()
            provider.change(Self.fill)
            try await ProvidedMount.run(provider: provider, in: directory) { mount async throws in
                _ = try await Command.run("ls", "-R", mount.path.string)
            }
            return provider
        }

        @Test("R1, R2 and R3 on a mount: identifiers are new, inodes and content stay, and the end is told once")
        func onAMount() async throws {
            try await ProvidedMount.run(Self.fill) { mount async throws in
                let before = try await Command.run("ls", "-iR", mount.path.string).output
                #expect(try await Command.run("cat", mount["d/x"]).output == "first x")
                // No listing shows the new identifiers before the call.
                let listings = mount.provider.faults.hold(.enumerate)
                mount.provider.change { $0.loseIdentifiers() }
                let gate = mount.provider.faults.hold(.create)
                try await mount.reimport(below: .rootContainer)
                listings.open()
                #expect(mount.provider.log.count(of: .importDidFinish) == 0)
                // What is here can be used while it waits.
                #expect(try await Command.run("cat", mount["d/x"]).output == "first x")
                gate.open()
                #expect(await eventually { isDone(mount) })
                #expect(mount.provider.log.count(of: .importDidFinish) == 1)
                let offers = mount.provider.log.calls.filter { $0.kind == .create }
                #expect(offers.compactMap(\.name).sorted() == ["a", "d", "x", "y"])
                #expect(try await Command.run("ls", "-iR", mount.path.string).output == before)
                let fetched = mount.provider.log.count(of: .fetch)
                #expect(try await Command.run("cat", mount["d/x"]).output == "first x")
                #expect(mount.provider.log.count(of: .fetch) == fetched)
                #expect(try await Command.run("cat", mount["d/y"]).output == "first y")
                let item = try mount.host.item(for: try #require(mount.provider.tree.identifier(at: "d/x")))
                #expect(item.filename == "x")
            }
        }

        @Test("R1 and R2 when a listing has shown new identifiers before the call, inodes and content stay as well")
        func listedBefore() async throws {
            try await ProvidedMount.run(Self.fill) { mount async throws in
                let before = try await Command.run("ls", "-iR", mount.path.string).output
                #expect(try await Command.run("cat", mount["d/x"]).output == "first x")
                // The listing is here, and what it does not show is not looked up before the call.
                let lookups = mount.provider.faults.hold(.item, of: "a")
                mount.provider.change { $0.loseIdentifiers() }
                #expect(await eventually { lookups.waiting > 0 })
                let renamed = try #require(mount.provider.tree.identifier(at: "a"))
                #expect(throws: Never.self) { try mount.host.item(for: renamed) }
                try await mount.reimport(below: .rootContainer)
                lookups.open()
                #expect(await eventually { isDone(mount) })
                try await mount.host.engine.refresh()
                #expect(try await Command.run("ls", "-iR", mount.path.string).output == before)
                let fetched = mount.provider.log.count(of: .fetch)
                #expect(try await Command.run("cat", mount["d/x"]).output == "first x")
                #expect(mount.provider.log.count(of: .fetch) == fetched)
                #expect(try mount.host.item(for: try #require(mount.provider.tree.identifier(at: "a"))).filename == "a")
            }
        }

        @Test("E5 what is evicted right after a reimport, while it is compared with the remote, goes and stays away")
        func evictedAfterwards() async throws {
            try await ProvidedMount.run(Self.fill) { mount async throws in
                _ = try await Command.shell("ls -R \"$1\"; cat \"$1/d/x\"", mount.path.string)
                let gate = mount.provider.faults.hold(.enumerate)
                mount.provider.change { $0.loseIdentifiers() }
                try await mount.reimport(below: .rootContainer)
                #expect(await eventually { isDone(mount) })
                #expect(await eventually { gate.waiting > 0 })
                try await mount.host.evictItem(identifier: .rootContainer)
                let database = mount.host.replica.database
                #expect(try database.inode(.root)?.content == .dataless)
                gate.open()
                try await mount.host.engine.refresh()
                #expect(try database.inode(.root)?.content == .dataless)
                let directory = try #require(mount.provider.tree.identifier(at: "d"))
                #expect(try database.item(directory)?.inode.content == .dataless)
                #expect(try database.directoriesToCompare().isEmpty)
                #expect(try await Command.run("cat", mount["d/x"]).output == "first x")
            }
        }

        @Test("R3 the end is told once: for what began before it as well, and once more for what begins meanwhile")
        func toldOnce() async throws {
            let directory = try TemporaryDirectory()
            defer { directory.remove() }
            let provider = InMemoryProvider()
            provider.change(Self.fill)
            try await ProvidedMount.run(provider: provider, in: directory) { mount async throws in
                _ = try await Command.run("ls", "-R", mount.path.string)
                // Two that overlap end as one.
                let creations = provider.faults.hold(.create)
                try await mount.reimport(below: "d")
                #expect(await eventually { creations.waiting > 0 })
                try await mount.reimport(below: "a")
                creations.open()
                #expect(await eventually { isDone(mount) })
                #expect(provider.log.count(of: .importDidFinish) == 1)
                // One that begins while the end of another is told has an end of its own.
                let told = provider.faults.hold(.importDidFinish)
                let first = try #require(provider.tree.identifier(at: "a"))
                try await mount.reimport(below: first)
                #expect(await eventually { told.waiting == 1 })
                let second = try #require(provider.tree.identifier(at: "d"))
                try await mount.reimport(below: second)
                told.open()
                #expect(await eventually { isDone(mount) })
                #expect(await eventually { provider.log.count(of: .importDidFinish) == 3 })
            }
            // And never again.
            let again = InMemoryProvider(tree: provider.tree)
            try await ProvidedMount.run(provider: again, in: directory) { mount async throws in
                try await mount.host.engine.refresh()
                #expect(again.log.count(of: .importDidFinish) == 0)
            }
        }

        @Test("R5 the old identifier is noSuchItem after the call, and so is one that never was")
        func unknownItems() async throws {
            try await ProvidedMount.run(listing: .everything, Self.fill) { mount async throws in
                func code(_ identifier: ItemIdentifier) async -> FileProviderError.Code? {
                    await failureCode { try await mount.reimport(below: identifier) }
                }
                #expect(await code("nothing") == .noSuchItem)
                // No listing shows the new identifiers before the call: with one, "d" would be gone already.
                let listings = mount.provider.faults.hold(.enumerate)
                mount.provider.change { $0.loseIdentifiers() }
                #expect(await code("d") == nil)
                #expect(await code("d") == .noSuchItem)
                listings.open()
                #expect(await eventually { isDone(mount) })
            }
        }

        @Test(
            "REIMPORT-5: what a provider asks for before the mount begins with it, and where nothing can be written not at all",
            arguments: [true, false])
        func askedBeforeTheMount(canWrite: Bool) async throws {
            let directory = try TemporaryDirectory()
            defer { directory.remove() }
            let provider = try await mountOnce(in: directory)
            let again = InMemoryProvider(options: .with(\.writing, canWrite), tree: provider.tree)
            let logger = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
            let replica = try Replica(at: directory["replica"], readers: 2, logger: logger)
            do {
                let manager = DomainManager(
                    domain: FileProviderDomain(identifier: "test", source: "memory"),
                    stateDirectory: directory["replica"].appending("provider"), replica: replica, logger: logger)
                try await manager.reimportItems(below: .rootContainer)
            }
            try replica.close()
            try await ProvidedMount.run(provider: again, in: directory) { mount async throws in
                let database = mount.host.replica.database
                #expect(await eventually { (try? database.reimports.asked().isEmpty) == true })
                if canWrite {
                    #expect(await eventually { again.log.count(of: .importDidFinish) == 1 })
                } else {
                    #expect(try database.reimports.requests().isEmpty)
                    #expect(mount.host.engine.warnings.texts.contains { $0.contains("asked for a reimport") })
                    #expect(try database.item("d")?.identifier == "d")
                }
                #expect(try await Command.run("cat", mount["d/y"]).output == "first y")
            }
        }

        @Test("R1 a provider may ask for it itself, before the first call")
        func byTheProvider() async throws {
            let directory = try TemporaryDirectory()
            defer { directory.remove() }
            let provider = try await mountOnce(in: directory)
            provider.change { $0.loseIdentifiers() }
            let again = InMemoryProvider(tree: provider.tree)
            try await ProvidedMount.run(provider: again, in: directory) { mount async throws in
                let manager = try #require(again.manager)
                try await manager.reimportItems(below: .rootContainer)
                #expect(await eventually { again.log.count(of: .importDidFinish) == 1 })
                #expect(try await Command.run("cat", mount["d/y"]).output == "first y")
            }
        }

        @Test(
            "REIMPORT-1: a source whose files are all others: 'yonder reimport --wait' keeps inodes, content and dirty data"
        )
        func aReplacedSource() async throws {
            try await Installation.run { yonder async throws in
                for number in 0..<150 { try yonder.write("content \(number)", to: "d\(number % 7)/f\(number)") }
                try await yonder.mountSource()
                _ = try await yonder.shell("cat d1/* >/dev/null; find . >/dev/null")
                let inode = try await yonder.info("d1/f1").inode
                let other = try await yonder.info("d2/f2").inode
                _ = try await yonder.yonder("pause", yonder.mount.string)
                try await yonder.shell(
                    "echo dirty > d1/f1; echo new > d3/new; mv d2/f2 d4/moved; rm d5/f5; chmod 600 d6/f6")
                let copied = try await Command.shell(
                    "cp -a \"$1\" \"$1.new\" && rm -r \"$1\" && mv \"$1.new\" \"$1\"", yonder.source.string)
                try #require(copied.status == 0, "\(copied.errors)")
                try await yonder.yonder("reimport", yonder.mount.string).expectSuccess()
                #expect(try await yonder.status().reimport?.done == 0)
                #expect(try await yonder.yonder("why", yonder["d1/f1"]).output.contains("waits to be recognized"))
                #expect(try await yonder.pending().keys.contains(yonder.mount.string))
                #expect(try await yonder.info("d1/f8").sync == "pending")
                _ = try await yonder.yonder("resume", yonder.mount.string)
                try await yonder.yonder("wait", "--timeout", "40").expectSuccess()
                #expect(try await yonder.status().reimport == nil)
                try await yonder.expectSent()
                #expect(try await yonder.info("d1/f1").inode == inode)
                #expect(try await yonder.info("d4/moved").inode == other)
                #expect(yonder.sourceText("d1/f1") == "dirty\n")
                #expect(yonder.sourceText("d3/new") == "new\n")
                #expect(yonder.sourceText("d4/moved") == "content 2")
                #expect(yonder.sourceText("d2/f2") == nil && yonder.sourceText("d5/f5") == nil)
                #expect(try await yonder.info("d1/f8").content == "materialized")
            }
        }

        @Test("REIMPORT-1: killed in the middle, it goes on, and a file that is the same is not copied")
        func killed() async throws {
            try await Installation.run { yonder async throws in
                for number in 0..<400 { try yonder.write("content \(number)", to: "d\(number % 10)/f\(number)") }
                try await yonder.mountSource()
                try await yonder.shell("cat */* >/dev/null")
                func listSource() async throws -> String {
                    try await Command.shell(
                        "cd \"$1\" && find . -type f -printf '%p %i %C@\\n' | sort", yonder.source.string
                    ).output
                }
                let before = try await listSource()
                let inodes = try await yonder.shell("find . -printf '%p %i\\n' | sort")
                for _ in 0..<3 {
                    _ = try await yonder.yonder("reimport", yonder.mount.string)
                    try await Task.sleep(for: .milliseconds(150))
                    try await yonder.killDaemon()
                    try await yonder.mountSource()
                }
                try await yonder.yonder("wait", "--timeout", "40").expectSuccess()
                #expect(try await yonder.shell("find . -printf '%p %i\\n' | sort") == inodes)
                let after = try await listSource()
                #expect(after == before)
            }
        }

        @Test("REIMPORT-5: 'yonder reimport --wait' of a paused domain begins the reimport, and ends with the reason")
        func isNotWaitedForWhilePaused() async throws {
            try await Installation.mounted(["a": "a"]) { yonder async throws in
                try await yonder.shell("cat a")
                let path = yonder.mount.string
                _ = try await yonder.yonder("pause", path)
                let ended = try await yonder.yonder("reimport", path, "--wait", seconds: 20)
                #expect(ended.status == 1)
                #expect(ended.errors == "yonder: \(path): the domain is paused: 'yonder resume NAME' goes on\n")
                #expect(try await yonder.status().reimport != nil)
                _ = try await yonder.yonder("resume", path)
                #expect(try await eventually(within: .seconds(20)) { try await yonder.status().reimport == nil })
            }
        }

        @Test("REIMPORT-5: 'yonder reimport --wait' says that it waits for a remote that is away, and goes on with it")
        func waitsForTheRemote() async throws {
            try await Installation.mounted(["a": "a"]) { yonder async throws in
                try await yonder.shell("cat a")
                let (path, errors) = (yonder.mount.string, yonder.directory["errors"].string)
                let (source, away) = (yonder.source.string, yonder.directory["away"].string)
                try FileManager.default.moveItem(atPath: source, toPath: away)
                async let reimport = yonder.run("yonder reimport \"$1\" --wait 2> \"$2\"", path, errors)
                let line = "yonder: \(path): the reimport waits for the remote: "
                #expect(
                    await eventually(within: .seconds(20)) {
                        (try? String(contentsOfFile: errors, encoding: .utf8))?.hasPrefix(line) == true
                    })
                try FileManager.default.moveItem(atPath: away, toPath: source)
                let ended = try await reimport
                #expect(ended.status == 0)
                #expect(try await yonder.status().reimport == nil)
            }
        }

        @Test("REIMPORT-5: 'yonder reimport --wait' of what is being reimported already waits for the end of that")
        func joinsTheOneUnderWay() async throws {
            try await Installation.mounted(["d/a": "a"]) { yonder async throws in
                try await yonder.shell("cat d/a")
                let (path, errors) = (yonder["d"], yonder.directory["errors"].string)
                let (source, away) = (yonder.source.string, yonder.directory["away"].string)
                try FileManager.default.moveItem(atPath: source, toPath: away)
                try await yonder.yonder("reimport", path).expectSuccess()
                let again = try await yonder.yonder("reimport", path)
                #expect(again.status == 1)
                #expect(again.errors == "yonder: \(path): it is being reimported already; --wait waits for the end\n")
                async let joined = yonder.run("yonder reimport \"$1\" --wait 2> \"$2\"", path, errors)
                let line = "yonder: \(path): the reimport waits for the remote: "
                #expect(
                    await eventually(within: .seconds(20)) {
                        (try? String(contentsOfFile: errors, encoding: .utf8))?.hasPrefix(line) == true
                    })
                try FileManager.default.moveItem(atPath: away, toPath: source)
                let ended = try await joined
                #expect(ended.status == 0)
                #expect(try await yonder.status().reimport == nil)
            }
        }

        @Test func trashedItemsAreRecognizedInTheTrash() async throws {
            try await Installation.mounted(["d/1": "1", "d/e/2": "2", "t": "t", "u": "u"]) { yonder async throws in
                try await yonder.shell("find . >/dev/null; cat d/1 t >/dev/null")
                _ = try await yonder.yonder("trash", "put", yonder["t"], yonder["d/e"])
                #expect(try await yonder.yonder("wait", "--timeout", "20").status == 0)
                _ = try await yonder.yonder("pause", yonder.mount.string)
                _ = try await yonder.yonder("trash", "put", yonder["u"])
                try await yonder.shell("mv d/1 1")
                #expect(try await yonder.yonder("reimport", yonder.mount.string).status == 0)
                _ = try await yonder.yonder("resume", yonder.mount.string)
                let waited = try await yonder.yonder("wait", "--timeout", "20")
                let pending = try await yonder.yonder("pending").output
                #expect(waited.status == 0, "\(pending)")
                #expect(yonder.sourceText("1") == "1" && yonder.sourceText("d/1") == nil)
                #expect(yonder.sourceText("u") == nil)
                _ = try await yonder.yonder("trash", "restore", "t", "e", "u")
                #expect(try await yonder.yonder("wait", "--timeout", "20").status == 0)
                #expect(yonder.sourceText("t") == "t" && yonder.sourceText("d/e/2") == "2")
                #expect(yonder.sourceText("u") == "u")
                #expect(try await yonder.shell("cat t u d/e/2") == "tu2")
            }
        }

        @Test func refusedReimportsAreReported() async throws {
            try await Installation.mounted(["a": "a"]) { yonder async throws in
                _ = try await yonder.shell("ls")
                let nothing = try await yonder.yonder("reimport", yonder["nothing"])
                #expect(nothing.status == 1)
                #expect(nothing.errors.hasPrefix("yonder: \(yonder["nothing"]): "))
                #expect(try await yonder.yonder("reimport", "/nowhere").status == 69)
                let done = try await yonder.json(ReimportReport.self, "reimport", yonder["a"], "--wait")
                #expect(done.isFinished && done.refusals.isEmpty)
            }
        }
    }
}
