import FileProvider

/// Makes, changes and deletes items at their paths.
final class PathWriter: Sendable {
    typealias Place = PathMap.Place

    let tree: PathTree
    private let trash: RemoteTrash?

    var remote: any PathRemote { tree.remote }
    var paths: PathMap { tree.paths }

    init(tree: PathTree, trash: RemoteTrash?) {
        self.tree = tree
        self.trash = trash
    }

    // MARK: - Making

    func create(
        _ template: FileProviderItem, _ fields: ItemFields, _ contents: ContentSource?, _ options: CreateItemOptions
    ) async throws -> ItemChange {
        let (parent, name) = (template.parentItemIdentifier, template.filename)
        return try await tree.locate(parent) { [self] directory in
            let path = directory.appending(name)
            if options.contains(.mayAlreadyExist) || template.kind == .symbolicLink,
                let there = try await tree.entry(at: path)
            {
                guard options.contains(.mayAlreadyExist),
                    try await isSame(there, at: path, template, contents, options)
                else { throw try await collision(there, in: parent, at: directory) }
                let isKept = options.contains(.keepExisting)
                return try await answer(
                    there, in: parent, at: directory, isKept ? [] : fields,
                    wanted: isKept ? RemoteAttributes() : RemoteAttributes(template, fields), isOwn: !isKept)
            }
            if options.contains(.recognizeOnly) {
                return .refused(reason: "the remote has nothing called '\(name)' there")
            }
            let made = try await colliding(in: parent, at: directory, named: name) {
                try await paths.changing([Place(directory: parent, name: name)]) {
                    try await make(template, at: path, fields, contents)
                }
            }
            return try await answer(
                made, in: parent, at: directory, fields, wanted: RemoteAttributes(template, fields), isOwn: true)
        }
    }

    /// - Throws: `excludedFromSync` for a link where the remote has none; what the remote throws.
    func make(
        _ template: FileProviderItem, at path: RemotePath, _ fields: ItemFields, _ contents: ContentSource?
    ) async throws -> RemoteEntry {
        let attributes = RemoteAttributes(template, fields).withoutSetID(ofOthers: template)
        switch template.kind {
        case .file:
            try Self.requireContents(of: template, contents)
            return try await write(contents, to: path, attributes, if: .absent)
        case .directory: return try await remote.makeDirectory(at: path, attributes: attributes)
        case .symbolicLink:
            guard let target = template.symlinkTargetPath, !target.isEmpty else {
                throw FileProviderError(.cannotSynchronize, "a symbolic link without a target")
            }
            guard remote.traits.hasSymbolicLinks else {
                throw FileProviderError(.excludedFromSync, "this remote cannot hold symbolic links")
            }
            return try await remote.makeSymbolicLink(at: path, to: target, attributes: attributes)
        }
    }

    /// - Throws: `cannotSynchronize` when a file that is not empty comes without its content.
    static func requireContents(of item: FileProviderItem, _ contents: ContentSource?) throws {
        guard contents == nil, item.documentSize ?? 0 > 0 else { return }
        throw FileProviderError(
            .cannotSynchronize, "the content of '\(item.filename)' was not sent", itemIdentifier: item.itemIdentifier)
    }

    private func write(
        _ contents: ContentSource?, to path: RemotePath, _ attributes: RemoteAttributes, if condition: RemoteCondition
    ) async throws -> RemoteEntry {
        try await remote.write(contents ?? .empty(), to: path, attributes: attributes, if: condition)
    }

    // MARK: - Changing

    func modify(_ change: PathChange) async throws -> ItemChange {
        guard change.mayMove else { return try await modifyOnce(change) }
        let item = change.item
        // Only a renaming to the same place repeats the move that was refused.
        let wanted = UnfinishedMoves.Target(
            item: item.itemIdentifier, directory: item.parentItemIdentifier, name: item.filename)
        return try await paths.unfinished.renaming(to: wanted) { try await modifyOnce(change) }
    }

    private func modifyOnce(_ change: PathChange) async throws -> ItemChange {
        let item = change.item
        let identifier = item.itemIdentifier
        do {
            return try await tree.locate(identifier, isTree: change.mayMove) { [self] path in
                let entry = try await remote.entry(at: path)
                guard tree.mayBe(entry, identifier) else { throw FileProviderError.noSuchItem(identifier) }
                return try await apply(change, to: entry, at: path, in: tree.parent(of: identifier, at: path))
            }
        } catch let error as FileProviderError where error.code == .noSuchItem && change.mayMove {
            // An earlier call may have moved the item, and its response may have been lost.
            let parent = item.parentItemIdentifier
            return try await tree.locate(parent) { [self] directory in
                let path = directory.appending(item.filename)
                guard let entry = try await tree.entry(at: path), tree.mayBe(entry, identifier),
                    entry.kind != .file || entry.hasContent(of: change.base),
                    try await tree.identities.identify(entry, in: parent, at: directory) == identifier
                else { throw error }
                return try await apply(change, to: entry, at: path, in: parent)
            }
        }
    }

