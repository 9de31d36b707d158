import FileNames
import FileProvider
import FileProviderPaths
import Synchronization

extension SFTPRemote {
    func makeDirectory(at path: RemotePath, attributes: RemoteAttributes) async throws -> RemoteEntry {
        let stored = SFTPAttributes(attributes)
        return try await making(path, stored) { [self] session in
            session.send(SFTPMessage.mkdir, [bytes(path)]) {
                SFTPAttributes(permissions: stored.permissions).write(to: &$0)
            }
        }
    }

    func makeSymbolicLink(
        at path: RemotePath, to target: String, attributes: RemoteAttributes
    ) async throws -> RemoteEntry {
        let made = try await making(path, SFTPAttributes()) { [self] session in
            // The draft has the two the other way round; OpenSSH and all after it have them so.
            session.send(SFTPMessage.symlink, [FileNameText.bytes(of: target), bytes(path)])
        }
        guard attributes.contentModificationDate != nil else { return made }
        do {
            return try await set(attributes, of: path, kind: .symbolicLink).entry
        } catch let error as FileProviderError {
            // The link is there, and its date is stored later.
            guard error.code != .noSuchItem else { throw error }
            return made
        }
    }

    /// Makes an item with a request that refuses an existing one.
    private func making(
        _ path: RemotePath, _ stored: SFTPAttributes, _ send: @escaping @Sendable (SFTPSession) -> SFTPRequest
    ) async throws -> RemoteEntry {
        try await connection.changing { session in
            try await writing(to: [path.parent], session) {
                do {
                    try await send(session).reply().checkStatus()
                } catch let status as SFTPStatus where status.code != SFTPStatus.noSuchFile {
                    if let there = try await presentIfAny(path, session) {
                        throw RemoteConditionFailure(present: there)
                    }
                    throw await explained(status, session)
                }
                let attributes = storeAndLook(stored, path, session)
                try await waitForStorage(attributes.stored, isNew: true)
                return try await present(path, attributes.look, session)
            }
        }
    }

    /// Sends attributes to be stored, if there are any, and a lookup after it.
    func storeAndLook(
        _ attributes: SFTPAttributes, _ path: RemotePath, _ session: SFTPSession
    ) -> (stored: SFTPRequest?, look: SFTPRequest) {
        var stored: SFTPRequest?
        if attributes != SFTPAttributes() {
            stored = session.send(SFTPMessage.setstat, [bytes(path)]) {
                readOnlyDirectories.storing(attributes, at: path).write(to: &$0)
            }
        }
        return (stored, lookup(path, session))
    }

    /// Waits until attributes are stored. Object stores behind SFTP and file systems such as exFAT refuse some or all: what the server
    /// has otherwise stays on this machine.
    ///
    /// - Parameter isNew: whether the item was just made here: then no right is missing.
    /// - Returns: false where the server does not store them.
    @discardableResult
    func waitForStorage(_ request: SFTPRequest?, isNew: Bool) async throws -> Bool {
        do {
            try await request?.reply().checkStatus()
            if isNew, request != nil { storesAttributes.store(true, ordering: .relaxed) }
            return true
        } catch let status as SFTPStatus {
            switch status.code {
            case SFTPStatus.unsupported: break
            case SFTPStatus.permissionDenied where isNew || !storesAttributes.load(ordering: .relaxed): break
            default: throw status
            }
            storesAttributes.store(false, ordering: .relaxed)
            return false
        }
    }

    func move(_ path: RemotePath, to newPath: RemotePath, kind: ItemKind) async throws -> RemoteEntry {
        readFiles.close(at: path)
        return try await connection.changing { session in
            do {
                // A directory that gets another parent is written to itself.
                let itself = kind == .directory && path.parent != newPath.parent ? [path] : []
                let look = try await writing(
                    to: Set([path.parent, newPath.parent] + itself), session, moving: (path, newPath)
                ) {
                    try await check(.absent, newPath, session)
                    let renamed = rename(path, to: newPath, session)
                    let look = lookup(newPath, session)
                    try await renamed.reply().checkStatus()
                    return look
                }
                return try await present(newPath, look, session)
            } catch let status as SFTPStatus {
                if status.code == SFTPStatus.failure, let there = try await presentIfAny(newPath, session) {
                    throw RemoteConditionFailure(present: there)
                }
                throw status
            }
        }
    }

