import FileProvider
import FileProviderTesting
import Replica
import TestSupport
import Testing

@testable import Sync

extension EngineTests {
    /// In which order changes are sent, and how many calls they take.
    @Suite struct SendingOrderTests {
        private func kinds(_ machine: Machine) -> [ProviderCallKind] { machine.provider.tree.applied.map(\.kind) }

        // MARK: - Names that wait for each other

        @Test(arguments: [
            // A chain, a swap, a circle of three, each by way of a name that is free.
            [["b", "t"], ["a", "b"]],
            [["a", "t"], ["b", "a"], ["t", "b"]],
            [["a", "t"], ["b", "a"], ["c", "b"], ["t", "c"]],
            // Directories change places, and their children with them.
            [["d", "t"], ["e", "d"], ["t", "e"], ["d/f", "e/f"], ["e/x", "d/x"]],
            // What was inside is outside now.
            [["e/f", "t"], ["e", "t/e"], ["t", "e2"], ["e2", "e"]],
            [["e/f", "f"], ["e", "f/e"]],
            [["e/f", "t"], ["e", "t/f"], ["t", "e"]],
            [["d/x", "t"], ["a", "d/x"], ["t", "a"]],
        ])
        func renamesThatDependOnEachOtherArrive(renames: [[String]]) async throws {
            try await Machine.run(fill: fill) { machine in
                for rename in renames { try await machine.rename(rename[0], to: rename[1]) }
                let wanted = try await machine.entries().mapValues(\.content)
                try await machine.send()
                #expect(machine.provider.tree.entries().mapValues(\.content) == wanted)
                try await machine.settle()
                #expect(Set(kinds(machine)) == [.modify])
            }
        }

        @Test("SEND-8: a wait for an item waits for its own name after one that makes room") func swapsAreWaitedFor()
            async throws
        {
            try await Machine.run(isInteractive: false, fill: fill) { machine in
                machine.provider.faults.delay(.modify, by: .milliseconds(100))
                machine.engine.pause(.user)
                for rename in [["a", "t"], ["b", "a"], ["t", "b"]] {
                    try await machine.rename(rename[0], to: rename[1])
                }
                var waiting: [Task<Bool, any Error>] = []
                for name in ["a", "b"] {
                    let number = try await machine.number(name)
                    waiting.append(
                        Task {
                            _ = try await machine.engine.waitUntilSynced(below: number, within: .seconds(20))
                            return try await machine.item(name).base.name == name
                        })
                }
                try await Task.sleep(for: .milliseconds(100))
                machine.engine.pause(nil)
                for task in waiting { #expect(try await task.value) }
                #expect(try await machine.engine.waitUntilSynced(within: .seconds(20)))
                try await machine.expectSettled()
            }
        }

        @Test("SEND-7: names are swapped although another upload has not ended") func swapsDoNotWaitForOthers()
            async throws
        {
            try await Machine.run(isInteractive: false, fill: fill) { machine in
                let gate = machine.provider.faults.hold(.create, times: 1)
                try await machine.write("large", to: "n")
                #expect(await eventually(within: .seconds(20)) { gate.waiting == 1 })
                try await machine.rename("a", to: "b", .exchange)
                #expect(
                    await eventually(within: .seconds(20)) {
                        let tree = machine.provider.tree
                        return tree["a"]?.filename == "b" && tree["b"]?.filename == "a"
                    })
                #expect(gate.waiting == 1)
                gate.open()
                #expect(try await machine.engine.waitUntilSynced(within: .seconds(20)))
                try await machine.expectSettled()
            }
        }

        @Test("SEND-7: an item keeps its name on the remote while another, that has the new name, cannot be renamed")
        func nothingIsMovedAsideForAFailedRename() async throws {
            try await Machine.run(isInteractive: false, fill: fill) { machine in
                machine.provider.faults.fail(
                    .modify, of: "b", with: FileProviderError(.cannotSynchronize, "it is locked"), times: nil)
                try await machine.rename("b", to: "c2")
                try await machine.rename("a", to: "b")
                let row = try await machine.item("c2").id
                #expect(
                    await eventually(within: .seconds(20)) {
                        (try? machine.replica.database.attempts(ofItem: row)) ?? 0 > 0
                    })
                // Only the failed one is held back: all else that can be sent is sent by then.
                try await machine.sendOthers("d")
                #expect(try await !machine.engine.waitUntilSynced(within: .milliseconds(100)))
                #expect(machine.provider.tree["a"]?.filename == "a")
                machine.provider.faults.clear()
                try await machine.engine.send(try await machine.number("c2"))
                #expect(try await machine.engine.waitUntilSynced(within: .seconds(20)))
                // One rename: it was not moved aside.
                #expect(machine.provider.log.count(of: .modify, "a") == 1)
                try await machine.expectSettled()
            }
        }

