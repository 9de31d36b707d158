import FileProvider
import FileProviderPaths
import FileProviderTesting
import Foundation
import Synchronization
import TestSupport
import Testing

@Suite("remotes that know only paths")
struct PathAddressedProviderTests {
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

    @Test(
        "PATH-1: conforms, whatever the remote is like", arguments: ProviderConformance.Check.allCases, Remote.allCases)
    func conforms(to check: ProviderConformance.Check, _ remote: Remote) async throws {
        try await ProviderConformance {
            MemoryRemoteUnderTest(remote: MemoryPathRemote(habits: remote.habits))
        }.run(check)
    }

    @Test("ACCESS-10: set-ID bits of another user's file are not sent, and stay here")
    func setIDOfOthers() async throws {
        try await MemoryPathRemote.run(.init(storesEverything: true)) { remote, session async throws in
            for (name, owner, mode) in [("others", geteuid() + 1, 0o2755), ("own", geteuid(), 0o6755)] {
                var template = ProviderSession.template(name)
                (template.permissions, template.owner, template.group) = (0o6755, owner, getegid())
                let made = try await session.create(template, content: [1], fields: .permissions)
                #expect(made.item.permissions == UInt16(mode))
                #expect(made.stillPending.contains(.permissions) == (owner != geteuid()))
                let entry = try await remote.entry(at: path(name))
                #expect(entry.attributes.permissions == UInt16(mode))
            }
        }
    }

    @Test("PATH-4: a listing in the middle of a move shows the item once, and as itself")
    func listingsDuringMoves() async throws {
        try await MemoryPathRemote.run { remote, session async throws in
            remote.change { contents in
                contents.make(path("from"), kind: .directory)
                contents.make(path("to"), kind: .directory)
                contents.make(path("from/file"), kind: .file, [1])
            }
            let from = try await session.find("from").itemIdentifier
            let to = try await session.find("to").itemIdentifier
            let before = try await session.find("from/file")
            let listings = remote.listDuringMove([from, to], by: session)
            let item = before.moved(to: to)
            let request = FileProviderRequest(reason: .synchronization)
            _ = try await session.provider.modifyItem(
                item, baseVersion: before.itemVersion, changedFields: .parentItemIdentifier, contents: nil,
                options: [], request: request)
            let listed = try await listings()
            #expect(listed.map(\.itemIdentifier) == [before.itemIdentifier])
            #expect(listed.first?.parentItemIdentifier == to)
            // The system has not been told yet.
            let looked = try await session.item(before.itemIdentifier)
            #expect(looked.parentItemIdentifier == to)
        }
    }

    @Test(
        "PATH-5: what was written so shortly ago that it may change unseen is of another version later; what we wrote is not"
    )
    func unsettledVersions() async throws {
        try await MemoryPathRemote.run { remote, session async throws in
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
            // It is the base of a change nevertheless.
            try await session.modify(first, .contents, content: [1, 2])
            remote.change { $0.setUnsettled(path("theirs"), true) }
            let mine = try await session.find("theirs")
            remote.change { $0.setUnsettled(path("theirs"), false) }
            #expect(try await session.find("theirs") == mine)
        }
    }

