import FileProvider
import HTTPTransport
import PathAddressing

/// Changes that were made and whose answers did not come.
extension WebDAVRemote {
    /// An attempt to write ended without an answer: what was sent may be at its place, by now or soon.
    ///
    /// - Parameters:
    ///   - sent: the bytes, where they are in memory.
    ///   - isDated: whether the date went with them.
    func noteLost(
        _ contents: ContentSource, _ sent: [UInt8]? = nil, named name: String, _ attributes: RemoteAttributes,
        isDated: Bool = false, because error: any Error
    ) async {
        guard UnansweredContents.isLeft(by: error), let date = attributes.contentModificationDate else { return }
        if isDated { return lost.note(name, size: contents.size, date: date, .seconds(date.seconds)) }
        guard contents.size <= Self.mostAtOnce else { return }
        var bytes = sent
        if bytes == nil {
            // Whoever called may have been cancelled, and that is when it matters.
            bytes = await Task {
                try? await BlockingWork.run { try contents.read(at: 0, count: Int(contents.size)) }
            }.value
        }
        guard let bytes, bytes.count == contents.size else { return }
        lost.note(name, size: contents.size, date: date, LostContents.digest(of: bytes))
    }

    /// A file as it is, with the date that it has here if it is what was sent and not answered.
    func recognized(_ entry: RemoteEntry, at path: RemotePath) async throws -> RemoteEntry {
        guard entry.kind == .file, let size = entry.size else { return entry }
        var own = entry
        let candidates = lost.candidates(entry.name, size: size, tag: entry.tag)
        if candidates.isEmpty {
            // Somebody else may have recognized it since this was read.
            if let date = unanswered.date(entry.name, tag: entry.tag) { own.attributes.contentModificationDate = date }
            return own
        }
        let seconds = entry.attributes.contentModificationDate?.seconds
        var found = candidates.first { seconds.map(LostContents.Mark.seconds) == $0.mark }
        if found == nil, candidates.contains(where: { $0.mark.isDigest }) {
            let response = try await client.send("GET", client.url(of: path), ["Accept-Encoding": "identity"])
            if response.status == 404 || response.status == 410 { return entry }
            guard response.head.isSuccess else { throw WebDAVClient.failure(response, of: entry.name) }
            // Another by now, or from somebody else: nothing is known of what was seen, and it is looked at anew.
            guard Int64(response.body.count) == size else {
                throw FileProviderError(
                    .providerDomainTemporarilyUnavailable, "'\(entry.name)' changes while it is looked at")
            }
            let mark = LostContents.digest(of: response.body)
            found = candidates.first { $0.mark == mark }
        }
        // In this order: whoever finds it settled finds its date.
        if let found { unanswered.note(entry.name, tag: entry.tag, date: found.date) }
        lost.settle(entry.name, tag: entry.tag, as: found)
        guard let found else { return entry }
        own.attributes.contentModificationDate = found.date
        return own
    }
}

extension LostContents.Mark {
    fileprivate var isDigest: Bool {
        if case .digest = self { return true }
        return false
    }
}
