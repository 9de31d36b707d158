import FileProvider
import FileProviderPaths
import HTTPTransport
import Synchronization

/// Sends large files in chunks, so that an interrupted upload continues, by Nextcloud's chunked upload, version 2: each upload
/// has a directory with numbered chunks, and a move of their concatenation to the file's path ends it.
final class ChunkedUploads: Sendable {
    private let journal: ChunkJournal
    private let changes: ChangeRequests
    /// Nil where the server's URL does not name the user.
    private let uploads: CollectionAddress?
    private let state = Mutex((isRefused: false, isTidy: false, inProgress: Set<String>()))

    /// Smaller files are sent in one piece.
    static let smallest: Int64 = 20 << 20
    private static let chunk: Int64 = 10 << 20
    private static let mostChunks: Int64 = 10_000
    /// Servers delete an unfinished upload after a day.
    private static let lifetime: Int64 = 86_400

    init(_ journal: ChunkJournal, _ changes: ChangeRequests) {
        self.journal = journal
        self.changes = changes
        uploads = OwnCloudAccount(of: changes.server.client.root.url)?.uploads
    }

    private var server: WebDAVServer { changes.server }
    private var client: WebDAVClient { server.client }

    static func chunkSize(for size: Int64) -> Int64 {
        let least = (size + mostChunks - 1) / mostChunks
        return max(chunk, (least + (1 << 20) - 1) / (1 << 20) * (1 << 20))
    }

    private struct Upload {
        var record: ChunkRecord
        var directory: CollectionAddress
        /// The path of the file, and its URL.
        var path: RemotePath
        var target: HTTPURL

        /// The server concatenates the chunks in the order of their names.
        func chunk(_ number: Int) -> HTTPURL { directory.url(of: RemotePath([number.padded(to: 5)])) }
    }

    /// Writes a large file.
    ///
    /// - Returns: the answer; nil when the file is not large, or the server accepts no chunks: then nothing was done.
    /// - Throws: ``RemoteConditionFailure``; `providerDomainTemporarilyUnavailable` when the server has lost a chunk;
    ///   the errors of ``ContentSource``.
    func write(
        _ contents: ContentSource, to path: RemotePath, _ attributes: RemoteAttributes, if condition: RemoteCondition
    ) async throws -> HTTPResponse? {
        let (target, name) = (client.root.url(of: path), path.name ?? "/")
        guard contents.size >= Self.smallest, let uploads,
            state.withLock({ !$0.isRefused && $0.inProgress.insert(target.path).inserted })
        else { return nil }
        defer { state.withLock { _ = $0.inProgress.remove(target.path) } }
        await deleteAbandoned(in: uploads)
        guard let begun = try await begin(contents.size, path, target, in: uploads) else { return nil }
        var upload = begun.upload
        try await sendChunks(of: contents, &upload, begun.present)
        try contents.confirm()
        // The item may have changed since the upload began, an hour ago.
        let there = try await server.require(condition, at: path)
        let checked = there?.etag.map { ETag.condition(.tagged, $0, of: target) } ?? [:]
        var fields: HTTPFields = [
            "Destination": target.description, "OC-Total-Length": String(contents.size),
            "Overwrite": condition == .absent ? "F" : "T",
        ]
        fields["X-OC-MTime"] = attributes.secondsWithContent.map { String($0) }
        let earlierEnd = upload.record.isMovedUntil
        func takeBack() throws {
            upload.record.isMovedUntil = earlierEnd
            try journal.save(upload.record)
        }
        /// Sends the move that ends the upload, with a condition on the file that it replaces.
        func move(_ condition: HTTPFields, recheck: (@Sendable () async throws -> Void)?) async throws -> HTTPResponse {
            // Also where no answer comes, or this process ends.
            upload.record.isMovedUntil = HiddenFiles.endOfMove
            try journal.save(upload.record)
            var all = fields
            for field in condition { all[field.name] = field.value }
            let response: HTTPResponse
            do {
                response = try await client.send(
                    "MOVE", upload.directory.url(of: RemotePath([".file"])), all, isLong: true, recheck: recheck)
            } catch {
                if !OperationLedger.isOutcomeUnknown(after: error) { try takeBack() }
                throw error
            }
            // After others a proxy has stopped waiting.
            if !response.head.isSuccess, ![502, 504].contains(response.status), response.status < 520 {
                try takeBack()
            }
            return response
        }
        let recheck = condition == .absent ? nil : changes.recheck(condition, at: path)
        var response = try await move(checked, recheck: checked.isEmpty ? recheck : nil)
        if response.status == 412, !checked.isEmpty, condition.isOf(try await server.propfind(path)?.entry.tag) {
            // The server refuses the ETag that the file has: no other client has changed the file.
            response = try await move([:], recheck: recheck)
        }
        if response.head.isSuccess {
            journal.remove(upload.record)
            return response
        }
        if [400, 404, 409, 412].contains(response.status) {
            // An earlier move may be under way.
            if upload.record.isMoving { throw server.unansweredMove(to: path.name) }
            await abandon(upload.record, in: uploads)
        }
        let refusal = try await changes.refusal(response, at: path)
        if [400, 404, 409].contains(response.status) {
            throw FileProviderError(
                .providerDomainTemporarilyUnavailable,
                "\(client.host) has lost a part of '\(name)' (\(response.status)): it is sent anew")
        }
        throw refusal
    }

