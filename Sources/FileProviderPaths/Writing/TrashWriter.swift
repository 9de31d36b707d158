import FileProvider

/// Trashes and restores items, and changes items in the trash.
final class TrashWriter: Sendable {
    private typealias Place = PathMap.Place

    private let trash: RemoteTrash
    private let writer: PathWriter
    private var tree: PathTree { writer.tree }
    private var remote: any TrashingRemote { trash.remote }
    private var records: TrashRecords { trash.records }

    /// A deleted item may be listed in the trash only a moment later.
    private static let pauses: [Duration] = [.zero, .milliseconds(300), .seconds(1)]
    private static let mostTries = 3

    init(trash: RemoteTrash, writer: PathWriter) {
        self.trash = trash
        self.writer = writer
    }

    // MARK: - Trashing

    /// - Returns: the item in the trash, with the content that it had on the remote, or was given by this change.
    func throwAway(_ change: PathChange) async throws -> ItemChange {
        let identifier = change.item.itemIdentifier
        guard let key = MintedIdentifier.remotePart(of: identifier) else { throw RemoteTrash.none }
        let before = records.trashed(key)
        do {
            return try await tree.locate(identifier) { [self] path in
                try await throwAway(change, at: path, in: tree.parent(of: identifier, at: path))
            }
        } catch let error as FileProviderError where error.code == .noSuchItem {
            // The response to an earlier call may have been lost, or another client may have trashed it.
            if let (found, parent) = try await trash.find(identifier) {
                return try await leave(found, in: parent, change)
            }
            guard let before, !before.isRestoring else { throw error }
            throw await lost(before.name, identifier)
        }
    }

    private func throwAway(
        _ change: PathChange, at path: RemotePath, in parent: ItemIdentifier
    ) async throws -> ItemChange {
        let identifier = change.item.itemIdentifier
        var staying = change
        staying.fields.subtract([.filename, .parentItemIdentifier])
        var pending: ItemFields = []
        for _ in 0..<Self.mostTries {
            var entry = try await remote.entry(at: path)
            guard tree.mayBe(entry, identifier) else { throw FileProviderError.noSuchItem(identifier) }
            guard entry.isTrashable else {
                throw FileProviderError(
                    .cannotSynchronize,
                    "the remote's trash does not keep '\(entry.name)': it is shared, or mounted there",
                    itemIdentifier: identifier)
            }
            if !staying.fields.isEmpty {
                if case .applied(_, let left, _) = try await writer.apply(staying, to: entry, at: path, in: parent) {
                    pending = left
                }
                staying.fields = []
                entry = try await remote.entry(at: path)
            }
            do {
                try await tree.paths.changing([Place(directory: parent, name: entry.name)]) { [entry] in
                    try await throwAway(entry, at: path)
                }
            } catch let failure as RemoteConditionFailure {
                // Another client has just written it: it is trashed with that content.
                guard let present = failure.present, tree.mayBe(present, identifier) else {
                    throw FileProviderError.noSuchItem(identifier)
                }
                continue
            }
            guard let found = try await landed(entry, at: path) else { throw await lost(entry.name, identifier) }
            return .applied(
                trash.item(found, in: .trashContainer), stillPending: pending, shouldFetchContent: false)
        }
        throw Self.restless(path.name ?? "/")
    }

    private static func restless(_ name: String) -> FileProviderError {
        FileProviderError(.providerDomainTemporarilyUnavailable, "'\(name)' changes while it is moved to the trash")
    }

    private func throwAway(_ entry: RemoteEntry, at path: RemotePath) async throws {
        try await records.recording(entry, as: .trashed) {
            try await remote.throwAway(
                path, kind: entry.kind, if: entry.kind == .file ? .unchanged(tag: entry.tag) : .always)
        }
    }

