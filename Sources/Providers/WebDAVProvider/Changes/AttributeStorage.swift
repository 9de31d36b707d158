import FileProvider
import FileProviderPaths

/// Stores the dates and modes of items on the server; see ``StoredAttributes``.
struct AttributeStorage: Sendable {
    let prober: CapabilityProber

    private var changes: ChangeRequests { prober.changes }
    private var server: WebDAVServer { changes.server }

    /// Stores the attributes of a resource if they justify a request.
    ///
    /// - Returns: the stored attributes; nil when they were not stored.
    func storeIfWorthIt(
        _ attributes: RemoteAttributes, of resource: DAVResource, at path: RemotePath
    ) async -> StoredAttributes? {
        let stored = StoredAttributes(attributes, of: resource)
        guard stored.areWorthStoring(for: resource),
            (try? await changes.store(stored, of: resource, at: path)) == true
        else { return nil }
        await announce()
        return stored
    }

    /// Has listings request attributes from now on, here and on other machines: an empty property of the root announces that
    /// there are some.
    private func announce() async {
        guard var capabilities = server.capabilityStore.capabilities, !capabilities.hasAttributes else { return }
        capabilities.hasAttributes = true
        server.capabilityStore.keep(capabilities)
        guard !server.announcement.hasAttributes, let root = try? await server.propfind(.root, isDirectory: true)
        else { return }
        let empty = StoredAttributes(RemoteAttributes(), of: root.resource)
        _ = try? await changes.store(empty, of: root.resource, at: .root)
    }

    func set(
        _ attributes: RemoteAttributes, of path: RemotePath, kind: ItemKind
    ) async throws -> (entry: RemoteEntry, notStored: ItemFields) {
        try await server.connect()
        let all: ItemFields = [.contentModificationDate, .permissions, .extendedAttributes]
        guard !server.hasIdentifiers, try await isSupported(in: path.parent) else {
            return (try await server.entry(at: path, isDirectory: path.names.isEmpty), all)
        }
        // The file would lose its attributes to that move.
        if kind == .file { try await server.requireNoMove(to: path) }
        let there = try await server.requireItem(path, isDirectory: kind == .directory)
        var wanted = attributes
        let old = StoredAttributes(of: there.resource)
        wanted.permissions = attributes.permissions ?? old?.permissions
        wanted.contentModificationDate = attributes.contentModificationDate ?? old?.date
        let stored = StoredAttributes(wanted, of: there.resource)
        guard stored.permissions != nil || stored.date != nil,
            try await changes.store(stored, of: there.resource, at: path)
        else { return (there.entry, all) }
        if attributes.contentModificationDate != nil { server.lostUploads.forgetAll(at: path) }
        await announce()
        return (
            there.entry.with(stored),
            stored.date == nil ? [.contentModificationDate, .extendedAttributes] : [.extendedAttributes]
        )
    }

    /// Whether the server stores attributes. Where nothing can be probed for lack of permission, it does not. A server that has no room
    /// says nothing of that: what is not stored is not offered again.
    private func isSupported(in directory: RemotePath) async throws -> Bool {
        do {
            return try await prober.capabilities(probingIn: directory).mayKeepAttributes
        } catch let error as FileProviderError where error.code == .cannotSynchronize {
            return false
        }
    }
}
