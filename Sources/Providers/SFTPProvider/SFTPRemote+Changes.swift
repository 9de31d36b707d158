import FileNames
import FileProvider
import PathAddressing

extension SFTPRemote {
    func makeDirectory(at path: RemotePath, attributes: RemoteAttributes) async throws -> RemoteEntry {
        try await making(path) { [self] session in
            try await session.request(SFTPMessage.mkdir) {
                $0.append(bytes(path))
                SFTPAttributes().write(to: &$0)
            }.checkStatus()
            let stored = SFTPAttributes(attributes)
            guard stored != SFTPAttributes() else { return }
            try await store(stored, of: path, session)
        }
    }

    func makeSymbolicLink(
        at path: RemotePath, to target: String, attributes: RemoteAttributes
    ) async throws -> RemoteEntry {
        try await making(path) { [self] session in
            try await session.request(SFTPMessage.symlink) {
                // The draft has the two the other way round; OpenSSH and all after it have them so.
                $0.append(FileNameText.bytes(of: target))
                $0.append(bytes(path))
            }.checkStatus()
        }
    }

    /// Makes an item with a request that refuses an existing one.
    private func making(
        _ path: RemotePath, _ body: @escaping @Sendable (SFTPSession) async throws -> Void
    ) async throws -> RemoteEntry {
        try await connection.changing { session in
            try await check(.absent, path, session)
            do {
                try await body(session)
            } catch let status as SFTPStatus where status.code == SFTPStatus.failure {
                if let there = try await presentIfAny(path, session) { throw RemoteConditionFailure(present: there) }
                throw status
            }
            return try await present(path, session)
        }
    }

    private func store(_ attributes: SFTPAttributes, of path: RemotePath, _ session: SFTPSession) async throws {
        try await session.request(SFTPMessage.setstat) {
            $0.append(bytes(path))
            attributes.write(to: &$0)
        }.checkStatus()
    }

    func move(_ path: RemotePath, to newPath: RemotePath, kind: ItemKind) async throws -> RemoteEntry {
        try await connection.changing { session in
            try await check(.absent, newPath, session)
            do {
                try await rename(path, to: newPath, session)
            } catch let status as SFTPStatus {
                if status.code == SFTPStatus.failure, let there = try await presentIfAny(newPath, session) {
                    throw RemoteConditionFailure(present: there)
                }
                throw status
            }
            return try await present(newPath, session)
        }
    }

    func set(
        _ attributes: RemoteAttributes, of path: RemotePath, kind: ItemKind
    ) async throws -> (entry: RemoteEntry, notStored: ItemFields) {
        try await connection.changing { session in
            let stored = SFTPAttributes(attributes)
            var notStored: ItemFields = attributes.extendedAttributes == nil ? [] : .extendedAttributes
            if kind != .symbolicLink {
                if stored != SFTPAttributes() { try await store(stored, of: path, session) }
            } else if session.has("lsetstat@openssh.com") {
                var times = stored
                // A link has no mode of its own.
                times.permissions = nil
                try await session.request(SFTPMessage.extended) {
                    $0.append(Array("lsetstat@openssh.com".utf8))
                    $0.append(bytes(path))
                    times.write(to: &$0)
                }.checkStatus()
                notStored.insert(.permissions)
            } else {
                notStored.formUnion([.permissions, .contentModificationDate])
            }
            return (try await present(path, session), notStored)
        }
    }

    func delete(_ path: RemotePath, kind: ItemKind, if condition: RemoteCondition) async throws {
        try await connection.changing { session in
            do {
                try await delete(path, kind, if: condition, session)
            } catch let status as SFTPStatus where status.code == SFTPStatus.noSuchFile {
                return
            }
        }
    }

    private func delete(
        _ path: RemotePath, _ kind: ItemKind, if condition: RemoteCondition, _ session: SFTPSession
    ) async throws {
        guard kind == .directory else {
            if case .unchanged = condition, try await presentIfAny(path, session) == nil { return }
            try await check(condition, path, session)
            return try await session.request(SFTPMessage.remove) { $0.append(bytes(path)) }.checkStatus()
        }
        var below: [RemoteEntry] = []
        try await visitListing(of: path) { part in
            // Another kind of item stays, and its directory with it.
            below += part.entries
            guard condition == .always || !part.leavesOut && part.entries.allSatisfy({ HiddenName.isOne($0.name) })
            else { throw RemoteConditionFailure(present: try await present(path, session)) }
            return true
        }
        for entry in below {
            let child = path.appending(entry.name)
            do {
                try await delete(child, entry.kind, if: .always, session)
            } catch let status as SFTPStatus where status.code == SFTPStatus.noSuchFile {
                continue
            }
        }
        do {
            try await session.request(SFTPMessage.rmdir) { $0.append(bytes(path)) }.checkStatus()
        } catch let status as SFTPStatus where status.code == SFTPStatus.failure {
            var isEmpty = true
            try await visitListing(of: path) { part in
                isEmpty = !part.leavesOut && part.entries.isEmpty
                return isEmpty
            }
            guard isEmpty else { throw RemoteConditionFailure(present: try await present(path, session)) }
            throw status
        }
    }
}
