import FileProvider
import FileProviderPaths
import HTTPTransport

/// Writes files. A file appears complete or not at all: it is sent under a hidden name beside its path, and moved there.
struct FileWriter: Sendable {
    let prober: CapabilityProber
    let attributes: AttributeStorage
    let earlyUploads: EarlyUploads
    let chunkedUploads: ChunkedUploads
    /// Content up to this size is held in memory and sent in one piece.
    private static let mostInPlace: Int64 = 8 << 20
    /// A file with a longer name, in bytes, is not created directly: lighttpd writes content to a file with a suffix on that name first,
    /// and answers 500 where that is too long.
    private static let longestDirectName = 200

    private var changes: ChangeRequests { prober.changes }
    private var server: WebDAVServer { changes.server }
    private var client: WebDAVClient { server.client }

    func write(
        _ contents: ContentSource, to path: RemotePath, _ attributes: RemoteAttributes, if condition: RemoteCondition
    ) async throws -> RemoteEntry {
        try await server.connect()
        let earlier = try await server.requireNoMove(to: path, of: contents)
        if server.hasIdentifiers {
            contents.growing?.giveUp()
            return try await replace(contents, at: path, attributes, if: condition)
        }
        let capabilities = try await earlyUploads.capabilities(toWrite: contents, in: path.parent)
        if capabilities.fate(of: path) != .kept {
            contents.growing?.giveUp()
            return try await writeInPlace(contents, to: path, if: condition, capabilities)
        }
        if condition == .absent, contents.size <= LostUploads.mostBytes, capabilities.showsOnlyWhole,
            capabilities.refusesReplacing, path.name?.utf8.count ?? 0 <= Self.longestDirectName
        {
            contents.growing?.giveUp()
            return try await create(contents, at: path, attributes, capabilities)
        }
        let entry = try await writeHidden(contents, to: path, attributes, if: condition, capabilities)
        // A move that is made only now gives the file another tag.
        for move in earlier where move.mark != .tag(entry.tag) {
            server.lostUploads.note(move.mark, of: contents, at: path, attributes, acknowledgedTag: entry.tag)
        }
        return entry
    }

    /// Sends the content under a hidden name, and moves it to its path.
    private func writeHidden(
        _ contents: ContentSource, to path: RemotePath, _ attributes: RemoteAttributes, if condition: RemoteCondition,
        _ capabilities: ServerCapabilities
    ) async throws -> RemoteEntry {
        let name = path.name ?? "/"
        let isCheckedByMove = condition == .absent && capabilities.refusesOverwriting
        let early = try await contents.finishEarlyUpload { _ in capabilities.takesAnyLength }
        // Small content is recognized by its bytes if the response to the move is lost. They are read before, because a
        // process may write the file until the loss is known.
        let isSmall = early == nil && !capabilities.tagsSurviveMoves && contents.size <= LostUploads.mostBytes
        let bytes = isSmall ? try await Self.bytes(of: contents) : nil
        var mark = bytes.map { LostUploads.digest(of: $0) }
        let hidden = try early ?? server.hiddenFiles.make(in: path.parent)
        var stored: StoredAttributes?
        var sent: WebDAVServer.Found?
        let etag: String?
        do {
            if early == nil {
                try await changes.put(bytes.map { .bytes($0) } ?? .content(contents), at: hidden, for: path)
            }
            // Not every server reports that it has lost a part. Where a move keeps the tag, this look-up replaces the one
            // after the move. Where it does not, large content is recognized by the date that it has now.
            let isLookedUp = bytes == nil || capabilities.keepsAttributes || !capabilities.showsOnlyWhole
            // The server compares the ETag that the file had when the write began.
            let known = capabilities.movesConditionally ? server.lastETag(at: path, condition) : nil
            let isChecked = isCheckedByMove || known != nil
            // At once with the hidden file where no request comes between that look-up and the move.
            let isAtOnce = !isChecked && !capabilities.keepsAttributes
            async let target = present(at: path, condition, isWanted: isAtOnce)
            if isLookedUp { sent = try await server.propfind(hidden) }
            guard !isLookedUp || sent?.entry.kind == .file && sent?.entry.size == contents.size else {
                throw FileProviderError(.malformedResponse, "\(client.host) has not taken all of '\(name)'")
            }
            if let sent, capabilities.keepsAttributes {
                stored = await self.attributes.storeIfWorthIt(attributes, of: sent.resource, at: hidden)
            }
            if let sent, bytes == nil {
                mark =
                    capabilities.tagsSurviveMoves
                    ? .tag(sent.entry.tag) : sent.resource.modifiedAt.map { SentContents.Mark.seconds($0) }
            }
            var there = try await target
            if !isChecked, !isAtOnce { there = try await server.require(condition, at: path) }
            etag = known ?? (capabilities.movesConditionally ? there?.etag : nil)
            // A move that was cancelled may have been made. One that has not begun was not.
            try Task.checkCancellation()
        } catch {
            server.hiddenFiles.delete(hidden)
            throw error
        }
        // A move that is made late replaces what is newer, unless the server checks what it replaces.
        var replacement: HiddenFiles.Replacement?
        if !isCheckedByMove {
            replacement = HiddenFiles.Replacement(names: path.names, size: contents.size, mark: mark)
            if case .digest(let digest) = mark { replacement?.digest = digest }
        }
        do {
            return try await recordingOutcome(of: contents, mark, at: path, attributes) {
                try await publish(
                    hidden, of: contents.size, at: path, if: condition, ifTargetHas: etag, replacement)
                server.hiddenFiles.remove(hidden)
                if let sent, capabilities.tagsSurviveMoves {
                    var entry = sent.entry.with(stored)
                    entry.name = name
                    return entry
                }
                let found = try await server.lookUpSent(
                    contents, at: path, mark, etag: nil, isHeadTrue: capabilities.headsAreTrue)
                guard let found else { throw RemoteConditionFailure(present: nil) }
                return found.entry.with(stored)
            }
        } catch let unanswered as ChangeRequests.UnansweredMove {
            // The record of the upload stays: it gives the file its date.
            let search = MoveSearch(server: server, hidden: hidden, path: path)
            guard let moved = await search.run(for: mark, of: contents) else {
                throw unanswered.cause
            }
            return moved.with(stored)
        }
    }

