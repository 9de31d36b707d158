import Crypto
import FileProvider
import FileProviderPaths
import HTTPTransport

/// Uploads that had no response, recognized by their bytes or dates where the tag is not known in advance.
struct LostUploads: Sendable {
    let contents: SentContents
    let client: WebDAVClient
    /// Larger content is not recognized by its bytes.
    static let mostBytes: Int64 = 256 << 10

    static func digest(of bytes: [UInt8]) -> SentContents.Mark { .digest(Array(SHA256.hash(data: bytes))) }

    /// Records an upload that is about to be sent: its content may be at its path, or arrive there later.
    ///
    /// - Parameters:
    ///   - mark: what the content is recognized by; nil records nothing.
    ///   - acknowledgedTag: for an earlier upload, the tag with which the same content was acknowledged since.
    /// - Returns: whether this is the only upload that the record is of.
    @discardableResult
    func note(
        _ mark: SentContents.Mark?, of content: ContentSource, at path: RemotePath, _ attributes: RemoteAttributes,
        acknowledgedTag: [UInt8]? = nil
    ) -> Bool {
        guard let mark else { return false }
        var size: Int64?
        if case .tag = mark {} else { size = content.size }
        return contents.note(
            Self.place(path), mark, size: size, date: attributes.contentModificationDate,
            acknowledgedTag: acknowledgedTag)
    }

    func acknowledge(_ mark: SentContents.Mark?, at path: RemotePath) {
        if let mark { contents.acknowledge(Self.place(path), mark) }
    }

    /// The upload has certainly not reached its path.
    func forget(_ mark: SentContents.Mark?, at path: RemotePath) {
        if let mark { contents.forget(Self.place(path), mark) }
    }

    /// The content with a tag has a date of its own on the server, which may have been set since, by any client.
    func noteDated(_ path: RemotePath, tag: [UInt8]) {
        if !contents.isEmpty { contents.noteDated(Self.place(path), tag: tag) }
    }

    /// An item has got another date.
    func forgetAll(at path: RemotePath) { contents.forgetAll(Self.place(path)) }

    /// An item is about to be moved, and with it what was sent to its path or below.
    func carry(_ path: RemotePath, to newPath: RemotePath) {
        contents.carry(Self.place(path), to: Self.place(newPath))
    }

    /// The date of the content with a tag, if its upload had no response; nil for all other contents.
    func date(at path: RemotePath, tag: [UInt8]) -> FileTimestamp? {
        contents.isEmpty ? nil : contents.date(Self.place(path), tag: tag)
    }

    private static func place(_ path: RemotePath) -> String { path.names.joined(separator: "/") }

    /// The entry with the local date, and the tag of the same content, if the file's upload had no response.
    func recognized(_ entry: RemoteEntry, at path: RemotePath) async throws -> RemoteEntry {
        guard entry.kind == .file, let size = entry.size, !contents.isEmpty else { return entry }
        var own = entry
        let place = Self.place(path)
        let candidates = contents.candidates(place, size: size, tag: entry.tag)
        own.acknowledgedTag = contents.acknowledgedTag(place, tag: entry.tag)
        if candidates.isEmpty {
            // Another task may have recognized it since the entry was read.
            if let date = contents.date(place, tag: entry.tag) { own.attributes.contentModificationDate = date }
            return own
        }
        let seconds = entry.attributes.contentModificationDate?.seconds
        var found = candidates.first { seconds.map(SentContents.Mark.seconds) == $0.mark }
        if found == nil, candidates.contains(where: { if case .digest = $0.mark { true } else { false } }) {
            guard let there = try await bytes(at: path) else { return own }
            // The file has changed since the listing.
            guard Int64(there.count) == size else {
                throw FileProviderError(
                    .providerDomainTemporarilyUnavailable, "'\(entry.name)' changes while it is looked at")
            }
            let mark = Self.digest(of: there)
            found = candidates.first { $0.mark == mark }
        }
        // In this order: a task that finds the candidate settled finds its date.
        if let found {
            contents.note(place, .tag(entry.tag), date: found.date, acknowledgedTag: found.acknowledgedTag)
        }
        contents.settle(place, tag: entry.tag, as: found)
        guard let found else { return own }
        own.acknowledgedTag = found.acknowledgedTag
        if let date = found.date { own.attributes.contentModificationDate = date }
        return own
    }

    /// The content of a small file; nil when there is none.
    func bytes(at path: RemotePath) async throws -> [UInt8]? {
        let response = try await client.send("GET", client.root.url(of: path), ["Accept-Encoding": "identity"])
        if response.status == 404 || response.status == 410 { return nil }
        guard response.head.isSuccess else { throw WebDAVClient.failure(response, of: path.name ?? "/") }
        return response.body
    }
}

extension ContentSource {
    /// SHA-256 of all content; nil when a process has written it since.
    func digest() async -> [UInt8]? {
        try? await BlockingWork.run {
            let digest = try self.digest(0..<self.size)
            try self.confirm()
            return digest
        }
    }

    /// SHA-256 of a range. The caller confirms that it was not written since.
    ///
    /// - Throws: as ``readQuietly(_:_:)``.
    func digest(_ range: Range<Int64>) throws -> [UInt8] {
        var hash = SHA256()
        try readQuietly(range) { hash.update(data: $0) }
        return Array(hash.finalize())
    }
}
