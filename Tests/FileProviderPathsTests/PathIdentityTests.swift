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