    @Test("CONFLICT-1: new content with a new name does not replace what another client wrote before the move")
    func writtenBeforeTheMove() async throws {
        try await MemoryPathRemote.run { remote, session async throws in
            remote.change { $0.make(path("file"), kind: .file, [1]) }
            let item = try await session.find("file").renamed("new")
            remote.beforeMove.withLock { hook in
                hook = {
                    remote.beforeMove.withLock { $0 = nil }
                    remote.change { $0.make(path("file"), kind: .file, [7, 7]) }
                }
            }
            let error = await #expect(throws: FileProviderError.self) {
                try await session.modify(item, .filename, content: [2, 2, 2])
            }
            #expect(error?.code == .localVersionConflictingWithServer && error?.item?.filename == "file")
            #expect(remote.names(in: .root) == ["file"])
            let theirs = try await session.find("file")
            #expect(theirs.itemIdentifier == item.itemIdentifier)
            #expect(try await session.fetch(theirs.itemIdentifier).bytes == [7, 7])
        }
    }

    @Test("CONFLICT-1: a date that is set on other bytes than those that are here does not make them look alike")
    func datesOfOtherBytes() async throws {
        let habits = MemoryPathRemote.Habits(storesEverything: true, datesMakeTags: true)
        try await MemoryPathRemote.run(habits) { remote, session async throws in
            remote.change { $0.make(path("file"), kind: .file, [1]) }
            var item = try await session.find("file")
            item.contentModificationDate = FileTimestamp(seconds: 1_000_000)
            let dated = try await session.modify(item, .contentModificationDate)
            #expect(!dated.shouldFetchContent)
            // Another client.
            remote.change { $0.make(path("file"), kind: .file, [2]) }
            item = dated.item
            item.contentModificationDate = FileTimestamp(seconds: 2_000_000)
            let other = try await session.modify(item, .contentModificationDate)
            #expect(other.shouldFetchContent)
            // The date is there already, by a request without an answer.
            let repeated = try await session.modify(item, .contentModificationDate)
            #expect(!repeated.shouldFetchContent)
        }
    }

    @Test("PATH-5: a file whose version settles while it is read is read to its end")
    func settlesWhileRead() async throws {
        try await MemoryPathRemote.run { remote, session async throws in
            remote.change { contents in
                contents.make(path("theirs"), kind: .file, [1, 2])
                contents.setUnsettled(path("theirs"), true)
            }
            let first = try await session.find("theirs")
            remote.change { $0.setUnsettled(path("theirs"), false) }
            let fetched = try await session.fetch(first.itemIdentifier, version: first.itemVersion.contentVersion)
            #expect(fetched.bytes == [1, 2])
            #expect(fetched.item.itemVersion.contentVersion == first.itemVersion.contentVersion)
            #expect(try await session.find("theirs").itemVersion != first.itemVersion)
        }
    }

    @Test("PATH-5: what was written here just before a restart has the same version after it")
    func writtenBeforeARestart() async throws {
        try await MemoryPathRemote.run { remote, session async throws in
            remote.change { contents in
                contents.make(path("file"), kind: .file, [1])
                contents.setUnsettled(path("file"), true)
            }
            try await session.modify(try await session.find("file"), .contents, content: [1, 2])
            remote.change { $0.setUnsettled(path("file"), true) }
            let before = try await session.find("file")
            let restarted = PathAddressedProvider(remote: remote, manager: session.manager, leftoverAge: 3600)
            let next = ProviderSession(provider: restarted, manager: session.manager)
            let after = try await next.find("file")
            remote.change { $0.setUnsettled(path("file"), false) }
            let settled = try await next.find("file")
            await restarted.invalidate()
            #expect(after == before && settled == before)
        }
    }

    @Test("PATH-5: what another client writes in the second of our change is not noticed, and the next one replaces it")
    func writtenInTheSameSecond() async throws {
        try await MemoryPathRemote.run { remote, session async throws in
            remote.change { $0.make(path("file"), kind: .file, [1]) }
            try await session.modify(try await session.find("file"), .contents, content: [2, 2])
            let mine = try await session.find("file")
            remote.change { contents in
                contents.copy(path("file"), to: path("ours"))
                contents.make(path("file"), kind: .file, [3, 3])
                contents.makeAlike(path("ours"), path("file"))
                contents.delete(path("ours"))
                contents.setUnsettled(path("file"), true)
            }
            #expect(try await session.find("file") == mine)
            remote.change { $0.setUnsettled(path("file"), false) }
            #expect(try await session.find("file") == mine)
            // A check of the content reads it.
            #expect(try await session.fetch(mine.itemIdentifier).bytes == [3, 3])
            try await session.modify(mine, .contents, content: [4, 4, 4])
            #expect(try await session.fetch(mine.itemIdentifier).bytes == [4, 4, 4])
        }
    }

    @Test("PATH-5: a file that is read in parts is read once its version is settled")
    func unsettledParts() async throws {
        try await MemoryPathRemote.run { remote, session async throws in
            remote.change { contents in
                contents.make(path("theirs"), kind: .file, [1, 2, 3, 4])
                contents.setUnsettled(path("theirs"), true)
            }
            let first = try await session.find("theirs")
            async let part = session.fetch(
                first.itemIdentifier, version: first.itemVersion.contentVersion, range: 0..<2)
            try await Task.sleep(for: .milliseconds(300))
            remote.change { $0.setUnsettled(path("theirs"), false) }
            do {
                let bytes = try await part.bytes
                Issue.record("\(bytes) were read of a version that is no longer")
            } catch let error as FileProviderError {
                #expect(error.code == .versionNoLongerAvailable)
            }
            let settled = try await session.find("theirs").itemVersion.contentVersion
            let bytes = try await session.fetch(first.itemIdentifier, version: settled, range: 1..<3).bytes
            #expect(bytes == [2, 3])
        }
    }

    @Test("CONFLICT-2: a symbolic link that another client has replaced is not deleted", arguments: [true, false])
    func replacedLinks(isTagStrong: Bool) async throws {
        try await MemoryPathRemote.run(.init(isTagStrong: isTagStrong)) { remote, session async throws in
            remote.change { $0.makeLink(path("link"), to: "here") }
            let known = try await session.find("link")
            remote.change { $0.makeLink(path("link"), to: "there") }
            let error = await #expect(throws: FileProviderError.self) { try await session.delete(known) }
            #expect(error?.code == .deletionRejected)
            let now = try await session.find("link")
            #expect(now.symlinkTargetPath == "there")
            #expect(now.itemVersion.contentVersion != known.itemVersion.contentVersion)
            try await session.delete(now)
            #expect(remote.names(in: .root).isEmpty)
        }
    }

    @Test("PATH-6: what the provider needs for itself is not shown, and goes when a crash left it")
    func hiddenNames() async throws {
        try await MemoryPathRemote.run { remote, session async throws in
            let old = path(HiddenName.make())
            let new = path(HiddenName.make())
            // No such name is asked for.
            let odd = RemotePath([HiddenName.make() + "/../file"])
            remote.change { contents in
                for leftover in [odd, old] {
                    contents.make(leftover, kind: .file, [1])
                    contents.setDate(leftover, FileTimestamp(seconds: 1_000_000_000))
                }
                contents.make(new, kind: .file, [1])
                contents.setDate(new, FileTimestamp(seconds: 32_000_000_000))
                contents.make(path("file"), kind: .file, [1])
            }
            #expect(try await session.list().map(\.filename) == ["file"])
            let isGone = await eventually {
                let names = remote.names(in: .root)
                return names.count == 3 && names.contains("file")
                    && [new, odd].allSatisfy { $0.name.map(names.contains) == true }
            }
            #expect(isGone, "\(remote.names(in: .root))")
            await #expect(throws: FileProviderError.self) {
                try await session.create(ProviderSession.template(HiddenName.make()), content: [1])
            }
        }
    }

    @Test("PATH-7: a walk is answered out of one listing of the tree, and not about what was changed here since")
    func trees() async throws {
        try await MemoryPathRemote.run(.init(listsTrees: true)) { remote, session async throws in
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
            // Directories are listed one by one until all of the tree is here.
            var listed: [FileProviderItem] = []
            let isUsed = try await eventually {
                _ = remote.takeCalls()
                listed = try await list(directory.itemIdentifier)
                return remote.takeCalls().isEmpty
            }
            #expect(isUsed)
            let d = try #require(listed.first { $0.filename == "d" })
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

    @Test("PATH-4: an item that is being moved here does not count as removed when a similar one is found elsewhere")
    func lookAlikesDuringMoves() async throws {
        try await MemoryPathRemote.run { remote, session async throws in
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
            let item = from.moved(to: to)
            _ = try await provider.modifyItem(
                item, baseVersion: from.itemVersion, changedFields: .parentItemIdentifier, contents: nil,
                options: [], request: FileProviderRequest(reason: .synchronization))
            let listed = try await #require(seen.withLock { $0 }).value
            #expect(listed.map(\.filename) == ["two"])
            #expect(listed.first?.itemIdentifier != one)
        }
    }

    @Test("PATH-4: what is made while its directory is listed, or is listed again, is not looked for elsewhere")
    func notMissing() async throws {
        try await MemoryPathRemote.run { remote, session async throws in
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

    @Test("PATH-6: what was made here under a name that the remote does not list is there when it is listed again")
    func unlistedNames() async throws {
        try await MemoryPathRemote.run(.init(listsHiddenNames: false)) { remote, session async throws in
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

    @Test("PATH-11: what is missing in the root is not the root")
    func missingInTheRoot() async throws {
        try await MemoryPathRemote.run { remote, session async throws in
            remote.change { $0.make(path("one"), kind: .file, [1]) }
            var one = try await session.find("one")
            one.filename = "uno"
            let renamed = one
            remote.change { $0.delete(path("one")) }
            let error = await #expect(throws: FileProviderError.self) {
                try await session.modify(renamed, [.filename, .contents], content: [2])
            }
            #expect(error?.code == .noSuchItem)
        }
    }
}
