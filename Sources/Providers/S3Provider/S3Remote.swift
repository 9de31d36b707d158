import FileProvider
import Foundation
import HTTPTransport
import Logging
import PathAddressing
import Synchronization

/// The objects below a prefix of a bucket, as files.
///
/// A directory is what keys have in common up to a slash; one that is made here, or emptied here, is an object without
/// content whose key ends with a slash, as other tools make them too.
final class S3Remote: PathRemote {
    struct Settings: Sendable {
        /// Files of more bytes are sent in parts.
        var multipartThreshold: Int64 = 32 << 20
        var partSize: Int64 = 16 << 20
        /// On a server that checks no conditions it is looked once more before the last of more bytes than these.
        var largestUnwatched: Int64 = 256 << 10
        /// What the server copies in one piece.
        var largestCopy: Int64 = 5 << 30
        /// How many requests one upload, one copying or one deleting makes at once.
        var width = 6
    }

    struct State {
        /// What of conditions the server honours; nil while that is not known.
        var conditions: ConditionSupport?
        /// Finds that out.
        var probe: Task<ConditionSupport?, Never>?
        /// Directories of which it is known that an object of their own keeps them.
        var marked: Set<KeyBytes> = []
        /// When directories were last seen to be there, in seconds since 1970.
        var seen: [KeyBytes: Int64] = [:]
        /// The tags that requests for objects know where those that are listed are others.
        var askedTags: [KeyBytes: (listed: String, asked: String)] = [:]
        var deletesMany = true
        var isReady = false
    }

    let client: S3Client
    let manager: any FileProviderManager
    let settings: Settings
    let moves: MoveJournal
    let uploads: UploadJournal
    let state = Mutex(State())
    let links = LinkTargets()
    let dates: ObjectDates
    let copies: ETagAliases
    let sent: SentContents

    init(client: S3Client, manager: any FileProviderManager, settings: Settings = Settings()) {
        self.client = client
        self.manager = manager
        self.settings = settings
        let store = ReportingStore(of: manager)
        moves = MoveJournal(in: store)
        uploads = UploadJournal(in: store)
        dates = ObjectDates(in: store)
        copies = ETagAliases(in: store)
        sent = SentContents(in: store)
    }

    /// The most that are made at once; the transport lets in what the server serves.
    static let concurrentCalls = 64

    var traits: RemoteTraits {
        var traits = RemoteTraits()
        traits.hasSymbolicLinks = true
        traits.listsTrees = true
        traits.storesModificationDates = true
        traits.concurrentCalls = Self.concurrentCalls
        traits.tagsAreOfContent = true
        traits.checksEmptiness = true
        let conditions = state.withLock { $0.conditions }
        traits.checksConditions = conditions?.onWriting == true
        if let conditions { traits.peculiarities += conditions.peculiarities }
        return traits
    }

    func close() async {
        await client.transport.close()
        client.ledger.close()
    }

    // MARK: - Keys

    var rootPrefix: String { client.location.prefix }

    /// The key of a file, or of a directory without its slash.
    func key(of path: RemotePath) -> String {
        if path.names.last == KeyNames.content { return prefix(of: path.parent) }
        return rootPrefix + path.names.map(KeyNames.part).joined(separator: "/")
    }

    /// What the keys in a directory begin with.
    func prefix(of path: RemotePath) -> String {
        path.names.isEmpty ? rootPrefix : rootPrefix + path.names.map(KeyNames.part).joined(separator: "/") + "/"
    }

    // MARK: - Looking

    func entry(at path: RemotePath) async throws -> RemoteEntry {
        try await ready()
        return try await translating { [self] in
            // The root is there whatever is on its way.
            if !path.names.isEmpty {
                try await settleDoubts(over: extents(of: path, isTree: false))
            }
            return try await present(at: path)
        } ?? { throw Self.missing(path) }()
    }

