import FileProvider
import FileProviderPaths

/// Tells what was sent to a path from what another client has written there since, which may be as long.
extension WebDAVServer {
    /// Looks up what was just written.
    ///
    /// - Parameters:
    ///   - mark: what the content is recognized by; nil where only its bytes say whether it is that.
    ///   - etag: the ETag in the answer to the upload. It says nothing of small content where another client's may have the same
    ///     within a second (lighttpd).
    ///   - isHeadTrue: ``ServerCapabilities/headsAreTrue``.
    /// - Returns: nil when nothing is at the path.
    /// - Throws: ``RemoteConditionFailure`` for an item that is not the content that was sent.
    func lookUpSent(
        _ contents: ContentSource, at path: RemotePath, _ mark: SentContents.Mark?, etag: String?, isHeadTrue: Bool
    ) async throws -> Found? {
        try await OperationLedger.result {
            var isRead = false
            if case .digest = mark { isRead = etag == nil || !tagsFollowContent }
            let answer: (found: Found, bytes: [UInt8]?)?
            if isHeadTrue {
                // One request where the bytes are needed in any case.
                answer = try await describe(path, by: isRead ? "GET" : "HEAD")
            } else {
                answer = try await lookUp(path).map { ($0, nil) }
            }
            guard let (found, bytes) = answer else { return nil }
            guard try await isSent(contents, found, mark, etag: isRead ? nil : etag, at: path, bytes: bytes) else {
                throw RemoteConditionFailure(present: found.entry)
            }
            return found
        }
    }

    private func isSent(
        _ contents: ContentSource, _ found: Found, _ mark: SentContents.Mark?, etag: String?, at path: RemotePath,
        bytes: [UInt8]?
    ) async throws -> Bool {
        guard found.entry.kind == .file, found.entry.size == contents.size else { return false }
        if contents.size == 0 { return true }
        var mark = mark
        if let etag, let present = found.etag {
            if ETag.opaque(etag).utf8.elementsEqual(ETag.opaque(present).utf8) { return true }
            // The bytes decide, and not the date: some servers make the ETag of the answer before they close the file
            // (golang.org/x/net/webdav).
            if case .seconds = mark { mark = nil }
        }
        if let mark {
            if try await has(mark, size: contents.size, found, at: path, bytes: bytes) { return true }
            if case .digest = mark { return false }
        }
        return try await hasContent(of: contents, found.entry, at: path)
    }

    /// Whether a file has a mark.
    ///
    /// - Parameter bytes: its content; nil where it was not read.
    func has(
        _ mark: SentContents.Mark, size: Int64, _ found: Found, at path: RemotePath, bytes: [UInt8]? = nil
    ) async throws -> Bool {
        switch mark {
        case .tag(let tag): return found.entry.tag == tag
        case .seconds(let seconds): return found.entry.size == size && found.resource.modifiedAt == seconds
        case .digest:
            guard found.entry.size == size else { return false }
            var there = bytes
            if there == nil { there = try await lostUploads.bytes(at: path) }
            return there.map { LostUploads.digest(of: $0) == mark } ?? false
        }
    }

    private func hasContent(
        of contents: ContentSource, _ entry: RemoteEntry, at path: RemotePath
    ) async throws -> Bool {
        let reader = ContentReader(server: self)
        do {
            return try await contents.equals { _ = try await reader.read(path, tag: entry.tag, range: nil, into: $0) }
        } catch let error as FileProviderError {
            if error.code == .versionNoLongerAvailable { return false }
            throw error
        } catch {
            // It was written here meanwhile, and is sent again. What was sent may have arrived.
            try Task.checkCancellation()
            throw FileProviderError(
                .providerDomainTemporarilyUnavailable, "'\(entry.name)' is written while it is compared")
        }
    }
}
