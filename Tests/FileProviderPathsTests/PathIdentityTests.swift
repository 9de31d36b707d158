import FileProvider
import FileProviderTesting
import Testing

/// Who is who on a remote that knows only paths.
@Suite struct PathIdentityTests {
    @Test(
        "PATH-2: an item that another client renamed keeps its identifier; a similar item that stays does not lend its own"
    )
    func renames() async throws {
        try await MemoryPathRemote.run { remote, session async throws in
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

    @Test(
        "PATH-2: a directory that another client moved keeps its identifier, and so do all items below it",
        arguments: [false, true])
    func directories(hasNoTag: Bool) async throws {
        try await MemoryPathRemote.run(.init(hasTagsOfContent: hasNoTag)) { remote, session async throws in
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

    @Test(
        "PATH-2: a directory that another client moved and changed keeps its identifier, if half of it is as it was",
        arguments: [false, true])
    func changedDirectories(hasNoTag: Bool) async throws {
        try await MemoryPathRemote.run(.init(hasTagsOfContent: hasNoTag)) { remote, session async throws in
            remote.change { contents in
                for directory in ["a", "b", "c"] { contents.make(path(directory), kind: .directory) }
                for name in ["a/a1", "a/a2", "b/b1", "b/b2", "b/b3", "c/c1"] {
                    contents.make(path(name), kind: .file, Array(name.utf8))
                }
            }
            var known: [String: ItemIdentifier] = [:]
            for directory in ["a", "b", "c"] {
                let item = try await session.find(directory).itemIdentifier
                known[directory] = item
                _ = try await session.list(item)
            }
            remote.change { contents in
                contents.move(path("a"), to: path("x"))
                contents.make(path("x/new"), kind: .file, [1])
                contents.move(path("b"), to: path("y"))
                contents.delete(path("y/b2"))
                // Of three names, one is as it was.
                contents.move(path("c"), to: path("z"))
                for name in ["z/2", "z/4"] { contents.make(path(name), kind: .file, [1]) }
            }
            #expect(try await session.find("x").itemIdentifier == known["a"])
            #expect(try await session.find("y").itemIdentifier == known["b"])
            #expect(try await session.find("z").itemIdentifier != known["c"])
        }
    }

    @Test(
        "PATH-3: a directory whose files have weak versions is not taken for a removed one that had as many of them",
        arguments: [true, false])
    func weaklyAlikeDirectories(isRemovalListedFirst: Bool) async throws {
        let habits = MemoryPathRemote.Habits(isTagStrong: false, hasTagsOfContent: true)
        try await MemoryPathRemote.run(habits) { remote, session async throws in
            // As two versions of a package, whose files have one date.
            remote.change { contents in
                for parent in ["one", "two"] {
                    contents.make(path(parent), kind: .directory)
                    contents.make(path(parent + "/p"), kind: .directory)
                    for name in ["a", "b", "c"] { contents.make(path(parent + "/p/" + name), kind: .file, [1]) }
                }
                contents.make(path("two/p/e"), kind: .file, [1])
            }
            let removed = try await session.find("one/p").itemIdentifier
            for directory in [removed, try await session.find("two/p").itemIdentifier] {
                try await session.list(directory)
            }
            remote.change { contents in
                contents.delete(path("one/p"))
                contents.delete(path("two/p/e"))
                contents.move(path("two/p"), to: path("two/q"))
            }
            // Of what is gone, listings have shown the removed one alone.
            if isRemovalListedFirst { try await session.list(try await session.find("one").itemIdentifier) }
            let found = try await session.find("two/q").itemIdentifier
            #expect(found != removed)
        }
    }

    @Test("PATH-3: a directory of weak versions that appears below another parent, and changed, is another one")
    func weaklyAlikeElsewhere() async throws {
        let habits = MemoryPathRemote.Habits(isTagStrong: false, hasTagsOfContent: true)
        try await MemoryPathRemote.run(habits) { remote, session async throws in
            remote.change { contents in
                for directory in ["one", "one/p", "two"] { contents.make(path(directory), kind: .directory) }
                contents.make(path("one/p/a"), kind: .file, [1])
            }
            let known = try await session.find("one/p").itemIdentifier
            try await session.list(known)
            try await session.list(try await session.find("two").itemIdentifier)
            remote.change { $0.move(path("one/p"), to: path("one/q")) }
            #expect(try await session.find("one/q").itemIdentifier == known)
            remote.change { contents in
                contents.move(path("one/q"), to: path("two/p"))
                contents.make(path("two/p/new"), kind: .file, [2])
            }
            try await session.list(try await session.find("one").itemIdentifier)
            #expect(try await session.find("two/p").itemIdentifier != known)
        }
    }

    @Test(
        "PATH-2: a directory that was renamed is not taken for another one of the same names that was removed",
        arguments: [false, true])
    func alikeDirectories(hasNoTag: Bool) async throws {
        for size in [1, 2] {
            try await MemoryPathRemote.run(.init(hasTagsOfContent: hasNoTag)) { remote, session async throws in
                remote.change { contents in
                    for parent in ["a", "b"] {
                        contents.make(path(parent), kind: .directory)
                        contents.make(path(parent + "/d"), kind: .directory)
                    }
                    contents.make(path("a/d/n"), kind: .file, [1])
                    contents.make(path("b/d/n"), kind: .file, [UInt8](repeating: 1, count: size))
                }
                _ = try await session.find("a/d/n")
                _ = try await session.find("b/d/n")
                let other = try await session.find("b/d").itemIdentifier
                remote.change { contents in
                    contents.move(path("a/d"), to: path("a/x"))
                    contents.delete(path("b/d"))
                }
                // The listing shows that it is gone.
                try await session.list(try await session.find("b").itemIdentifier)
                #expect(try await session.find("a/x").itemIdentifier != other, "size \(size)")
            }
        }
    }

    @Test(
        "PATH-2: of a copied tree each directory costs one look at the original, and nothing of it is taken for moved")
    func copies() async throws {
        for isStrong in [true, false] {
            try await MemoryPathRemote.run(.init(isTagStrong: isStrong)) { remote, session async throws in
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

    @Test("PATH-2: another directory of the same tag is another item, where it holds something else")
    func strangers() async throws {
        try await MemoryPathRemote.run { remote, session async throws in
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

    @Test("PATH-2: a directory in the place of a file is another item")
    func takenOver() async throws {
        try await MemoryPathRemote.run { remote, session async throws in
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

    @Test("PATH-2: an item that comes back to a name, where another one was meanwhile, is listed once and stays")
    func comesBack() async throws {
        try await MemoryPathRemote.run { remote, session async throws in
            remote.change { $0.make(path("a"), kind: .file, [1]) }
            let first = try await session.find("a").itemIdentifier
            let changes: [@Sendable (inout MemoryPathRemote.Contents) -> Void] = [
                { $0.move(path("a"), to: path("b")) },
                { $0.make(path("a"), kind: .file, [2]) },
                { $0.move(path("a"), to: path("c")) },
                { $0.move(path("b"), to: path("a")) },
                { $0.delete(path("c")) },
            ]
            for change in changes {
                remote.change(change)
                try await session.list()
            }
            for _ in 0..<4 {
                #expect(try await session.list().map(\.itemIdentifier) == [first])
                #expect(try await session.item(first).filename == "a")
            }
        }
    }

    @Test("PATH-2: an item of second choice that was moved away is not the next one under its name")
    func movesAwayAgain() async throws {
        try await MemoryPathRemote.run { remote, session async throws in
            remote.change { $0.make(path("a"), kind: .file, [1]) }
            try await session.list()
            remote.change { $0.move(path("a"), to: path("b")) }
            try await session.list()
            remote.change { $0.make(path("a"), kind: .file, [2]) }
            let second = try #require(try await session.list().first { $0.filename == "a" }).itemIdentifier
            remote.change { $0.move(path("a"), to: path("c")) }
            try await session.list()
            remote.change { $0.make(path("a"), kind: .directory) }
            #expect(try await session.list().first { $0.filename == "c" }?.itemIdentifier == second)
            remote.change {
                $0.delete(path("a"))
                $0.make(path("a"), kind: .file, [3])
            }
            let items = try await session.list()
            #expect(Set(items.map(\.itemIdentifier)).count == 3)
            #expect(items.first { $0.filename == "c" }?.itemIdentifier == second)
        }
    }

    @Test("PATH-2: a new file under the name of one that was moved here is another item")
    func succeeded() async throws {
        try await MemoryPathRemote.run { remote, session async throws in
            remote.change { $0.make(path("name"), kind: .file, [1]) }
            let item = try await session.find("name").renamed("other")
            let moved = try await session.modify(item, .filename)
            remote.change { $0.make(path("name"), kind: .file, [2]) }
            #expect(try await session.find("name").itemIdentifier != moved.item.itemIdentifier)
            #expect(try await session.find("other").itemIdentifier == moved.item.itemIdentifier)
            let again = try await session.create(ProviderSession.template("third"), content: [3])
            let names = try await session.list().map(\.itemIdentifier)
            #expect(Set(names).count == 3 && names.contains(again.item.itemIdentifier))
        }
    }

    @Test("PATH-2: of files that had one name after the other, and were moved away here, each keeps its identifier")
    func succeededAgain() async throws {
        try await MemoryPathRemote.run { remote, session async throws in
            var identifiers: Set<ItemIdentifier> = []
            for number in 0..<5 {
                remote.change { $0.make(path("name"), kind: .file, [UInt8(number)]) }
                var item = try await session.find("name")
                #expect(identifiers.insert(item.itemIdentifier).inserted)
                item.filename = "other \(number)"
                _ = try await session.modify(item, .filename)
            }
            for _ in 0..<2 { #expect(Set(try await session.list().map(\.itemIdentifier)) == identifiers) }
        }
    }

    @Test("PATH-3: what is seen for the first time is no other file of the same length and time that has gone")
    func weakTags() async throws {
        try await MemoryPathRemote.run(.init(isTagStrong: false)) { remote, session async throws in
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

    @Test("PATH-3: of two files of one length and time that were renamed neither takes the identifier of the other")
    func alikeAndRenamed() async throws {
        try await MemoryPathRemote.run(.init(isTagStrong: false)) { remote, session async throws in
            remote.change { contents in
                for number in ["1", "2"] {
                    contents.make(path("x" + number), kind: .directory)
                    contents.make(path("x\(number)/f"), kind: .file, Array(number.utf8))
                }
                contents.makeAlike(path("x1/f"), path("x2/f"))
            }
            let known = [try await session.find("x1/f"), try await session.find("x2/f")].map(\.itemIdentifier)
            #expect(Set(known).count == 2)
            remote.change { contents in
                contents.move(path("x1/f"), to: path("x2/k"))
                contents.move(path("x2/f"), to: path("x1/k"))
            }
            let now = [try await session.find("x1/k"), try await session.find("x2/k")].map(\.itemIdentifier)
            #expect(now[0] != known[0] && now[1] != known[1])
        }
    }

    @Test(
        "PATH-3: a file that was renamed there and removed here is not taken for another of its length and time",
        arguments: [true, false])
    func removedHereAndRenamedThere(isSent: Bool) async throws {
        try await MemoryPathRemote.run(.init(isTagStrong: false)) { remote, session async throws in
            remote.change { contents in
                contents.make(path("removed"), kind: .file, Array("1".utf8))
                contents.make(path("other"), kind: .file, Array("2".utf8))
                contents.makeAlike(path("removed"), path("other"))
            }
            let removed = try await session.find("removed")
            let other = try await session.find("other").itemIdentifier
            remote.change { contents in
                contents.move(path("removed"), to: path("renamed"))
                contents.delete(path("other"))
            }
            if isSent {
                try await session.delete(removed)
            } else {
                session.manager.noteDeletedHere(removed.itemIdentifier)
            }
            let now = try await session.find("renamed").itemIdentifier
            #expect(now != other && now != removed.itemIdentifier)
        }
    }

    @Test("PATH-3: what holds nothing is not taken for something else that is gone, where no tag says so")
    func nothingIsLikeNothing() async throws {
        try await MemoryPathRemote.run(.init(hasTagsOfContent: true)) { remote, session async throws in
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

    @Test("PATH-13: of two items that came to be known in one place, one is gone")
    func oneInAPlace() async throws {
        try await MemoryPathRemote.run { remote, session async throws in
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
}
