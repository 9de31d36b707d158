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
        guard features.trash else { return }
        try await remote.makeDirectory("directory")
        try await remote.makeDirectory("other")
        try await remote.write(Array("inner".utf8), to: "directory/inner")
        try await remote.write(Array("one".utf8), to: "file")
        try await remote.write(Array("two".utf8), to: "other/file")
        let nothing = try await session.list(.trashContainer)
        try expect(nothing.isEmpty, "the trash of a new remote holds \(nothing.map(\.filename))")
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
        let left = try await session.list()
        try expect(
            left.map(\.filename) == ["other"], "with the rest in the trash the root lists \(left.map(\.filename))")
        let listed = try await session.list(.trashContainer)
        try expect(listed.count == trashed.count, "the trash lists \(listed.map(\.filename))")
        for (item, bytes) in trashed {
            try expect(listed.contains(item), "'\(item.filename)' is not listed in the trash as it was answered")
            let looked = try await session.item(item.itemIdentifier)
            try expect(looked == item, "'\(item.filename)' in the trash is \(looked) when looked up")
            guard let bytes else { continue }
            let content = try await session.fetch(item.itemIdentifier).bytes
            try expect(content == bytes, "'\(item.filename)' has other content in the trash")
        }
        let below = try await session.list(trashed[2].item.itemIdentifier)
        try expect(
            below.map(\.itemIdentifier) == [inner.itemIdentifier], "a directory in the trash lists \(below)")
        let content = try await session.fetch(inner.itemIdentifier).bytes
        try expect(content == Array("inner".utf8), "what a directory in the trash holds has other content")
    }

    func checkRestoring() async throws {
        guard features.trash else { return }
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
        let left = try await session.list(.trashContainer)
        try expect(left.isEmpty, "what was restored is still in the trash: \(left.map(\.filename))")
    }

    func checkDeletingTrash() async throws {
        guard features.trash else { return }
        try await remote.makeDirectory("directory")
        try await remote.write([1], to: "directory/inner")
        try await remote.write([2], to: "file")
        let directory = try await trash(session.find("directory"))
        let file = try await trash(session.find("file"))
        try await session.delete(file)
        try await session.delete(file)
        try await session.delete(directory, recursively: true)
        let left = try await session.list(.trashContainer)
        try expect(left.isEmpty, "what was deleted is still in the trash: \(left.map(\.filename))")
        try await expect(.noSuchItem, from: "looking up what was deleted from the trash") {
            _ = try await session.item(file.itemIdentifier)
        }
        let offered = ProviderSession.template("new", in: .trashContainer)
        let made = try await session.create(offered, content: Array("new".utf8))
        try expect(made.item.isTrashed, "what was made in the trash is in '\(made.item.parentItemIdentifier)'")
        let bytes = try await session.fetch(made.item.itemIdentifier).bytes
        try expect(bytes == Array("new".utf8), "what was made in the trash has other content")
    }

    func checkShares() async throws {
        guard features.trash else { return }
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
        try expect(!restored.item.isShared, "what comes back from the trash is shared again")
    }

    private func trash(_ item: FileProviderItem) async throws -> FileProviderItem {
        var item = item
        item.parentItemIdentifier = .trashContainer
        let stored = try await session.modify(item, .parentItemIdentifier)
        try expect(
            stored.item.isTrashed, "'\(item.filename)' was trashed and is in '\(stored.item.parentItemIdentifier)'")
        try expect(
            stored.item.itemVersion.contentVersion == item.itemVersion.contentVersion, "trashing changes the content")
        return stored.item
    }
}