        @Test(
            "SEND-7: what moves into a new directory gives up the name that the directory waits for",
            arguments: [
                // What had the name moves below it.
                ["mv d t", "mkdir d", "mv t d/old"],
                ["mv a t", "mkdir a", "mv t a/a"],
                ["mv d t", "mkdir d", "mkdir d/n", "mv t d/n/old"],
                // Others queue behind it.
                ["mv d t", "mkdir d", "mv t d/old", "mv a d/a", "mv b a"],
                ["mkdir n", "mv d t", "mkdir d", "mv t d/old", "mv e/f d/f", "mv b e/f"],
                // What was in a directory that is removed goes back into a new one of its name.
                ["mv d/x t", "rm d", "mkdir d", "mv t d/x"],
                ["mv e/f f", "rm e", "mkdir e", "mkdir e/n", "mv f e/n/f"],
                // A directory moves to below one that it contains, and the new one has its name.
                ["mkdir n", "mv e/f n/f", "mv e n/f/e", "mv n e"],
                ["mkdir e/f/g", "mkdir n", "mv e/f n/f", "mv e n/f/g/e", "mv n e"],
                ["mkdir n", "mv e/f n/f", "mv e n/f/e", "mv d n/f/e/d", "mv n d"],
            ])
        func movesIntoNewDirectoriesArrive(steps: [String]) async throws {
            try await Machine.run(fill: fill) { machine in
                for step in steps {
                    let words = step.split(separator: " ").map(String.init)
                    switch words[0] {
                    case "mv": try await machine.rename(words[1], to: words[2])
                    case "mkdir": try await machine.makeDirectory(words[1])
                    default: try await machine.remove(words[1])
                    }
                }
                let wanted = try await machine.entries().mapValues(\.content)
                try await machine.send()
                #expect(machine.provider.tree.entries().mapValues(\.content) == wanted)
                #expect(try await machine.operations().isEmpty)
                try await machine.settle()
            }
        }

        @Test func directoryGivesItsNameToChild() async throws {
            try await Machine.run(fill: fill) { machine in
                try await machine.rename("d/x", to: "t")
                try await machine.remove("d")
                try await machine.rename("t", to: "d")
                try await machine.send()
                #expect(try await machine.operations().isEmpty)
                try await machine.settle()
                #expect(machine.provider.tree.entries()["d"]?.content == "first x")
            }
        }

        @Test("CONFLICT-8: a directory is deleted after a move into it that is in flight, and what was moved before it")
        func deletionWaitsForMoveIntoDirectory() async throws {
            try await Machine.run(isInteractive: false, fill: fill) { machine in
                let gate = machine.provider.faults.hold(.modify, of: "x", times: 1)
                try await machine.rename("d/x", to: "e/x")
                #expect(await eventually(within: .seconds(20)) { gate.waiting > 0 })
                for path in ["e/x", "e/f", "e"] { try await machine.remove(path) }
                // The empty directory below it is deleted meanwhile, and so would be this one.
                #expect(await eventually(within: .seconds(20)) { machine.provider.tree["f"] == nil })
                try await machine.sendOthers("a")
                #expect(machine.provider.log.count(of: .delete, "e") == 0)
                gate.open()
                #expect(await eventually(within: .seconds(20)) { machine.provider.tree["e"] == nil })
                #expect(machine.provider.tree["x"] == nil)
                #expect(machine.provider.log.count(of: .delete, "e") == 1)
                #expect(machine.engine.warnings.texts == [])
                try await machine.settle()
            }
        }

        @Test func anExchangeIsSent() async throws {
            try await Machine.run(fill: fill) { machine in
                try await machine.rename("a", to: "b", .exchange)
                try await machine.rename("d", to: "e", .exchange)
                try await machine.rename("d/f", to: "e/x", .exchange)
                try await machine.settle()
                #expect(machine.provider.tree["a"]?.filename == "b")
                #expect(machine.provider.tree["x"]?.filename == "f")
            }
        }

