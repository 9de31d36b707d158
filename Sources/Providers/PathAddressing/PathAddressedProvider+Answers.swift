import FileProvider

/// What is looked at before a change, and what is said of it afterwards.
extension PathAddressedProvider {
    // MARK: - Answers

    func answer(
        _ entry: RemoteEntry, in parent: ItemIdentifier, at directory: RemotePath, _ fields: ItemFields,
        wanted: RemoteAttributes, isOwn: Bool
    ) async throws -> ItemChange {
        let identifier = try await identities.identify(entry, in: parent, at: directory, isNew: false)
        if isOwn { paths.noteWritten(identifier, version: PathItems.version(ofTag: entry.tag)) }
        return answer(entry, as: identifier, in: parent, fields, wanted: wanted)
    }

    /// - Parameter wanted: the attributes that were sent. Those that the remote has otherwise are kept here.
    func answer(
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

    func collision(
        _ entry: RemoteEntry, in parent: ItemIdentifier, at directory: RemotePath
    ) async throws -> any Error {
        let identifier = try await identities.identify(entry, in: parent, at: directory)
        return FileProviderError.filenameCollision(with: items.item(entry, as: identifier, in: parent))
    }

    func conflict(
        _ entry: RemoteEntry, _ identifier: ItemIdentifier, in parent: ItemIdentifier
    ) -> any Error {
        FileProviderError(.localVersionConflictingWithServer, item: items.item(entry, as: identifier, in: parent))
    }

    func notEmpty(
        _ entry: RemoteEntry, _ identifier: ItemIdentifier, in parent: ItemIdentifier
    ) -> any Error {
        // What we have moved there, and the system does not know to be there, may be about to go as well.
        if paths.holdsUnheard(identifier) {
            return FileProviderError(.providerDomainTemporarilyUnavailable, "'\(entry.name)' is not empty yet")
        }
        return FileProviderError(.directoryNotEmpty, item: items.item(entry, as: identifier, in: parent))
    }

    func rejection(
        _ entry: RemoteEntry, _ identifier: ItemIdentifier, in parent: ItemIdentifier
    ) -> any Error {
        FileProviderError.deletionRejected(of: items.item(entry, as: identifier, in: parent))
    }

    /// What was in the way is gone again: the next attempt will show.
    static func vanished(_ name: String) -> FileProviderError {
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

    func check(_ name: String) throws {
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

    func checkContents(of item: FileProviderItem, _ contents: ContentSource?, isWanted: Bool) throws {
        guard isWanted, contents == nil, item.documentSize ?? 0 > 0 else { return }
        throw FileProviderError(
            .cannotSynchronize, "the content of '\(item.filename)' was not sent", itemIdentifier: item.itemIdentifier)
    }

    /// Whether what is there is what is offered. A file that is offered without its bytes is known by its size.
    func isSame(
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
    func has(
        _ entry: RemoteEntry, at path: RemotePath, contentOf source: ContentSource
    ) async throws -> Bool {
        guard entry.kind == .file, entry.size == source.size else { return false }
        let sink = ComparingSink(source: source)
        do {
            _ = try await remote.read(path, tag: entry.tag, range: nil, into: sink)
        } catch is ComparingSink.Difference {
            // From what was written here meanwhile it may well differ.
            try source.confirm()
            return false
        } catch let error as FileProviderError where error.code == .versionNoLongerAvailable {
            return false
        }
        try source.confirm()
        return sink.count == source.size
    }
}
