import Crypto
import FileProvider
import HTTPTransport
import PathAddressing

/// Uploads that had no response, recognized by their bytes or dates where the tag is not known in advance.
extension WebDAVRemote {
    static func digest(of bytes: [UInt8]) -> SentContents.Mark { .digest(Array(SHA256.hash(data: bytes))) }

    /// An upload had no response: the content may be at its path, or may arrive there yet.
    ///
    /// - Parameters:
    ///   - sent: the bytes, where they are in memory.
    ///   - isDated: whether the date went with them.
    func noteLost(
        _ contents: ContentSource, _ sent: [UInt8]? = nil, named name: String, _ attributes: RemoteAttributes,
        isDated: Bool = false, because error: any Error
    ) async {
        guard OperationLedger.isOutcomeUnknown(after: error), let date = attributes.contentModificationDate else {
            return
        }
        if isDated { return self.sent.note(name, .seconds(date.seconds), size: contents.size, date: date) }
        guard contents.size <= Self.mostAtOnce else { return }
        var bytes = sent
        if bytes == nil {
            // The caller may have been cancelled, and this is when it matters.
            bytes = await Task {
                try? await BlockingWork.run { try contents.read(at: 0, count: Int(contents.size)) }
            }.value
        }
        guard let bytes, bytes.count == contents.size else { return }
        self.sent.note(name, Self.digest(of: bytes), size: contents.size, date: date)
    }

    /// A file as the remote shows it, with the date that it has here if its upload had no response.
    func recognized(_ entry: RemoteEntry, at path: RemotePath) async throws -> RemoteEntry {
        guard entry.kind == .file, let size = entry.size else { return entry }
        var own = entry
        let candidates = sent.candidates(entry.name, size: size, tag: entry.tag)
        if candidates.isEmpty {
            // Another task may have recognized it since this was read.
            if let date = sent.date(entry.name, tag: entry.tag) { own.attributes.contentModificationDate = date }
            return own
        }
        let seconds = entry.attributes.contentModificationDate?.seconds
        var found = candidates.first { seconds.map(SentContents.Mark.seconds) == $0.mark }
        if found == nil, candidates.contains(where: { $0.mark.isDigest }) {
            let response = try await client.send("GET", client.url(of: path), ["Accept-Encoding": "identity"])
            if response.status == 404 || response.status == 410 { return entry }
            guard response.head.isSuccess else { throw WebDAVClient.failure(response, of: entry.name) }
            // The file has changed since the listing.
            guard Int64(response.body.count) == size else {
                throw FileProviderError(
                    .providerDomainTemporarilyUnavailable, "'\(entry.name)' changes while it is looked at")
            }
            let mark = Self.digest(of: response.body)
            found = candidates.first { $0.mark == mark }
        }
        // In this order: a task that finds it settled finds its date.
        if let found { sent.note(entry.name, .tag(entry.tag), date: found.date) }
        sent.settle(entry.name, tag: entry.tag, as: found)
        guard let found else { return entry }
        own.attributes.contentModificationDate = found.date
        return own
    }
}

extension SentContents.Mark {
    fileprivate var isDigest: Bool {
        if case .digest = self { return true }
        return false
    }
}
