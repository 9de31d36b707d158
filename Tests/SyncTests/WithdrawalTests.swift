import FileProvider
import FileProviderTesting
import Replica
import TestSupport
import Testing

@testable import Sync

extension EngineTests {
    /// What becomes of an item that the remote has and the provider does not want any more.
    @Suite struct WithdrawalTests {
        private func refuse(_ machine: Machine, _ identifier: ItemIdentifier) {
            machine.provider.faults.fail(.modify, of: identifier, with: FileProviderError(.excludedFromSync))
        }

        private func excluded(_ paths: [String], _ machine: Machine) async throws -> [Bool] {
            var answers: [Bool] = []
            for path in paths { answers.append(try await machine.item(path).isExcluded) }
            return answers
        }

        @Test("ERROR-5: a file that the provider excludes is brought here first, and deleted on the remote then")
        func file() async throws {
            try await Machine.run(fill: ScriptRun.fill) { machine in
                let inode = try await machine.number("a")
                refuse(machine, "a")
                try await machine.rename("a", to: "own")
                try await machine.drain()
                #expect(try await machine.item("own").isExcluded)
                #expect(try await machine.number("own") == inode)
                #expect(machine.provider.tree["a"] == nil)
                #expect(machine.provider.tree["b"] != nil)
                let calls = machine.provider.log.calls.map(\.kind).filter { $0 == .fetch || $0 == .delete }
                #expect(calls == [.fetch, .delete])
                #expect(try await machine.read("own") == "first a")
                #expect(machine.provider.log.count(of: .fetch) == 1)
                #expect(try machine.replica.database.pendingCounts().items == 0)
                #expect(try machine.replica.database.defects() == [])
                // The item belongs to this machine alone: a change of it is not sent.
                try await machine.write("mine", to: "own")
                try await machine.drain()
                #expect(machine.provider.log.count(of: .create) == 0)
            }
        }

        @Test("ERROR-5: with a directory all below it is brought here, listed or not, and what is new in it stays, too")
        func directory() async throws {
            try await Machine.run(fill: ScriptRun.fill) { machine in
                machine.provider.change { tree in
                    tree.addDirectory("deep", in: "f", identifier: "deep")
                    tree.addFile("z", in: "deep", content: RemoteContent("first z"), identifier: "z")
                }
                try await machine.ingest()
                try await machine.write("new", to: "e/new")
                try await machine.send()
                #expect(machine.provider.tree.entries()["e/new"]?.content == "new")
                refuse(machine, "e")
                try await machine.rename("e", to: "own")
                try await machine.write("newer", to: "own/newer")
                try await machine.drain()
                let paths = ["own", "own/f", "own/f/deep", "own/f/deep/z", "own/new", "own/newer"]
                #expect(try await excluded(paths, machine) == paths.map { _ in true })
                #expect(Set(machine.provider.tree.entries().keys) == ["a", "b", "d", "d/x", "d/y"])
                #expect(try await machine.read("own/f/deep/z") == "first z")
                #expect(try await machine.read("own/new") == "new")
                #expect(try machine.replica.database.pendingCounts().items == 0)
                #expect(try machine.replica.database.defects() == [])
                #expect(machine.provider.log.count(of: .create) == 1, "only what was made before the refusal")
            }
        }

        @Test("ERROR-5: what cannot be brought here is not deleted; it is pending with the reason until it can")
        func missingContent() async throws {
            try await Machine.run(fill: ScriptRun.fill) { machine in
                refuse(machine, "d")
                machine.provider.faults.fail(.fetch, of: "y", with: FileProviderError(.cannotSynchronize), times: nil)
                try await machine.rename("d", to: "own")
                try await machine.send(passes: 1)
                #expect(machine.provider.log.count(of: .delete) == 0)
                #expect(machine.provider.tree.entries().count == 7)
                let item = try await machine.item("own")
                #expect(!item.isExcluded)
                #expect(try machine.replica.database.syncState(of: item) == .failed)
                let failure = try #require(try machine.replica.database.failure(of: item.inode.number))
                #expect(failure.code == "excludedFromSync")
                #expect(failure.message.contains("as soon as all of it is here"))
                machine.provider.faults.clear()
                refuse(machine, "d")
                try await machine.engine.retry()
                try await machine.drain()
                #expect(try await excluded(["own", "own/x", "own/y"], machine) == [true, true, true])
                #expect(Set(machine.provider.tree.entries().keys) == ["a", "b", "e", "e/f"])
                #expect(try await machine.read("own/y") == "first y")
            }
        }