    /// - Parameters:
    ///   - entry: the item as it is, at `path` in `parent`.
    func apply(
        _ change: PathChange, to entry: RemoteEntry, at path: RemotePath, in parent: ItemIdentifier
    ) async throws -> ItemChange {
        let item = change.item
        let identifier = item.itemIdentifier
        var (fields, contents) = (change.fields, change.contents)
        if fields.contains(.contents) {
            guard entry.kind == .file else {
                throw FileProviderError(.cannotSynchronize, "'\(entry.name)' is no file on the remote")
            }
            if !entry.hasContent(of: change.base) {
                // The response to an earlier upload may have been lost.
                guard let sent = contents, try await has(entry, at: path, contentOf: sent) else {
                    throw conflict(entry, identifier, in: parent)
                }
                fields.remove(.contents)
                contents = nil
                paths.noteWritten(identifier, version: entry.version)
            }
        }
        let old = Place(directory: parent, name: entry.name)
        let new = Place(
            directory: fields.contains(.parentItemIdentifier) ? item.parentItemIdentifier : parent,
            name: fields.contains(.filename) ? item.filename : entry.name)
        var now = entry
        var newPath = path
        // Whether another client has written it since it was looked at, and that content was moved.
        var isOther = false
        if new != old {
            if new.directory != old.directory, let directory = paths.path(of: new.directory) {
                try await tree.settleMoves(near: directory)
            }
            newPath = try target(new, of: path)
            now = try await move(identifier, entry, from: path, at: old, to: newPath, at: new)
            if new.directory != old.directory, now.kind == .file, now.tag == entry.tag { tree.noteTagKeptElsewhere() }
            isOther = entry.kind == .file && !hasContent(of: entry, now, isElsewhere: new.directory != old.directory)
        } else if change.mayMove {
            paths.giveUpMoves(of: identifier, unlessTo: new)
        }
        guard fields.contains(.contents) || !change.attributes.isNothing else {
            return answer(now, as: identifier, in: new.directory, fields)
        }
        do {
            if fields.contains(.contents) {
                guard !isOther else {
                    var present = now
                    present.name = entry.name
                    throw RemoteConditionFailure(present: present)
                }
                var attributes = change.sent
                attributes.permissions = attributes.permissions ?? now.attributes.permissions
                now = try await paths.changing([new]) { [now, attributes] in
                    try await write(contents, to: newPath, attributes, if: .unchanged(tag: now.tag))
                }
                paths.noteWritten(identifier, version: now.version)
                return answer(now, as: identifier, in: new.directory, fields, wanted: change.attributes)
            }
            let (stored, notStored) = try await remote.set(change.sent, of: newPath, kind: entry.kind)
            return answer(
                stored, as: identifier, in: new.directory, fields, wanted: change.attributes, notStored: notStored,
                shouldFetchContent: isDateForOtherBytes(change, entry, isOther: isOther))
        } catch {
            // All of the change is made, or none. But content that may have arrived would be moved back with the item, and
            // not be recognized: the next attempt goes on from the new place.
            if new != old, !OperationLedger.mayHaveArrived(despite: error) {
                _ = try? await move(identifier, now, from: newPath, at: new, to: path, at: old)
            }
            guard let failure = error as? RemoteConditionFailure else { throw error }
            guard let present = failure.present else { throw FileProviderError.noSuchItem(identifier) }
            throw conflict(present, identifier, in: parent)
        }
    }

    /// Whether a file that was moved is the one that was looked at before. A server may give it another tag, and one that moves by a
    /// copy another date, as sabre/dav does from one directory to another.
    private func hasContent(of entry: RemoteEntry, _ moved: RemoteEntry, isElsewhere: Bool) -> Bool {
        if moved.tag == entry.tag { return true }
        if remote.traits.movesChangeTags || isElsewhere && !tree.keepsTagsElsewhere { return moved.size == entry.size }
        guard let date = moved.attributes.contentModificationDate else { return false }
        return moved.size == entry.size && date == entry.attributes.contentModificationDate
    }