    /// What is at a path; nil when nothing is.
    func present(at path: RemotePath) async throws -> RemoteEntry? {
        guard let name = path.name else {
            // An empty bucket is a root too, a bucket that is missing is none.
            _ = try await client.list(prefix: rootPrefix, isFlat: true, limit: 1)
            return RemoteEntry(name: "", kind: .directory, tag: [], isTagStrong: false)
        }
        let key = key(of: path)
        if name == KeyNames.content {
            return try await listed(key).flatMap { $0.size > 0 ? file($0, name: name) : nil }
        }
        let directory = RemoteEntry(name: name, kind: .directory, tag: [], isTagStrong: false)
        if moves.hides(prefix(of: path)) || moves.hides(key) { return nil }
        if KeyNames.isDirectoryOnly(name) { return try await isDirectory(path) ? directory : nil }
        // One request shows whatever there is of this name, but where many names begin with it.
        let listing = try await client.list(prefix: key, isFlat: false, limit: 50)
        var (link, hasKeysBelow): (S3Object?, Bool) = (nil, false)
        for entry in listing.entries {
            switch entry {
            case .object(let object):
                if object.key.utf8.elementsEqual(key.utf8) { return file(object, name: name) }
                if object.key.utf8.elementsEqual((key + LinkNames.suffix).utf8) { link = object }
            case .prefix(let below): hasKeysBelow = hasKeysBelow || below.utf8.elementsEqual((key + "/").utf8)
            }
        }
        if listing.next != nil {
            if link == nil { link = try await listed(key + LinkNames.suffix) }
            if !hasKeysBelow { hasKeysBelow = try await isDirectory(path) }
        }
        if let link, let entry = try await symbolicLink(link, name: name) { return entry }
        return hasKeysBelow ? directory : nil
    }

    /// An object as a listing has it; nil when there is none. Dates of other answers are rounded in other ways.
    func listed(_ key: String) async throws -> S3Object? {
        let listing = try await client.list(prefix: key, isFlat: true, limit: 1)
        guard case .object(let first)? = listing.entries.first, first.key.utf8.elementsEqual(key.utf8) else {
            return nil
        }
        return first
    }

    /// Whether any key lies in a directory.
    func isDirectory(_ path: RemotePath) async throws -> Bool {
        let prefix = prefix(of: path)
        let listing = try await client.list(prefix: prefix, isFlat: true, limit: 1)
        if case .object(let first)? = listing.entries.first, first.key.utf8.elementsEqual(prefix.utf8) {
            note(marked: prefix)
        }
        return !listing.entries.isEmpty
    }

    /// An object as it is just now, without its date; nil when there is none.
    func object(_ key: String) async throws -> S3Object? { try await client.object(key) }

    func file(_ object: S3Object, name: String) -> RemoteEntry {
        client.ledger.noteSeen(object.key, tag: object.tag)
        return RemoteEntry(
            name: name, kind: .file, tag: Array(copies.known(object).utf8), isTagStrong: true, size: object.size,
            attributes: RemoteAttributes(contentModificationDate: date(of: object)))
    }

    /// The date of an object's content: what was noted of it, or of content that was sent and is on its way to a place under
    /// the same name; else what the listing says.
    func date(of object: S3Object) -> FileTimestamp? {
        dates.noted(of: object) ?? sent.date(Self.lastName(of: object.key), tag: Array(object.tag.utf8))
            ?? object.modified
    }

    /// The tag that the object at a key has while it holds the content that an entry's tag stands for.
    func tag(of content: [UInt8], at key: String) -> String {
        copies.tag(of: String(decoding: content, as: UTF8.self), at: key)
    }

    /// What of a key stays when a directory is moved.
    static func lastName(of key: String) -> String {
        key.utf8.lastIndex(of: UInt8(ascii: "/")).map { String(key[key.utf8.index(after: $0)...]) } ?? key
    }

    // MARK: - Reading

    func read(
        _ path: RemotePath, tag: [UInt8]?, range: Range<Int64>?, into sink: any ContentSink
    ) async throws -> RemoteEntry {
        try await ready()
        let key = key(of: path)
        if let range, range.isEmpty { return try await entry(at: path) }
        let wanted = tag.map { self.tag(of: $0, at: key) }
        return try await translating { [self] in
            let asked = wanted.map { askedTag(of: key, listedAs: $0) }
            do {
                return try await read(path, asked, listedAs: wanted, range, into: sink)
            } catch let error where Self.isAboutVersion(error) {
                guard let asked, let wanted, let other = try await lookForTag(of: key, listedAs: wanted) else {
                    throw error
                }
                // A server that refuses the very ETag that the object has is asked without a condition: what comes is
                // compared with it.
                return try await read(
                    path, other, listedAs: wanted, range, into: sink, isConditional: other != asked)
            }
        }
    }

