import FileProvider
import FileProviderTesting
import Replica
import TestSupport
import Testing

@testable import Sync

extension EngineTests {
    /// Local and remote changes before and during a reimport.
    @Suite struct ReimportChangeTests {
        @Test func localChangesArriveOnceAfterReimport() async throws {
            try await Machine.run(fill: Machine.fillForReimport) { machine in
                try await machine.write("here", to: "a")
                try await machine.write("new", to: "d/new")
                try await machine.rename("d/y", to: "e/z")
                try await machine.setPermissions(of: "b", to: 0o600)
                try await machine.remove("d/x")
                try await machine.reimport()
                let remote = machine.provider.tree.entries()
                #expect(remote["a"]?.content == "here")
                #expect(remote["d/new"]?.content == "new")
                #expect(remote["e/z"]?.content == "first y")
                #expect(remote["d/y"] == nil && remote["d/x"] == nil)
                #expect(remote["b"]?.permissions == 0o600)
                #expect(machine.provider.tree.applied.count { $0.kind == .create } == 1)
            }
        }

        @Test func changeOfWaitingItemArrives() async throws {
            try await Machine.run(fill: Machine.fillForReimport) { machine in
                try await machine.materialize("b")
                try await machine.materialize("d/x")
                try await machine.loseIdentifiers()
                try await machine.write("here", to: "b")
                try await machine.rename("d/y", to: "y")
                try await machine.rename("e", to: "g")
                try await machine.rename("g/f/deep", to: "d/deeper")
                try await machine.remove("d/x")
                try await machine.makeDirectory("d/made")
                try await machine.write("made", to: "d/made/it")
                try await machine.expectReimported()
                let paths = machine.provider.tree.entries().keys.sorted()
                #expect(paths == ["a", "b", "d", "d/deeper", "d/made", "d/made/it", "g", "g/f", "y"])
                #expect(machine.provider.tree.entries()["b"]?.content == "here")
                #expect(machine.provider.tree.applied.count { $0.kind == .create } == 2)
            }
        }

        @Test func aWholeDirectoryIsRemovedWhileItWaits() async throws {
            try await Machine.run(fill: Machine.fillForReimport) { machine in
                try await machine.remove("d/y")
                try await machine.loseIdentifiers()
                try await machine.remove("e")
                try await machine.remove("d")
                try await machine.expectReimported()
                #expect(machine.provider.tree.entries().keys.sorted() == ["a", "b"])
            }
        }

        @Test("REIMPORT-6: a directory that is not compared with all others during a reimport is compared after it")
        func comparedAfterReimport() async throws {
            try await Machine.run(fill: Machine.fillForReimport) { machine in
                try await machine.engine.reimport(below: machine.number("a"))
                machine.provider.changeSilently { tree in
                    tree.addFile("news", content: RemoteContent("news"))
                    tree.expireAnchors()
                }
                try await machine.ingest()
                #expect(await !machine.exists("news"))
                try await machine.expectReimported()
                #expect(await machine.exists("news"))
            }
        }

        @Test(
            "REIMPORT-6: a round after a reimport lists a directory once, whether it compares all or a few",
            arguments: [false, true])
        func listedOnceAfterReimport(hasChangeFeed: Bool) async throws {
            try await Machine.run(options: .with(\.changeFeed, hasChangeFeed), fill: Machine.fillForReimport) {
                machine in
                let directory = try await machine.number("d")
                try await machine.engine.reimport(below: .root)
                await machine.engine.continueReimport()
                try await machine.ingest()
                // Each round compares all that it can where there is no feed.
                #expect(try !machine.replica.database.isToBeCompared(directory))
                try await machine.send()
                await machine.engine.continueReimport()
                #expect(try machine.replica.database.reimports.requests().isEmpty)
                machine.provider.changeSilently { _ = $0.addFile("news", in: "d", content: RemoteContent("news")) }
                machine.provider.log.clear()
                try await machine.ingest()
                for directory: ItemIdentifier in ["d", "e", "f"] {
                    #expect(machine.provider.log.count(of: .enumerate, directory) == 1, "\(directory)")
                }
                #expect(await machine.exists("d/news"))
                machine.provider.log.clear()
                try await machine.ingest()
                #expect(machine.provider.log.count(of: .enumerate, "d") == (hasChangeFeed ? 0 : 1))
            }
        }