        @Test(
            "READ-10: a link that the remote cannot have is exchanged with a file, before it is refused and after that",
            arguments: [false, true])
        func anUnwantedLinkIsExchanged(isRefused: Bool) async throws {
            try await Machine.run(fill: fill) { machine in
                machine.provider.faults.fail(.create, with: FileProviderError(.excludedFromSync), times: nil)
                let link = NewInode(kind: .symbolicLink, permissions: 0o777, linkTarget: "c")
                try await machine.change {
                    try $0.names.create("link", in: .root, link, caller: Machine.caller, usualGroup: 0)
                }
                if isRefused { try await machine.drain() }
                #expect(try await machine.item("link").isExcluded == isRefused)
                let file = try await machine.number("a")
                try await machine.rename("a", to: "link", .exchange)
                #expect(try await machine.number("link") == file)
                try await machine.drain()
                #expect(machine.provider.tree["a"]?.filename == "link")
                let item = try await machine.item("a")
                #expect(item.isExcluded && item.inode.kind == .symbolicLink)
                #expect(try machine.replica.database.pendingCounts().items == 0)
                #expect(try machine.replica.database.defects() == [])
            }
        }

        private func fill(_ tree: inout RemoteTree) {
            ScriptRun.fill(&tree)
            tree.addFile("c", content: RemoteContent("first c"), identifier: "c")
        }

        // MARK: - Few calls

        @Test func anAtomicSaveIsOneChangeOfTheOldItem() async throws {
            try await Machine.run(fill: fill) { machine in
                try await machine.write("saved", to: "a.tmp")
                try await machine.rename("a.tmp", to: "a")
                try await machine.send()
                #expect(kinds(machine).filter { $0 != .modify } == [])
                #expect(machine.provider.log.calls(of: .modify).filter { $0.size != nil }.count == 1)
                #expect(machine.provider.tree["a"]?.filename == "a")
                try await machine.settle()
                #expect(machine.provider.tree.entries()["a"]?.content == "saved")
            }
        }

        @Test func itemRemovedBeforeUploadIsNeverSent() async throws {
            try await Machine.run(fill: fill) { machine in
                try await machine.makeDirectory("m")
                try await machine.write("new", to: "m/n")
                try await machine.remove("m")
                try await machine.send()
                #expect(machine.provider.log.count(of: .create) == 0)
                #expect(machine.provider.log.count(of: .delete) == 0)
                try await machine.settle()
            }
        }

        @Test func tenWritesAreOneUpload() async throws {
            try await Machine.run(fill: fill) { machine in
                for number in 0..<10 { try await machine.write("text \(number)", to: "a") }
                try await machine.drain()
                #expect(machine.provider.log.calls(of: .modify).filter { $0.size != nil }.count == 1)
                try await machine.expectSettled()
            }
        }

        @Test func directoryIsDeletedAfterItsChildren() async throws {
            try await Machine.run(isInteractive: false, fill: fill) { machine in
                try await machine.remove("d")
                try await machine.remove("e")
                #expect(try await machine.engine.waitUntilSynced(within: .seconds(10)))
                let deleted = machine.provider.tree.applied.filter { $0.kind == .delete }.map(\.identifier)
                #expect(deleted.count == 5)
                #expect(try #require(deleted.firstIndex(of: "d")) > deleted.firstIndex(of: "y") ?? .max)
                #expect(try #require(deleted.firstIndex(of: "e")) > deleted.firstIndex(of: "f") ?? .max)
                #expect(machine.provider.log.calls(of: .delete).allSatisfy { !$0.isFailed })
                try await machine.expectSettled()
            }
        }

        @Test("SEND-2: parents are made before their children") func parentsAreMadeBeforeTheirChildren() async throws {
            try await Machine.run(isInteractive: false, fill: fill) { machine in
                var path = "p0"
                try await machine.makeDirectory(path)
                for number in 1..<20 {
                    path += "/p\(number)"
                    try await machine.makeDirectory(path)
                }
                try await machine.write("deep", to: path + "/file")
                #expect(try await machine.engine.waitUntilSynced(within: .seconds(20)))
                #expect(machine.provider.log.calls(of: .create).allSatisfy { !$0.isFailed })
                #expect(machine.provider.log.count(of: .create) == 21)
                try await machine.expectSettled()
            }
        }