    /// Whether a change sets a date on other bytes than those that it was set on here: with it they would look like those.
    ///
    /// - Parameter isOther: whether the file had other bytes than `entry` when the date was set.
    private func isDateForOtherBytes(_ change: PathChange, _ entry: RemoteEntry, isOther: Bool) -> Bool {
        guard remote.traits.datesMakeTags, entry.kind == .file, !change.fields.contains(.contents),
            let date = change.attributes.contentModificationDate
        else { return false }
        if isOther { return true }
        guard !PathItems.hasTag(of: entry.version, change.base) else { return false }
        // An earlier request that was not answered may have set it, to whole seconds.
        return entry.attributes.contentModificationDate?.seconds != date.seconds
    }

    private func target(_ new: Place, of path: RemotePath) throws -> RemotePath {
        guard new.directory != .trashContainer else { throw RemoteTrash.none }
        guard let directory = paths.path(of: new.directory) else { throw FileProviderError.noSuchItem(new.directory) }
        guard directory != path, !directory.isBelow(path) else {
            throw FileProviderError(.cannotSynchronize, "'\(path.name ?? "/")' cannot come below itself")
        }
        return directory.appending(new.name)
    }

    private func move(
        _ identifier: ItemIdentifier, _ entry: RemoteEntry, from path: RemotePath, at old: Place,
        to newPath: RemotePath, at new: Place
    ) async throws -> RemoteEntry {
        let moved = try await colliding(in: new.directory, at: newPath.parent, named: new.name) {
            var parts: DirectoryParts?
            if entry.kind == .directory, let remote = remote as? any PartwiseRemote {
                parts = try await remote.parts(of: path, toMoveTo: newPath)
            }
            // The new place is free. After an interruption from here on, the rest is not moved to the earlier one.
            paths.giveUpMoves(of: identifier, unlessTo: new)
            return try await paths.moving(
                identifier, tag: entry.kind == .file ? entry.tag : [], parts: parts, from: path, at: old, to: new
            ) {
                try await remote.move(path, to: newPath, kind: entry.kind)
            }
        }
        // What another client wrote just before the move is in doubt.
        let isSame = entry.kind != .file || hasContent(of: entry, moved, isElsewhere: new.directory != old.directory)
        if isSame, paths.wrote(identifier, version: entry.version) || !entry.isTagUnsettled {
            paths.noteWritten(identifier, version: moved.version)
        }
        return moved
    }

    // MARK: - Deleting

    func delete(_ identifier: ItemIdentifier, base: ItemVersion, _ options: DeleteItemOptions) async throws {
        let version = PathItems.settledVersion(of: base.contentVersion)
        do {
            // What another client has renamed is not deleted under its new name.
            try await tree.locate(identifier, isSearched: false, isTree: true) { [self] path in
                let entry = try await remote.entry(at: path)
                guard tree.mayBe(entry, identifier) else { return paths.noteVanished(version: version) }
                let parent = try tree.parent(of: identifier, at: path)
                if entry.kind != .directory, !entry.hasContent(of: base.contentVersion) {
                    throw rejection(entry, identifier, in: parent)
                }
                let condition: RemoteCondition
                switch entry.kind {
                case .file: condition = .unchanged(tag: entry.tag)
                case .directory:
                    condition = options.contains(.recursive) ? .always : .empty
                    if condition == .empty, !remote.traits.checksEmptiness, try await holdsAnything(path) {
                        throw notEmpty(entry, identifier, in: parent)
                    }
                case .symbolicLink: condition = .always
                }
                do {
                    try await paths.changing([Place(directory: parent, name: entry.name)]) {
                        try await delete(entry, at: path, if: condition)
                    }
                } catch let failure as RemoteConditionFailure {
                    guard let present = failure.present, tree.mayBe(present, identifier) else {
                        return paths.noteVanished(version: version)
                    }
                    if present.kind == .directory { throw notEmpty(present, identifier, in: parent) }
                    throw rejection(present, identifier, in: parent)
                }
            }
        } catch let error as FileProviderError where error.code == .noSuchItem {
            paths.noteVanished(version: version)
        }
    }

    /// A remote with a trash keeps the item there. The record tells it from an item that was trashed.
    private func delete(_ entry: RemoteEntry, at path: RemotePath, if condition: RemoteCondition) async throws {
        guard let trash, trash.isOn else { return try await remote.delete(path, kind: entry.kind, if: condition) }
        try await trash.records.recording(entry, as: .deleted) {
            try await remote.delete(path, kind: entry.kind, if: condition)
        }
    }

    /// Whether a directory holds anything but hidden names.
    private func holdsAnything(_ path: RemotePath) async throws -> Bool {
        var isHeld = false
        try await remote.visitListing(of: path, limit: 100) { part in
            isHeld = part.leavesOut || part.entries.contains { !HiddenName.isOne($0.name) }
            return !isHeld
        }
        return isHeld
    }
}
