import FileProvider

/// Checks of the change feed, for providers with a history.
extension ProviderConformance.Subject {
    func checkChanges() async throws {
        try await remote.makeDirectory("directory")
        try await remote.makeDirectory("other")
        for name in ["written", "renamed", "moved", "deleted"] {
            try await remote.write(Array(name.utf8), to: "directory/\(name)")
        }
        let anchor = try await session.anchor()
        // Unlisted items are not in the working set.
        let written = try await session.find("directory/written")
        let other = try await session.find("other").itemIdentifier
        try await session.list(other)
        let renamed = try await session.find("directory/renamed").itemIdentifier
        let moved = try await session.find("directory/moved").itemIdentifier
        let deleted = try await session.find("directory/deleted").itemIdentifier

        try await remote.write(Array("new content".utf8), to: "directory/written")
        try await remote.rename("directory/renamed", to: "directory/another name")
        try await remote.rename("directory/moved", to: "other/moved")
        try await remote.delete("directory/deleted")
        try await remote.write([1], to: "directory/created")

        func last(_ identifier: ItemIdentifier, _ batch: ChangeBatch) -> FileProviderItem? {
            batch.updated.last { $0.itemIdentifier == identifier }
        }
        let changes = try await session.changes(from: anchor, until: "a write") { batch in
            guard let item = last(written.itemIdentifier, batch) else { return false }
            return item.documentSize == 11 && item.itemVersion.contentVersion != written.itemVersion.contentVersion
        }
        var all = changes
        func follow(_ what: String, _ isMet: (ChangeBatch) -> Bool) async throws {
            if isMet(all) { return }
            let before = all
            let more = try await session.changes(from: all.anchor, until: what) { batch in
                var both = before
                both.append(batch)
                return isMet(both)
            }
            all.append(more)
        }
        try await follow("a rename") { last(renamed, $0)?.filename == "another name" }
        try await follow("a move") { last(moved, $0)?.parentItemIdentifier == other }
        try await follow("a deletion") { $0.deleted.contains(deleted) }
        try await follow("a new file") { $0.updated.contains { $0.filename == "created" } }
        try expect(
            !all.deleted.contains(renamed) && !all.deleted.contains(moved), "a renamed item is reported as deleted")

        let rest = try await session.changes(from: all.anchor)
        let known = try await session.find("directory/another name").itemIdentifier
        try expect(known == renamed, "the changes and the listing give another identifier")
        try expect(!rest.deleted.contains(renamed), "a renamed item is reported as deleted")
    }

    func checkDocuments() async throws {
        try await remote.write(Array("old".utf8), to: "document")
        try await remote.write(Array("another".utf8), to: "another")
        let document = try await session.find("document")
        let enumerator = try session.provider.enumerator(for: document.itemIdentifier, request: session.request)
        let anchor = try await enumerator.currentSyncAnchor()
        let page = try await enumerator.enumerateItems(startingAt: .initial, suggestedPageSize: 10)
        try expect(
            page.items.count == 1 && page.nextPage == nil,
            "a document's enumerator lists \(page.items.map(\.filename)) instead of the document alone")
        if let item = page.items.first {
            try expect(item, equals: document, "a document's enumerator lists it otherwise than its directory")
        }
        try await remote.write(Array("newer".utf8), to: "document")
        try await remote.write(Array("too".utf8), to: "another")
        let deadline = ContinuousClock.now + .seconds(10)
        while true {
            var reported = try await enumerator.enumerateItems(startingAt: .initial, suggestedPageSize: 10).items
            if let anchor {
                reported = try await enumerator.enumerateChanges(from: anchor, suggestedBatchSize: 10).updated
            }
            try expect(
                reported.allSatisfy { $0.itemIdentifier == document.itemIdentifier },
                "a document's enumerator reports \(reported.map(\.itemIdentifier))")
            if reported.last?.documentSize == 5 { break }
            try expect(ContinuousClock.now < deadline, "a document's enumerator does not report a write")
            try await Task.sleep(for: .milliseconds(20))
        }
        enumerator.invalidate()
        try await remote.delete("document")
        try await expect(.noSuchItem, from: "a document that was deleted") {
            let enumerator = try session.provider.enumerator(for: document.itemIdentifier, request: session.request)
            _ = try await enumerator.enumerateItems(startingAt: .initial, suggestedPageSize: 10)
        }
    }

    func checkUnknownAnchor() async throws {
        for text in ["", "nonsense", "1.999999999999"] {
            try await expect(.syncAnchorExpired, from: "changes from the anchor '\(text)'") {
                _ = try await session.changes(from: SyncAnchor(text))
            }
        }
    }
}
