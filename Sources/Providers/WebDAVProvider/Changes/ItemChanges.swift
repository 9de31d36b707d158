import FileProvider
import FileProviderPaths
import HTTPTransport

/// Creates directories, moves and deletes items.
struct ItemChanges: Sendable {
    let prober: CapabilityProber
    let attributes: AttributeStorage
    private let deletionTimes = DeletionTimes()

    private var changes: ChangeRequests { prober.changes }
    private var server: WebDAVServer { changes.server }

    /// - Parameter isAllowed: the fates that a name may have.
    /// - Throws: `cannotSynchronize` for a name that the server does not preserve.
    func requireName(of path: RemotePath, _ isAllowed: (ServerCapabilities.NameFate) -> Bool) async throws {
        guard ServerCapabilities.isOdd(path) else { return }
        let fate = try await prober.capabilities(probingIn: path.parent).fate(of: path)
        if !isAllowed(fate) { throw Self.oddName(path, on: server) }
    }

    /// Also a directory above may have the name that is not kept.
    static func oddName(_ path: RemotePath, on server: WebDAVServer) -> FileProviderError {
        let name = path.names.last { ServerCapabilities.isOdd(RemotePath([$0])) } ?? path.name ?? "/"
        return FileProviderError(
            .cannotSynchronize, "\(server.client.host) does not keep names like '\(name)': give it another one")
    }

    func makeDirectory(at path: RemotePath, _ attributes: RemoteAttributes) async throws -> RemoteEntry {
        try await server.connect()
        if let name = path.name, HiddenName.isOne(name) { try server.hiddenFiles.add(path, isDirectory: true) }
        // The capabilities are needed for what will be created in it.
        async let probe = prober.capabilities(probingIn: path.parent)
        try await requireName(of: path) { $0 != .lost }
        let made = try await changes.makeDirectory(at: path)
        var entry = made.entry
        if server.capabilityStore.capabilities?.keepsAttributes == true {
            entry = entry.with(await self.attributes.storeIfWorthIt(attributes, of: made.resource, at: path))
        }
        _ = try? await probe
        return entry
    }

    func move(_ path: RemotePath, to newPath: RemotePath, kind: ItemKind) async throws -> RemoteEntry {
        let isChecked = try await OperationLedger.preparing {
            try await server.connect()
            let capabilities = try await prober.capabilities(probingIn: newPath.parent)
            try await requireName(of: newPath) { $0 == .kept }
            // The probe does not cover overwriting a directory.
            let isChecked = kind != .directory && capabilities.refusesOverwriting
            if !isChecked { try await server.require(.absent, at: newPath) }
            return isChecked
        }
        server.lostUploads.carry(path, to: newPath)
        server.hiddenFiles.carry(path, to: newPath, isMade: false)
        try await changes.move(
            path, to: newPath, kind: kind, size: kind == .file ? server.lastSize(at: path) : nil, overwriting: false,
            recheck: isChecked ? nil : changes.recheck(.absent, at: newPath))
        server.hiddenFiles.carry(path, to: newPath, isMade: true)
        let found = try await OperationLedger.result {
            try await server.propfind(newPath, isDirectory: kind == .directory)
        }
        guard let moved = found?.entry, moved.kind == kind else {
            throw FileProviderError(
                .malformedResponse, "\(server.client.host) has lost '\(newPath.name ?? "/")' in a move")
        }
        return moved
    }

    func delete(_ path: RemotePath, kind: ItemKind, if condition: RemoteCondition) async throws {
        try await server.connect()
        try await delete(path, kind: kind, if: condition, isKept: false)
        if let name = path.name, HiddenName.isOne(name) { server.hiddenFiles.remove(path) }
    }

    /// Moves an item to the server's trash bin.
    func trash(_ path: RemotePath, kind: ItemKind, if condition: RemoteCondition) async throws {
        try await server.connect()
        try await server.trash.requireBin()
        _ = try await server.requireItem(path, isDirectory: kind == .directory)
        try await delete(path, kind: kind, if: condition, isKept: true)
    }

    /// The preconditions of deletions that the server checks. A deletion makes room: without room for a probe the file is looked up
    /// before it.
    private func conditionsOfDeletions(in directory: RemotePath) async throws -> ServerCapabilities.Conditions {
        do {
            return try await prober.capabilities(probingIn: directory).deletions
        } catch let error as FileProviderError where error.code == .insufficientQuota {
            return .none
        }
    }

    /// - Parameter isKept: the item has to be in the server's trash bin afterwards.
    private func delete(_ path: RemotePath, kind: ItemKind, if condition: RemoteCondition, isKept: Bool) async throws {
        var fields: HTTPFields = [:]
        if case .unchanged = condition {
            let conditions = try await conditionsOfDeletions(in: path.parent)
            do {
                fields = try await changes.fields(checking: condition, at: path, by: conditions)
            } catch let failure as RemoteConditionFailure where failure.present == nil {
                return
            }
        }
        let recheck = changes.recheck(condition, at: path)
        try await deletionTimes.run(path.name ?? "/", isKept: isKept) { [fields] in
            do {
                try await changes.delete(
                    path, isDirectory: kind == .directory, fields, recheck: fields.isEmpty ? recheck : nil)
            } catch let failure as RemoteConditionFailure where condition.isOf(failure.present?.tag) && !fields.isEmpty
            {
                // The server refuses the ETag that the file has: no other client has changed the file.
                try await changes.delete(path, isDirectory: kind == .directory, [:], recheck: recheck)
            }
        }
    }
}
