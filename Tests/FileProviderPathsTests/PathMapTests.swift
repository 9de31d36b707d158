import FileProvider
import FileProviderTesting
import SystemPackage
import TestSupport
import Testing

@testable import FileProviderPaths

/// Many items that are elsewhere than the system knows.
@Suite struct PathMapTests {
    /// Runs a test with a map, and with the manager that it asks for what the system knows.
    private func withMap(_ test: (TestManager, PathMap) throws -> Void) throws {
        let scratch = try TemporaryDirectory()
        defer { scratch.remove() }
        let manager = TestManager(
            domain: FileProviderDomain(identifier: "test", source: "memory"), stateDirectory: scratch.path)
        try test(manager, PathMap(manager: manager, ledger: OperationLedger()))
    }

    private func place(_ name: String) -> PathMap.Place { PathMap.Place(directory: .rootContainer, name: name) }

    @Test(
        "the renamed names of one listing are recognized with a number of queries that grows with them, not with its square"
    )
    func manyRenamed() async throws {
        let count = 400
        try await MemoryPathRemote.run { remote, session async throws in
            remote.change { contents in
                contents.make(path("d"), kind: .directory)
                for number in 0..<count { contents.make(path("d/\(number)"), kind: .file, [1]) }
            }
            let directory = try await session.find("d").itemIdentifier
            let before = try await session.list(directory)
            remote.change { contents in
                for number in 0..<count { contents.move(path("d/\(number)"), to: path("d/new \(number)")) }
            }
            let lookups = session.manager.childLookups
            let after = try await session.list(directory)
            #expect(session.manager.childLookups - lookups < 20 * count)
            #expect(after.map(\.filename).allSatisfy { $0.hasPrefix("new ") })
            #expect(Set(after.map(\.itemIdentifier)) == Set(before.map(\.itemIdentifier)))
        }
    }

    @Test("PATH-9: a move that was made here is not forgotten, however many renamed items listings show")
    func madeHere() async throws {
        try withMap { manager, paths in
            let item = ProviderSession.template("old")
            manager.learn([item])
            paths.noteSeen(item.itemIdentifier, from: path("old"), at: place("new"), isMadeHere: true)
            for number in 0..<5000 {
                paths.noteSeen(ItemIdentifier("\(number)"), from: path("\(number)"), at: place("seen \(number)"))
            }
            #expect(paths.place(of: item.itemIdentifier) == place("new"))
            #expect(paths.path(of: item.itemIdentifier) == path("new"))
        }
    }

    @Test(
        "an item in a directory whose move the system has heard of is where the system knows it, also among many moves")
    func heard() async throws {
        try withMap { manager, paths in
            let others = (0..<40).map { ProviderSession.template("\($0)") }
            let directory = ProviderSession.template("a", kind: .directory)
            let file = ProviderSession.template("file", in: directory.itemIdentifier)
            manager.learn(others + [directory, file])
            for other in others {
                paths.noteSeen(other.itemIdentifier, from: path(other.filename), at: place("new \(other.filename)"))
            }
            paths.noteSeen(directory.itemIdentifier, from: path("a"), at: place("b"), isMadeHere: true)
            #expect(paths.path(of: file.itemIdentifier) == path("b/file"))
            #expect(paths.isMoving(directory.itemIdentifier))
            #expect(paths.identifier(at: place("b")) == directory.itemIdentifier)
            manager.learn([directory.renamed("b")])
            #expect(paths.path(of: file.itemIdentifier) == path("b/file"))
            #expect(!paths.isMoving(directory.itemIdentifier))
            // Another directory comes to the old place.
            let second = ProviderSession.template("a", kind: .directory)
            let inside = ProviderSession.template("inside", in: second.itemIdentifier)
            manager.learn([second, inside])
            #expect(paths.path(of: inside.itemIdentifier) == path("a/inside"))
            // What is moved once more comes from where the system knows it by now.
            paths.noteSeen(directory.itemIdentifier, from: path("b"), at: place("c"), isMadeHere: true)
            #expect(paths.path(of: file.itemIdentifier) == path("c/file"))
            #expect(paths.path(of: inside.itemIdentifier) == path("a/inside"))
        }
    }
}
