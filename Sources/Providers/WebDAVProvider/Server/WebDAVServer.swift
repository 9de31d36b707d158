import FileProvider
import FileProviderPaths
import HTTPTransport
import Synchronization

/// The server of a domain: connects to it, remembers what its responses announce, and looks up items.
final class WebDAVServer: Sendable {
    /// What the root's first response announces.
    struct Announcement: Sendable {
        /// The `Server` header.
        var name: String?
        /// The server has file identifiers, as ownCloud and Nextcloud have. Such servers never show a part of a file.
        var hasIdentifiers = false
        /// The root says that there are items with ``StoredAttributes``.
        var hasAttributes = false
        var offersReports = false
    }

    private struct State {
        var announcement = Announcement()
        var isConnected = false
        var hasETags = true
        /// The first response about the root, until ``quota()`` has used it.
        var root: DAVResource?
        /// The files that were looked up last: their tags, their ETags as the server writes them, and their sizes.
        var lastFound: [RemotePath: (tag: [UInt8], etag: String?, size: Int64?)] = [:]
    }

    let client: WebDAVClient
    let capabilityStore: CapabilityStore
    let trash: TrashContents
    let hiddenFiles: HiddenFiles
    let lostUploads: LostUploads
    /// The domain must not change anything on the server, so hidden files are not removed either.
    let isReadOnly: Bool
    private let state = Mutex(State())
    private let connecting = SharedTask<Void>()
    static let concurrentCalls = 64
    private static let mostFound = 256

    init(
        _ client: WebDAVClient, in store: ReportingStore, isReadOnly: Bool,
        report: @escaping @Sendable (String) -> Void
    ) {
        self.client = client
        self.isReadOnly = isReadOnly
        capabilityStore = CapabilityStore(in: store)
        trash = TrashContents(client: client, store: TrashBinStore(in: store, base: client.root.url), report: report)
        hiddenFiles = HiddenFiles(in: store, client: client, trash: trash)
        lostUploads = LostUploads(contents: SentContents(in: store), client: client)
    }

    var announcement: Announcement { state.withLock { $0.announcement } }
    var hasIdentifiers: Bool { announcement.hasIdentifiers }
    var isConnected: Bool { state.withLock { $0.isConnected } }
    /// Every file that was seen has an ETag.
    var hasETags: Bool { state.withLock { $0.hasETags } }

    // MARK: - Connecting

    /// Looks up the root, once.
    ///
    /// - Throws: `notAuthenticated`; `serverUnreachable`, also when the collection does not exist or the server does not speak
    ///   WebDAV. The messages are for users.
    func connect() async throws {
        guard !isConnected else { return }
        try await connecting.value { [self] in
            // It may have been looked up since.
            if !isConnected { try await lookUpRoot() }
        }
    }

    func cancelConnecting() { connecting.current?.cancel() }

    private func lookUpRoot() async throws {
        let what = client.root.url.path
        let (root, head): (resource: DAVResource, head: HTTPResponseHead)
        do {
            (root, head) = try await client.resource(
                at: client.root.url, .usual + .identifiers + .quota + .attributes + .reports, what: what)
        } catch let error as FileProviderError where error.code == .noSuchItem {
            throw FileProviderError(.serverUnreachable, "\(client.host) has no collection '\(what)'")
        }
        guard root.status ?? 200 == 200 else {
            throw FileProviderError(.serverUnreachable, "\(client.host) has no collection '\(what)'")
        }
        // A listing would hold nothing that is below this address.
        guard client.root.path(of: root.href, on: head.url) == .root else {
            let answered = head.url.resolving(root.href)?.description ?? root.href
            throw FileProviderError(
                .serverUnreachable,
                "\(client.host) answers for '\(answered.prefix(200))', not for '\(client.root.url)': if a proxy in front of "
                    + "it changes the path, it has to change it in the answers, too")
        }
        guard root.isCollection else {
            throw FileProviderError(.serverUnreachable, "'\(what)' on \(client.host) is no collection")
        }
        // Before the waiting callers continue, because capabilities depend on it.
        try await trash.detect(hasIdentifiers: root.fileIdentifier != nil)
        let found = Announcement(
            name: head.fields["Server"], hasIdentifiers: root.fileIdentifier != nil,
            hasAttributes: root.storedAttributes != nil, offersReports: root.reportsChanges)
        capabilityStore.forget(unless: found.name)
        state.withLock { state in
            state.isConnected = true
            state.announcement = found
            state.root = root
        }
        if !isReadOnly { hiddenFiles.deleteLeftBehind() }
    }

