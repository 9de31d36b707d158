import FileProvider

/// Bringing changes to the remote.
extension PathAddressedProvider {
    private typealias Place = PlaceBook.Place

    // MARK: - Making

    package func createItem(
        basedOn template: FileProviderItem, fields: ItemFields, contents: ContentSource?, options: CreateItemOptions,
        request: FileProviderRequest
    ) async throws -> ItemChange {
        try check(template.filename)
        let parent = template.parentItemIdentifier
        guard parent != .trashContainer else {
            throw FileProviderError(.featureUnsupported, "this remote has no trash")
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
                let made = try await book.changing([Place(directory: parent, name: template.filename)]) {
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
    private func make(
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
    private func apply(
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
                book.noteWritten(item.itemIdentifier, version: PathItems.version(ofTag: entry.tag))
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
                now = try await book.changing([new]) { [now, attributes] in
                    try await write(contents, to: newPath, attributes, if: .unchanged(tag: now.tag))
                }
                book.noteWritten(item.itemIdentifier, version: PathItems.version(ofTag: now.tag))
                return answer(now, as: item.itemIdentifier, in: new.directory, fields, wanted: change.attributes)
            }
            let (stored, notStored) = try await remote.set(change.attributes, of: newPath, kind: entry.kind)
            return answer(
                stored, as: item.itemIdentifier, in: new.directory, fields, wanted: change.attributes,
                notStored: notStored)
        } catch {
            // All of it or nothing; but what may have been stored would be taken back with it, and known again nowhere. The
            // next attempt goes on from where it is.
            if new != old, !UnansweredContents.mayHaveArrived(despite: error) {
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
            throw FileProviderError(.featureUnsupported, "this remote has no trash")
        }
        guard let directory = book.path(of: new.directory) else { throw FileProviderError.noSuchItem(new.directory) }
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
            let moved = try await book.moving(
                identifier, tag: entry.kind == .file ? entry.tag : [], from: path, at: old, to: new
            ) {
                try await remote.move(path, to: newPath, kind: entry.kind)
            }
            if book.wrote(identifier, version: version) || !entry.isTagUnsettled {
                book.noteWritten(identifier, version: PathItems.version(ofTag: moved.tag))
            }
            return moved
        } catch let failure as RemoteConditionFailure {
            guard let present = failure.present else { throw Self.vanished(new.name) }
            throw try await collision(present, in: new.directory, at: newPath.parent)
        }
    }

    // MARK: - Deleting

    package func deleteItem(
        identifier: ItemIdentifier, baseVersion: ItemVersion, options: DeleteItemOptions, request: FileProviderRequest
    ) async throws {
        guard identifier != .rootContainer else {
            throw FileProviderError(.deletionRejected, "the root stays", itemIdentifier: identifier)
        }
        do {
            try await locate(identifier) { [self] path in
                let entry = try await remote.entry(at: path)
                guard mayBe(entry, identifier) else { return }
                let parent = try parent(of: identifier, at: path)
                switch entry.kind {
                case .file:
                    guard PathItems.hasTag(of: PathItems.version(ofTag: entry.tag), baseVersion.contentVersion) else {
                        throw rejection(entry, identifier, in: parent)
                    }
                case .directory:
                    if !options.contains(.recursive), !remote.traits.checksEmptiness, try await holdsAnything(path) {
                        throw notEmpty(entry, identifier, in: parent)
                    }
                case .symbolicLink: break
                }
                do {
                    try await book.changing([Place(directory: parent, name: entry.name)]) {
                        try await remote.delete(path, kind: entry.kind, if: condition(ofDeleting: entry, options))
                    }
                } catch let failure as RemoteConditionFailure {
                    guard let present = failure.present, mayBe(present, identifier) else { return }
                    if present.kind == .directory { throw notEmpty(present, identifier, in: parent) }
                    throw rejection(present, identifier, in: parent)
                }
            }
        } catch let error as FileProviderError where error.code == .noSuchItem {
            return
        }
    }

    private func condition(ofDeleting entry: RemoteEntry, _ options: DeleteItemOptions) -> RemoteCondition {
        switch entry.kind {
        case .file: .unchanged(tag: entry.tag)
        case .directory: options.contains(.recursive) ? .always : .empty
        case .symbolicLink: .always
        }
    }

    /// Whether a directory holds anything but what is hidden.
    private func holdsAnything(_ path: RemotePath) async throws -> Bool {
        var token: [UInt8]?
        repeat {
            let part = try await remote.entries(in: path, from: token, limit: 100)
            if part.leavesOut || part.entries.contains(where: { !HiddenName.isOne($0.name) }) { return true }
            token = part.next
        } while token != nil
        return false
    }

    // MARK: - Answers

    private func answer(
        _ entry: RemoteEntry, in parent: ItemIdentifier, at directory: RemotePath, _ fields: ItemFields,
        wanted: RemoteAttributes, isOwn: Bool
    ) async throws -> ItemChange {
        let identifier = try await identities.identify(entry, in: parent, at: directory, isNew: false)
        if isOwn { book.noteWritten(identifier, version: PathItems.version(ofTag: entry.tag)) }
        return answer(entry, as: identifier, in: parent, fields, wanted: wanted)
    }

    /// - Parameter wanted: the attributes that were sent. Those that the remote has otherwise are kept here.
    private func answer(
        _ entry: RemoteEntry, as identifier: ItemIdentifier, in parent: ItemIdentifier, _ fields: ItemFields,
        wanted: RemoteAttributes = RemoteAttributes(), notStored: ItemFields = []
    ) -> ItemChange {
        var notStored = notStored
        if let date = wanted.contentModificationDate, date != entry.attributes.contentModificationDate {
            notStored.insert(.contentModificationDate)
        }
        if let permissions = wanted.permissions, permissions != entry.attributes.permissions {
            notStored.insert(.permissions)
        }
        // New content may have made another item of it.
        let identifier =
            entry.stableIdentifier.map { MintedIdentifier.make(entry.kind, remote: $0) } ?? identifier
        let storable = RemoteAttributes.storable(by: remote.traits)
            .union([.contents, .filename, .parentItemIdentifier])
        return .applied(
            items.item(entry, as: identifier, in: parent),
            stillPending: fields.subtracting(storable).union(notStored.intersection(fields)),
            shouldFetchContent: false)
    }

    private func collision(
        _ entry: RemoteEntry, in parent: ItemIdentifier, at directory: RemotePath
    ) async throws -> any Error {
        let identifier = try await identities.identify(entry, in: parent, at: directory)
        return FileProviderError.filenameCollision(with: items.item(entry, as: identifier, in: parent))
    }

    private func conflict(
        _ entry: RemoteEntry, _ identifier: ItemIdentifier, in parent: ItemIdentifier
    ) -> any Error {
        FileProviderError(.localVersionConflictingWithServer, item: items.item(entry, as: identifier, in: parent))
    }

    private func notEmpty(
        _ entry: RemoteEntry, _ identifier: ItemIdentifier, in parent: ItemIdentifier
    ) -> any Error {
        // What we have moved there, and the system does not know to be there, may be about to go as well.
        if book.holdsUnheard(identifier) {
            return FileProviderError(.providerDomainTemporarilyUnavailable, "'\(entry.name)' is not empty yet")
        }
        return FileProviderError(.directoryNotEmpty, item: items.item(entry, as: identifier, in: parent))
    }

    private func rejection(
        _ entry: RemoteEntry, _ identifier: ItemIdentifier, in parent: ItemIdentifier
    ) -> any Error {
        FileProviderError.deletionRejected(of: items.item(entry, as: identifier, in: parent))
    }

    /// What was in the way is gone again: the next attempt will show.
    private static func vanished(_ name: String) -> FileProviderError {
        FileProviderError(.providerDomainTemporarilyUnavailable, "what was called '\(name)' has just gone")
    }

    // MARK: - Looking

    /// - Returns: nil when nothing is there.
    func entry(at path: RemotePath) async throws -> RemoteEntry? {
        do {
            return try await remote.entry(at: path)
        } catch let error as FileProviderError where error.code == .noSuchItem {
            return nil
        }
    }

    private func check(_ name: String) throws {
        if let defect = FileProviderItem.defect(ofFilename: name) {
            throw FileProviderError(.cannotSynchronize, defect.description)
        }
        if HiddenName.isOne(name) {
            throw FileProviderError(.excludedFromSync, "the provider needs names like '\(name)' for itself")
        }
        if let longest = remote.traits.longestName, name.utf8.count > longest {
            throw FileProviderError(.cannotSynchronize, "the remote takes no name of more than \(longest) bytes")
        }
    }

    private func checkContents(of item: FileProviderItem, _ contents: ContentSource?, isWanted: Bool) throws {
        guard isWanted, contents == nil, item.documentSize ?? 0 > 0 else { return }
        throw FileProviderError(
            .cannotSynchronize, "the content of '\(item.filename)' was not sent", itemIdentifier: item.itemIdentifier)
    }

    /// Whether what is there is what is offered. A file that is offered without its bytes is known by its size.
    private func isSame(
        _ entry: RemoteEntry, at path: RemotePath, _ template: FileProviderItem, _ contents: ContentSource?,
        _ options: CreateItemOptions
    ) async throws -> Bool {
        guard entry.kind == template.kind else { return false }
        switch entry.kind {
        case .directory: return true
        case .symbolicLink:
            let target = entry.attributes.symbolicLinkTarget ?? ""
            return target.utf8.elementsEqual((template.symlinkTargetPath ?? "").utf8)
        case .file:
            guard let contents else { return entry.size == template.documentSize ?? 0 }
            // The cheapest test: bytes of a version that is there need not be read.
            if options.contains(.keepExisting), entry.size == contents.size, entry.isTagStrong,
                !PathItems.isUnsettled(template.itemVersion.contentVersion),
                PathItems.hasTag(
                    of: PathItems.version(ofTag: entry.tag), template.itemVersion.contentVersion)
            {
                return true
            }
            return try await has(entry, at: path, contentOf: contents)
        }
    }

    /// Whether a file on the remote contains just these bytes.
    private func has(
        _ entry: RemoteEntry, at path: RemotePath, contentOf source: ContentSource
    ) async throws -> Bool {
        guard entry.kind == .file, entry.size == source.size else { return false }
        let sink = ComparingSink(source: source)
        do {
            _ = try await remote.read(path, tag: entry.tag, range: nil, into: sink)
        } catch is ComparingSink.Difference {
            return false
        } catch let error as FileProviderError where error.code == .versionNoLongerAvailable {
            return false
        }
        try source.confirm()
        return sink.count == source.size
    }
}

/// A change of one item.
private struct PathChange: Sendable {
    var item: FileProviderItem
    /// The content version that it was made on.
    var base: [UInt8]
    var fields: ItemFields
    var contents: ContentSource?

    var mayMove: Bool { !fields.isDisjoint(with: [.filename, .parentItemIdentifier]) }
    var attributes: RemoteAttributes { RemoteAttributes(item, fields) }
}
