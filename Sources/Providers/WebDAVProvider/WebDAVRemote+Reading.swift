import FileProvider
import HTTPTransport
import PathAddressing

/// Reading a file: of one version, whatever the answers say of themselves.
extension WebDAVRemote {
    /// The fields of an answer do not say which content it is.
    private struct Unclear: Error {}

    package func read(
        _ path: RemotePath, tag: [UInt8]?, range: Range<Int64>?, into sink: any ContentSink
    ) async throws -> RemoteEntry {
        try await connect()
        if let tag {
            do {
                return try await read(path, wanted: tag, range: range, size: nil, isTrusted: false, into: sink)
            } catch is Unclear {}
        }
        // The answer alone does not say enough: the server is asked before and after.
        let before = try await file(at: path)
        guard tag == nil || tag == before.tag else { throw FileProviderError(.versionNoLongerAvailable) }
        _ = try await read(
            path, wanted: before.tag, range: range, size: before.size, isTrusted: true, into: sink)
        let after = try await file(at: path)
        guard after.tag == before.tag else { throw FileProviderError(.versionNoLongerAvailable) }
        return after
    }

    private func file(at path: RemotePath) async throws -> RemoteEntry {
        guard let sight = try await sight(of: path), sight.entry.kind == .file else {
            throw FileProviderError(.noSuchItem, "\(client.base.host) has no file '\(path.name ?? "/")'")
        }
        return sight.entry
    }

    /// - Parameter isTrusted: an answer that does not say which content it is will do.
    private func read(
        _ path: RemotePath, wanted: [UInt8], range: Range<Int64>?, size: Int64?, isTrusted: Bool,
        into sink: any ContentSink
    ) async throws -> RemoteEntry {
        let wanted = String(decoding: wanted, as: UTF8.self)
        if let range, range.isEmpty { throw Unclear() }
        let head = try await client.download(
            client.url(of: path), range: range, size: size, what: path.name ?? "/", into: sink
        ) { head in
            let etag = head.fields["ETag"]
            let modified = head.fields["Last-Modified"].flatMap { HTTPDate.seconds(from: $0) }
            let isByETag = wanted.utf8.first == UInt8(ascii: "e")
            guard let length = Self.length(head), isByETag ? etag != nil : modified != nil else {
                if isTrusted { return }
                throw Unclear()
            }
            let found =
                isByETag
                ? "e\(length)-\(ETag.opaque(etag ?? ""))" : Self.tag(.file, nil, modified, length)
            guard found.utf8.elementsEqual(wanted.utf8) else {
                throw FileProviderError(.versionNoLongerAvailable, "\(head.url.host) has another version")
            }
        }
        let modified = head.fields["Last-Modified"].flatMap { HTTPDate.seconds(from: $0) }
        guard let length = Self.length(head) ?? size else { throw Unclear() }
        var entry = RemoteEntry(
            name: path.name ?? "", kind: .file, tag: Array(wanted.utf8), isTagStrong: false, size: length,
            attributes: RemoteAttributes(contentModificationDate: modified.map { FileTimestamp(seconds: $0) }))
        entry.isTagUnsettled = isUnsettled(wanted, modified, head)
        return entry
    }

    /// How long the whole content is, as an answer with it says.
    private static func length(_ head: HTTPResponseHead) -> Int64? {
        head.status == 206 ? ContentRange(head.fields["Content-Range"])?.total : head.contentLength
    }
}
