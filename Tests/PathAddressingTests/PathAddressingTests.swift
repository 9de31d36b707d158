import FileProvider
import FileProviderTesting
import PathAddressing
import Synchronization
import SystemPackage
import TestSupport
import Testing

@Suite("remotes that know only paths")
struct PathAddressingTests {
    /// What the remotes of the conformance suite are like.
    enum Remote: String, CaseIterable {
        case strong, weak, complete, identified, inParts, flat

        var habits: MemoryPathRemote.Habits {
            var habits = MemoryPathRemote.Habits()
            switch self {
            case .strong: break
            case .weak: habits.isTagStrong = false
            case .complete: (habits.hasSymbolicLinks, habits.storesEverything) = (true, true)
            case .identified: habits.hasIdentifiers = true
            case .inParts: habits.part = 3
            case .flat: habits.listsTrees = true
            }
            return habits
        }
    }

    @Test("S130: conforms, whatever the remote is like", arguments: ProviderConformance.Check.allCases, Remote.allCases)
    func conforms(to check: ProviderConformance.Check, _ remote: Remote) async throws {
        try await ProviderConformance {
            MemoryRemoteUnderTest(remote: MemoryPathRemote(habits: remote.habits))
        }.run(check)
    }

    /// Runs a test with a remote and a provider of its own.
    private func run(
        _ habits: MemoryPathRemote.Habits = MemoryPathRemote.Habits(),
        _ test: (MemoryPathRemote, ProviderSession) async throws -> Void
    ) async throws {
        let remote = MemoryPathRemote(habits: habits)
        let under = MemoryRemoteUnderTest(remote: remote)
        let manager = TestManager(domain: under.domain, stateDirectory: under.stateDirectory)
        let provider = PathAddressedProvider(remote: remote, manager: manager, leftoverAge: 3600)
        try await test(remote, ProviderSession(provider: provider, manager: manager))
        await provider.invalidate()
    }

    private func path(_ text: String) -> RemotePath { RemotePath(text.split(separator: "/").map(String.init)) }

    @Test("S131: what somebody renamed keeps its identifier, and what looks alike and stays does not lend it")
    func renames() async throws {
        try await run { remote, session async throws in
            remote.change {
                $0.make(path("one"), kind: .file, Array("1".utf8))
                $0.make(path("stays"), kind: .file, Array("2".utf8))
                $0.make(path("to"), kind: .directory)
            }
            let one = try await session.find("one").itemIdentifier
            let to = try await session.find("to").itemIdentifier
            try await session.list(to)
            remote.change { $0.move(path("one"), to: path("to/uno")) }
            // The new place is looked at first.
            let moved = try await session.find("to/uno")
            #expect(moved.itemIdentifier == one)
            let looked = try await session.item(one)
            #expect(looked == moved)
            let stays = try await session.find("stays").itemIdentifier
            #expect(stays != one)
        }
    }

    @Test("S131: a directory moved by somebody keeps its identifier and those of all below it")
    func directories() async throws {
        try await run { remote, session async throws in
            remote.change {
                $0.make(path("a"), kind: .directory)
                $0.make(path("a/b"), kind: .directory)
                $0.make(path("a/b/file"), kind: .file, [1])
                $0.make(path("c"), kind: .directory)
            }
            let file = try await session.find("a/b/file").itemIdentifier
            let b = try await session.find("a/b").itemIdentifier
            remote.change { $0.move(path("a/b"), to: path("c/d")) }
            #expect(try await session.find("c/d").itemIdentifier == b)
            #expect(try await session.find("c/d/file").itemIdentifier == file)
        }
    }

    @Test("S131: of a copied tree each directory costs one look at the original, and nothing of it is taken for moved")
    func copies() async throws {
        for isStrong in [true, false] {
            var habits = MemoryPathRemote.Habits()
            habits.isTagStrong = isStrong
            try await run(habits) { remote, session async throws in
                remote.change { contents in
                    contents.make(path("original"), kind: .directory)
                    for number in 0..<50 { contents.make(path("original/\(number)"), kind: .file, [1]) }
                }
                let original = try await session.find("original")
                let files = try await session.list(original.itemIdentifier)
                remote.change { contents in
                    contents.make(path("copy"), kind: .directory)
                    for number in 0..<50 { contents.copy(path("original/\(number)"), to: path("copy/\(number)")) }
                }
                let copy = try await session.find("copy").itemIdentifier
                _ = remote.takeCalls()
                let copies = try await session.list(copy)
                #expect(Set(copies.map(\.itemIdentifier)).isDisjoint(with: files.map(\.itemIdentifier)))
                #expect(remote.takeCalls().count <= 2)
            }
        }
    }

