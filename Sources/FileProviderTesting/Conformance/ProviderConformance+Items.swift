import FileProvider

/// Checks of identifiers, names and parents.
extension ProviderConformance.Subject {
    func checkRoot() async throws {
        let root = try await session.item(.rootContainer)
        try expect(root.itemIdentifier == .rootContainer, "the root's identifier is '\(root.itemIdentifier)'")
        try expect(root.kind == .directory, "the root is a \(root.kind)")
        try expect(root.defect == nil, "the root has a defect: \(root.defect?.description ?? "")")
        try await expectNames([], "of an empty remote")
        try expect(features.concurrentCalls > 0, "the provider serves no calls at all")
    }

    func checkListings() async throws {
        try await remote.makeDirectory("directory")
        try await remote.makeDirectory("directory/empty")
        try await remote.write(Array("one".utf8), to: "directory/one.txt")
        try await remote.write([], to: "nothing")
        try await expectNames(["directory", "nothing"], "of the root")
        let directory = try await session.find("directory")
        try expect(directory.kind == .directory, "a directory is a \(directory.kind)")
        try await expectNames(["empty", "one.txt"], in: directory.itemIdentifier, "of a directory")
        let file = try await session.find("directory/one.txt")
        try expect(
            file.kind == .file && file.documentSize == 3,
            "a file of 3 bytes is a \(file.kind) of \(file.documentSize ?? -1) bytes")
        try await expectNames([], in: session.find("directory/empty").itemIdentifier, "of an empty directory")
    }

    func checkPages() async throws {
        let names = Set((0..<53).map { "file \($0)" })
        for name in names { try await remote.write([1], to: name) }
        for size in [1, 7, 53, 1000] {
            let items = try await session.list(pageSize: size)
            try expect(
                items.count == names.count && Set(items.map(\.filename)) == names,
                "\(items.count) of \(names.count) items are listed when the system suggests \(size) a page")
        }
    }

    func checkUnicodeForms() async throws {
        let composed = "caf\u{E9}"
        let decomposed = "cafe\u{301}"
        try await remote.write(Array("composed".utf8), to: composed)
        try await remote.write(Array("decomposed".utf8), to: decomposed)
        let items = try await session.list()
        try expect(items.count == 2, "two forms of one text are \(items.count) items")
        for (name, content) in [(composed, "composed"), (decomposed, "decomposed")] {
            let item = try await session.find(name)
            try await expectContent(Array(content.utf8), of: item.itemIdentifier, "of the \(content) name")
        }
    }

    func checkRenames() async throws {
        try await remote.makeDirectory("from")
        try await remote.makeDirectory("to")
        try await remote.write(Array("content".utf8), to: "from/file")
        try await remote.makeDirectory("from/directory")
        try await remote.write(Array("inner".utf8), to: "from/directory/inner")
        let file = try await session.find("from/file")
        let directory = try await session.find("from/directory").itemIdentifier
        let inner = try await session.find("from/directory/inner").itemIdentifier
        try await remote.rename("from/file", to: "from/renamed")
        try await remote.rename("from/directory", to: "to/moved")
        let renamed = try await session.find("from/renamed")
        try expect(renamed.itemIdentifier == file.itemIdentifier, renamed.identityLoss(since: file))
        let moved = try await session.find("to/moved")
        try expect(moved.itemIdentifier == directory, "a directory has another identifier after its move")
        let found = try await session.find("to/moved/inner")
        try expect(found.itemIdentifier == inner, "a descendant has another identifier after a move of its directory")
        let looked = try await session.item(inner)
        try expect(looked, equals: found, "a lookup below a moved directory differs from its listing")
    }

    func checkRestart() async throws {
        try await remote.makeDirectory("directory")
        try await remote.write([1, 2, 3], to: "directory/file")
        let before = try await session.find("directory/file")
        await session.provider.invalidate()
        let provider = try await remote.makeProvider(for: session.manager)
        let again = ProviderSession(provider: provider, manager: session.manager)
        let after = try await again.item(before.itemIdentifier)
        let listed = try await again.find("directory/file")
        await provider.invalidate()
        try expect(after, equals: before, "a restart has changed an item")
        try expect(listed.itemIdentifier == before.itemIdentifier, "identifiers change with a restart")
    }

    func checkLookups() async throws {
        try await remote.makeDirectory("directory")
        try await remote.write([1, 2, 3], to: "directory/file")
        for path in ["directory", "directory/file"] {
            let listed = try await session.find(path)
            let looked = try await session.item(listed.itemIdentifier)
            try expect(looked, equals: listed, "the lookup of '\(path)' differs from its listing")
        }
    }

    func checkMissingItems() async throws {
        let unknown = ItemIdentifier("there-is-no-such-item")
        try await expect(.noSuchItem, from: "looking up an unknown item") { _ = try await session.item(unknown) }
        try await expect(.noSuchItem, from: "listing an unknown item") { _ = try await session.list(unknown) }
        try await expect(.noSuchItem, from: "fetching an unknown item") { _ = try await session.fetch(unknown) }
        try await remote.makeDirectory("directory")
        try await remote.write([1], to: "directory/file")
        let directory = try await session.find("directory").itemIdentifier
        let file = try await session.find("directory/file").itemIdentifier
        try await remote.delete("directory")
        try await expect(.noSuchItem, from: "looking up a deleted file") { _ = try await session.item(file) }
        try await expect(.noSuchItem, from: "fetching a deleted file") { _ = try await session.fetch(file) }
        try await expect(.noSuchItem, from: "listing a deleted directory") { _ = try await session.list(directory) }
    }
}