    /// - Parameters:
    ///   - asked: the object's tag, as it is asked for.
    ///   - listed: as it is listed.
    ///   - isConditional: whether the server is to refuse another object; without it, the answer's ETag is compared here.
    func read(
        _ path: RemotePath, _ asked: String?, listedAs listed: String?, _ range: Range<Int64>?,
        into sink: any ContentSink, isConditional: Bool = true
    ) async throws -> RemoteEntry {
        let (key, name, bucket) = (key(of: path), path.name ?? "", client.location.bucket)
        return try await client.again { () async throws -> RemoteEntry in
            var request = client.request("GET", key)
            if isConditional { request.fields["If-Match"] = asked }
            var download = HTTPDownload(request, range: range) { S3Failure($0, bucket: bucket) }
            download.check = { head in
                if let asked, let given = head.fields["ETag"], S3Object.quoted(given) != asked {
                    throw FileProviderError(.versionNoLongerAvailable, "'\(name)' has changed")
                }
            }
            let head = try await client.transport.download(download, into: sink)
            guard var object = S3Object(key: key, head: head) else {
                throw FileProviderError(.malformedResponse, "\(head.url.host) gives content without its tag")
            }
            if let listed { object.tag = listed }
            if let date = ObjectMetadata.date(head.fields) { dates.note([(key, object.tag, date)]) }
            return file(object, name: name)
        }
    }

    static func isAboutVersion(_ error: any Error) -> Bool {
        if let failure = error as? S3Failure { return failure.isUnmetCondition }
        return (error as? FileProviderError)?.code == .versionNoLongerAvailable
    }

    /// The tag that a request for an object knows. Swift lists copies of what went in parts with another one.
    private func askedTag(of key: String, listedAs listed: String) -> String {
        guard let known = state.withLock({ $0.askedTags[KeyBytes(key)] }), known.listed == listed else { return listed }
        return known.asked
    }

    /// Looks for the tag of an object by which it can be asked for.
    ///
    /// - Returns: nil when the object is another one by now.
    private func lookForTag(of key: String, listedAs listed: String) async throws -> String? {
        // In this order: who asks with an older tag than the one that is listed gets nothing.
        guard let asked = try await object(key)?.tag, try await self.listed(key)?.tag == listed else { return nil }
        note(asked: asked, of: key, listedAs: listed)
        return asked
    }

    /// An object is listed with another ETag than requests for it know.
    func note(asked: String, of key: String, listedAs listed: String) {
        state.withLock { state in
            if state.askedTags.count > 1000 { state.askedTags = [:] }
            state.askedTags[KeyBytes(key)] = (listed, asked)
        }
    }

    func quota() async throws -> RemoteQuota? { nil }

    // MARK: - What others say

    /// Makes of what a server says what the system understands.
    func translating<Value: Sendable>(_ body: () async throws -> Value) async throws -> Value {
        do {
            return try await body()
        } catch let failure as S3Failure {
            throw failure.error
        } catch is CancellationError {
            throw FileProviderError(.userCancelled)
        }
    }

    static func missing(_ path: RemotePath) -> FileProviderError {
        FileProviderError(.noSuchItem, "there is no '\(path.names.joined(separator: "/"))' in the bucket")
    }

    func note(marked prefix: String) {
        state.withLock { state in
            // What is forgotten is only looked up again.
            if state.marked.count > 10_000 { state.marked.removeAll() }
            state.marked.insert(KeyBytes(prefix))
        }
    }
}

extension S3Object {
    /// What the answer to HEAD or GET says; nil when it says too little.
    init?(key: String, head: HTTPResponseHead) {
        let range = ContentRange(head.fields["Content-Range"])
        guard let tag = head.fields["ETag"], let size = range?.total ?? head.contentLength else { return nil }
        self.init(key: key, tag: tag, size: size, modified: nil)
    }
}
