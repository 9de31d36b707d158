import FileProvider
import FileProviderPaths
import HTTPTransport

/// Reads the content of files, each time of one version.
struct ContentReader: Sendable {
    let server: WebDAVServer

    /// The headers of a response do not say which version it is.
    private struct Unclear: Error {}

    func read(
        _ path: RemotePath, tag: [UInt8]?, range: Range<Int64>?, into sink: any ContentSink
    ) async throws -> RemoteEntry {
        try await server.connect()
        if let tag {
            do {
                return try await read(path, wanted: tag, range: range, size: nil, isTrusted: false, into: sink)
            } catch is Unclear {}
        }
        // The response alone is not sufficient: the file is looked up before and after it.
        let before = try await file(at: path)
        guard tag == nil || tag == before.tag else { throw FileProviderError(.versionNoLongerAvailable) }
        _ = try await read(path, wanted: before.tag, range: range, size: before.size, isTrusted: true, into: sink)
        let after = try await file(at: path)
        guard after.tag == before.tag else { throw FileProviderError(.versionNoLongerAvailable) }
        return after
    }

    private func file(at path: RemotePath) async throws -> RemoteEntry {
        let entry = try await server.entry(at: path)
        guard entry.kind == .file else {
            throw FileProviderError(.noSuchItem, "\(server.client.host) has no file '\(path.name ?? "/")'")
        }
        return entry
    }

    /// - Parameter isTrusted: a response that does not say which version it is suffices.
    private func read(
        _ path: RemotePath, wanted: [UInt8], range: Range<Int64>?, size: Int64?, isTrusted: Bool,
        into sink: any ContentSink
    ) async throws -> RemoteEntry {
        if let range, range.isEmpty { throw Unclear() }
        let isByETag = wanted.first == UInt8(ascii: "e")
        let head = try await server.client.download(
            server.client.root.url(of: path), range: range, size: size, what: path.name ?? "/", into: sink
        ) { head in
            // Another client has replaced the file since the look-up, or the server still has its old size (lighttpd).
            if let size, let length = head.wholeLength, length != size {
                throw FileProviderError(
                    .versionNoLongerAvailable, "\(head.url.host) gives \(length) bytes where it had said \(size)")
            }
            let etag = head.fields["ETag"]
            guard let length = head.wholeLength, isByETag ? etag != nil : head.lastModified != nil else {
                if isTrusted { return }
                throw Unclear()
            }
            let found =
                isByETag
                ? "e\(length)-\(ETag.opaque(etag ?? ""))" : ETag.contentTag(.file, nil, head.lastModified, length)
            guard found.utf8.elementsEqual(wanted) else {
                throw FileProviderError(.versionNoLongerAvailable, "\(head.url.host) has another version")
            }
            sink.confirmVersion()
        }
        guard let length = head.wholeLength ?? size else { throw Unclear() }
        var entry = RemoteEntry(
            name: path.name ?? "", kind: .file, tag: wanted, isTagStrong: false, size: length,
            attributes: RemoteAttributes(
                contentModificationDate: head.lastModified.map { FileTimestamp(seconds: $0) }))
        entry.isTagUnsettled = server.isUnsettled(wanted, head.lastModified, head)
        return entry
    }
}