    /// Finds in the trash what was just moved there.
    ///
    /// - Returns: nil when it is not there: the remote has deleted it for good.
    private func landed(_ entry: RemoteEntry, at path: RemotePath) async throws -> TrashedEntry? {
        for pause in Self.pauses {
            try await Task.sleep(for: pause)
            let all = try await trash.entries()
            if let found = all.first(where: { $0.entry.stableIdentifier == entry.stableIdentifier }) { return found }
            if let there = try await tree.entry(at: path), there.stableIdentifier == entry.stableIdentifier {
                throw FileProviderError(
                    .providerDomainTemporarilyUnavailable, "the remote has not moved '\(entry.name)' to its trash")
            }
        }
        return nil
    }

    /// The remote has deleted what it was to keep. The local copy is offered to it again.
    private func lost(_ name: String, _ identifier: ItemIdentifier) async -> FileProviderError {
        if let key = MintedIdentifier.remotePart(of: identifier) { records.forget(key) }
        tree.manager.report("the remote has deleted '\(name)' for good: its trash did not take it")
        try? await tree.manager.reimportItems(below: identifier)
        return FileProviderError(
            .cannotSynchronize, "the remote's trash does not take '\(name)': the local copy is kept",
            itemIdentifier: identifier)
    }

    // MARK: - In the trash

    /// Answers a change of an item that stays in the trash. Nothing can be written there: new content is another item.
    private func leave(
        _ found: TrashedEntry, in parent: ItemIdentifier, _ change: PathChange
    ) async throws -> ItemChange {
        var pending = change.fields.subtracting([.filename, .parentItemIdentifier])
        if pending.contains(.contents) {
            try Self.requireFile(found)
            guard try await trash.has(found, contentOf: change.contents) else {
                var template = change.item
                (template.parentItemIdentifier, template.filename) = (.trashContainer, found.entry.name)
                return try await create(template, change.fields, change.contents, [])
            }
            pending.remove(.contents)
        }
        return .applied(trash.item(found, in: parent), stillPending: pending, shouldFetchContent: false)
    }

    private static func requireFile(_ found: TrashedEntry) throws {
        guard found.entry.kind == .file else {
            throw FileProviderError(.cannotSynchronize, "'\(found.entry.name)' is no file on the remote")
        }
    }

    /// Makes an item in the trash: in a hidden directory, from where it is trashed.
    func create(
        _ template: FileProviderItem, _ fields: ItemFields, _ contents: ContentSource?, _ options: CreateItemOptions
    ) async throws -> ItemChange {
        let name = template.filename
        if options.contains(.mayAlreadyExist), let found = try await same(as: template, contents) {
            return .applied(
                trash.item(found, in: .trashContainer),
                stillPending: fields.subtracting([.contents, .filename, .parentItemIdentifier]),
                shouldFetchContent: false)
        }
        if options.contains(.recognizeOnly) {
            return .refused(reason: "the remote's trash has no such '\(name)'")
        }
        if template.kind == .file { try PathWriter.requireContents(of: template, contents) }
        let hidden = HiddenName.make()
        let directory = RemotePath([hidden])
        _ = try await remote.makeDirectory(at: directory, attributes: RemoteAttributes())
        defer {
            Task { [remote] in
                try? await remote.delete(directory, kind: .directory, if: .always)
                await remote.clearTrash(ofNamesBeginningWith: hidden)
            }
        }
        let path = directory.appending(name)
        do {
            let made = try await writer.make(template, at: path, fields, contents)
            try await throwAway(made, at: path)
            guard let found = try await landed(made, at: path) else {
                throw FileProviderError(.cannotSynchronize, "the remote's trash does not take '\(name)'")
            }
            return .applied(
                trash.item(found, in: .trashContainer),
                stillPending: fields.subtracting(RemoteAttributes.storable(by: remote.traits)),
                shouldFetchContent: false)
        } catch is RemoteConditionFailure {
            throw Self.restless(name)
        }
    }

    /// The item in the trash that is the same as a template.
    private func same(as template: FileProviderItem, _ contents: ContentSource?) async throws -> TrashedEntry? {
        for found in try await trash.entries()
        where found.entry.kind == template.kind && found.entry.name.utf8.elementsEqual(template.filename.utf8) {
            guard found.entry.kind == .file else { return found }
            let isSame =
                try await contents == nil
                ? found.entry.size == template.documentSize ?? 0 : trash.has(found, contentOf: contents)
            if isSame { return found }
        }
        return nil
    }

