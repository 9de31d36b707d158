import FileProvider

/// Throwing away, and bringing back.
extension PathAddressedProvider {
    private typealias Place = PathMap.Place
    /// What has been deleted may be listed in the trash a moment later.
    private static let pauses: [Duration] = [.zero, .milliseconds(300), .seconds(1)]
    private static let mostThrows = 3

    // MARK: - Throwing away

    /// - Returns: the item in the trash, with the content that it had on the remote, or was given by this change.
    func throwAway(_ change: PathChange) async throws -> ItemChange {
        guard let trash else { throw Self.noTrash }
        let identifier = change.item.itemIdentifier
        guard let key = MintedIdentifier.remotePart(of: identifier) else { throw Self.noTrash }
        let before = trash.book.thrown(key)
        do {
            return try await locate(identifier) { [self] path in
                try await throwAway(change, at: path, in: parent(of: identifier, at: path), trash.remote, trash.book)
            }
        } catch let error as FileProviderError where error.code == .noSuchItem {
            // An earlier call like this may have had no answer, or somebody else was faster.
            if let (found, parent) = try await trashed(identifier) {
                return try await leaveInTrash(found, in: parent, change)
            }
            guard let before, !before.isRestoring else { throw error }
            throw await lost(before.name, identifier)
        }
    }

    private func throwAway(
        _ change: PathChange, at path: RemotePath, in parent: ItemIdentifier, _ remote: any TrashingRemote,
        _ trashBook: TrashRecords
    ) async throws -> ItemChange {
        let identifier = change.item.itemIdentifier
        var staying = change
        staying.fields.subtract([.filename, .parentItemIdentifier])
        var pending: ItemFields = []
        for _ in 0..<Self.mostThrows {
            var entry = try await remote.entry(at: path)
            guard mayBe(entry, identifier) else { throw FileProviderError.noSuchItem(identifier) }
            guard entry.isTrashable else {
                throw FileProviderError(
                    .cannotSynchronize,
                    "the remote's trash does not keep '\(entry.name)': it is shared, or mounted there",
                    itemIdentifier: identifier)
            }
            if !staying.fields.isEmpty {
                if case .applied(_, let left, _) = try await apply(staying, to: entry, at: path, in: parent) {
                    pending = left
                }
                staying.fields = []
                entry = try await remote.entry(at: path)
            }
            do {
                try await paths.changing([Place(directory: parent, name: entry.name)]) { [entry] in
                    try await throwAway(entry, at: path, remote, trashBook)
                }
            } catch let failure as RemoteConditionFailure {
                // Written by somebody in this moment: it goes as it is then.
                guard let present = failure.present, mayBe(present, identifier) else {
                    throw FileProviderError.noSuchItem(identifier)
                }
                continue
            }
            let found = try await landed(entry, at: path)
            guard let found else { throw await lost(entry.name, identifier) }
            return .applied(
                trashedItem(found, in: .trashContainer), stillPending: pending, shouldFetchContent: false)
        }
        throw FileProviderError(
            .providerDomainTemporarilyUnavailable, "'\(path.name ?? "/")' changes while it is thrown away")
    }

    private func throwAway(
        _ entry: RemoteEntry, at path: RemotePath, _ remote: any TrashingRemote, _ trashBook: TrashRecords
    ) async throws {
        trashBook.willThrow(entry)
        do {
            try await remote.throwAway(
                path, kind: entry.kind, if: entry.kind == .file ? .unchanged(tag: entry.tag) : .always)
            trashBook.ended(entry)
        } catch {
            trashBook.ended(entry, because: error)
            throw error
        }
    }

    /// Finds in the trash what was just thrown away.
    ///
    /// - Returns: nil when it is not there: the remote has deleted it for good.
    private func landed(_ entry: RemoteEntry, at path: RemotePath) async throws -> TrashedEntry? {
        guard let trash else { throw Self.noTrash }
        for pause in Self.pauses {
            try await Task.sleep(for: pause)
            let all = try await trash.look.entries()
            if let found = all.first(where: { $0.entry.stableIdentifier == entry.stableIdentifier }) { return found }
            if let there = try await self.entry(at: path), there.stableIdentifier == entry.stableIdentifier {
                throw FileProviderError(
                    .providerDomainTemporarilyUnavailable, "the remote has not thrown '\(entry.name)' away")
            }
        }
        return nil
    }