    /// Creates a small file directly, where the server shows only complete files and does not overwrite.
    private func create(
        _ contents: ContentSource, at path: RemotePath, _ attributes: RemoteAttributes,
        _ capabilities: ServerCapabilities
    ) async throws -> RemoteEntry {
        let name = path.name ?? "/"
        let bytes = try await Self.bytes(of: contents)
        let mark = LostUploads.digest(of: bytes)
        return try await recordingOutcome(of: contents, mark, at: path, attributes) {
            let etag = try await changes.put(.bytes(bytes), at: path, ["If-None-Match": "*"])
            let made = try await server.lookUpSent(
                contents, at: path, mark, etag: etag, isHeadTrue: capabilities.headsAreTrue)
            guard let made else {
                throw FileProviderError(.malformedResponse, "\(client.host) has not taken '\(name)'")
            }
            guard capabilities.keepsAttributes else { return made.entry }
            return made.entry.with(await self.attributes.storeIfWorthIt(attributes, of: made.resource, at: path))
        }
    }

    /// Writes to an ownCloud or Nextcloud server. There a file that is overwritten by a move becomes another one, and an
    /// upload is visible only when it is complete.
    private func replace(
        _ contents: ContentSource, at path: RemotePath, _ attributes: RemoteAttributes, if condition: RemoteCondition
    ) async throws -> RemoteEntry {
        try await chunkedUploads.requireNoMove(to: path)
        var fields: HTTPFields = [:]
        if condition == .absent {
            fields["If-None-Match"] = "*"
        } else {
            fields = try await changes.fields(checking: condition, at: path, by: .match)
        }
        if contents.size < ChunkedUploads.smallest { await chunkedUploads.abandon(uploadTo: path) }
        fields["X-OC-MTime"] = attributes.secondsWithContent.map { String($0) }
        // Another client may have written as many bytes in the same second.
        let bytes = contents.size <= LostUploads.mostBytes ? try await Self.bytes(of: contents) : nil
        let recheck = fields.isEmpty ? changes.recheck(condition, at: path, toSend: contents, bytes) : nil
        let mark =
            bytes.map { LostUploads.digest(of: $0) }
            ?? attributes.secondsWithContent.map { SentContents.Mark.seconds($0) }
        return try await recordingOutcome(of: contents, mark, at: path, attributes) {
            let etag: String?
            if let bytes {
                etag = try await changes.put(.bytes(bytes), at: path, fields, recheck: recheck)
            } else if let answer = try await chunkedUploads.write(contents, to: path, attributes, if: condition) {
                etag = ChangeRequests.etag(in: answer)
            } else {
                etag = try await changes.put(.content(contents), at: path, fields, recheck: recheck)
            }
            let found = try await server.lookUpSent(contents, at: path, mark, etag: etag, isHeadTrue: false)
            guard let found else { throw RemoteConditionFailure(present: nil) }
            return found.entry
        }
    }

