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

        private func fillThree(_ tree: inout RemoteTree) { fill(["one", "two", "three"], in: &tree) }

        private func fill(_ names: [String], in tree: inout RemoteTree) {
            for name in names {
                tree.addDirectory(name, identifier: ItemIdentifier(name))
                for number in 0..<60 {
                    tree.addFile(
                        "\(name)-\(number)", in: ItemIdentifier(name), content: RemoteContent("\(name) \(number)"))
                }
            }
        }

        @Test("CHANGE-4: what is held is not evicted, and while less than 90 % are missing the rest is sent")
        func lastCopies() async throws {
            try await Machine.run(fill: fillThree) { machine async throws in
                for name in ["one", "three"] { _ = try await machine.read("\(name)/\(name)-0") }
                machine.provider.change { tree in
                    tree.delete("one")
                    tree.delete("two")
                }
                try await machine.ingest()
                let held = try await machine.number("one/one-0")
                let report = try await machine.engine.evict(held, isStrict: false)
                #expect(report.refusals.map(\.refusal) == [.removalsAreHeld])
                #expect(try await machine.read("one/one-0") == "one 0")
                try await machine.write("new", to: "three/new")
                try await machine.send()
                #expect(machine.provider.tree.entries()["three/new"]?.content == "new")
                try await machine.engine.retry()
                try await machine.ingest()
                let other = try await machine.number("three/three-0")
                #expect(try await machine.engine.evict(other, isStrict: false).refusals.isEmpty)
            }
        }

        @Test(
            "CHANGE-4: what is made or changed in a directory whose removal is held says why it waits, and is sent after a decision",
            arguments: ["retry", "reimport"])
        func newWork(decision: String) async throws {
            try await Machine.run(fill: fillThree) { machine async throws in
                machine.provider.change { tree in
                    tree.delete("one")
                    tree.delete("two")
                }
                try await machine.ingest()
                try await machine.write("new", to: "one/new")
                try await machine.write("changed", to: "one/one-7")
                try await machine.send()
                for (path, missing) in [("one/new", "its directory 'one'"), ("one/one-7", "it")] {
                    let number = try await machine.number(path)
                    let failure = try #require(try machine.replica.database.failure(of: number))
                    #expect(failure.code == "removalsAreHeld")
                    let reason = failure.message
                    #expect(reason.hasPrefix("the remote no longer has \(missing), and removals are held"), "\(reason)")
                    #expect(reason.contains("'yonder retry NAME'") && reason.contains("'yonder reimport'"))
                }
                #expect(machine.provider.tree.identifier(at: "one") == nil)
                if decision == "retry" {
                    try await machine.engine.retry()
                    try await machine.ingest()
                    try await machine.drain()
                    #expect(await !machine.exists("one/one-8"))
                } else {
                    try await machine.engine.reimport(below: .root)
                    await machine.engine.continueReimport()
                    try await machine.drain(atMost: 2000)
                    await machine.engine.continueReimport()
                }
                let entries = machine.provider.tree.entries()
                #expect(entries["one/new"]?.content == "new")
                #expect(entries["one/one-7"]?.content == "changed")
                #expect(machine.engine.heldRemovals == nil)
            }
        }

        @Test(
            "CHANGE-4: what was made in a directory that was missing is sent at once when that is back, and nothing else for that",
            arguments: [["one", "two", "three"], ["one"]])
        func directoryIsBack(back: [String]) async throws {
            func fillSix(_ tree: inout RemoteTree) {
                fill(["one", "two", "three", "four", "five", "six"], in: &tree)
            }
            try await Machine.run(isInteractive: false, fill: fillSix) { machine async throws in
                let before = machine.provider.tree
                machine.provider.faults.add(.refuse(reason: "no"), to: .create)
                try await machine.write("refused", to: "six/new")
                let refused = try await machine.item("six/new")
                let isRefused = try await eventually(within: .seconds(10)) {
                    try machine.replica.database.failure(of: refused.inode.number) != nil
                }
                #expect(isRefused)
                machine.provider.faults.clear()
                machine.provider.change { tree in
                    for directory: ItemIdentifier in ["one", "two", "three"] { tree.delete(directory) }
                }
                try await machine.ingest()
                try await machine.write("new", to: "one/new")
                let number = try await machine.number("one/new")
                let isHeld = try await eventually(within: .seconds(10)) {
                    try machine.replica.database.failure(of: number)?.code == "removalsAreHeld"
                }
                #expect(isHeld)
                // A caller that waits has it tried once, and is told.
                await #expect { try await machine.engine.send(number) } throws: {
                    guard let error = $0 as? FileProviderError else { return false }
                    return error.code == .removalsAreHeld && error.readerErrno == .ioError
                }
                machine.provider.change { tree in
                    for directory in back.map(ItemIdentifier.init(rawValue:)) {
                        tree.addDirectory(directory.rawValue, identifier: directory)
                        for item in before.items(in: directory) {
                            let content = before.content(of: item.itemIdentifier) ?? .bytes([])
                            tree.addFile(
                                item.filename, in: directory, content: content, identifier: item.itemIdentifier)
                        }
                    }
                }
                try await machine.ingest()
                // A change that is refused is tried again after half a minute.
                #expect(
                    await eventually(within: .seconds(10)) {
                        machine.provider.tree.entries()["one/new"]?.content == "new"
                    })
                #expect((machine.engine.heldRemovals == nil) == (back.count == 3))
                #expect(try machine.replica.database.pendingItem(refused.id)?.state.attempts == 1)
            }
        }

        @Test("CHANGE-4: what waits for what is held is tried after an hour, then after two, also after a restart")
        func triedOnce() async throws {
            try await Machine.run(options: .with(\.changeFeed, false), fill: fillThree) { machine async throws in
                let before = machine.provider.tree
                machine.provider.changeSilently { tree in
                    tree.delete("one")
                    tree.delete("two")
                }
                try await machine.ingest()
                try await machine.write("new", to: "one/new")
                // The first time it waits for a comparison.
                try await machine.send(passes: 1)
                try await machine.ingest()
                try await machine.send(passes: 1)
                let restarted = try machine.crash()
                let item = try await restarted.item("one/new")
                let row = item.id
                let unread = FileProviderError(.cannotSynchronize, "cannot be read")
                await restarted.engine.commits.recordFailure(unread, of: item.inode.number)
                let waiting = try #require(try restarted.replica.database.pendingItem(row)?.state)
                #expect(waiting.attempts == 1 && waiting.waitsForRemovals)
                var planner = Planner()
                planner.holdsRemovals = restarted.engine.context.guardian.holdsRemovals
                for (seconds, count) in [(3_000, 0), (3_700, 1)] {
                    var position = PendingPosition()
                    let plan = try planner.plan(
                        from: restarted.replica, at: Replica.now.advanced(by: .seconds(seconds)), limit: 100,
                        position: &position, isBusy: { _ in false })
                    #expect(plan.steps.count { $0.operation == .creation(row: row) } == count, "\(seconds)")
                }
                // It waits for no comparison again.
                try await restarted.send(passes: 1)
                let later = try #require(try restarted.replica.database.pendingItem(row)?.state)
                #expect(later.attempts == 2 && later.waitsForRemovals)
                let time = try #require(later.nextTry)
                #expect(time > Replica.now.advanced(by: .seconds(7_000)))
                restarted.provider.changeSilently { $0 = before }
                try await restarted.ingest()
                #expect(restarted.engine.heldRemovals == nil)
                #expect(try await restarted.operations().contains(.creation(row: row)))
                try await restarted.drain()
                #expect(restarted.provider.tree.entries()["one/new"]?.content == "new")
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
