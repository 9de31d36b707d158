import FileProvider

/// Checks of single attributes, and of deletion.
extension ProviderConformance.Subject {
    /// Each field with a change of it, and a comparison.
    private var fields: [(field: ItemFields, set: (inout FileProviderItem) -> Void)] {
        [
            (.permissions, { $0.permissions = 0o604 }),
            (
                .contentModificationDate,
                { $0.contentModificationDate = FileTimestamp(seconds: 981_173_106, nanoseconds: 123_456_700) }
            ),
            (.extendedAttributes, { $0.extendedAttributes = ["one": [1, 0, 255], "two": []] }),
            (.creationDate, { $0.creationDate = FileTimestamp(seconds: 981_173_107) }),
            (.lastUsedDate, { $0.lastUsedDate = FileTimestamp(seconds: 981_173_108) }),
            (.tagData, { $0.tagData = [1, 2, 3] }),
            (.favoriteRank, { $0.favoriteRank = 7 }),
        ]
    }

    func checkMetadata() async throws {
        try await remote.write(Array("content".utf8), to: "file")
        for (field, set) in fields {
            let before = try await session.find("file")
            var changed = before
            set(&changed)
            // The provider must ignore fields that are not in the change.
            let sent = changed.renamed("not this one")
            let stored = try await session.modify(sent, field)
            try expect(stored.item.filename == "file", "a change of \(field.names) renames the item")
            try expectField(field, set, stored, over: before)
            try await expectStored(stored, at: "file", Array("content".utf8))
        }
        // All fields in a creation and in an upload.
        var template = ProviderSession.template("new")
        for (_, set) in fields { set(&template) }
        let all = fields.reduce(into: ItemFields()) { $0.formUnion($1.field) }
        let made = try await session.create(template, content: [1, 2, 3], fields: all)
        var bare = made.item
        for (field, set) in fields { try expectField(field, set, made, over: bare) }
        bare = made.item
        for (_, set) in fields { set(&bare) }
        let uploaded = try await session.modify(bare, all, content: [4, 5])
        for (field, set) in fields { try expectField(field, set, uploaded, over: bare) }
        try await expectStored(uploaded, at: "new", [4, 5])
        var without = uploaded.item
        if without.extendedAttributes?.isEmpty == false {
            without.extendedAttributes = ["two": [9]]
            let stored = try await session.modify(without, .extendedAttributes)
            try expect(
                stored.item.extendedAttributes == ["two": [9]],
                "a removed attribute is still stored: there are \((stored.item.extendedAttributes ?? [:]).keys.sorted())"
            )
        }
    }

    /// Verifies that a field was stored or returned as still pending.
    private func expectField(
        _ field: ItemFields, _ set: (inout FileProviderItem) -> Void, _ stored: ProviderSession.Stored,
        over before: FileProviderItem
    ) throws {
        if stored.stillPending.contains(field) { return }
        var wanted = stored.item
        set(&wanted)
        try expect(
            stored.item, equals: wanted, "\(field.names.joined(separator: ", ")) is neither stored nor still pending")
    }

    func checkDeletions() async throws {
        try await remote.write(Array("old".utf8), to: "file")
        let old = try await session.find("file")
        try await remote.write(Array("new, meanwhile".utf8), to: "file")
        do {
            try await session.delete(old)
            throw ConformanceFailure("a deletion that is based on an old version succeeds")
        } catch let error as FileProviderError {
            try expect(error.code == .deletionRejected, "a deletion that is based on an old version: \(error)")
            try expect(error.item?.documentSize == 14, "the rejection does not tell of the item as it is")
        }
        let new = try await session.find("file")
        try await expectContent(Array("new, meanwhile".utf8), of: new.itemIdentifier, "after a rejected deletion")
        try await session.delete(new)
        try await expectNames([], "after a deletion")
        try await expect(.noSuchItem, from: "looking up a deleted item") {
            _ = try await session.item(new.itemIdentifier)
        }
        try await session.delete(new)
        guard let link = try await session.createLink("link", to: "x") else { return }
        try await session.delete(link.item)
        try await expectNames([], "after the deletion of a link")
        guard let other = try await session.createLink("link", to: "y") else { return }
        do {
            try await session.delete(link.item)
        } catch let error as FileProviderError where error.code == .deletionRejected {}
        let left = try await session.find("link")
        try expect(left.symlinkTargetPath == "y", "the deletion of a link has changed the one in its place")
        try await session.delete(other.item)
        try await expectNames([], "after the deletion of the link in its place")
    }

    func checkFullDirectories() async throws {
        for path in ["directory", "directory/inner", "directory/inner/empty"] { try await remote.makeDirectory(path) }
        try await remote.write([1], to: "directory/inner/file")
        let directory = try await session.find("directory")
        let inner = try await session.find("directory/inner")
        let empty = try await session.find("directory/inner/empty")
        let file = try await session.find("directory/inner/file")
        try await expect(.directoryNotEmpty, from: "deleting a directory that is not empty") {
            try await session.delete(directory)
        }
        try await expectContent([1], of: file.itemIdentifier, "after a rejected deletion of its directory")
        try await session.delete(empty)
        let rest = try await session.list(inner.itemIdentifier)
        try expect(rest == [file], "after the deletion of an empty directory \(rest.map(\.filename)) are left")
        try await session.delete(directory, recursively: true)
        try await expectNames([], "after a recursive deletion")
        try await session.delete(directory, recursively: true)
    }
}