    @Test("S131: another directory of the same tag is another item, where it holds something else")
    func strangers() async throws {
        try await run { remote, session async throws in
            remote.change {
                $0.make(path("a"), kind: .directory)
                $0.make(path("a/file"), kind: .file, [1])
            }
            let a = try await session.find("a")
            _ = try await session.find("a/file")
            remote.change { contents in
                contents.move(path("a"), to: path("b"))
                contents.move(path("b/file"), to: path("b/other"))
            }
            #expect(try await session.find("b").itemIdentifier != a.itemIdentifier)
        }
    }

    @Test("S131: a directory in the place of a file is another item")
    func takenOver() async throws {
        try await run { remote, session async throws in
            remote.change { $0.make(path("name"), kind: .file, [1]) }
            let file = try await session.find("name").itemIdentifier
            remote.change { contents in
                contents.delete(path("name"))
                contents.make(path("name"), kind: .directory)
            }
            await #expect(throws: FileProviderError.self) { try await session.item(file) }
            #expect(try await session.find("name").itemIdentifier != file)
        }
    }

    @Test("S131: a new file under the name of one that was moved here is another item")
    func succeeded() async throws {
        try await run { remote, session async throws in
            remote.change { $0.make(path("name"), kind: .file, [1]) }
            var item = try await session.find("name")
            item.filename = "other"
            let moved = try await session.modify(item, .filename)
            remote.change { $0.make(path("name"), kind: .file, [2]) }
            #expect(try await session.find("name").itemIdentifier != moved.item.itemIdentifier)
            #expect(try await session.find("other").itemIdentifier == moved.item.itemIdentifier)
            let again = try await session.create(ProviderSession.template("third"), content: [3])
            let names = try await session.list().map(\.itemIdentifier)
            #expect(Set(names).count == 3 && names.contains(again.item.itemIdentifier))
        }
    }

    @Test("S132: a listing in the middle of a move shows the item once, and as itself")
    func listingsDuringMoves() async throws {
        try await run { remote, session async throws in
            remote.change { contents in
                contents.make(path("from"), kind: .directory)
                contents.make(path("to"), kind: .directory)
                contents.make(path("from/file"), kind: .file, [1])
            }
            let from = try await session.find("from").itemIdentifier
            let to = try await session.find("to").itemIdentifier
            let before = try await session.find("from/file")
            let provider = session.provider
            let seen = Mutex<[Task<[FileProviderItem], any Error>]>([])
            remote.duringMove.withLock { hook in
                hook = {
                    let tasks = [from, to].map { directory in
                        Task {
                            let enumerator = try provider.enumerator(
                                for: directory, request: FileProviderRequest(reason: .synchronization))
                            return try await enumerator.enumerateItems(
                                startingAt: .initial, suggestedPageSize: 10
                            ).items
                        }
                    }
                    seen.withLock { $0 = tasks }
                    try? await Task.sleep(for: .milliseconds(50))
                }
            }
            var item = before
            item.parentItemIdentifier = to
            let request = FileProviderRequest(reason: .synchronization)
            _ = try await provider.modifyItem(
                item, baseVersion: before.itemVersion, changedFields: .parentItemIdentifier, contents: nil,
                options: [], request: request)
            var listed: [FileProviderItem] = []
            for task in seen.withLock({ $0 }) { listed += try await task.value }
            #expect(listed.map(\.itemIdentifier) == [before.itemIdentifier])
            #expect(listed.first?.parentItemIdentifier == to)
            // The system has not been told yet.
            let looked = try await session.item(before.itemIdentifier)
            #expect(looked.parentItemIdentifier == to)
        }
    }

