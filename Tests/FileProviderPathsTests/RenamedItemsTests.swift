import FileProvider
import FileProviderPaths
import FileProviderTesting
import Testing

/// Items that another client has renamed, and that are asked for before a listing has shown it.
@Suite struct RenamedItemsTests {
    /// A directory with files, all known.
    private func makeTree(_ remote: MemoryPathRemote, _ session: ProviderSession) async throws -> [FileProviderItem] {
        remote.change { contents in
            contents.make(path("d"), kind: .directory)
            for number in 0..<20 { contents.make(path("d/\(number)"), kind: .file, [UInt8(number)]) }
        }
        return try await session.list(try await session.find("d").itemIdentifier)
    }

    @Test(
        "PATH-2: an item in a directory that was renamed since the last listing is found, written and made",
        arguments: [false, true])
    func renamedAbove(hasNoTag: Bool) async throws {
        try await MemoryPathRemote.run(.init(hasTagsOfContent: hasNoTag)) { remote, session async throws in
            let files = try await makeTree(remote, session)
            let file = try #require(files.first { $0.filename == "7" })
            let d = file.parentItemIdentifier
            remote.change { contents in
                contents.move(path("d"), to: path("x"))
                contents.make(path("x/new"), kind: .file, [1])
            }
            #expect(try await session.item(file.itemIdentifier).parentItemIdentifier == d)
            #expect(try await session.item(d).filename == "x")
            #expect(try await session.fetch(file.itemIdentifier).bytes == [7])
            _ = try await session.modify(file, [], content: Array("changed".utf8))
            _ = try await session.create(ProviderSession.template("made", in: d), content: [1])
            #expect(try await session.fetch(file.itemIdentifier).bytes == Array("changed".utf8))
            #expect(remote.names(in: path("x")).contains("made"))
            #expect(remote.names(in: .root) == ["x"])
        }
    }

    @Test("PATH-2: a renamed file is found, and is not deleted under its new name")
    func renamedFile() async throws {
        try await MemoryPathRemote.run { remote, session async throws in
            let files = try await makeTree(remote, session)
            let seven = try #require(files.first { $0.filename == "7" })
            let eight = try #require(files.first { $0.filename == "8" })
            remote.change { contents in
                contents.move(path("d/7"), to: path("d/seven"))
                contents.move(path("d/8"), to: path("d/eight"))
            }
            try await session.delete(seven)
            #expect(remote.names(in: path("d")).contains("seven"))
            #expect(try await session.item(eight.itemIdentifier).filename == "eight")
        }
    }

    @Test("PATH-2: items of a removed directory that are asked for together cost one listing")
    func removed() async throws {
        try await MemoryPathRemote.run { remote, session async throws in
            let files = try await makeTree(remote, session)
            remote.change { $0.delete(path("d")) }
            _ = remote.takeCalls()
            await withTaskGroup(of: Void.self) { group in
                for file in files {
                    group.addTask {
                        await #expect(throws: FileProviderError.self) { try await session.item(file.itemIdentifier) }
                    }
                }
            }
            let listings = remote.takeCalls().filter { $0.starts(with: "entries") }
            #expect(listings.filter { $0 == "entries /" }.count == 1, "\(listings)")
            #expect(listings.count <= 2, "\(listings)")
        }
    }
}