    /// The remote has deleted what it was to keep. What is here of it is offered to it again.
    private func lost(_ name: String, _ identifier: ItemIdentifier) async -> FileProviderError {
        if let key = MintedIdentifier.remotePart(of: identifier) { trash?.book.forget(key) }
        manager.report("the remote has deleted '\(name)' for good: its trash did not take it")
        try? await manager.reimportItems(below: identifier)
        return FileProviderError(
            .cannotSynchronize, "the remote's trash does not take '\(name)': what is here of it stays here",
            itemIdentifier: identifier)
    }

    // MARK: - In the trash

    /// Answers a change of what is in the trash and stays there. Nothing can be written there: new content is another
    /// item.
    private func leaveInTrash(
        _ found: TrashedEntry, in parent: ItemIdentifier, _ change: PathChange
    ) async throws -> ItemChange {
        var pending = change.fields.subtracting([.filename, .parentItemIdentifier])
        if pending.contains(.contents) {
            guard found.entry.kind == .file else {
                throw FileProviderError(.cannotSynchronize, "'\(found.entry.name)' is no file on the remote")
            }
            let contents = change.contents
            guard try await hasTrashed(found, contentOf: contents) else {
                var template = change.item
                (template.parentItemIdentifier, template.filename) = (.trashContainer, found.entry.name)
                return try await createTrashed(template, fields: change.fields, contents: contents, options: [])
            }
            pending.remove(.contents)
        }
        return .applied(trashedItem(found, in: parent), stillPending: pending, shouldFetchContent: false)
    }

    /// Whether a file in the trash contains just these bytes.
    private func hasTrashed(_ found: TrashedEntry, contentOf source: ContentSource?) async throws -> Bool {
        guard let trash, found.entry.size == source?.size ?? 0 else { return false }
        guard let source else { return true }
        let sink = ComparingSink(source: source)
        do {
            try await trash.remote.readTrashed(found, range: nil, into: sink)
        } catch is ComparingSink.Difference {
            return false
        }
        try source.confirm()
        return sink.count == source.size
    }

    /// Makes an item in the trash: out of sight, from where it is thrown away.
    func createTrashed(
        _ template: FileProviderItem, fields: ItemFields, contents: ContentSource?, options: CreateItemOptions
    ) async throws -> ItemChange {
        guard let trash else { throw Self.noTrash }
        let name = template.filename
        if options.contains(.mayAlreadyExist) {
            for found in try await trash.look.entries()
            where found.entry.kind == template.kind && found.entry.name.utf8.elementsEqual(name.utf8) {
                if found.entry.kind == .file {
                    let isSame =
                        try await contents == nil
                        ? found.entry.size == template.documentSize ?? 0 : hasTrashed(found, contentOf: contents)
                    guard isSame else { continue }
                }
                return .applied(
                    trashedItem(found, in: .trashContainer),
                    stillPending: fields.subtracting([.contents, .filename, .parentItemIdentifier]),
                    shouldFetchContent: false)
            }
        }
        if options.contains(.recognizeOnly) {
            return .refused(reason: "the remote's trash has no such '\(name)'")
        }
        try checkContents(of: template, contents, isWanted: template.kind == .file)
        let hidden = HiddenName.make()
        let directory = RemotePath([hidden])
        _ = try await remote.makeDirectory(at: directory, attributes: RemoteAttributes())
        defer {
            Task { [self] in
                try? await remote.delete(directory, kind: .directory, if: .always)
                clearTrash(of: hidden)
            }
        }
        let path = directory.appending(name)
        do {
            guard let made = try await make(template, at: path, fields, contents) else {
                throw FileProviderError(.excludedFromSync, "this remote cannot hold symbolic links")
            }
            try await throwAway(made, at: path, trash.remote, trash.book)
            guard let found = try await landed(made, at: path) else {
                throw FileProviderError(.cannotSynchronize, "the remote's trash does not take '\(name)'")
            }
            let storable = RemoteAttributes.storable(by: remote.traits)
                .union([.contents, .filename, .parentItemIdentifier])
            return .applied(
                trashedItem(found, in: .trashContainer), stillPending: fields.subtracting(storable),
                shouldFetchContent: false)
        } catch is RemoteConditionFailure {
            throw FileProviderError(.providerDomainTemporarilyUnavailable, "'\(name)' changes while it is thrown away")
        }
    }

    // MARK: - Bringing back

