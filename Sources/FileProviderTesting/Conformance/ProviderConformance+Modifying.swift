import FileProvider

/// Checks of modification: atomic, and never overwriting a change by others.
extension ProviderConformance.Subject {
    private struct Broken: Error {}

    func checkUploads() async throws {
        try await remote.write(Array("old".utf8), to: "file")
        let old = try await session.find("file")
        let content = RemoteContent.pattern(size: (2 << 20) + 5, seed: 9)
        for bytes in [content[0..<content.size], [], Array("short".utf8)] {
            let before = try await session.find("file")
            let stored = try await session.modify(before, .contents, content: bytes)
            try expect(stored.stillPending.isEmpty, "an upload is still pending: \(stored.stillPending.names)")
            try expect(!stored.shouldFetchContent, "the uploaded content is to be fetched")
            try expect(
                stored.item.itemVersion.contentVersion != before.itemVersion.contentVersion,
                "an upload leaves the content version as it was")
            try expect(stored.item.filename == "file", "an upload makes '\(stored.item.filename)' of 'file'")
            try await expectStored(stored, at: "file", bytes)
        }
        try await expectNames(["file"], "after uploads")
        let now = try await session.find("file")
        try expect(now.permissions == old.permissions, "an upload changes the permissions")
    }

    func checkConflicts() async throws {
        try await remote.write(Array("base".utf8), to: "file")
        let base = try await session.find("file")
        try await remote.write(Array("theirs, meanwhile".utf8), to: "file")
        do {
            try await session.modify(base, .contents, content: Array("mine".utf8))
            throw ConformanceFailure("an upload with an old base version succeeds")
        } catch let error as FileProviderError {
            try expect(error.code == .localVersionConflictingWithServer, "an upload with an old base version: \(error)")
            try expect(error.item?.documentSize == 17, "the conflict does not contain the current item")
        }
        let theirs = try await session.find("file")
        try await expectContent(
            Array("theirs, meanwhile".utf8), of: theirs.itemIdentifier, "after an upload with an old base version")
        // A field that has no version cannot conflict.
        let renamed = base.renamed("renamed")
        let stored = try await session.modify(renamed, .filename)
        try expect(
            stored.item.itemVersion.contentVersion == theirs.itemVersion.contentVersion, "a rename changes the content")
        try await expectStored(stored, at: "renamed", Array("theirs, meanwhile".utf8))
    }

    func checkFailedUploads() async throws {
        try await remote.write(Array("as it was".utf8), to: "file")
        let before = try await session.find("file")
        let bytes = RemoteContent.pattern(size: 3 << 20, seed: 1)[0..<3 << 20]
        let content = try TestContent(bytes) { throw Broken() }
        try await expectBroken("an upload") { _ = try await session.modify(before, .contents, source: content.source) }
        let renamed = before.renamed("renamed")
        try await expectBroken("an upload with a rename") {
            _ = try await session.modify(renamed, .filename, source: content.source)
        }
        try await expectBroken("a new file") {
            _ = try await session.create(ProviderSession.template("new"), source: content.source)
        }
        let items = try await session.list()
        try await expectNames(["file"], "after failed uploads")
        if let after = items.first { try expect(after, equals: before, "failed uploads have changed the file") }
        try await expectContent(
            Array("as it was".utf8), of: before.itemIdentifier, version: before.itemVersion.contentVersion,
            "after a failed upload")
        let stored = try await session.modify(before, .contents, content: bytes)
        try await expectStored(stored, at: "file", bytes)
    }

    private func expectBroken(_ what: String, _ body: () async throws -> Void) async throws {
        do {
            try await body()
        } catch {
            return
        }
        throw ConformanceFailure("\(what) succeeds though its content was written meanwhile")
    }

    func checkMoves() async throws {
        for path in ["from", "to", "from/directory"] { try await remote.makeDirectory(path) }
        try await remote.write(Array("inner".utf8), to: "from/directory/inner")
        try await remote.write(Array("content".utf8), to: "from/file")
        let to = try await session.find("to").itemIdentifier
        try await session.list(to)
        var file = try await session.find("from/file")
        let original = file
        file.filename = "renamed"
        var stored = try await session.modify(file, .filename)
        try await expectStored(stored, at: "from/renamed", Array("content".utf8))
        try expect(
            stored.item.itemIdentifier == original.itemIdentifier, stored.item.identityLoss(since: original))
        file = stored.item
        (file.filename, file.parentItemIdentifier) = ("moved", to)
        stored = try await session.modify(file, [.filename, .parentItemIdentifier])
        try await expectStored(stored, at: "to/moved", Array("content".utf8))
        // Content, name and parent in one change.
        file = stored.item
        (file.filename, file.parentItemIdentifier) = ("both", .rootContainer)
        stored = try await session.modify(file, [.filename, .parentItemIdentifier], content: Array("new".utf8))
        try await expectStored(stored, at: "both", Array("new".utf8))

        var directory = try await session.find("from/directory")
        let inner = try await session.find("from/directory/inner")
        directory.parentItemIdentifier = to
        let moved = try await session.modify(directory, .parentItemIdentifier)
        try await expectStored(moved, at: "to/directory")
        let found = try await session.find("to/directory/inner")
        try expect(
            found.itemIdentifier == inner.itemIdentifier,
            "a descendant has another identifier after a move of its directory")
        try await expectNames([], in: session.find("from").itemIdentifier, "after a move to another directory")

        let above = try await session.find("to").moved(to: moved.item.itemIdentifier)
        try await expect(.cannotSynchronize, from: "moving a directory below itself") {
            _ = try await session.modify(above, .parentItemIdentifier)
        }
        let lost = moved.item.moved(to: "there-is-no-such-item")
        try await expect(.noSuchItem, from: "moving something into an unknown directory") {
            _ = try await session.modify(lost, .parentItemIdentifier)
        }
        try await expectStored(moved, at: "to/directory")
    }

    func checkSwap() async throws {
        try await remote.write(Array("one".utf8), to: "a")
        try await remote.write(Array("two".utf8), to: "b")
        var one = try await session.find("a")
        var two = try await session.find("b")
        one.filename = "free"
        one = try await session.modify(one, .filename).item
        two.filename = "a"
        two = try await session.modify(two, .filename).item
        one.filename = "b"
        one = try await session.modify(one, .filename).item
        for (name, item, content) in [("a", two, "two"), ("b", one, "one")] {
            let found = try await session.find(name)
            try expect(found.itemIdentifier == item.itemIdentifier, "after a swap '\(name)' is the wrong item")
            try await expectContent(Array(content.utf8), of: found.itemIdentifier, "after a swap")
        }
        try await expectNames(["a", "b"], "after a swap")
    }
}