    // MARK: - Looking up

    /// An entry, and the resource from which it was made.
    struct Found: Sendable {
        var entry: RemoteEntry
        var resource: DAVResource

        /// The ETag as the server writes it.
        var etag: String? { resource.etag }
    }

    /// Looks an item up, and recognizes an upload without a response.
    ///
    /// - Returns: nil when nothing is at the path.
    func propfind(_ path: RemotePath, isDirectory: Bool = false) async throws -> Found? {
        guard var found = try await lookUp(path, isDirectory: isDirectory) else { return nil }
        found.entry = try await lostUploads.recognized(found.entry, at: path)
        if found.entry.kind == .file {
            state.withLock { [found] state in
                if state.lastFound.count >= Self.mostFound { state.lastFound = [:] }
                state.lastFound[path] = (found.entry.tag, found.etag, found.entry.size)
            }
        }
        return found
    }

    /// The ETag of a file as the server writes it.
    ///
    /// - Returns: nil unless the file met the condition, to have a tag, when it was looked up last.
    func lastETag(at path: RemotePath, _ condition: RemoteCondition) -> String? {
        guard let found = state.withLock({ $0.lastFound[path] }), condition.isOf(found.tag) else { return nil }
        return found.etag
    }

    /// The size of a file, in bytes, when it was looked up last; nil where it is not known.
    func lastSize(at path: RemotePath) -> Int64? { state.withLock { $0.lastFound[path]?.size } }

    /// - Returns: nil when nothing is at the path.
    /// - Throws: also the error for an item that the server names and does not describe.
    func lookUp(_ path: RemotePath, isDirectory: Bool = false) async throws -> Found? {
        try await connect()
        let answer = try await ifExists {
            try await client.resource(
                at: client.root.url(of: path, isDirectory: isDirectory), properties, what: path.name ?? "/")
        }
        guard let (resource, head) = answer, !resource.isMissing else { return nil }
        if let refusal = WebDAVClient.refusal(of: resource, in: head, path.name ?? "/") { throw refusal }
        return found(resource, path, in: head)
    }

    /// Looks a file up by HEAD, which costs less where ``ServerCapabilities/headsAreTrue``, or by GET.
    ///
    /// - Returns: the file, and its content where the answer to GET says which version it is; nil when nothing is at the path.
    func describe(_ path: RemotePath, by method: String) async throws -> (found: Found, bytes: [UInt8]?)? {
        let isRead = method == "GET"
        let response = try await client.send(
            method, client.root.url(of: path), isRead ? ["Accept-Encoding": "identity"] : [:])
        guard response.status != 404, response.status != 410 else { return nil }
        guard response.head.isSuccess else { throw WebDAVClient.failure(response, of: path.name ?? "/") }
        // Some servers send no length of an empty file, and a login page has no ETag.
        guard response.head.contentLength != nil, response.head.fields["ETag"] != nil else {
            return try await lookUp(path).map { ($0, nil) }
        }
        return (found(DAVResource(response.head), path, in: response.head), isRead ? response.body : nil)
    }

    /// - Throws: `noSuchItem`.
    func entry(at path: RemotePath, isDirectory: Bool = false) async throws -> RemoteEntry {
        try await requireItem(path, isDirectory: isDirectory).entry
    }

    /// - Throws: `noSuchItem`.
    func requireItem(_ path: RemotePath, isDirectory: Bool = false) async throws -> Found {
        guard let found = try await propfind(path, isDirectory: isDirectory) else {
            throw FileProviderError(.noSuchItem, "\(client.host) has no '\(path.name ?? "/")'")
        }
        return found
    }

    /// - Throws: `noSuchItem` when the parent directory of a path does not exist.
    ///
    /// - Parameter what: what the message names; nil for the item itself.
    func requireParent(of path: RemotePath, what: String? = nil) async throws {
        if try await propfind(path.parent, isDirectory: true) == nil {
            throw FileProviderError(.noSuchItem, "\(client.host) has no directory for '\(what ?? path.name ?? "/")'")
        }
    }

