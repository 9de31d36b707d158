import FileProvider

/// Bringing changes to the remote.
extension PathAddressedProvider {
    private typealias Place = PathMap.Place

    // MARK: - Making

    package func createItem(
        basedOn template: FileProviderItem, fields: ItemFields, contents: ContentSource?, options: CreateItemOptions,
        request: FileProviderRequest
    ) async throws -> ItemChange {
        try check(template.filename)
        let parent = template.parentItemIdentifier
        guard parent != .trashContainer else {
            return try await createTrashed(template, fields: fields, contents: contents, options: options)
        }
        return try await locate(parent) { [self] directory in
            let path = directory.appending(template.filename)
            if options.contains(.mayAlreadyExist) || template.kind == .symbolicLink,
                let there = try await entry(at: path)
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
                return .refused(reason: "the remote has nothing called '\(template.filename)' there")
            }
            try checkContents(of: template, contents, isWanted: template.kind == .file)
            do {
                let made = try await paths.changing([Place(directory: parent, name: template.filename)]) {
                    try await make(template, at: path, fields, contents)
                }
                guard let made else {
                    throw FileProviderError(.excludedFromSync, "this remote cannot hold symbolic links")
                }
                return try await answer(
                    made, in: parent, at: directory, fields, wanted: RemoteAttributes(template, fields), isOwn: true)
            } catch let failure as RemoteConditionFailure {
                guard let present = failure.present else { throw Self.vanished(template.filename) }
                throw try await collision(present, in: parent, at: directory)
            }
        }
    }

    /// - Returns: nil for what the remote cannot hold.
    func make(
        _ template: FileProviderItem, at path: RemotePath, _ fields: ItemFields, _ contents: ContentSource?
    ) async throws -> RemoteEntry? {
        let attributes = RemoteAttributes(template, fields)
        switch template.kind {
        case .file: return try await write(contents, to: path, attributes, if: .absent)
        case .directory: return try await remote.makeDirectory(at: path, attributes: attributes)
        case .symbolicLink:
            guard let target = template.symlinkTargetPath, !target.isEmpty else {
                throw FileProviderError(.cannotSynchronize, "a symbolic link without a target")
            }
            guard remote.traits.hasSymbolicLinks else { return nil }
            return try await remote.makeSymbolicLink(at: path, to: target, attributes: attributes)
        }
    }

    private func write(
        _ contents: ContentSource?, to path: RemotePath, _ attributes: RemoteAttributes, if condition: RemoteCondition
    ) async throws -> RemoteEntry {
        if let contents {
            return try await remote.write(contents, to: path, attributes: attributes, if: condition)
        }
        let nothing = try EmptyContent()
        return try await remote.write(nothing.source, to: path, attributes: attributes, if: condition)
    }

    // MARK: - Changing

    package func modifyItem(
        _ item: FileProviderItem, baseVersion: ItemVersion, changedFields: ItemFields, contents: ContentSource?,
        options: ModifyItemOptions, request: FileProviderRequest
    ) async throws -> ItemChange {
        let identifier = item.itemIdentifier
        if identifier == .rootContainer {
            let root = try await self.item(for: .rootContainer, request: request)
            return .applied(root, stillPending: changedFields, shouldFetchContent: false)
        }
        if changedFields.contains(.contents) { try checkContents(of: item, contents, isWanted: true) }
        if changedFields.contains(.filename) { try check(item.filename) }
        let change = PathChange(
            item: item, base: baseVersion.contentVersion, fields: changedFields, contents: contents)
        if change.goesToTrash { return try await throwAway(change) }
        do {
            return try await modifyInPlace(change)
        } catch let error as FileProviderError where error.code == .noSuchItem {
            guard let answer = try await modifyTrashed(change) else { throw error }
            return answer
        }
    }

    private func modifyInPlace(_ change: PathChange) async throws -> ItemChange {
        let item = change.item
        let identifier = item.itemIdentifier
        do {
            return try await locate(identifier) { [self] path in
                let entry = try await remote.entry(at: path)
                guard mayBe(entry, identifier) else { throw FileProviderError.noSuchItem(identifier) }
                return try await apply(change, to: entry, at: path, in: parent(of: identifier, at: path))
            }
        } catch let error as FileProviderError where error.code == .noSuchItem && change.mayMove {
            // An earlier call like this may have moved it, and its answer been lost.
            return try await locate(item.parentItemIdentifier) { [self] directory in
                let path = directory.appending(item.filename)
                guard let entry = try await entry(at: path), mayBe(entry, identifier),
                    PathItems.hasTag(of: PathItems.version(ofTag: entry.tag), change.base) || entry.kind != .file,
                    try await identities.identify(entry, in: item.parentItemIdentifier, at: directory) == identifier
                else { throw error }
                return try await apply(change, to: entry, at: path, in: item.parentItemIdentifier)
            }
        }
    }

    /// - Parameters:
    ///   - entry: the item as it is, at `path` in `parent`.
    func apply(
        _ change: PathChange, to entry: RemoteEntry, at path: RemotePath, in parent: ItemIdentifier
    ) async throws -> ItemChange {
        let item = change.item
        var (fields, contents) = (change.fields, change.contents)
        if fields.contains(.contents) {
            guard entry.kind == .file else {
                throw FileProviderError(.cannotSynchronize, "'\(entry.name)' is no file on the remote")
            }
            if !PathItems.hasTag(of: PathItems.version(ofTag: entry.tag), change.base) {
                // The answer to an earlier upload may have been lost.
                guard let sent = contents, try await has(entry, at: path, contentOf: sent) else {
                    throw conflict(entry, item.itemIdentifier, in: parent)
                }
                fields.remove(.contents)
                contents = nil
                paths.noteWritten(item.itemIdentifier, version: PathItems.version(ofTag: entry.tag))
            }
        }
        let old = Place(directory: parent, name: entry.name)
        let new = Place(
            directory: fields.contains(.parentItemIdentifier) ? item.parentItemIdentifier : parent,
            name: fields.contains(.filename) ? item.filename : entry.name)
        var now = entry
        var newPath = path
        if new != old {
            newPath = try await target(new, of: path)
            now = try await move(item.itemIdentifier, entry, from: path, at: old, to: newPath, at: new)
        }
        guard fields.contains(.contents) || !change.attributes.isNothing else {
            return answer(now, as: item.itemIdentifier, in: new.directory, fields)
        }
        do {
            if fields.contains(.contents) {
                var attributes = change.attributes
                attributes.permissions = attributes.permissions ?? now.attributes.permissions
                now = try await paths.changing([new]) { [now, attributes] in
                    try await write(contents, to: newPath, attributes, if: .unchanged(tag: now.tag))
                }
                paths.noteWritten(item.itemIdentifier, version: PathItems.version(ofTag: now.tag))
                return answer(now, as: item.itemIdentifier, in: new.directory, fields, wanted: change.attributes)
            }
            let (stored, notStored) = try await remote.set(change.attributes, of: newPath, kind: entry.kind)
            return answer(
                stored, as: item.itemIdentifier, in: new.directory, fields, wanted: change.attributes,
                notStored: notStored)
        } catch {
            // All of it or nothing; but what may have been stored would be taken back with it, and known again nowhere. The
            // next attempt goes on from where it is.
            if new != old, !OperationLedger.mayHaveArrived(despite: error) {
                _ = try? await move(item.itemIdentifier, now, from: newPath, at: new, to: path, at: old)
            }
            guard let failure = error as? RemoteConditionFailure else { throw error }
            guard let present = failure.present else { throw FileProviderError.noSuchItem(item.itemIdentifier) }
            throw conflict(present, item.itemIdentifier, in: parent)
        }
    }

    /// Where an item is to go.
    private func target(_ new: Place, of path: RemotePath) async throws -> RemotePath {
        guard new.directory != .trashContainer else {
            throw Self.noTrash
        }
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
        do {
            let version = PathItems.version(ofTag: entry.tag)
            let moved = try await paths.moving(
                identifier, tag: entry.kind == .file ? entry.tag : [], from: path, at: old, to: new
            ) {
                try await remote.move(path, to: newPath, kind: entry.kind)
            }
            if paths.wrote(identifier, version: version) || !entry.isTagUnsettled {
                paths.noteWritten(identifier, version: PathItems.version(ofTag: moved.tag))
            }
            return moved
        } catch let failure as RemoteConditionFailure {
            guard let present = failure.present else { throw Self.vanished(new.name) }
            throw try await collision(present, in: new.directory, at: newPath.parent)
        }
    }
}
