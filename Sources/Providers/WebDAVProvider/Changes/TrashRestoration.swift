import FileProvider
import FileProviderPaths
import HTTPTransport

/// Restores items from the trash bin. Nextcloud restores an item to its former path, under another name if that is taken, or
/// among the user's files if its directory is gone. From there it is moved to the requested path.
struct TrashRestoration: Sendable {
    let items: ItemChanges
    let journal: RestorationJournal

    private var changes: ChangeRequests { items.prober.changes }
    private var server: WebDAVServer { changes.server }
    private var client: WebDAVClient { server.client }

    func restore(_ entry: TrashedEntry, to path: RemotePath) async throws -> RemoteEntry {
        try await server.connect()
        let bin = try server.trash.bin()
        let (name, kind) = (path.name ?? "/", entry.entry.kind)
        guard !entry.place.isEmpty, entry.place.allSatisfy(RemotePath.isName),
            let identifier = entry.entry.stableIdentifier
        else { throw FileProviderError(.noSuchItem, "\(client.host) has no '\(name)' in its trash bin") }
        try await items.requireName(of: path) { $0 == .kept }
        try await server.requireParent(of: path)
        try await server.require(.absent, at: path)
        let source = bin.items.url(of: RemotePath(entry.place))
        guard bin.kind == .nextcloud else {
            try await changes.moveIn(source, to: path, kind, size: entry.entry.size)
            return try await restored(identifier, kind, at: path)
        }
        try journal.begin(identifier, from: try await server.trash.location(of: entry)?.names)
        let target = bin.restored.url(of: RemotePath(entry.place.suffix(1)))
        let response = try await client.move(source, to: target, size: entry.entry.size, ["Overwrite": "F"])
        // A missing item may have been restored by this request, when it was sent twice.
        guard response.head.isSuccess || response.status == 404 else {
            // After a gateway's error the server may still complete the request.
            if response.status < 500 || response.status == 507 { journal.end(identifier) }
            throw WebDAVClient.failure(response, of: name, isChange: true)
        }
        if let moved = try await resume(identifier, kind: kind, to: path) { return moved }
        journal.end(identifier)
        throw FileProviderError(
            response.status == 404 ? .noSuchItem : .providerDomainTemporarilyUnavailable,
            "\(client.host) has not brought '\(name)' back")
    }

    func resume(_ identifier: String, kind: ItemKind, to path: RemotePath) async throws -> RemoteEntry? {
        try await server.connect()
        guard let bin = server.trash.store.bin, bin.kind == .nextcloud, let record = journal.record(of: identifier)
        else { return nil }
        if let there = try await self.item(identifier, kind, at: path) {
            journal.end(identifier)
            return there
        }
        guard let source = try await find(identifier, kind, record.location, in: bin) else { return nil }
        try await server.require(.absent, at: path)
        try await changes.moveIn(source, to: path, kind, size: nil)
        let moved = try await restored(identifier, kind, at: path)
        journal.end(identifier)
        return moved
    }

    /// Finds a restored item: at its former path, in its former directory, or among the user's files.
    private func find(
        _ identifier: String, _ kind: ItemKind, _ location: [String]?, in bin: TrashBin
    ) async throws -> HTTPURL? {
        let what = "what was in the trash bin"
        let properties = PropertyRequest.usual + .identifiers
        var directories: [RemotePath] = [.root]
        if let location {
            let old = bin.files.url(of: RemotePath(location), isDirectory: kind == .directory)
            let there = try await ifExists {
                try await client.resource(at: old, properties, what: what).resource
            }
            if let there, there.isDescribed, there.fileIdentifier == identifier { return old }
            if location.count > 1 { directories.insert(RemotePath(location).parent, at: 0) }
        }
        for directory in directories {
            let found = try await ifExists {
                try await client.members(of: directory, in: bin.files, properties, what: what)
                    .first { $0.resource.fileIdentifier == identifier }
            }
            guard let found, found.path.names.allSatisfy(RemotePath.isName) else { continue }
            return bin.files.url(of: found.path, isDirectory: kind == .directory)
        }
        return nil
    }

    private func item(_ identifier: String, _ kind: ItemKind, at path: RemotePath) async throws -> RemoteEntry? {
        let there = try await server.propfind(path, isDirectory: kind == .directory)?.entry
        return there?.stableIdentifier == identifier && there?.kind == kind ? there : nil
    }

    private func restored(_ identifier: String, _ kind: ItemKind, at path: RemotePath) async throws -> RemoteEntry {
        let there = try await OperationLedger.result { try await item(identifier, kind, at: path) }
        guard let there else {
            throw FileProviderError(
                .malformedResponse, "\(client.host) has brought back '\(path.name ?? "/")' as something else")
        }
        return there
    }
}
