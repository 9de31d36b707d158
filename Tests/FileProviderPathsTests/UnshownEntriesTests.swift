import FileProvider
import FileProviderPaths
import FileProviderTesting
import Testing

/// Entries of a remote that are not shown.
@Suite struct UnshownEntriesTests {
    @Test("NAME-6: a name that is not shown is reported with its place, and once, however often it is listed")
    func reportedOnce() async throws {
        try await MemoryPathRemote.run { remote, session async throws in
            let names = ["a", "b"].map { String(repeating: "x", count: 255) + $0 }
            remote.change { contents in
                contents.make(path("d"), kind: .directory)
                contents.make(path("d/fine"), kind: .file)
                contents.make(path("d/" + names[0]), kind: .file)
            }
            let directory = try await session.find("d").itemIdentifier
            for _ in 0..<3 { #expect(try await session.list(directory).map(\.filename) == ["fine"]) }
            let beginning = String(repeating: "x", count: 40)
            let warning = "the remote has a name that is not shown: name of 256 bytes: '\(beginning)…' in '/d'"
            #expect(session.manager.warnings == [warning])
            // Another object, which has the same text.
            remote.change { $0.make(path("d/" + names[1]), kind: .file) }
            for _ in 0..<3 { _ = try await session.list(directory) }
            #expect(session.manager.warnings == [warning, warning])
        }
    }
}
