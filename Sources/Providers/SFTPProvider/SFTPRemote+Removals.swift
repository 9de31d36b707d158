import FileNames
import FileProvider
import FileProviderPaths

/// A file is removed under a hidden name, where no client finds it any more to write it. One that was written since the caller's check
/// gets its name back.
extension SFTPRemote: HidingRemote {
    /// - Parameter tag: of the version that is to be removed.
    /// - Throws: ``RemoteConditionFailure`` when the file is of another version.
    func removeUnchanged(_ path: RemotePath, _ tag: [UInt8], _ session: SFTPSession) async throws {
        let name = path.name ?? ""
        // Also when the caller was cancelled.
        try await Task {
            let hidden = RemovalName.make(of: name, tag: tag)
            if try await removeUnchanged(path, tag, as: hidden, session) { return }
            // SFTP has no status for a name that is too long.
            if FileNameText.byteCount(of: hidden) > RemovalName.shortLength {
                let short = RemovalName.make(of: name, tag: tag, length: RemovalName.shortLength)
                if try await removeUnchanged(path, tag, as: short, session) { return }
            }
            // There is no renaming.
            try await session.request(SFTPMessage.remove, [bytes(path)]).checkStatus()
        }.value
    }

    /// - Returns: whether the server has renamed the file; if it has not, nothing was done.
    private func removeUnchanged(
        _ path: RemotePath, _ tag: [UInt8], as name: String, _ session: SFTPSession
    ) async throws -> Bool {
        let hidden = path.parent.appending(name)
        let renamed = rename(path, to: hidden, session)
        let look = lookup(hidden, session)
        do {
            do {
                try await renamed.reply().checkStatus()
            } catch let status as SFTPStatus where status.code != SFTPStatus.noSuchFile {
                return false
            }
            try await finishRemoval(of: path, tag, at: hidden, look, session)
            return true
        } catch  where !session.isOpen {
            repeating(in: path.parent) { remote, session in
                let look = remote.lookup(hidden, session)
                try await remote.finishRemoval(of: path, tag, at: hidden, look, session)
            }
            throw error
        }
    }

    func isRemoval(_ name: String) -> Bool { RemovalName(name) != nil }

    func finishRemoval(at hidden: RemotePath) async throws {
        try await connection.changing { session in
            try await writing(to: [hidden.parent], session) { try await finishRemoval(at: hidden, session) }
        }
    }

    /// - Throws: ``RemoteConditionFailure`` when the file was of another version, and has its name again.
    func finishRemoval(at hidden: RemotePath, _ session: SFTPSession) async throws {
        guard let removal = hidden.name.flatMap(RemovalName.init) else { return }
        let name = removal.isWhole ? removal.original : Self.asideName(of: removal.original)
        try await finishRemoval(
            of: hidden.parent.appending(name), removal.tag, at: hidden, lookup(hidden, session), session)
    }

    /// - Parameters:
    ///   - path: the file's, before it got the hidden name.
    ///   - look: the lookup of the hidden name.
    private func finishRemoval(
        of path: RemotePath, _ tag: [UInt8], at hidden: RemotePath, _ look: SFTPRequest, _ session: SFTPSession
    ) async throws {
        var there = try await presentIfAny(hidden, look, session)
        if let there, there.kind == .file, there.tag == tag {
            return try await session.request(SFTPMessage.remove, [bytes(hidden)]).checkStatus()
        }
        if there != nil {
            do {
                try await giveBack(path, from: hidden, session)
            } catch let status as SFTPStatus where status.code == SFTPStatus.noSuchFile {
                // Another machine has found the file in a listing, and done it.
            }
        }
        let present = try await presentIfAny(path, session)
        there?.name = path.name ?? ""
        guard present != nil || there != nil else { return }
        throw RemoteConditionFailure(present: present ?? there)
    }

    /// Gives a hidden file its name back, or another one where that is taken.
    private func giveBack(_ path: RemotePath, from hidden: RemotePath, _ session: SFTPSession) async throws {
        if try await presentIfAny(path, session) == nil {
            do {
                return try await rename(hidden, to: path, session).reply().checkStatus()
            } catch is SFTPStatus {
                // The name was taken just now.
            }
        }
        let aside = path.parent.appending(Self.asideName(of: path.name ?? ""))
        try await rename(hidden, to: aside, session).reply().checkStatus()
    }
}
