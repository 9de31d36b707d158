import FileProvider
import FileProviderTesting
import Logging
import Replica
import Synchronization
import SystemPackage
import TestSupport
import Testing

@testable import Sync

extension EngineTests {
    /// When much may be removed at once.
    @Suite struct DeletionGuardTests {
        func make() -> (DeletionGuard, Warnings) {
            let warnings = Warnings(logger: .init(label: "test"))
            return (DeletionGuard(domainName: "NAME", warnings: warnings), warnings)
        }

        @Test("CHANGE-4: leave that is given while a round runs holds for what that round finds")
        func leaveDuringARound() {
            let (guardian, warnings) = make()
            guardian.beginRound()
            #expect(!guardian.admits(gone: 200, of: 300))
            guardian.endRound()
            guardian.beginRound()
            guardian.release()
            #expect(guardian.admits(gone: 200, of: 300))
            guardian.endRound()
            #expect(warnings.texts.isEmpty)
            guardian.beginRound()
            #expect(!guardian.admits(gone: 200, of: 300))
        }

        @Test("CHANGE-4: leave that is given after a round has held something holds for the next round")
        func leaveAfterItWasHeld() {
            let (guardian, _) = make()
            guardian.beginRound()
            #expect(!guardian.admits(gone: 200, of: 300))
            guardian.release()
            guardian.endRound()
            guardian.beginRound()
            #expect(guardian.admits(gone: 200, of: 300))
            guardian.endRound()
            guardian.beginRound()
            #expect(!guardian.admits(gone: 200, of: 300))
        }

        @Test("CHANGE-4: leave without anything held is none") func noLeaveAhead() {
            let (guardian, _) = make()
            guardian.release()
            guardian.beginRound()
            guardian.release()
            #expect(!guardian.admits(gone: 200, of: 300))
            guardian.endRound()
        }

        @Test("CHANGE-4: what was held is also held where more is known by then") func growingDomain() {
            let (guardian, warnings) = make()
            guardian.beginRound()
            #expect(!guardian.admits(gone: 200, of: 300))
            guardian.endRound()
            guardian.beginRound()
            #expect(!guardian.admits(gone: 200, of: 3000))
            guardian.endRound()
            #expect(warnings.texts.count == 1)
            // Most of it is back.
            guardian.beginRound()
            #expect(guardian.admits(gone: 99, of: 3000))
            guardian.endRound()
            #expect(warnings.texts.isEmpty)
        }

        @Test("CHANGE-4: what was found missing alone and is known again does not count", arguments: [true, false])
        func returned(isBack: Bool) {
            let (guardian, _) = make()
            #expect(guardian.admitsOne("directory", gone: 90, of: { 110 }, isKnown: { _ in false }))
            #expect(guardian.admitsOne("file", gone: 20, of: { 110 }, isKnown: { _ in isBack }) == isBack)
            guardian.beginRound()
            guardian.forgetReturned { _ in isBack }
            #expect(guardian.admits(gone: 30, of: 110) == isBack)
        }

        @Test("CHANGE-4: what is held is held after a restart", arguments: [false, true])
        func restart(isOfNearlyAll: Bool) throws {
            let kept = Mutex<String?>(nil)
            let warnings = Warnings(logger: .init(label: "test"))
            let guardian = DeletionGuard(domainName: "NAME", warnings: warnings) { hold in
                kept.withLock { $0 = hold?.text }
            }
            guardian.beginRound()
            #expect(!guardian.admits(gone: 200, of: isOfNearlyAll ? 201 : 300))
            let hold = try #require(kept.withLock { $0 }.flatMap(DeletionGuard.Hold.init))
            let next = DeletionGuard(domainName: "NAME", warnings: warnings, hold: hold)
            #expect(next.holdsChanges == isOfNearlyAll)
            next.beginRound()
            #expect(!next.admits(gone: 200, of: 3000))
            #expect(!next.admitsOne("item", gone: 1, of: { 3000 }, isKnown: { _ in false }))
            #expect(next.warning?.contains("have vanished") == true)
        }

        @Test("CHANGE-4: while a round is held no part of what is missing is removed") func parts() async throws {
            func fill(_ tree: inout RemoteTree) {
                for name in ["one", "two"] {
                    tree.addDirectory(name, identifier: ItemIdentifier(name))
                    for number in 0..<80 {
                        tree.addFile("f\(number)", in: ItemIdentifier(name), content: RemoteContent("\(number)"))
                    }
                }
            }
            try await Machine.run(options: .with(\.changeFeed, false), fill: fill) { machine async throws in
                machine.provider.changeSilently { tree in
                    for path in tree.entries().keys where path.contains("/") {
                        tree.identifier(at: path).map { tree.delete($0) }
                    }
                }
                // Each directory has to be compared for that.
                for name in ["one", "two"] { _ = try? await machine.materialize(name + "/f0") }
                for _ in 0..<3 { try await machine.ingest() }
                for name in ["one", "two"] {
                    #expect(try await machine.names(in: machine.number(name)).count == 80)
                }
                try await machine.engine.retry()
                try await machine.ingest()
                #expect(try await machine.names(in: machine.number("one")).isEmpty)
            }
        }

