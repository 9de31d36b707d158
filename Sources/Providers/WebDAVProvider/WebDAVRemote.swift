import FileProvider
import Foundation
import HTTPTransport
import Logging
import PathAddressing
import Synchronization
import SystemPackage

/// A collection on a WebDAV server (RFC 4918), as a remote that knows its items by path.
///
/// Nothing is asked of the server before the first call. What servers do differently is not assumed but found out: what
/// they say by the first answers, what they do by trying it on files of our own before the first change.
package final class WebDAVRemote: PathRemote {
    private struct Knowledge {
        var isConnected = false
        var server: String?
        /// The server has identifiers of its own, as ownCloud and Nextcloud do.
        var hasIdentifiers = false
        /// The collection says that properties of ours are in it.
        var hasAttributes = false
        var hasETags = true
        /// What the server said of its room when it was asked for the collection, until somebody wants to know.
        var root: DAVResource?
        var connecting: Task<Void, any Error>?
        var trying: Task<ServerCapabilities, any Error>?
    }

    let client: WebDAVClient
    /// Whether the domain may change nothing on the server: then nothing is cleaned up there either.
    let isReadOnly: Bool
    let capabilityStore: CapabilityStore
    let report: @Sendable (String) -> Void
    let sent: SentContents
    let hiddenFiles: HiddenFiles
    let reportCapabilities = ReportCapabilities()
    private let listings = OpenListings()
    /// Where listings that come faster than they are taken wait.
    private let spoolDirectory: FilePath
    let chunkedUploads: ChunkedUploads
    let trashBins: TrashBinStore
    let restorations: RestorationJournal
    let deletionTimes = DeletionTimes()
    private let knowledge = Mutex(Knowledge())
    /// How many requests a server gets at once.
    package static let concurrentCalls = 64

    /// - Parameters:
    ///   - store: keeps what must survive a restart.
    ///   - spoolDirectory: holds listings that arrive faster than they are consumed.
    ///   - credentials: looks up who wants to be let in, whenever the server asks.
    ///   - findings: what was found out just now, before there was a folder.
    ///   - isReadOnly: whether the domain may change nothing on the server.
    ///   - report: told what the user should know of.
    init(
        source: WebDAVSource, transport: HTTPTransport, store: ReportingStore, spoolDirectory: FilePath,
        findings: WebDAVProvider.Findings? = nil, isReadOnly: Bool = false,
        credentials: @escaping @Sendable () -> WebDAVCredentials?, report: @escaping @Sendable (String) -> Void
    ) {
        self.isReadOnly = isReadOnly
        client = WebDAVClient(base: source.url, transport: transport, credentials: credentials)
        capabilityStore = CapabilityStore(in: store)
        sent = SentContents(in: store)
        hiddenFiles = HiddenFiles(in: store)
        self.spoolDirectory = spoolDirectory
        chunkedUploads = ChunkedUploads(ChunkJournal(in: store))
        trashBins = TrashBinStore(in: store, base: source.url, findings: findings)
        restorations = RestorationJournal(in: store)
        self.report = report
    }

    package var traits: RemoteTraits {
        let capabilities = capabilityStore.capabilities
        let (server, hasETags) = knowledge.withLock { ($0.server, $0.hasETags) }
        var traits = RemoteTraits()
        traits.checksConditions = capabilities?.movesConditionally ?? false
        traits.concurrentCalls = Self.concurrentCalls
        let keepsAttributes = capabilities?.keepsAttributes ?? false
        traits.storesModificationDates = keepsAttributes || isOwnCloud
        traits.storesPermissions = keepsAttributes
        traits.directoryTagsCoverTrees = isOwnCloud
        traits.hasTrash = trashBins.bin != nil
        traits.listsHiddenNames = capabilities?.listsHiddenNames ?? true
        let name = server.map { "the server (\($0.prefix(60)))" } ?? "the server"
        if !hasETags || capabilities?.tagsFollowContent == false {
            traits.peculiarities.append(
                "\(name) tells contents apart by length and time, to the second: what another machine writes twice "
                    + "within a second may be noticed only at the next change")
        }
        if let capabilities, !capabilities.movesConditionally {
            traits.peculiarities.append(
                "\(name) keeps to no conditions: each change looks first, and what another machine changes in that "
                    + "very moment is overwritten")
        }
        for (fate, consequence) in [
            (ServerCapabilities.NameFate.sent, "cannot be renamed"), (.lost, "stay on this machine"),
        ] {
            let parts = ServerCapabilities.OddPart.allCases.filter { capabilities?.oddNames[$0] == fate }.map(
                \.rawValue)
            guard !parts.isEmpty else { continue }
            traits.peculiarities.append(
                "\(name) does not keep names with \(parts.joined(separator: " or ")) in them: such items \(consequence)"
            )
        }
        if let capabilities, !capabilities.listsHiddenNames {
            traits.peculiarities.append(
                "\(name) lists nothing whose name begins with a dot: what other machines call so is not seen, "
                    + "and goes with its directory")
        }
        if let capabilities, !capabilities.keepsAttributes {
            traits.peculiarities.append(
                "\(name) keeps no properties of ours: modes, and dates that are not those of an upload, stay on this "
                    + "machine")
        }
        traits.peculiarities += trashRemarks.map { "\(name) \($0)" }
        traits.peculiarities += reportRemarks.map { "\(name) \($0)" }
        if let capabilities, !capabilities.refusesOverwriting {
            traits.peculiarities.append("\(name) lets a move overwrite: each move looks first")
        }
        return traits
    }

    package func close() async {
        hiddenFiles.close()
        listings.endAll()
        let tasks = knowledge.withLock { ($0.connecting, $0.trying) }
        tasks.0?.cancel()
        tasks.1?.cancel()
        await removeHidden(endingProbe: tasks.1)
        await client.transport.close()
    }

    // MARK: - Connecting

    /// Asks the server for the collection.
    ///
    /// - Throws: `notAuthenticated`, `serverUnreachable` also for a collection that is not there and for what is no WebDAV;
    ///   the messages are for users.
    package func connect() async throws {
        let task = knowledge.withLock { knowledge -> Task<Void, any Error>? in
            if knowledge.isConnected { return nil }
            if let task = knowledge.connecting { return task }
            let task = Task { try await self.look() }
            knowledge.connecting = task
            return task
        }
        guard let task else { return }
        let result = await withTaskCancellationHandler {
            await task.result
        } onCancel: {
            // Others may wait for it too.
        }
        knowledge.withLock { if $0.connecting == task { $0.connecting = nil } }
        try Task.checkCancellation()
        try result.get()
    }

    private func look() async throws {
        let found = Mutex<DAVResource?>(nil)
        let what = client.base.path
        let head: HTTPResponseHead
        do {
            head = try await client.properties(
                client.base, depth: 0,
                body: DAVResource.request(
                    withIdentifiers: true, withQuota: true, withHeld: true, withReports: true), what: what
            ) { resource, _ in found.withLock { $0 = $0 ?? resource } }
        } catch let error as FileProviderError where error.code == .noSuchItem {
            throw FileProviderError(.serverUnreachable, "\(client.base.host) has no collection '\(what)'")
        }
        guard let root = found.withLock({ $0 }), root.status == nil || root.status == 200 else {
            throw FileProviderError(.serverUnreachable, "\(client.base.host) has no collection '\(what)'")
        }
        guard root.isCollection else {
            throw FileProviderError(.serverUnreachable, "'\(what)' on \(client.base.host) is no collection")
        }
        // Before anybody who waits goes on: capabilities depend on it.
        try await findTrashBin(isIdentifying: root.fileIdentifier != nil)
        let server = head.fields["Server"]
        capabilityStore.forget(unless: server)
        reportCapabilities.note(isOffered: root.reportsChanges)
        knowledge.withLock { knowledge in
            knowledge.isConnected = true
            knowledge.server = server
            knowledge.root = root
            knowledge.hasAttributes = root.heldAttributes != nil
            knowledge.hasIdentifiers = root.fileIdentifier != nil
        }
        removeLeftBehind()
    }

    /// What the server does; tried on files of our own in a directory the first time.
    func capabilities(probingIn directory: RemotePath) async throws -> ServerCapabilities {
        if let capabilities = capabilityStore.capabilities { return capabilities }
        let server = knowledge.withLock { $0.server }
        let task = knowledge.withLock { knowledge in
            if let task = knowledge.trying { return task }
            let task = Task { try await CapabilityProbe(remote: self, directory: directory, server: server).run() }
            knowledge.trying = task
            return task
        }
        let result = await task.result
        knowledge.withLock { if $0.trying == task { $0.trying = nil } }
        try Task.checkCancellation()
        let capabilities = try result.get()
        capabilityStore.keep(capabilities)
        return capabilities
    }

    // MARK: - Looking

    /// An entry, and its tag as the server writes it.
    struct Sight: Sendable {
        var entry: RemoteEntry
        var etag: String?
        var resource: DAVResource
    }

    /// What is at a path; nil when nothing is.
    func sight(of path: RemotePath, isDirectory: Bool = false) async throws -> Sight? {
        try await connect()
        let found = Mutex<Sight?>(nil)
        do {
            _ = try await client.properties(
                client.url(of: path, isDirectory: isDirectory), depth: 0, body: question, what: path.name ?? "/"
            ) { [self] resource, head in
                guard found.withLock({ $0 == nil }), !Self.isMissing(resource) else { return }
                let sight = sight(resource, named: path.name ?? "", at: head)
                found.withLock { $0 = sight }
            }
        } catch let error as FileProviderError where error.code == .noSuchItem {
            return nil
        }
        guard var sight = found.withLock({ $0 }) else { return nil }
        sight.entry = try await recognized(sight.entry, at: path)
        return sight
    }

    /// What the fields of a file say of it; nil when nothing is there. Where ``ServerCapabilities/headsAreTrue``, it is what
    /// ``sight(of:isDirectory:)`` would say, for less.
    func glance(at path: RemotePath) async throws -> Sight? {
        let response = try await client.send("HEAD", client.url(of: path))
        guard response.status != 404, response.status != 410 else { return nil }
        guard response.head.isSuccess else { throw WebDAVClient.failure(response, of: path.name ?? "/") }
        // Of an empty file some do not say how long it is, and a page to log in has no tag: that is asked in a way that
        // only WebDAV answers.
        guard response.head.contentLength != nil, response.head.fields["ETag"] != nil else {
            return try await sight(of: path)
        }
        return sight(DAVResource(response.head), named: path.name ?? "", at: response.head)
    }

    package func entry(at path: RemotePath) async throws -> RemoteEntry {
        guard let sight = try await sight(of: path, isDirectory: path.names.isEmpty) else {
            throw FileProviderError(.noSuchItem, "\(client.base.host) has no '\(path.name ?? "/")'")
        }
        return sight.entry
    }

    package func entries(in path: RemotePath, from token: [UInt8]?, limit: Int) async throws -> RemoteListing {
        try await connect()
        let stream: ListingStream
        if let token {
            guard let known = listings.stream(token) else { throw FileProviderError(.pageExpired) }
            stream = known
        } else {
            stream = list(path)
        }
        do {
            let part = try await stream.next(limit, of: path.name ?? "/", on: client.base.host)
            var listing = RemoteListing(entries: part.entries)
            for index in part.entries.indices {
                let entry = part.entries[index]
                listing.entries[index] = try await recognized(entry, at: path.appending(entry.name))
            }
            listing.leavesOut = part.leavesOut
            if !part.isLast {
                listing.next = token.map(listings.advance) ?? listings.keep(stream)
                // It was ended meanwhile.
                guard listing.next != nil else { throw FileProviderError(.pageExpired) }
            } else if let token {
                listings.end(token)
            }
            return listing
        } catch {
            if let token { listings.end(token) }
            stream.cancel()
            throw error is CancellationError ? FileProviderError(.userCancelled) : error
        }
    }

    package func endListing(_ token: [UInt8]) { listings.end(token) }

    /// Begins to list a directory.
    private func list(_ path: RemotePath) -> ListingStream {
        let stream = ListingStream(in: spoolDirectory)
        let what = path.name ?? "/"
        stream.start { [self] in
            _ = try await client.properties(
                client.url(of: path, isDirectory: true), depth: 1, body: question, what: what, isMuch: true
            ) { [self] resource, head in
                guard let place = client.path(of: resource.href, on: head.url) else {
                    stream.noteLeftOut()
                    return report(
                        "\(head.url.host) lists in '\(what)' what lies elsewhere: '\(resource.href.prefix(200))'")
                }
                if place == path {
                    stream.noteOwn(isDirectory: !Self.isMissing(resource) && resource.isCollection)
                    return
                }
                guard place.names.count == path.names.count + 1, place.isBelow(path), let name = place.name else {
                    return report(
                        "\(head.url.host) lists in '\(what)' what is not in it: '\(resource.href.prefix(200))'")
                }
                if Self.isMissing(resource) { return }
                if let status = resource.status, !(200..<300).contains(status) {
                    stream.noteLeftOut()
                    return report("\(head.url.host) does not show '\(name)' (\(status))")
                }
                try stream.add(sight(resource, named: name, at: head).entry)
            }
        }
        return stream
    }

    package func tree(below path: RemotePath, from token: [UInt8]?, limit: Int) async throws -> RemoteTreeListing {
        throw FileProviderError(.featureUnsupported, "many servers list no trees, and some only a part of them")
    }

    package func quota() async throws -> RemoteQuota? {
        try await connect()
        let known = knowledge.withLock { knowledge in
            defer { knowledge.root = nil }
            return knowledge.root
        }
        let found = Mutex(known)
        if known == nil {
            _ = try await client.properties(
                client.base, depth: 0,
                body: DAVResource.request(withIdentifiers: false, withQuota: true, withHeld: true), what: "/"
            ) { resource, _ in found.withLock { $0 = $0 ?? resource } }
            let hasAttributes = found.withLock { $0?.heldAttributes != nil }
            knowledge.withLock { $0.hasAttributes = $0.hasAttributes || hasAttributes }
        }
        // Negative numbers stand for what is not known, or not limited.
        guard let root = found.withLock({ $0 }), let free = root.quotaAvailable, free >= 0 else { return nil }
        let used = max(0, root.quotaUsed ?? 0)
        let (total, isTooMuch) = free.addingReportingOverflow(used)
        return RemoteQuota(free: free, total: isTooMuch ? .max : total)
    }

    /// Whether the server is one of those that identify files, and never show half of one.
    var isOwnCloud: Bool { knowledge.withLock { $0.hasIdentifiers } }

    /// Whether the collection says that attributes of ours are in it.
    var asksForAttributes: Bool { knowledge.withLock { $0.hasAttributes } }

    private var question: [UInt8] {
        DAVResource.request(
            withIdentifiers: isOwnCloud, withQuota: false,
            withHeld: asksForAttributes || capabilityStore.capabilities?.hasAttributes == true)
    }

    private static func isMissing(_ resource: DAVResource) -> Bool { resource.status == 404 || resource.status == 410 }

    // MARK: - Entries

    private func sight(_ resource: DAVResource, named name: String, at head: HTTPResponseHead) -> Sight {
        let kind: ItemKind =
            resource.isCollection || !resource.hasType && resource.href.hasSuffix("/") ? .directory : .file
        let tag = Self.tag(kind, resource.etag, resource.modifiedAt, resource.length)
        if kind == .file, resource.etag == nil { knowledge.withLock { $0.hasETags = false } }
        var entry = RemoteEntry(
            name: name, kind: kind, tag: Array(tag.utf8),
            isTagStrong: tag.utf8.first == UInt8(ascii: "e") && capabilityStore.capabilities?.tagsFollowContent != false
                && !(kind == .file && ETag.isOfWholeSecond(resource.etag, resource.modifiedAt)),
            stableIdentifier: resource.fileIdentifier, size: kind == .file ? resource.length : nil,
            attributes: RemoteAttributes(
                contentModificationDate: sent.date(name, tag: Array(tag.utf8))
                    ?? resource.modifiedAt.map { FileTimestamp(seconds: $0) }))
        entry.isTagUnsettled = kind == .file && isUnsettled(tag, resource.modifiedAt, head)
        // How old something on its way is the server says.
        if !HiddenName.isOne(name) { entry = entry.with(HeldAttributes(of: resource)) }
        if let letters = resource.permissions, !letters.isEmpty {
            entry.isWritable = letters.contains(kind == .directory ? "C" : "W")
            // What is shared is only left, or goes into somebody else's bin; what is mounted there may have none.
            entry.isTrashable = letters.contains("D") && !letters.contains("S") && !letters.contains("M")
        }
        return Sight(entry: entry, etag: resource.etag, resource: resource)
    }

    /// What tells one content from another: after an `e` its length and the server's tag, after an `m` its time and
    /// length, also where the tag says no more than these: tags like that may change with a rename.
    static func tag(_ kind: ItemKind, _ etag: String?, _ modifiedAt: Int64?, _ length: Int64?) -> String {
        let date = modifiedAt.map(String.init) ?? "?"
        guard let etag else { return kind == .directory ? "m\(date)" : "m\(date)-\(length ?? 0)" }
        let opaque = ETag.opaque(etag)
        if kind == .file, let modifiedAt, let length,
            ETag.isMadeOf(opaque, seconds: modifiedAt, size: length)
        {
            return "m\(date)-\(length)"
        }
        return kind == .file ? "e\(length ?? 0)-\(opaque)" : "e\(opaque)"
    }

    /// Whether a file was written so shortly before the answer that it may be written again with the same tag.
    func isUnsettled(_ tag: String, _ modifiedAt: Int64?, _ head: HTTPResponseHead) -> Bool {
        // Servers with identifiers make a new tag for each content, by their documentation.
        if tag.utf8.first == UInt8(ascii: "e"), isOwnCloud || capabilityStore.capabilities?.tagsFollowContent == true {
            return false
        }
        guard let modifiedAt, let now = head.fields["Date"].flatMap({ HTTPDate.seconds(from: $0) }) else {
            return false
        }
        return now - modifiedAt < 2 && now - modifiedAt > -60
    }
}
