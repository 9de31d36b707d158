import FileProvider
import FileProviderPaths

extension S3Remote {
    func delete(object key: String, of path: RemotePath, if condition: RemoteCondition) async throws {
        guard case .unchanged(let content) = condition else {
            guard try await client.object(key) != nil else { return }
            try await tree.keepDirectory(path.parent)
            return try await deleter.delete([key])
        }
        let deletion = Deletion(key: key, tag: records.tag(of: content, at: key))
        await preconditions.support()
        try await tree.keepDirectory(path.parent)
        let left = try await deleter.delete([deletion])
        guard !left.isEmpty, let there = try await tree.entry(at: path) else { return }
        guard try await tree.has(content, at: path) else { throw RemoteConditionFailure(present: there) }
        // The server refuses the ETag that the object has.
        try await deleteUnchecked(deletion, of: path)
    }

    /// Deletes the object that is a link, and none that another client writes to its key meanwhile.
    func delete(link key: String, of path: RemotePath) async throws {
        var there = try await client.listed(key)
        if there == nil { there = try await client.object(key) }
        guard let there else { return }
        let deletion = Deletion(key: key, tag: there.tag)
        await preconditions.support()
        try await tree.keepDirectory(path.parent)
        let left = try await deleter.delete([deletion])
        guard !left.isEmpty, let now = try await client.object(key) else { return }
        // A listing may be older than what another client has written.
        guard now.tag == there.tag, try await client.listed(key)?.tag ?? there.tag == there.tag else {
            throw RemoteConditionFailure(present: try await tree.entry(at: path))
        }
        // The server refuses the ETag that the object has.
        try await deleteUnchecked(deletion, of: path)
    }

    /// Deletes an object where the server cannot be trusted with its ETag.
    ///
    /// - Throws: ``RemoteConditionFailure`` when another client has written it since.
    private func deleteUnchecked(_ deletion: Deletion, of path: RemotePath) async throws {
        preconditions.noteDeletionsUnchecked()
        guard try await deleter.delete([deletion]).isEmpty else {
            throw RemoteConditionFailure(present: try await tree.entry(at: path))
        }
    }

    /// Deletes a directory that holds nothing, and only the objects that were listed: another client may be writing there.
    /// Content that arrived late, after it was sent again or deleted, counts as nothing.
    func deleteEmpty(_ path: RemotePath) async throws {
        let prefix = tree.prefix(of: path)
        await preconditions.support()
        var deletions: [Deletion] = []
        var reader = KeyReader(client: client, prefix: prefix)
        while let object = try await reader.next() {
            let below = object.key.dropping(prefix)
            let isLeftover = client.ledger.isLeftover(object.key, tag: object.tag)
            let isNothing = below.isEmpty ? object.size == 0 : HiddenName.isOne(below) || isLeftover
            guard isNothing else { throw RemoteConditionFailure(present: S3Tree.directory(path.name ?? "")) }
            deletions.append(Deletion(key: object.key, tag: object.tag))
        }
        guard reader.unreadable == 0 else {
            throw RemoteConditionFailure(present: S3Tree.directory(path.name ?? ""))
        }
        try await deleter.delete(deletions)
    }

    /// Deletes all keys in a directory. The directory's own object is deleted last, so that an interrupted deletion leaves a
    /// directory.
    func deleteTree(_ path: RemotePath) async throws {
        let prefix = tree.prefix(of: path)
        var token: String?
        var check = CycleCheck<String>()
        repeat {
            let listing = try await client.list(prefix: prefix, isFlat: true, from: token)
            try check.check(listing.next, isEmpty: listing.entries.isEmpty, of: "'\(prefix)'")
            try await deleter.delete(listing.entries.map(\.key).filter { !$0.utf8.elementsEqual(prefix.utf8) })
            token = listing.next
        } while token != nil
        try await deleter.delete([prefix])
    }
}