    func set(
        _ attributes: RemoteAttributes, of path: RemotePath, kind: ItemKind
    ) async throws -> (entry: RemoteEntry, notStored: ItemFields) {
        try await connection.changing { session in
            var notStored: ItemFields = attributes.extendedAttributes == nil ? [] : .extendedAttributes
            if kind != .symbolicLink {
                let entry = try await writing(to: [path.parent], session) {
                    let (stored, look) = storeAndLook(SFTPAttributes(attributes), path, session)
                    if try await !waitForStorage(stored, isNew: false) {
                        notStored.formUnion([.contentModificationDate, .permissions])
                    }
                    return try await present(path, look, session)
                }
                return (entry, notStored)
            }
            // A link has no mode of its own.
            notStored.insert(.permissions)
            var canStore = session.has("lsetstat@openssh.com")
            let times = SFTPAttributes(modified: SFTPAttributes(attributes).modified)
            let entry = try await writing(to: [path.parent], session) {
                do {
                    if canStore {
                        let name = Array("lsetstat@openssh.com".utf8)
                        try await session.request(SFTPMessage.extended, [name, bytes(path)]) { times.write(to: &$0) }
                            .checkStatus()
                    }
                } catch let status as SFTPStatus where status.code == SFTPStatus.unsupported {
                    session.forgetExtension("lsetstat@openssh.com")
                    canStore = false
                } catch let status as SFTPStatus where status.code == SFTPStatus.failure {
                    // The file system has no times of links: OpenSSH has no other status for EOPNOTSUPP.
                    canStore = false
                }
                return try await present(path, session)
            }
            if !canStore { notStored.insert(.contentModificationDate) }
            return (entry, notStored)
        }
    }

    func delete(_ path: RemotePath, kind: ItemKind, if condition: RemoteCondition) async throws {
        readFiles.close(at: path)
        try await connection.changing { session in
            do {
                try await writing(to: kind == .directory ? [path.parent, path] : [path.parent], session) {
                    try await delete(path, kind, if: condition, session)
                }
            } catch let status as SFTPStatus where status.code == SFTPStatus.noSuchFile {
                return
            }
        }
    }

    private func delete(
        _ path: RemotePath, _ kind: ItemKind, if condition: RemoteCondition, _ session: SFTPSession
    ) async throws {
        guard kind == .directory else {
            do {
                try await check(condition, path, session)
            } catch let failure as RemoteConditionFailure where failure.present == nil {
                return
            }
            if case .unchanged(let tag) = condition { return try await removeUnchanged(path, tag, session) }
            return try await session.request(SFTPMessage.remove, [bytes(path)]).checkStatus()
        }
        var below: [RemoteEntry] = []
        try await visitListing(of: path) { part in
            // Another kind of item stays, and its directory with it.
            below += part.entries
            if condition == .always { return true }
            let others = part.entries.filter(RemovalName.isOfOther)
            for entry in others {
                do { try await finishRemoval(at: path.appending(entry.name), session) } catch is RemoteConditionFailure
                {
                    // It is shown again.
                }
            }
            guard !part.leavesOut, others.isEmpty, part.entries.allSatisfy({ HiddenName.isOne($0.name) }) else {
                throw RemoteConditionFailure(present: try await present(path, session))
            }
            return true
        }
        for entry in below {
            let child = path.appending(entry.name)
            do {
                try await writing(to: entry.kind == .directory ? [path, child] : [path], session) {
                    try await delete(child, entry.kind, if: .always, session)
                }
            } catch let status as SFTPStatus where status.code == SFTPStatus.noSuchFile {
                continue
            }
        }
        do {
            try await session.request(SFTPMessage.rmdir, [bytes(path)]).checkStatus()
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