    // MARK: - Restoring

    /// Changes an item that is in the trash, or was until an earlier attempt.
    ///
    /// - Returns: nil for an unknown item.
    func modify(_ change: PathChange) async throws -> ItemChange? {
        let identifier = change.item.itemIdentifier
        guard let key = MintedIdentifier.remotePart(of: identifier) else { return nil }
        let isMoved = change.fields.contains(.parentItemIdentifier)
        if let (found, parent) = try await trash.find(identifier) {
            return try await isMoved ? restore(found, from: parent, change) : leave(found, in: parent, change)
        }
        return isMoved ? try await resumeRestoring(key, change) : nil
    }

    private func restore(
        _ found: TrashedEntry, from oldParent: ItemIdentifier, _ change: PathChange
    ) async throws -> ItemChange {
        let parent = change.item.parentItemIdentifier
        var change = change
        if change.fields.contains(.contents) {
            try Self.requireFile(found)
            if !PathItems.hasTag(of: found.entry.version, change.base) {
                guard try await trash.has(found, contentOf: change.contents) else {
                    throw FileProviderError(
                        .localVersionConflictingWithServer, item: trash.item(found, in: oldParent))
                }
                change.fields.remove(.contents)
                change.contents = nil
            }
        }
        return try await tree.locate(parent) { [self, change] directory in
            let name = change.fields.contains(.filename) ? change.item.filename : found.entry.name
            let path = directory.appending(name)
            records.noteRestoring(found)
            let restored = try await claiming(name, in: parent, at: directory) {
                try await remote.restore(found, to: path)
            }
            records.noteRestoring(found, tag: restored.tag)
            // The change is based on the content in the trash.
            return try await finish(change, basedOn: restored.version, restored, at: path)
        }
    }

    private func resumeRestoring(_ key: String, _ change: PathChange) async throws -> ItemChange? {
        let identifier = change.item.itemIdentifier
        let parent = change.item.parentItemIdentifier
        let trashed = records.trashed(key)
        return try await tree.locate(parent) { [self] directory in
            let name = change.fields.contains(.filename) ? change.item.filename : trashed?.name ?? change.item.filename
            let path = directory.appending(name)
            var there = try await tree.entry(at: path)
            if let present = there, !tree.mayBe(present, identifier) { there = nil }
            if there == nil, let kind = MintedIdentifier.kind(of: identifier) {
                there = try await claiming(name, in: parent, at: directory) {
                    try await remote.resumeRestoring(key, kind: kind, to: path)
                }
            }
            guard let entry = there else { return nil }
            // Restoring may have given it another tag, and nothing else.
            let hasOldContent =
                trashed.map { trashed in
                    PathItems.hasTag(of: PathItems.version(ofTag: trashed.tag), change.base)
                        && trashed.restoredTag.map { $0 == entry.tag } ?? (trashed.size == entry.size)
                } ?? false
            return try await finish(change, basedOn: hasOldContent ? entry.version : change.base, entry, at: path)
        }
    }

    private func claiming<Value: Sendable>(
        _ name: String, in parent: ItemIdentifier, at directory: RemotePath, _ body: () async throws -> Value
    ) async throws -> Value {
        try await writer.colliding(in: parent, at: directory, named: name) {
            try await tree.paths.changing([Place(directory: parent, name: name)], body)
        }
    }

    /// The item is restored: makes the rest of the change.
    private func finish(
        _ change: PathChange, basedOn version: [UInt8], _ entry: RemoteEntry, at path: RemotePath
    ) async throws -> ItemChange {
        var change = change
        change.base = version
        let answer = try await writer.apply(change, to: entry, at: path, in: change.item.parentItemIdentifier)
        if let key = entry.stableIdentifier { records.forget(key) }
        return answer
    }
}