    /// Checks a condition by looking the item up.
    ///
    /// - Returns: the item whose tag was compared.
    /// - Throws: ``RemoteConditionFailure`` when the condition does not hold.
    @discardableResult
    func require(_ condition: RemoteCondition, at path: RemotePath) async throws -> Found? {
        switch condition {
        case .always, .empty: return nil
        case .absent:
            if let there = try await propfind(path) { throw RemoteConditionFailure(present: there.entry) }
            return nil
        case .unchanged(let tag):
            let there = try await propfind(path)
            guard let there, there.entry.tag == tag else { throw RemoteConditionFailure(present: there?.entry) }
            return there
        }
    }

    func quota() async throws -> RemoteQuota? {
        try await connect()
        let known = state.withLock { $0.root.take() }
        let root: DAVResource
        if let known {
            root = known
        } else {
            root = try await client.resource(at: client.root.url, .usual + .quota + .attributes, what: "/").resource
            if root.storedAttributes != nil { state.withLock { $0.announcement.hasAttributes = true } }
        }
        // Negative numbers mean unknown or unlimited.
        guard let free = root.quotaAvailable, free >= 0 else { return nil }
        let (total, overflow) = free.addingReportingOverflow(max(0, root.quotaUsed ?? 0))
        return RemoteQuota(free: free, total: overflow ? .max : total)
    }

    // MARK: - Entries

    /// The properties that entries are made of. Servers are slower when they are asked for dead properties.
    var properties: PropertyRequest {
        let announcement = announcement
        var properties = PropertyRequest.usual
        if announcement.hasIdentifiers { properties = properties + .identifiers }
        if announcement.hasAttributes || capabilityStore.capabilities?.hasAttributes == true {
            properties = properties + .attributes
        }
        return properties
    }

    func found(_ resource: DAVResource, _ path: RemotePath, in head: HTTPResponseHead) -> Found {
        let name = path.name ?? ""
        let kind: ItemKind = resource.isDirectory ? .directory : .file
        let tag = Array(ETag.contentTag(kind, resource.etag, resource.modifiedAt, resource.length).utf8)
        if kind == .file, resource.etag == nil { state.withLock { $0.hasETags = false } }
        // The age of a hidden file is the server's date.
        let stored = HiddenName.isOne(name) ? nil : StoredAttributes(of: resource)
        if stored?.date != nil { lostUploads.noteDated(path, tag: tag) }
        let date =
            lostUploads.date(at: path, tag: tag) ?? resource.modifiedAt.map { FileTimestamp(seconds: $0) }
        var entry = RemoteEntry(
            name: name, kind: kind, tag: tag,
            isTagStrong: tag.first == UInt8(ascii: "e") && capabilityStore.capabilities?.tagsFollowContent != false
                && !(kind == .file && ETag.isOfWholeSecond(resource.etag, resource.modifiedAt)),
            stableIdentifier: resource.fileIdentifier, size: kind == .file ? resource.length : nil,
            attributes: RemoteAttributes(contentModificationDate: date))
        entry.isTagUnsettled = kind == .file && isUnsettled(tag, resource.modifiedAt, head)
        entry = entry.with(stored)
        if let letters = resource.permissions, !letters.isEmpty {
            entry.isWritable = letters.contains(kind == .directory ? "C" : "W")
            // A deletion leaves a share or moves it to its owner's bin; a mounted storage may have no bin.
            entry.isTrashable = letters.contains("D") && !letters.contains("S") && !letters.contains("M")
        }
        return Found(entry: entry, resource: resource)
    }

    /// Whether it is known that each content has another ETag.
    var tagsFollowContent: Bool {
        // Servers with identifiers make a new one for each content, by their documentation.
        hasIdentifiers || capabilityStore.capabilities?.tagsFollowContent == true
    }

    /// Whether a file was written so shortly before the response that it may be written again with the same tag.
    func isUnsettled(_ tag: [UInt8], _ modifiedAt: Int64?, _ head: HTTPResponseHead) -> Bool {
        if tag.first == UInt8(ascii: "e"), tagsFollowContent { return false }
        guard let modifiedAt, let now = head.fields["Date"].flatMap({ HTTPDate.seconds(from: $0) }) else {
            return false
        }
        return now - modifiedAt < 2 && now - modifiedAt > -60
    }
}
