import FileProvider
import FileProviderPaths
import FileProviderTesting
import Testing

/// Entries of a remote that are not shown.
@Suite struct UnshownEntriesTests {
    @Test("NAME-6: a listing tells of each name that is not shown, with its place, for as long as the remote has it")
    func omissions() async throws {
        var habits = MemoryPathRemote.Habits()
        habits.part = 2
        try await MemoryPathRemote.run(habits) { remote, session async throws in
            let names = ["a", "b"].map { String(repeating: "x", count: 255) + $0 }
            remote.change { contents in
                contents.make(path("d"), kind: .directory)
                for name in ["fine", "finer", "finest"] { contents.make(path("d/" + name), kind: .file) }
                for name in names { contents.make(path("d/" + name), kind: .file) }
            }
            let directory = try await session.find("d").itemIdentifier
            #expect(try await session.list(directory).map(\.filename) == ["fine", "finer", "finest"])
            let beginning = String(repeating: "x", count: 40)
            let text = "the remote has a name that is not shown: name of 256 bytes: '\(beginning)…' in '/d'"
            // The two have the same text.
            for _ in 0..<2 { #expect(try await session.omissions(in: directory) == [text, text]) }
            remote.change { $0.delete(path("d/" + names[0])) }
            #expect(try await session.omissions(in: directory) == [text])
            remote.change { $0.move(path("d/" + names[1]), to: path("d/short")) }
            #expect(try await session.omissions(in: directory) == [])
            // The system says so.
            #expect(session.manager.warnings == [])
        }
    }

    @Test("NAME-6: a listing tells of a name that is not UTF-8, and leaves it out") func byteNames() async throws {
        try await MemoryPathRemote.run { remote, session async throws in
            remote.change { contents in
                contents.make(path("d"), kind: .directory)
                for name in ["fine", "n\u{10FFFF}"] { contents.make(path("d/" + name), kind: .file) }
            }
            let directory = try await session.find("d").itemIdentifier
            #expect(try await session.list(directory).map(\.filename) == ["fine"])
            let text = "the remote has a name that is not shown: name that is not UTF-8: 'n\u{10FFFF}' in '/d'"
            for _ in 0..<2 { #expect(try await session.omissions(in: directory) == [text]) }
            #expect(session.manager.warnings == [])
        }
    }
}