        @Test func aDirectoryGetsItsTimeAfterItsChildren() async throws {
            try await Machine.run(fill: fill) { machine in
                let time = FileTimestamp(seconds: 1_000_000_000, nanoseconds: 7)
                try await machine.makeDirectory("m")
                for number in 0..<3 { try await machine.write("\(number)", to: "m/n\(number)") }
                try await machine.setTime(of: "m", to: time)
                try await machine.remove("d/x")
                try await machine.setTime(of: "d", to: time)
                try await machine.settle()
                #expect(try await machine.record("m").modifiedAt == time)
                let applied = machine.provider.tree.applied
                let last = applied.lastIndex { $0.kind == .create } ?? .max
                let directory = try await machine.item("m").identifier
                let timed = applied.lastIndex {
                    $0.identifier == directory && $0.fields.contains(.contentModificationDate)
                }
                #expect(try #require(timed) > last)
            }
        }

        @Test func twoThousandNewFilesDrainManyAtOnce() async throws {
            try await Machine.run(isInteractive: false, fill: fill) { machine in
                let gate = machine.provider.faults.hold(.create, times: 16)
                let directory = try await machine.number("d")
                machine.engine.pause(.user)
                for number in 0..<2000 {
                    let new = NewInode(kind: .file, permissions: 0o644)
                    try await machine.change {
                        try $0.names.create(
                            "n\(number)", in: directory, new, caller: LocalCaller(user: 0, group: 0), usualGroup: 0)
                    }
                }
                machine.engine.pause(nil)
                async let synced = machine.engine.waitUntilSynced(within: .seconds(120))
                #expect(await eventually(within: .seconds(60)) { gate.waiting > 4 })
                gate.open()
                let isSynced = try await synced
                #expect(isSynced)
                #expect(machine.provider.log.mostAtOnce(.create) > 4)
                #expect(machine.provider.log.mostAtOnce(.create) <= 16)
                #expect(machine.provider.log.count(of: .create) == 2000)
                #expect(machine.provider.tree.items(in: "d").count == 2002)
                #expect(try machine.replica.database.pendingCounts().items == 0)
            }
        }

        // MARK: - What became of a plan

        @Test("SEND-7: what was planned before a directory was renamed waits for that")
        func stepPlannedBeforeRenameWaitsForIt() async throws {
            try await Machine.run(fill: fill) { machine in
                try await machine.rename("d", to: "d2")
                try await machine.rename("a", to: "d2/a")
                let (directory, file) = (try await machine.item("d2").id, try await machine.item("d2/a").id)
                let gate = machine.provider.faults.hold(.modify, times: 1)
                let renaming = Task { await machine.engine.runAlone(.modification(row: directory)) }
                #expect(await eventually { gate.waiting == 1 })
                // As it would be run that was planned when nothing was the matter.
                await machine.engine.runAlone(.modification(row: file))
                #expect(machine.provider.log.count(of: .modify) == 1)
                gate.open()
                await renaming.value
                machine.provider.faults.clear()
                try await machine.settle()
            }
        }

        // MARK: - Links

        @Test func hardLinksAreItemsOfTheirOwn() async throws {
            try await Machine.run(fill: fill) { machine in
                try await machine.link("a", as: "d/link")
                try await machine.drain()
                #expect(machine.provider.tree.entries()["d/link"]?.content == "first a")
                try await machine.write("both", to: "d/link")
                #expect(try await machine.read("a") == "both")
                try await machine.drain()
                let entries = machine.provider.tree.entries()
                #expect(entries["a"]?.content == "both")
                #expect(entries["d/link"]?.content == "both")
                #expect(try machine.replica.database.defects() == [])
                try await machine.remove("a")
                try await machine.settle()
                #expect(try await machine.read("d/link") == "both")
            }
        }

        @Test("PATH-5: a hard link whose item gets another version on the remote becomes a file of its own")
        func aLinkThatTheRemoteChangesIsAFileOfItsOwn() async throws {
            try await Machine.run(fill: fill) { machine in
                try await machine.link("a", as: "link")
                try await machine.drain()
                machine.provider.change { $0.write(RemoteContent("there"), to: "a") }
                try await machine.settle()
                #expect(try await machine.read("a") == "there")
                #expect(try await machine.read("link") == "first a")
            }
        }
    }
}

extension ProviderCall {
    var isFailed: Bool {
        if case .failed = outcome { true } else { false }
    }
}
