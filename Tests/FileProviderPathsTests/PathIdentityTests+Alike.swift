import FileProvider
import FileProviderTesting
import Testing

/// Items that are alike, on a remote whose tags do not tell them apart.
extension PathIdentityTests {
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
}