        @Test("REIMPORT-2: what was removed stays removed when a second reimport begins during the first")
        func aRemovedFileIsGivenUpTwice() async throws {
            try await Machine.run(fill: Machine.fillForReimport) { machine in
                try await machine.remove("d/x")
                try await machine.loseIdentifiers()
                // The directory is answered, and what was removed in it has not been looked for.
                while try await machine.item("d").identifier == nil {
                    let offer = try #require(try await machine.operations().first)
                    await machine.engine.runAlone(offer)
                }
                let known = try #require(try await machine.item("d").identifier)
                let removed = try machine.replica.database.pendingDeletions()
                #expect(removed.map(\.parent) == [known] && removed.map(\.isToBeFound) == [true])
                try await machine.reimport()
                let paths = machine.provider.tree.entries().keys.sorted()
                #expect(paths == ["a", "b", "d", "d/y", "e", "e/f", "e/f/deep"])
                #expect(await !machine.exists("d/x"))
            }
        }

        @Test("REIMPORT-2: a removed directory that was found stays removed when a second reimport begins")
        func aRemovedDirectoryIsGivenUpTwice() async throws {
            try await Machine.run(fill: Machine.fillForReimport) { machine in
                try await machine.remove("e")
                try await machine.loseIdentifiers()
                func found() throws -> [String] {
                    try machine.replica.database.pendingDeletions().filter { !$0.isToBeFound }.map(\.name)
                }
                while try found().isEmpty {
                    let operation = try #require(try await machine.operations().first)
                    await machine.engine.runAlone(operation)
                }
                #expect(try found() == ["e"])
                try await machine.reimport()
                #expect(machine.provider.tree.entries().keys.sorted() == ["a", "b", "d", "d/x", "d/y"])
                #expect(await !machine.exists("e"))
            }
        }

        @Test("REIMPORT-2: what was moved out of a removed directory is recognized where the remote has it")
        func movedOutOfARemovedDirectory() async throws {
            try await Machine.run(fill: Machine.fillForReimport) { machine in
                try await machine.rename("d/y", to: "z")
                try await machine.remove("d")
                try await machine.reimport()
                let remote = machine.provider.tree.entries()
                #expect(remote.keys.sorted() == ["a", "b", "e", "e/f", "e/f/deep", "z"])
                #expect(remote["z"]?.content == "first y")
                #expect(machine.provider.tree.applied.allSatisfy { $0.kind != .create })
            }
        }

        @Test("REIMPORT-2: a file whose version was settled after it was removed stays removed")
        func aRemovedFileHasASettledVersion() async throws {
            let fill: (inout RemoteTree) -> Void = { tree in
                Machine.fillForReimport(&tree)
                tree.edit("x") { $0.itemVersion.contentVersion = Array("settled?".utf8) }
            }
            try await Machine.run(options: .with(\.settlesVersions, true), fill: fill) { machine in
                try await machine.remove("d/x")
                machine.provider.change { tree in
                    tree.edit("x") { $0.itemVersion.contentVersion = Array("settled".utf8) }
                }
                try await machine.reimport()
                #expect(machine.provider.tree.entries()["d/x"] == nil)
                #expect(await !machine.exists("d/x"))
            }
        }

        @Test("REIMPORT-2: a removed file that was written on the remote since is shown again")
        func aRemovedFileHasChanged() async throws {
            try await Machine.run(fill: Machine.fillForReimport) { machine in
                try await machine.remove("d/x")
                machine.provider.change { $0.write(RemoteContent("newer x"), to: "x") }
                try await machine.reimport()
                #expect(machine.provider.tree.entries()["d/x"]?.content == "newer x")
                #expect(try await machine.read("d/x") == "newer x")
                #expect(try machine.replica.database.pendingDeletions().isEmpty)
            }
        }

        @Test func itemsLostByRemoteAreCreatedFromLocalContent() async throws {
            try await Machine.run(fill: Machine.fillForReimport) { machine in
                try await machine.materialize("d/x")
                let number = try await machine.number("d/x")
                machine.provider.change { tree in
                    tree.delete("d")
                    tree.delete("deep")
                }
                try await machine.reimport()
                #expect(machine.provider.tree.entries()["d/x"]?.content == "first x")
                #expect(try await machine.number("d/x") == number)
                #expect(await !machine.exists("d/y"))
                #expect(await !machine.exists("e/f/deep"))
            }
        }

        @Test(
            "REIMPORT-3, REIMPORT-5: what the remote lost disappears although it was moved here",
            arguments: ["e/y", "z"])
        func movedItemsLostByRemote(to path: String) async throws {
            try await Machine.run(fill: Machine.fillForReimport) { machine in
                try await machine.rename("d/y", to: path)
                try await machine.loseIdentifiers()
                machine.provider.change { tree in
                    if let identifier = tree.identifier(at: "d/y") { tree.delete(identifier) }
                }
                try await machine.expectReimported()
                #expect(await !machine.exists(path))
                #expect(
                    machine.provider.tree.entries().keys.sorted() == ["a", "b", "d", "d/x", "e", "e/f", "e/f/deep"])
            }
        }