    /// Changes what is in the trash, or was until an earlier attempt.
    ///
    /// - Returns: nil when nothing is known of it.
    func modifyTrashed(_ change: PathChange) async throws -> ItemChange? {
        guard let trash, let key = MintedIdentifier.remotePart(of: change.item.itemIdentifier) else { return nil }
        let isMoved = change.fields.contains(.parentItemIdentifier)
        if let (found, parent) = try await trashed(change.item.itemIdentifier) {
            guard isMoved else { return try await leaveInTrash(found, in: parent, change) }
            return try await restore(found, from: parent, change, trash.remote, trash.book)
        }
        guard isMoved else { return nil }
        return try await resumeRestoring(key, change, trash.remote, trash.book)
    }

    private func restore(
        _ found: TrashedEntry, from oldParent: ItemIdentifier, _ change: PathChange, _ remote: any TrashingRemote,
        _ trashBook: TrashRecords
    ) async throws -> ItemChange {
        let parent = change.item.parentItemIdentifier
        var change = change
        if change.fields.contains(.contents) {
            guard found.entry.kind == .file else {
                throw FileProviderError(.cannotSynchronize, "'\(found.entry.name)' is no file on the remote")
            }
            if !PathItems.hasTag(of: PathItems.version(ofTag: found.entry.tag), change.base) {
                guard try await hasTrashed(found, contentOf: change.contents) else {
                    throw FileProviderError(
                        .localVersionConflictingWithServer, item: trashedItem(found, in: oldParent))
                }
                change.fields.remove(.contents)
                change.contents = nil
            }
        }
        return try await locate(parent) { [self, change] directory in
            let name = change.fields.contains(.filename) ? change.item.filename : found.entry.name
            let path = directory.appending(name)
            trashBook.willRestore(found)
            let restored = try await colliding(in: parent, at: directory, named: name) {
                try await paths.changing([Place(directory: parent, name: name)]) {
                    try await remote.restore(found, to: path)
                }
            }
            trashBook.noteRestored(found, as: restored)
            var change = change
            // What it was based on is what was in the trash.
            change.base = PathItems.version(ofTag: restored.tag)
            return try await finish(change, restored, at: path, trashBook)
        }
    }

    private func resumeRestoring(
        _ key: String, _ change: PathChange, _ remote: any TrashingRemote, _ trashBook: TrashRecords
    ) async throws -> ItemChange? {
        let identifier = change.item.itemIdentifier
        let parent = change.item.parentItemIdentifier
        let thrown = trashBook.thrown(key)
        return try await locate(parent) { [self] directory in
            let name = change.fields.contains(.filename) ? change.item.filename : thrown?.name ?? change.item.filename
            let path = directory.appending(name)
            var there = try await entry(at: path)
            if let present = there, !mayBe(present, identifier) { there = nil }
            if there == nil, let kind = MintedIdentifier.kind(of: identifier) {
                there = try await colliding(in: parent, at: directory, named: name) {
                    try await paths.changing([Place(directory: parent, name: name)]) {
                        try await remote.resumeRestoring(key, kind: kind, to: path)
                    }
                }
            }
            guard let entry = there else { return nil }
            var change = change
            // Bringing it back may have given it another tag, and nothing else.
            if let thrown, PathItems.hasTag(of: PathItems.version(ofTag: thrown.tag), change.base),
                thrown.restoredTag.map({ $0 == entry.tag }) ?? (thrown.size == entry.size)
            {
                change.base = PathItems.version(ofTag: entry.tag)
            }
            return try await finish(change, entry, at: path, trashBook)
        }
    }

    /// It is where it was wanted: what else was to be changed is.
    private func finish(
        _ change: PathChange, _ entry: RemoteEntry, at path: RemotePath, _ trashBook: TrashRecords
    ) async throws -> ItemChange {
        let answer = try await apply(change, to: entry, at: path, in: change.item.parentItemIdentifier)
        if let key = entry.stableIdentifier { trashBook.forget(key) }
        return answer
    }

    private func colliding<Value: Sendable>(
        in parent: ItemIdentifier, at directory: RemotePath, named name: String, _ body: () async throws -> Value
    ) async throws -> Value {
        do {
            return try await body()
        } catch let failure as RemoteConditionFailure {
            guard let present = failure.present else { throw Self.vanished(name) }
            throw try await collision(present, in: parent, at: directory)
        }
    }
}
