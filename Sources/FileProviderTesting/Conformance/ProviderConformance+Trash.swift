import FileProvider

/// Checks of the trash: an item stays unchanged in it, and can be restored.
extension ProviderConformance.Subject {
    func checkMissingTrash() async throws {
        guard !features.trash else { return }
        try await expect(.featureUnsupported, from: "the trash of a remote that has none") {
            _ = try await session.list(.trashContainer)
        }
        try await remote.write([1], to: "file")
        let file = try await session.find("file")
        try expect(!file.capabilities.contains(.allowsTrashing), "an item can be trashed, and there is no trash")
    }

    func checkTrashing() async throws {
        try await remote.makeDirectory("directory")
        try await remote.makeDirectory("other")
        try await remote.write(Array("inner".utf8), to: "directory/inner")
        try await remote.write(Array("one".utf8), to: "file")
        try await remote.write(Array("two".utf8), to: "other/file")
        try await expectNames([], in: .trashContainer, "of a new remote")
        let inner = try await session.find("directory/inner")
        var trashed: [(item: FileProviderItem, bytes: [UInt8]?)] = []
        // Two items with one name.
        for (path, text) in [("file", "one"), ("other/file", "two"), ("directory", nil)] as [(String, String?)] {
            let item = try await session.find(path)
            try expect(item.capabilities.contains(.allowsTrashing), "'\(path)' cannot be trashed")
            let now = try await trash(item)
            try expect(now.itemIdentifier == item.itemIdentifier, "'\(path)' has another identifier in the trash")
            trashed.append((now, text.map { Array($0.utf8) }))
        }
        try await expectNames(["other"], "after trashing")
        let listed = try await session.list(.trashContainer)
        try expect(listed.count == trashed.count, "the trash lists \(listed.map(\.filename))")
        for (item, bytes) in trashed {
            try expect(listed.contains(item), "'\(item.filename)' is not listed in the trash as it was answered")
            let looked = try await session.item(item.itemIdentifier)
            try expect(
                looked, equals: item, "'\(item.filename)' in the trash is looked up otherwise than it was answered")
            guard let bytes else { continue }
            try await expectContent(bytes, of: item.itemIdentifier, "in the trash")
        }
        let below = try await session.list(trashed[2].item.itemIdentifier)
        try expect(
            below.map(\.itemIdentifier) == [inner.itemIdentifier],
            "a directory in the trash lists \(below.map(\.filename)), and not what it had")
        try await expectContent(Array("inner".utf8), of: inner.itemIdentifier, "in a directory in the trash")
    }

    func checkRestoring() async throws {
        try await remote.makeDirectory("from")
        try await remote.makeDirectory("to")
        try await remote.write(Array("text".utf8), to: "from/file")
        let file = try await session.find("from/file")
        let from = try await session.find("from").itemIdentifier
        let to = try await session.find("to").itemIdentifier
        var back = try await trash(file)
        (back.parentItemIdentifier, back.filename) = (from, "file")
        let stored = try await session.modify(back, [.parentItemIdentifier, .filename])
        try expect(stored.item.itemIdentifier == file.itemIdentifier, "a restored file has another identifier")
        try await expectStored(stored, at: "from/file", Array("text".utf8))
        var moved = try await trash(stored.item)
        (moved.parentItemIdentifier, moved.filename) = (to, "another name")
        // Together with new content.
        let elsewhere = try await session.modify(
            moved, [.parentItemIdentifier, .filename], content: Array("new text".utf8))
        try await expectStored(elsewhere, at: "to/another name", Array("new text".utf8))
        try await expectNames([], in: .trashContainer, "after a restoration")
        try await expect(.deletionRejected, from: "deleting an item from the trash that was restored") {
            try await session.delete(elsewhere.item, onlyFromTrash: true)
        }
    }

    func checkDeletingTrash() async throws {
        try await remote.makeDirectory("directory")
        try await remote.write([1], to: "directory/inner")
        try await remote.write([2], to: "file")
        let directory = try await trash(session.find("directory"))
        let file = try await trash(session.find("file"))
        try await session.delete(file)
        try await session.delete(file, onlyFromTrash: true)
        try await session.delete(directory, recursively: true, onlyFromTrash: true)
        try await expectNames([], in: .trashContainer, "after a deletion from the trash")
        try await expect(.noSuchItem, from: "looking up an item that was deleted from the trash") {
            _ = try await session.item(file.itemIdentifier)
        }
        let offered = ProviderSession.template("new", in: .trashContainer)
        let made = try await session.create(offered, content: Array("new".utf8))
        try expect(
            made.item.isTrashed, "an item that was created in the trash is in '\(made.item.parentItemIdentifier)'")
        try await expectContent(Array("new".utf8), of: made.item.itemIdentifier, "after a creation in the trash")
    }

    func checkShares() async throws {
        try await remote.makeDirectory("directory")
        try await remote.write([1], to: "directory/inner")
        try await remote.write([2], to: "file")
        guard try await remote.share("file"), try await remote.share("directory/inner") else { return }
        let file = try await session.find("file")
        let inner = try await session.find("directory/inner")
        try expect(file.isShared && inner.isShared, "a shared file is not shown as shared")
        var trashed = try await trash(file)
        try expect(!trashed.isShared, "a shared file is still shared in the trash, by the answer")
        _ = try await trash(session.find("directory"))
        for identifier in [file.itemIdentifier, inner.itemIdentifier] {
            let now = try await session.item(identifier)
            try expect(!now.isShared, "'\(now.filename)' is still shared in the trash")
        }
        let listed = try await session.list(.trashContainer)
        try expect(listed.allSatisfy { !$0.isShared }, "the trash lists something as shared")
        // Restoring must not share the item again.
        (trashed.parentItemIdentifier, trashed.filename) = (.rootContainer, "file")
        let restored = try await session.modify(trashed, [.parentItemIdentifier, .filename])
        try expect(!restored.item.isShared, "a restored item is shared again")
    }

    private func trash(_ item: FileProviderItem) async throws -> FileProviderItem {
        let stored = try await session.modify(item.moved(to: .trashContainer), .parentItemIdentifier)
        try expect(
            stored.item.isTrashed, "'\(item.filename)' was trashed and is in '\(stored.item.parentItemIdentifier)'")
        try expect(
            stored.item.itemVersion.contentVersion == item.itemVersion.contentVersion, "trashing changes the content")
        return stored.item
    }
}