    /// - Parameter present: the lengths of the chunks that the server has.
    private func sendChunks(of contents: ContentSource, _ upload: inout Upload, _ present: [Int: Int64]) async throws {
        let size = upload.record.chunkSize
        let count = Int(max(0, contents.size - 1) / size + 1)
        for number in 1...count {
            let offset = Int64(number - 1) * size
            let range = offset..<(offset + min(size, contents.size - offset))
            let digest = try await BlockingWork.run { try contents.digest(range).hexadecimal }
            if upload.record.digests[number] == digest, present[number] == Int64(range.count) {
                contents.advance(by: Int64(range.count))
                continue
            }
            if upload.record.isMoving { throw server.unansweredMove(to: upload.path.name) }
            // From now on the chunk of this number is not the one that was recorded.
            if upload.record.digests.removeValue(forKey: number) != nil { try journal.save(upload.record) }
            let response = try await client.send(
                "PUT", upload.chunk(number),
                [
                    "Destination": upload.target.description, "OC-Total-Length": String(contents.size),
                    "Content-Type": "application/octet-stream",
                ], body: .content(contents, range))
            guard response.head.isSuccess else {
                let name = upload.path.name ?? "/"
                guard [404, 409].contains(response.status) else {
                    throw WebDAVClient.failure(response, of: name, isChange: true)
                }
                // The upload's directory was removed, not that of the file.
                journal.remove(upload.record)
                throw FileProviderError(
                    .providerDomainTemporarilyUnavailable,
                    "\(client.host) has forgotten what it had of '\(name)': it is sent anew")
            }
            // The digest is that of the sent bytes only if the file was not written since.
            try contents.confirm()
            upload.record.digests[number] = digest
            try journal.save(upload.record)
        }
    }

    /// Continues the upload to a path, or begins one.
    ///
    /// - Returns: the upload with the lengths of the chunks that the server has; nil when it accepts no chunks.
    private func begin(
        _ size: Int64, _ path: RemotePath, _ target: HTTPURL, in uploads: CollectionAddress
    ) async throws -> (upload: Upload, present: [Int: Int64])? {
        let chunkSize = Self.chunkSize(for: size)
        func upload(_ record: ChunkRecord) -> Upload {
            Upload(record: record, directory: uploads.directory(record.folder), path: path, target: target)
        }
        if let known = journal.record(for: target.path) {
            if known.size == size, known.chunkSize == chunkSize, let present = try await chunks(of: known, in: uploads)
            {
                return (upload(known), present)
            }
            await abandon(known, in: uploads)
        }
        let record = ChunkRecord(
            folder: "yonder-" + String(UInt64.random(in: .min ... .max), radix: 16), target: target.path, size: size,
            chunkSize: chunkSize, begun: FileTimestamp.now.seconds)
        let response = try await client.send(
            "MKCOL", uploads.directory(record.folder).url, ["Destination": target.description])
        if response.head.isSuccess {
            try journal.save(record)
            return (upload(record), [:])
        }
        // The server has no such collection, or not for this user.
        guard [400, 403, 404, 405, 409, 501].contains(response.status) else {
            throw WebDAVClient.failure(response, of: path.name ?? "/", isChange: true)
        }
        state.withLock { $0.isRefused = true }
        return nil
    }