    /// Writes a file with a name that nothing can be moved to.
    private func writeInPlace(
        _ contents: ContentSource, to path: RemotePath, if condition: RemoteCondition,
        _ capabilities: ServerCapabilities
    ) async throws -> RemoteEntry {
        guard capabilities.fate(of: path) == .sent else { throw ItemChanges.oddName(path, on: server) }
        try await server.require(condition, at: path)
        // A reader must not see a part: only content that was confirmed before is sent.
        let bytes = try await BlockingWork.run {
            try contents.read(at: 0, count: Int(min(contents.size, Self.mostInPlace)))
        }
        guard Int64(bytes.count) == contents.size else { throw ItemChanges.oddName(path, on: server) }
        try await contents.pace(contents.size)
        let recheck = changes.recheck(condition, at: path, toSend: contents, bytes)
        let etag = try await changes.put(.bytes(bytes), at: path, recheck: recheck)
        let found = try await server.lookUpSent(contents, at: path, nil, etag: etag, isHeadTrue: false)
        guard let found else { throw RemoteConditionFailure(present: nil) }
        return found.entry
    }

    // MARK: - Parts

    /// - Returns: the file whose tag was compared; nil also where the condition is not to be checked.
    /// - Throws: ``RemoteConditionFailure``.
    private func present(
        at path: RemotePath, _ condition: RemoteCondition, isWanted: Bool
    ) async throws -> WebDAVServer.Found? {
        isWanted ? try await server.require(condition, at: path) : nil
    }

    /// All bytes of small content. Reading the end confirms that they are of one generation.
    private static func bytes(of contents: ContentSource) async throws -> [UInt8] {
        try await contents.pace(contents.size)
        return try await BlockingWork.run { try contents.read(at: 0, count: Int(contents.size)) }
    }

    /// Runs the part of an upload during which the content may arrive at its path. It is recorded before, because the daemon
    /// may be killed meanwhile, and the record stays when the outcome is unknown.
    private func recordingOutcome(
        of contents: ContentSource, _ mark: SentContents.Mark?, at path: RemotePath, _ attributes: RemoteAttributes,
        _ body: () async throws -> RemoteEntry
    ) async throws -> RemoteEntry {
        let isOnlyRecord = server.lostUploads.note(mark, of: contents, at: path, attributes)
        do {
            let entry = try await body()
            server.lostUploads.acknowledge(mark, at: path)
            return entry
        } catch {
            // Another client's content may have the same mark. The record of an earlier upload stays.
            if isOnlyRecord, !OperationLedger.isOutcomeUnknown(after: error) {
                server.lostUploads.forget(mark, at: path)
            }
            throw error
        }
    }

    /// Moves a hidden file to its path, and deletes it when that is refused.
    ///
    /// - Throws: ``ChangeRequests/UnansweredMove``, after which it is not deleted: some servers remove the target first, and
    ///   a deletion would take the source away from a move that is still being made.
    private func publish(
        _ hidden: RemotePath, of size: Int64, at path: RemotePath, if condition: RemoteCondition,
        ifTargetHas etag: String?, _ replacement: HiddenFiles.Replacement?
    ) async throws {
        // Without a replacement the move replaces nothing.
        let recheck = replacement == nil ? nil : changes.recheck(condition, at: path)
        do {
            do {
                try server.hiddenFiles.noteMoving(hidden, etag == nil ? replacement : nil)
                try await changes.tryToMove(
                    hidden, to: path, kind: .file, size: size, overwriting: condition != .absent, ifTargetHas: etag,
                    recheck: etag == nil ? recheck : nil)
            } catch let failure as RemoteConditionFailure where etag != nil && condition.isOf(failure.present?.tag) {
                // The server refuses the ETag that the file has: no other client has changed the file.
                try server.hiddenFiles.noteMoving(hidden, replacement)
                try await changes.tryToMove(
                    hidden, to: path, kind: .file, size: size, overwriting: true, recheck: recheck)
            }
        } catch let unanswered as ChangeRequests.UnansweredMove {
            throw unanswered
        } catch {
            server.hiddenFiles.delete(hidden)
            throw error
        }
    }
}
