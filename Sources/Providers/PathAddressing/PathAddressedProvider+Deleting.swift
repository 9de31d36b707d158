import FileProvider

/// Deleting.
extension PathAddressedProvider {
    private typealias Place = PathMap.Place

    package func deleteItem(
        identifier: ItemIdentifier, baseVersion: ItemVersion, options: DeleteItemOptions, request: FileProviderRequest
    ) async throws {
        guard identifier != .rootContainer else {
            throw FileProviderError(.deletionRejected, "the root stays", itemIdentifier: identifier)
        }
        if try await deleteFromTrash(identifier, base: baseVersion, options) { return }
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
                    try await paths.changing([Place(directory: parent, name: entry.name)]) {
                        try await delete(entry, at: path, if: condition(ofDeleting: entry, options))
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

    /// What the remote keeps in its trash all the same is none of ours any more.
    private func delete(_ entry: RemoteEntry, at path: RemotePath, if condition: RemoteCondition) async throws {
        let book = trash?.book
        book?.willDelete(entry)
        do {
            try await remote.delete(path, kind: entry.kind, if: condition)
            book?.ended(entry)
        } catch {
            book?.ended(entry, because: error)
            throw error
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
        var isHeld = false
        try await remote.visitListing(of: path, limit: 100) { part in
            isHeld = part.leavesOut || part.entries.contains { !HiddenName.isOne($0.name) }
            return !isHeld
        }
        return isHeld
    }
}