    @Test(
        "S133: what was written so shortly ago that it may change unseen is of another version later; what we wrote is not"
    )
    func unsettledVersions() async throws {
        try await run { remote, session async throws in
            remote.change { contents in
                contents.make(path("theirs"), kind: .file, [1])
                contents.setUnsettled(path("theirs"), true)
            }
            let first = try await session.find("theirs")
            let fetched = try await session.fetch(first.itemIdentifier, version: first.itemVersion.contentVersion)
            #expect(fetched.item.itemVersion == first.itemVersion)
            remote.change { $0.setUnsettled(path("theirs"), false) }
            let later = try await session.find("theirs")
            #expect(later.itemIdentifier == first.itemIdentifier)
            #expect(later.itemVersion.contentVersion != first.itemVersion.contentVersion)
            // It is the base of a change all the same.
            try await session.modify(first, .contents, content: [1, 2])
            remote.change { $0.setUnsettled(path("theirs"), true) }
            let mine = try await session.find("theirs")
            remote.change { $0.setUnsettled(path("theirs"), false) }
            #expect(try await session.find("theirs") == mine)
        }
    }

    @Test("S134: what the provider needs for itself is not shown, and goes when a crash left it")
    func hiddenNames() async throws {
        try await run { remote, session async throws in
            let old = path(HiddenName.make())
            let new = path(HiddenName.make())
            remote.change { contents in
                contents.make(old, kind: .file, [1])
                contents.setDate(old, FileTimestamp(seconds: 1_000_000_000))
                contents.make(new, kind: .file, [1])
                contents.setDate(new, FileTimestamp(seconds: 32_000_000_000))
                contents.make(path("file"), kind: .file, [1])
            }
            #expect(try await session.list().map(\.filename) == ["file"])
            let isGone = await eventually {
                let names = remote.names(in: .root)
                return names.count == 2 && names.contains("file") && new.name.map(names.contains) == true
            }
            #expect(isGone, "\(remote.names(in: .root))")
            await #expect(throws: FileProviderError.self) {
                try await session.create(ProviderSession.template(HiddenName.make()), content: [1])
            }
        }
    }

    @Test("S135: a walk is answered out of one listing of the tree, and not about what was changed here since")
    func trees() async throws {
        var habits = MemoryPathRemote.Habits()
        habits.listsTrees = true
        try await run(habits) { remote, session async throws in
            remote.change { contents in
                for directory in ["a", "a/b", "a/b/c", "a/b/c/d", "a/b/c/d/e"] {
                    contents.make(path(directory), kind: .directory)
                    contents.make(path(directory + "/file"), kind: .file, [1])
                }
            }
            func list(_ directory: ItemIdentifier) async throws -> [FileProviderItem] {
                let enumerator = try session.provider.enumerator(
                    for: directory, request: FileProviderRequest(reason: .listing))
                let items = try await enumerator.enumerateItems(startingAt: .initial, suggestedPageSize: 100).items
                session.manager.learn(listingOf: directory, items)
                return items
            }
            var directory = try await session.item(.rootContainer)
            for name in ["a", "b", "c"] {
                directory = try #require(try await list(directory.itemIdentifier).first { $0.filename == name })
            }
            let isRead = await eventually { remote.takeCalls().contains { $0.starts(with: "tree") } }
            #expect(isRead)
            try? await Task.sleep(for: .milliseconds(50))
            _ = remote.takeCalls()
            let d = try #require(try await list(directory.itemIdentifier).first { $0.filename == "d" })
            let inner = try await list(d.itemIdentifier)
            #expect(inner.map(\.filename).sorted() == ["e", "file"])
            #expect(remote.takeCalls().isEmpty)
            let e = try #require(inner.first { $0.filename == "e" })
            let created = try await session.create(
                ProviderSession.template("new", in: e.itemIdentifier), content: [1, 2])
            let last = try await list(e.itemIdentifier)
            #expect(last.contains(created.item) && last.count == 2)
        }
    }

    @Test("S136: a change that was made and never answered is known again")
    func lostAnswers() async throws {
        try await run { remote, session async throws in
            remote.change { $0.make(path("file"), kind: .file, [1]) }
            let base = try await session.find("file")
            // The upload arrived, its answer did not.
            remote.change { $0.make(path("file"), kind: .file, [1, 2, 3]) }
            let stored = try await session.modify(base, .contents, content: [1, 2, 3])
            #expect(stored.item.documentSize == 3)
            // So did the rename.
            remote.change { $0.move(path("file"), to: path("renamed")) }
            var renamed = stored.item
            renamed.filename = "renamed"
            let moved = try await session.modify(renamed, .filename)
            #expect(moved.item.itemIdentifier == base.itemIdentifier)
            #expect(remote.names(in: .root) == ["renamed"])
        }
    }

    /// Renames an item so that the answer is lost.
    private func renameUnanswered(
        _ remote: MemoryPathRemote, _ session: ProviderSession, _ name: String, to newName: String
    ) async throws -> FileProviderItem {
        let base = try await session.find(name)
        var renamed = base
        renamed.filename = newName
        remote.duringMove.withLock { $0 = { throw FileProviderError(.serverUnreachable) } }
        await #expect(throws: FileProviderError.self) { try await session.modify(renamed, .filename) }
        remote.duringMove.withLock { $0 = nil }
        return base
    }

    @Test("S200: what is being moved here is not gone for somebody who finds what looks like it elsewhere")
    func lookAlikesDuringMoves() async throws {
        try await run { remote, session async throws in
            remote.change { contents in
                contents.make(path("from"), kind: .directory)
                contents.make(path("to"), kind: .directory)
                contents.make(path("other"), kind: .directory)
                contents.make(path("from/one"), kind: .directory)
            }
            let to = try await session.find("to").itemIdentifier
            let other = try await session.find("other").itemIdentifier
            let from = try await session.find("from")
            let one = try await session.find("from/one").itemIdentifier
            try await session.list(other)
            // As when two directories are made in the same moment.
            remote.change { $0.copy(path("from/one"), to: path("other/two")) }
            let provider = session.provider
            let seen = Mutex<Task<[FileProviderItem], any Error>?>(nil)
            remote.duringMove.withLock { hook in
                hook = {
                    let task = Task {
                        let enumerator = try provider.enumerator(
                            for: other, request: FileProviderRequest(reason: .synchronization))
                        return try await enumerator.enumerateItems(startingAt: .initial, suggestedPageSize: 10).items
                    }
                    seen.withLock { $0 = task }
                    try? await Task.sleep(for: .milliseconds(50))
                }
            }
            var item = from
            item.parentItemIdentifier = to
            _ = try await provider.modifyItem(
                item, baseVersion: from.itemVersion, changedFields: .parentItemIdentifier, contents: nil,
                options: [], request: FileProviderRequest(reason: .synchronization))
            let listed = try await #require(seen.withLock { $0 }).value
            #expect(listed.map(\.filename) == ["two"])
            #expect(listed.first?.itemIdentifier != one)
        }
    }

    @Test("S200: what is made while its directory is listed, or is listed again, is not looked for elsewhere")
    func notMissing() async throws {
        try await run { remote, session async throws in
            remote.change { contents in
                contents.make(path("here"), kind: .directory)
                contents.make(path("here/one"), kind: .file, [1])
                contents.make(path("there"), kind: .directory)
            }
            let here = try await session.find("here").itemIdentifier
            let there = try await session.find("there").itemIdentifier
            let one = try await session.find("here/one").itemIdentifier
            try await session.list(there)
            // Away for one look, and back again.
            remote.change { $0.move(path("here/one"), to: path("one")) }
            _ = try await session.provider.enumerator(
                for: here, request: FileProviderRequest(reason: .synchronization)
            ).enumerateItems(startingAt: .initial, suggestedPageSize: 10)
            remote.change { $0.move(path("one"), to: path("here/one")) }
            _ = try await session.provider.enumerator(
                for: here, request: FileProviderRequest(reason: .synchronization)
            ).enumerateItems(startingAt: .initial, suggestedPageSize: 10)
            remote.change { $0.copy(path("here/one"), to: path("there/two")) }
            let two = try await session.list(there)
            #expect(two.map(\.filename) == ["two"])
            #expect(two.first?.itemIdentifier != one)
        }
    }

    @Test("S209: what is seen for the first time is no other file of the same length and time that has gone")
    func weakTags() async throws {
        var habits = MemoryPathRemote.Habits()
        habits.isTagStrong = false
        try await run(habits) { remote, session async throws in
            remote.change {
                $0.make(path("one"), kind: .file, Array("1".utf8))
                $0.make(path("kept"), kind: .file, Array("2".utf8))
                $0.make(path("to"), kind: .directory)
                $0.copy(path("one"), to: path("to/other"))
                $0.copy(path("kept"), to: path("to/kept"))
            }
            let one = try await session.find("one").itemIdentifier
            let kept = try await session.find("kept").itemIdentifier
            remote.change {
                $0.delete(path("one"))
                $0.delete(path("kept"))
            }
            _ = try await session.provider.enumerator(
                for: .rootContainer, request: FileProviderRequest(reason: .synchronization)
            ).enumerateItems(startingAt: .initial, suggestedPageSize: 10)
            let other = try await session.find("to/other").itemIdentifier
            #expect(other != one)
            // Of the same name, too, it has been moved.
            let moved = try await session.find("to/kept").itemIdentifier
            #expect(moved == kept)
        }
    }

    @Test("S208: what was made here under a name that the remote does not list is there when it is listed again")
    func unlistedNames() async throws {
        var habits = MemoryPathRemote.Habits()
        habits.listsHiddenNames = false
        try await run(habits) { remote, session async throws in
            remote.change { $0.make(path("shown"), kind: .file, [1]) }
            try await session.list()
            let made = try await session.create(
                FileProviderItem(
                    itemIdentifier: "new", parentItemIdentifier: .rootContainer, filename: ".hidden", kind: .directory,
                    itemVersion: ItemVersion(contentVersion: "", metadataVersion: "")))
            let listed = try await session.list()
            #expect(Set(listed.map(\.filename)) == ["shown", ".hidden"])
            #expect(listed.contains { $0.itemIdentifier == made.item.itemIdentifier })
            remote.change { $0.delete(path(".hidden")) }
            #expect(try await session.list().map(\.filename) == ["shown"])
        }
    }

    @Test("S186: a renaming that arrived, and whose answer did not, is no reason to take anything for gone")
    func lostRenamings() async throws {
        try await run { remote, session async throws in
            remote.change {
                $0.make(path("one"), kind: .file, [1])
                $0.make(path("two"), kind: .file, [2])
                $0.make(path("three"), kind: .directory)
                $0.make(path("three/file"), kind: .file, [3])
            }
            let inner = try await session.list(try await session.find("three").itemIdentifier)[0]
            // Renamed again before it is known.
            var one = try await renameUnanswered(remote, session, "one", to: "uno")
            one.filename = "eins"
            let moved = try await session.modify(one, .filename)
            #expect(moved.item.itemIdentifier == one.itemIdentifier)
            #expect(remote.names(in: .root) == ["eins", "three", "two"])
            // Removed before it is known.
            let two = try await renameUnanswered(remote, session, "two", to: "due")
            try await session.delete(two)
            #expect(remote.names(in: .root) == ["eins", "three"])
            // What is below is looked for while it is not known.
            _ = try await renameUnanswered(remote, session, "three", to: "tre")
            let found = try await session.provider.item(
                for: inner.itemIdentifier, request: FileProviderRequest(reason: .listing))
            #expect(found.filename == "file")
        }
    }

    @Test("S192: what loses its answer in the middle of a listing is known in it as itself")
    func lostDuringListings() async throws {
        try await run { remote, session async throws in
            remote.change { contents in
                contents.make(path("from"), kind: .directory)
                contents.make(path("to"), kind: .directory)
                contents.make(path("from/one"), kind: .directory)
                contents.make(path("from/one/file"), kind: .file, [1])
            }
            let from = try await session.find("from").itemIdentifier
            let to = try await session.find("to").itemIdentifier
            let before = try await session.find("from/one")
            let provider = session.provider
            let seen = Mutex<[Task<[FileProviderItem], any Error>]>([])
            remote.duringMove.withLock { hook in
                hook = {
                    let tasks = [from, to].map { directory in
                        Task {
                            let enumerator = try provider.enumerator(
                                for: directory, request: FileProviderRequest(reason: .synchronization))
                            return try await enumerator.enumerateItems(
                                startingAt: .initial, suggestedPageSize: 10
                            ).items
                        }
                    }
                    seen.withLock { $0 = tasks }
                    try? await Task.sleep(for: .milliseconds(50))
                    throw FileProviderError(.serverUnreachable)
                }
            }
            var item = before
            item.parentItemIdentifier = to
            item.filename = "uno"
            let moved = item
            await #expect(throws: FileProviderError.self) {
                try await session.modify(moved, [.parentItemIdentifier, .filename])
            }
            remote.duringMove.withLock { $0 = nil }
            var listed: [FileProviderItem] = []
            for task in seen.withLock({ $0 }) { listed += try await task.value }
            #expect(listed.map(\.itemIdentifier) == [before.itemIdentifier])
            #expect(listed.first?.filename == "uno")
        }
    }

    @Test("S196: a directory is not kept because of what was moved there without an answer, and is removed as well")
    func deletedWithUnansweredMoves() async throws {
        try await run { remote, session async throws in
            remote.change { contents in
                contents.make(path("one"), kind: .file, [1])
                contents.make(path("folder"), kind: .directory)
            }
            let folder = try await session.find("folder")
            let one = try await session.find("one")
            var moved = one
            moved.parentItemIdentifier = folder.itemIdentifier
            let change = moved
            remote.duringMove.withLock { $0 = { throw FileProviderError(.serverUnreachable) } }
            await #expect(throws: FileProviderError.self) { try await session.modify(change, .parentItemIdentifier) }
            remote.duringMove.withLock { $0 = nil }
            do {
                try await session.delete(folder)
                Issue.record("it was deleted with what is in it")
            } catch let error as FileProviderError {
                #expect(error.code == .providerDomainTemporarilyUnavailable)
            }
            try await session.delete(one)
            try await session.delete(folder)
            #expect(remote.names(in: .root) == [])
        }
    }

    @Test("S197: of two items that came to be known in one place, one is gone")
    func oneInAPlace() async throws {
        try await run { remote, session async throws in
            remote.change { $0.make(path("one"), kind: .file, [1]) }
            let one = try await session.find("one")
            var other = one
            other.itemIdentifier = ItemIdentifier("f" + String(repeating: "0", count: 32))
            session.manager.learn([other])
            var found: [ItemIdentifier] = []
            for identifier in [one.itemIdentifier, other.itemIdentifier] {
                let request = FileProviderRequest(reason: .synchronization)
                if (try? await session.provider.item(for: identifier, request: request)) != nil {
                    found.append(identifier)
                }
            }
            #expect(found.count == 1)
        }
    }

    @Test("S194: what is missing in the root is not the root")
    func missingInTheRoot() async throws {
        try await run { remote, session async throws in
            remote.change { $0.make(path("one"), kind: .file, [1]) }
            var one = try await session.find("one")
            one.filename = "uno"
            let renamed = one
            remote.change { $0.delete(path("one")) }
            do {
                try await session.modify(renamed, [.filename, .contents], content: [2])
                Issue.record("it was renamed")
            } catch let error as FileProviderError {
                #expect(error.code == .noSuchItem)
            }
        }
    }

    @Test("S192: what holds nothing is not taken for something else that is gone, where no tag says so")
    func nothingIsLikeNothing() async throws {
        var habits = MemoryPathRemote.Habits()
        habits.hasTagsOfContent = true
        try await run(habits) { remote, session async throws in
            remote.change { contents in
                contents.make(path("there"), kind: .directory)
                contents.make(path("empty"), kind: .directory)
                contents.make(path("hollow"), kind: .file, [])
                contents.make(path("full"), kind: .file, [1])
            }
            let there = try await session.find("there").itemIdentifier
            try await session.list(there)
            let empty = try await session.find("empty").itemIdentifier
            try await session.list(empty)
            let hollow = try await session.find("hollow").itemIdentifier
            let full = try await session.find("full").itemIdentifier
            remote.change { contents in
                contents.move(path("full"), to: path("there/full"))
                contents.delete(path("empty"))
                contents.delete(path("hollow"))
                contents.make(path("there/other"), kind: .directory)
                contents.make(path("there/other/file"), kind: .file, [2])
                contents.make(path("there/another"), kind: .file, [])
            }
            // The system has not heard that they are gone.
            let request = FileProviderRequest(reason: .synchronization)
            let root = try session.provider.enumerator(for: .rootContainer, request: request)
            _ = try await root.enumerateItems(startingAt: .initial, suggestedPageSize: 10)
            let new = try await session.list(there)
            #expect(!new.contains { $0.itemIdentifier == empty || $0.itemIdentifier == hollow })
            #expect(new.contains { $0.itemIdentifier == full && $0.filename == "full" })
        }
    }

    @Test("S186: and one that did not arrive is made again") func renamingsThatDidNotArrive() async throws {
        try await run { remote, session async throws in
            remote.change { $0.make(path("one"), kind: .file, [1]) }
            var one = try await session.find("one")
            one.filename = "uno"
            let renamed = one
            remote.duringMove.withLock {
                $0 = {
                    remote.change { $0.move(RemotePath(["uno"]), to: RemotePath(["one"])) }
                    throw FileProviderError(.timedOut)
                }
            }
            await #expect(throws: FileProviderError.self) { try await session.modify(renamed, .filename) }
            remote.duringMove.withLock { $0 = nil }
            let moved = try await session.modify(renamed, .filename)
            #expect(moved.item.filename == "uno")
            #expect(remote.names(in: .root) == ["uno"])
        }
    }
}