        @Test(
            "REIMPORT-3, REIMPORT-5: what was moved out of a directory that the remote has removed is made where it is",
            arguments: [false, true])
        func movedOutOfALostDirectory(isKnownBefore: Bool) async throws {
            try await Machine.run(fill: Machine.fillForReimport) { machine in
                try await machine.materialize("d/y")
                try await machine.rename("d/y", to: "e/y")
                try await machine.engine.reimport(below: machine.number("e"))
                await machine.engine.continueReimport()
                machine.provider.change { $0.delete("d") }
                if isKnownBefore { try await machine.engine.refresh() }
                try await machine.expectReimported()
                #expect(machine.provider.tree.entries()["e/y"]?.content == "first y")
                #expect(machine.provider.tree.entries().keys.sorted() == ["a", "b", "e", "e/f", "e/f/deep", "e/y"])
            }
        }

        @Test func anUnlistedDirectoryIsNotCreatedAgain() async throws {
            try await EngineFixture.run(fill: Machine.fillForReimport, listing: "/") { fixture async throws in
                fixture.provider.change { tree in
                    tree.delete("d")
                    tree.loseIdentifiers()
                }
                try await fixture.engine.reimport(below: .root)
                fixture.engine.start()
                #expect(await eventually { (try? fixture.names())?.contains("d") == false })
                #expect(await eventually { (try? fixture.replica.database.reimports.requests().isEmpty) == true })
                #expect(fixture.provider.tree.identifier(at: "d") == nil)
                #expect(try fixture.names().sorted() == ["a", "b", "e"])
            }
        }

        @Test func bothSidesChangedAndBothAreKept() async throws {
            try await Machine.run(fill: Machine.fillForReimport) { machine in
                try await machine.write("here", to: "a")
                try await machine.materialize("b")
                machine.provider.change { tree in
                    tree.write(RemoteContent("there"), to: "a")
                    tree.write(RemoteContent("newer b"), to: "b")
                    tree.addFile("came", in: "d", content: RemoteContent("came"))
                }
                try await machine.reimport()
                #expect(try await machine.read("a") == "there")
                #expect(try await machine.read("a (conflicted copy)") == "here")
                #expect(try await machine.read("b") == "newer b")
                #expect(try await machine.read("d/came") == "came")
                #expect(try machine.replica.database.conflictCopies().count == 1)
            }
        }

        @Test func anOlderRemoteTakesNothingAway() async throws {
            try await Machine.run(fill: Machine.fillForReimport) { machine in
                machine.provider.change { $0.write(RemoteContent("second b"), to: "b") }
                try await machine.drain()
                #expect(try await machine.read("b") == "second b")
                machine.provider.change { tree in
                    // A backup was restored.
                    tree.write(RemoteContent("first b"), to: "b")
                    tree.edit("b") { $0.contentModificationDate = FileTimestamp(seconds: 1000, nanoseconds: 0) }
                }
                try await machine.reimport()
                let contents = Set(machine.provider.tree.entries().values.compactMap(\.content))
                #expect(contents.isSuperset(of: ["first b", "second b"]))
            }
        }

        @Test func metadataThatChangedThereIsNotWrittenOver() async throws {
            try await Machine.run(fill: Machine.fillForReimport) { machine in
                try await machine.materialize("a")
                try await machine.setPermissions(of: "b", to: 0o640)
                machine.provider.change { tree in
                    tree.edit("a") { $0.permissions = 0o711 }
                    tree.edit("b") { $0.extendedAttributes = ["k": [1]] }
                }
                try await machine.reimport()
                #expect(try await machine.record("a").permissions == 0o711)
                #expect(machine.provider.tree.entries()["b"]?.permissions == 0o640)
                let number = try await machine.number("b")
                #expect(try machine.replica.database.extendedAttribute("k", of: number) == [1])
            }
        }

        @Test("what was written in two directories that turn out to be one is kept, and in its files")
        func writtenInBoth() async throws {
            try await Machine.run(fill: Machine.fillForReimport) { machine in
                try await machine.write("one", to: "d/new")
                try await machine.makeDirectory("d/sub")
                try await machine.write("in one", to: "d/sub/file")
                // It seems to be another directory, until it is recognized.
                machine.provider.change { $0.loseIdentifiers() }
                try await machine.ingest()
                try await machine.write("changed", to: "d (2)/x")
                try await machine.write("two", to: "d (2)/new")
                try await machine.makeDirectory("d (2)/sub")
                try await machine.write("in two", to: "d (2)/sub/file")
                try await machine.engine.reimport(below: .root)
                await machine.engine.continueReimport()
                try await machine.drain()
                let entries = machine.provider.tree.entries()
                #expect(entries["d/x"]?.content == "changed")
                for text in ["one", "two", "in one", "in two"] {
                    #expect(entries.values.contains { $0.content == text }, "\(text)")
                }
                #expect(!entries.keys.contains { $0.hasPrefix("d (2)") })
            }
        }
    }
}
