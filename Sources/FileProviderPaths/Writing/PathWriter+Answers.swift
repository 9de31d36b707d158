import FileProvider

/// What is compared before a change, and what is answered afterwards.
extension PathWriter {
    // MARK: - Answers

    func answer(
        _ entry: RemoteEntry, in parent: ItemIdentifier, at directory: RemotePath, _ fields: ItemFields,
        wanted: RemoteAttributes, isOwn: Bool
    ) async throws -> ItemChange {
        let identifier = try await tree.identities.identify(entry, in: parent, at: directory, isNew: false)
        if isOwn { paths.noteWritten(identifier, version: entry.version) }
        return answer(entry, as: identifier, in: parent, fields, wanted: wanted)
    }

    /// - Parameters:
    ///   - wanted: the attributes that were sent. Those that the remote has otherwise stay pending.
    ///   - shouldFetchContent: whether the remote's bytes are not those that are here.
    func answer(
        _ entry: RemoteEntry, as identifier: ItemIdentifier, in parent: ItemIdentifier, _ fields: ItemFields,
        wanted: RemoteAttributes = RemoteAttributes(), notStored: ItemFields = [], shouldFetchContent: Bool = false
    ) -> ItemChange {
        var notStored = notStored
        if let date = wanted.contentModificationDate, date != entry.attributes.contentModificationDate {
            notStored.insert(.contentModificationDate)
        }
        if let permissions = wanted.permissions, permissions != entry.attributes.permissions {
            notStored.insert(.permissions)
        }
        return .applied(
            // With new content the remote may have given it another identifier.
            tree.items.item(entry, as: entry.remoteIdentifier ?? identifier, in: parent),
            stillPending: fields.subtracting(RemoteAttributes.storable(by: remote.traits))
                .union(notStored.intersection(fields)),
            shouldFetchContent: shouldFetchContent)
    }

    /// Does something for which a name has to be free, and answers with the item that has the name otherwise.
    func colliding<Value: Sendable>(
        in parent: ItemIdentifier, at directory: RemotePath, named name: String, _ body: () async throws -> Value
    ) async throws -> Value {
        do {
            return try await body()
        } catch let failure as RemoteConditionFailure {
            guard let present = failure.present else {
                throw FileProviderError(
                    .providerDomainTemporarilyUnavailable, "the item that was called '\(name)' has just been removed")
            }
            throw try await collision(present, in: parent, at: directory)
        }
    }

    func collision(
        _ entry: RemoteEntry, in parent: ItemIdentifier, at directory: RemotePath
    ) async throws -> any Error {
        // Which item it is, is not known before its move is settled.
        if tree.mayHaveBrought(entry, to: Place(directory: parent, name: entry.name)) {
            return FileProviderError(
                .providerDomainTemporarilyUnavailable, "whether '\(entry.name)' was moved there is not known yet")
        }
        let identifier = try await tree.identities.identify(entry, in: parent, at: directory)
        return FileProviderError.filenameCollision(with: tree.items.item(entry, as: identifier, in: parent))
    }

    func conflict(_ entry: RemoteEntry, _ identifier: ItemIdentifier, in parent: ItemIdentifier) -> any Error {
        FileProviderError(.localVersionConflictingWithServer, item: tree.items.item(entry, as: identifier, in: parent))
    }

    func notEmpty(_ entry: RemoteEntry, _ identifier: ItemIdentifier, in parent: ItemIdentifier) -> any Error {
        // An item that was moved there, and that the system does not know to be there, may be about to be removed as well.
        if paths.holdsUnheard(identifier) {
            return FileProviderError(.providerDomainTemporarilyUnavailable, "'\(entry.name)' is not empty yet")
        }
        return FileProviderError(.directoryNotEmpty, item: tree.items.item(entry, as: identifier, in: parent))
    }

    func rejection(_ entry: RemoteEntry, _ identifier: ItemIdentifier, in parent: ItemIdentifier) -> any Error {
        FileProviderError.deletionRejected(of: tree.items.item(entry, as: identifier, in: parent))
    }

    // MARK: - Comparing

    func check(_ name: String) throws {
        try FileProviderItem.check(newFilename: name)
        if let longest = remote.traits.longestName, name.utf8.count > longest {
            throw FileProviderError(.cannotSynchronize, "the remote takes no name of more than \(longest) bytes")
        }
    }

    /// Whether an entry is the same as a template. A file that is offered without its content is compared by size.
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
            // The content of a known version need not be read.
            let version = template.itemVersion.contentVersion
            if options.contains(.keepExisting), entry.size == contents.size, entry.isTagStrong,
                !PathItems.isUnsettled(version), PathItems.hasTag(of: entry.version, version)
            {
                return true
            }
            return try await has(entry, at: path, contentOf: contents)
        }
    }

    /// Whether a file on the remote contains just these bytes.
    func has(_ entry: RemoteEntry, at path: RemotePath, contentOf source: ContentSource) async throws -> Bool {
        guard entry.kind == .file, entry.size == source.size else { return false }
        do {
            return try await source.equals { _ = try await remote.read(path, tag: entry.tag, range: nil, into: $0) }
        } catch let error as FileProviderError where error.code == .versionNoLongerAvailable {
            return false
        }
    }
}