    /// The lengths of the chunks that the server has; nil when it has deleted the upload.
    private func chunks(of record: ChunkRecord, in uploads: CollectionAddress) async throws -> [Int: Int64]? {
        try await ifExists {
            let members = try await client.members(
                of: RemotePath([record.folder]), in: uploads, .usual, what: record.folder)
            return members.reduce(into: [Int: Int64]()) { chunks, member in
                guard let number = member.path.name.flatMap({ Int($0) }), !member.resource.isCollection else { return }
                chunks[number] = member.resource.length
            }
        }
    }

    /// Makes sure that the server moves no earlier upload to a path, or below it, after a change there that is about to begin.
    ///
    /// - Throws: `providerDomainTemporarilyUnavailable` as long as the server may make such a move. Nothing was changed then.
    func requireNoMove(to path: RemotePath) async throws {
        guard let uploads else { return }
        let target = client.root.url(of: path).path
        let below = client.root.url(of: path, isDirectory: true).path
        let inProgress = state.withLock { $0.inProgress }
        try await OperationLedger.preparing {
            for record in journal.records where record.isMoving {
                guard record.target.utf8.elementsEqual(target.utf8) || record.target.utf8.starts(with: below.utf8),
                    !inProgress.contains(record.target)
                else { continue }
                guard try await chunks(of: record, in: uploads) == nil else {
                    throw server.unansweredMove(
                        to: client.root.path(of: record.target, on: client.root.url)?.name ?? path.name)
                }
                journal.remove(record)
            }
        }
    }

    /// An unfinished upload to a path must not end any more: the file is about to get newer content in one piece.
    func abandon(uploadTo path: RemotePath) async {
        guard let uploads, let record = journal.record(for: client.root.url(of: path).path) else { return }
        await abandon(record, in: uploads)
    }

    private func abandon(_ record: ChunkRecord, in uploads: CollectionAddress) async {
        // In a task of its own, because the caller may have been cancelled.
        let isGone = await Task { [client] in
            let response = try? await client.send("DELETE", uploads.directory(record.folder).url, isLong: true)
            return response.map { $0.head.isSuccess || $0.status == 404 } ?? false
        }.value
        if isGone || FileTimestamp.now.seconds - record.begun > Self.lifetime { journal.remove(record) }
    }

    /// Deletes old unfinished uploads, once after each start.
    private func deleteAbandoned(in uploads: CollectionAddress) async {
        let isFirst = state.withLock { !exchange(&$0.isTidy, with: true) }
        guard isFirst else { return }
        for record in journal.records where FileTimestamp.now.seconds - record.begun > Self.lifetime {
            await abandon(record, in: uploads)
        }
    }
}

extension RemoteAttributes {
    /// The date that ownCloud and Nextcloud take with the content, in seconds since 1970. Nextcloud answers 500 for a date of the first
    /// day of 1970 or before (`MtimeSanitizer`): such a date stays here.
    var secondsWithContent: Int64? {
        guard let seconds = contentModificationDate?.seconds, seconds > 86_400 else { return nil }
        return seconds
    }
}

extension CollectionAddress {
    fileprivate func directory(_ name: String) -> CollectionAddress {
        CollectionAddress(url(of: RemotePath([name]), isDirectory: true))
    }
}