        @Test("ERROR-5: all of it comes here and stays, also where the cache may not hold so much") func cacheLimits()
            async throws
        {
            let limits = CacheLimits(bytes: 20)
            try await Machine.run(isInteractive: false, cacheLimits: limits) { tree in
                tree.addDirectory("d", identifier: "d")
                for number in 0..<40 {
                    tree.addFile(
                        "f\(number)", in: "d", content: RemoteContent("content"),
                        identifier: ItemIdentifier("f\(number)"))
                }
            } _: { machine async throws in
                machine.provider.faults.delay(.fetch, by: .milliseconds(50))
                refuse(machine, "d")
                try await machine.rename("d", to: "own")
                #expect(try await machine.engine.waitUntilSynced(within: .seconds(20)))
                #expect(try await machine.item("own").isExcluded)
                #expect(machine.provider.tree.entries().isEmpty)
                #expect(machine.provider.log.count(of: .fetch) == 40)
                #expect(try await machine.engine.evict(.root, isStrict: false).evictedFiles == 0)
                for number in 0..<40 { #expect(try await machine.read("own/f\(number)") == "content") }
                #expect(machine.provider.log.count(of: .fetch) == 40)
            }
        }

        @Test("ERROR-5: a crash between the refusal and the deletion loses nothing and deletes no more than once")
        func crash() async throws {
            try await Machine.run(fill: ScriptRun.fill) { machine in
                refuse(machine, "d")
                let gate = machine.provider.faults.hold(.fetch, of: "y", times: 1)
                try await machine.rename("d", to: "own")
                let sending = Task { try await machine.send(passes: 1) }
                #expect(await eventually { gate.waiting == 1 })
                let next = try machine.crash()
                await machine.engine.stop()
                sending.cancel()
                _ = try? await sending.value
                machine.provider.faults.clear()
                refuse(next, "d")
                try await next.drain()
                #expect(try await excluded(["own", "own/x", "own/y"], next) == [true, true, true])
                #expect(try await next.read("own/x") == "first x")
                #expect(try await next.read("own/y") == "first y")
                #expect(next.provider.log.calls(of: .delete).count == 3)
                #expect(try next.replica.database.defects() == [])
                await next.stop()
            }
        }

        @Test("ERROR-5: what the remote does not delete is shown beside what stays here") func deletionIsRejected()
            async throws
        {
            try await Machine.run(fill: ScriptRun.fill) { machine in
                refuse(machine, "a")
                machine.provider.faults.fail(.delete, of: "a", with: FileProviderError(.deletionRejected))
                try await machine.setPermissions(of: "a", to: 0o600)
                try await machine.drain()
                #expect(try await machine.item("a").isExcluded)
                #expect(try await machine.item("a (2)").identifier == "a")
                #expect(try await machine.read("a (2)") == "first a")
                #expect(try machine.replica.database.defects() == [])
            }
        }

        @Test("R5, ERROR-5: what is offered again and not wanted stays, with all in it that is here; the rest is gone")
        func offered() async throws {
            try await Machine.run(fill: ScriptRun.fill) { machine in
                let inode = try await machine.number("d/x")
                #expect(try await machine.read("d/x") == "first x")
                try await machine.engine.materialize(inode, request: machine.request)
                machine.provider.change { $0.loseIdentifiers() }
                try await machine.engine.reimport(below: .root)
                let directory = try await machine.item("d").placeholder
                machine.provider.faults.fail(
                    .create, of: directory, with: FileProviderError(.excludedFromSync), times: nil)
                await machine.engine.continueReimport()
                try await machine.drain()
                await machine.engine.continueReimport()
                #expect(try machine.replica.database.reimports.requests().isEmpty, "it would never end")
                #expect(machine.provider.log.count(of: .importDidFinish) == 1)
                #expect(try await excluded(["d", "d/x"], machine) == [true, true])
                #expect(try await machine.number("d/x") == inode)
                #expect(try await machine.read("d/x") == "first x")
                #expect(try await machine.names(in: machine.number("d")) == ["x"])
                #expect(machine.engine.warnings.texts.contains { $0.contains("does not want 'y'") })
                // Nothing was removed there because of that.
                #expect(machine.provider.log.count(of: .delete) == 0)
                #expect(machine.provider.tree.entries().count == 7)
                #expect(try machine.replica.database.pendingCounts().items == 0)
                #expect(try machine.replica.database.defects() == [])
            }
        }
    }
}