        @Test("CHANGE-4: the root is none of the items that are missing in it") func smallRoot() async throws {
            func fill(_ tree: inout RemoteTree) {
                tree.addDirectory("all", identifier: "all")
                for number in 0..<120 { tree.addFile("f\(number)", in: "all", content: RemoteContent("\(number)")) }
                tree.addFile("note", content: RemoteContent("note"), identifier: "note")
            }
            try await Machine.run(fill: fill) { machine async throws in
                // The answer to the root's new date says that the root is in itself.
                try await machine.write("text", to: "other")
                try await machine.remove("other")
                try await machine.drain()
                machine.provider.changeSilently { $0.delete("note") }
                // A look at the root is believed for two seconds.
                try await Task.sleep(for: .milliseconds(2_100))
                try await machine.write("new", to: "new")
                try await machine.send()
                #expect(machine.provider.tree.entries()["new"]?.content == "new")
                #expect(!machine.engine.warnings.texts.contains { $0.contains("vanished") })
            }
        }

        @Test("CHANGE-4: reads of what is missing remove no more than a round may", arguments: [true, false])
        func readsOfMissingFiles(hasChangeFeed: Bool) async throws {
            // Without a feed the first read has all directories compared.
            let left = hasChangeFeed ? 50 : 150
            try await Self.runOnDirectory(changeFeed: hasChangeFeed) { machine async throws in
                let full = machine.provider.tree
                try await machine.materialize("doc/f0")
                machine.provider.changeSilently { $0.delete("doc") }
                if hasChangeFeed {
                    // Otherwise the first read has the feed tell that all are missing.
                    let failure = FileProviderError(.malformedResponse)
                    machine.provider.faults.fail(.changes, of: .workingSet, with: failure, times: nil)
                }
                for number in 1..<150 { _ = try? await machine.materialize("doc/f\(number)") }
                #expect(try await machine.names(in: machine.number("doc")).count == left)
                #expect(machine.engine.warnings.texts.contains { $0.contains("have vanished") })
                machine.provider.faults.clear()
                try await machine.ingest()
                #expect(try await machine.names(in: machine.number("doc")).count == left)
                machine.provider.changeSilently { $0 = full }
                // The feed does not tell that the whole tree was replaced.
                guard !hasChangeFeed else { return }
                try await machine.ingest()
                #expect(try await machine.names(in: machine.number("doc")).count == 150)
                #expect(machine.engine.warnings.texts == [])
            }
        }

        @Test("CHANGE-4: what a feed tells after a read of a missing file is held as in a round")
        func newsAfterARead() async throws {
            try await Self.runOnDirectory(changeFeed: true) { machine async throws in
                try await machine.materialize("doc/f0")
                try await machine.ingest()
                machine.provider.changeSilently { $0.delete("doc") }
                _ = try? await machine.materialize("doc/f1")
                #expect(try await machine.names(in: machine.number("doc")).count == 150)
                #expect(machine.engine.warnings.texts.contains { $0.contains("have vanished") })
                try await machine.ingest()
                #expect(try await machine.names(in: machine.number("doc")).count == 150)
                try await machine.engine.retry()
                try await machine.ingest()
                #expect(await !machine.exists("doc"))
            }
        }

        @Test("CHANGE-4: a retry while a round runs removes what was held") func retryDuringARound() async throws {
            func many(_ tree: inout RemoteTree) {
                tree.addDirectory("big", identifier: "big")
                for number in 0..<150 { tree.addFile("f\(number)", in: "big", content: RemoteContent("\(number)")) }
                for number in 0..<200 { tree.addFile("r\(number)", content: RemoteContent("r\(number)")) }
            }
            try await Machine.run(fill: many) { machine async throws in
                machine.provider.change { $0.delete("big") }
                try await machine.ingest()
                #expect(await machine.exists("big/f7"))
                let gate = machine.provider.faults.hold(.changes)
                let round = Task { try await machine.ingest() }
                #expect(await eventually { gate.waiting == 1 })
                try await machine.engine.retry()
                gate.open()
                try await round.value
                #expect(await !machine.exists("big"))
                #expect(machine.engine.warnings.texts == [])
            }
        }

        @Test("CHANGE-4: a reimport goes on while changes are held, and ends that where all has other identifiers")
        func reimportWhileChangesAreHeld() async throws {
            try await Self.runOnDirectory { machine async throws in
                machine.provider.change { $0.loseIdentifiers() }
                try await machine.ingest()
                try await machine.makeDirectory("doc/new")
                try await machine.write("changed", to: "doc/f7")
                #expect(try await machine.operations().isEmpty)
                try await machine.engine.reimport(below: .root)
                await machine.engine.continueReimport()
                #expect(try await !machine.operations().isEmpty)
                try await machine.drain(atMost: 2000)
                await machine.engine.continueReimport()
                #expect(machine.engine.warnings.texts == [])
                #expect(machine.provider.tree.identifier(at: "doc/new") != nil)
                #expect(machine.provider.tree.entries().count == 152)
                #expect(machine.provider.tree.entries()["doc/f7"]?.content == "changed")
            }
        }
    }
}
