import FileProvider
import FileProviderPaths
import HTTPTransport
import Logging
import Synchronization

/// Detects how a server treats preconditions, ETags and odd names, with hidden files that are removed again.
struct CapabilityProbe: Sendable {
    private let changes: ChangeRequests
    private let files: ProbeFiles

    private var server: WebDAVServer { changes.server }
    private var client: WebDAVClient { server.client }

    /// - Parameter directory: the directory of the hidden files.
    init(_ changes: ChangeRequests, in directory: RemotePath) {
        self.changes = changes
        files = ProbeFiles(directory.appending(HiddenName.make()))
    }

    /// - Throws: ``ProbeMoveFailure``; the error for which files cannot be created in the directory.
    func run() async throws -> ServerCapabilities {
        try server.hiddenFiles.add(files.prefix, isProbe: true)
        let result: Result<ServerCapabilities, any Error>
        do {
            result = .success(try await capabilities())
        } catch {
            result = .failure(error)
        }
        // In a task of its own, because this one may have been cancelled.
        let isRemoved = await Task { [files, client] in await files.removeAll(by: client) }.value
        if isRemoved { server.hiddenFiles.remove(files.prefix) }
        // A server that shows parts may create a file from the aborted upload at any later time. It is deleted last, because
        // some servers cannot list a directory meanwhile.
        if case .success(let capabilities) = result, !capabilities.showsOnlyWhole {
            for path in files.plain.suffix(1) { server.hiddenFiles.delete(path) }
        }
        // A server with a trash bin keeps the files there. The caller does not wait for their removal.
        Task { [server, files] in
            await server.trash.clear(namesBeginningWith: files.prefix.name ?? HiddenName.prefix)
        }
        return try result.get()
    }

    private func capabilities() async throws -> ServerCapabilities {
        let paths = files.plain
        // Shows whether anything can be created here at all.
        try await put("a", paths[0])
        // Some servers cannot list a directory while a file in it disappears. Nothing is listed while the probes run.
        let listsHiddenNames = try await files.listed(by: client).contains(paths[0])
        // The probes use separate files, so that they can run concurrently: the server may be far away.
        async let moves = probe((false, false)) { try await self.moves(paths[0], paths[1]) }
        async let survival = probe((false, Optional(false))) { try await survivesMoves(paths[2], paths[3]) }
        async let tags = probe(false) { try await followsContent(paths[4]) }
        async let deletions = probe(.none) { try await self.deletions(paths[5]) }
        async let oddNames = fates()
        async let sending = probe(ServerCapabilities()) { try await self.sending(paths[6], paths[7]) }
        async let reports = probe((nil, nil)) { try await self.reports(in: files.directory) }
        var capabilities = try await sending
        capabilities.server = server.announcement.name
        capabilities.listsHiddenNames = listsHiddenNames
        (capabilities.refusesOverwriting, capabilities.movesConditionally) = try await moves
        let (tagsSurvive, attributesSurvive) = try await survival
        capabilities.tagsSurviveMoves = tagsSurvive
        capabilities.keepsAttributes = attributesSurvive ?? false
        capabilities.lacksRoom = attributesSurvive == nil ? true : nil
        capabilities.tagsFollowContent = try await tags
        capabilities.deletions = try await deletions
        capabilities.oddNames = try await oddNames
        (capabilities.reportsCollections, capabilities.reportsAll) = try await reports
        if capabilities.oddNames.values.contains(.sent) {
            let listed = try await files.listed(by: client)
            for name in files.odd where capabilities.oddNames[name.part] == .sent && !listed.contains(name.sent) {
                capabilities.oddNames[name.part] = .lost
            }
        }
        return capabilities
    }

    // MARK: - Failures

    /// Runs one probe. A server that answers it with nonsense, or breaks the connection each time, counts as not having the
    /// capability.
    ///
    /// - Parameter fallback: the result in that case.
    /// - Throws: errors that say nothing about the capability: no connection, no space, other credentials.
    private func probe<Value: Sendable>(
        _ fallback: Value, _ body: @Sendable () async throws -> Value
    ) async throws -> Value {
        var isSecond = false
        while true {
            do {
                return try await body()
            } catch let error as FileProviderError where error.code == .serverUnreachable && !Task.isCancelled {
                if isSecond {
                    // The probe's requests break the connection if another request is answered.
                    guard (try? await server.propfind(files.prefix.parent, isDirectory: true)) != nil else {
                        throw error
                    }
                    return giveUp(error, fallback)
                }
                isSecond = true
            } catch let error where Self.isRefusal(error) && (error as? FileProviderError)?.code != .noSuchItem {
                return giveUp(error, fallback)
            }
        }
    }

    private func giveUp<Value>(_ error: any Error, _ fallback: Value) -> Value {
        client.transport.logger.debug("\(client.host) does not complete a capability probe: \(error)")
        return fallback
    }

    /// - Throws: errors that are no answer to the request: no connection, no space, other credentials.
    private func unlessRefused(_ body: () async throws -> Bool) async throws -> Bool {
        do {
            return try await body()
        } catch let error where Self.isRefusal(error) {
            return false
        }
    }

    /// Whether an error is the server's answer to what a probe requested. Servers refuse odd requests in different ways.
    private static func isRefusal(_ error: any Error) -> Bool {
        if error is RemoteConditionFailure { return true }
        guard let code = (error as? FileProviderError)?.code else { return false }
        return [.malformedResponse, .cannotSynchronize, .noSuchItem, .fileReadNoPermission].contains(code)
    }

    /// Completes a request also when the probe is cancelled. The server may act on a request after the answer to the deletion
    /// of the file, so the deletion must wait for it.
    private func completed<Value: Sendable>(
        _ body: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        try Task.checkCancellation()
        return try await Task { try await body() }.value
    }

    // MARK: - Names

    private func fates() async throws -> [ServerCapabilities.OddPart: ServerCapabilities.NameFate] {
        try await withThrowingTaskGroup(of: (ServerCapabilities.OddPart, ServerCapabilities.NameFate).self) { group in
            for name in files.odd {
                group.addTask { (name.part, try await probe(.lost) { try await fate(of: name) }) }
            }
            return try await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
        }
    }

    /// - Returns: `sent` where a listing has to confirm it.
    private func fate(of name: ProbeFiles.OddName) async throws -> ServerCapabilities.NameFate {
        try await put("a", name.source)
        // Cyrus copies the new name into a header, where a line feed makes the response malformed.
        let isMoved = try await unlessRefused {
            Self.isMoved(try await move(name.source, to: name.moved, ["Overwrite": "F"]).status)
        }
        if isMoved, try await exists(name.moved) { return .kept }
        let isSent = try await unlessRefused {
            try await put("a", name.sent)
            return true
        }
        if isSent, try await exists(name.sent) { return .sent }
        return .lost
    }

    private func exists(_ path: RemotePath) async throws -> Bool {
        try await unlessRefused { try await server.propfind(path) != nil }
    }

    // MARK: - Moving

    /// - Parameter one: an existing file.
    private func moves(
        _ one: RemotePath, _ two: RemotePath
    ) async throws -> (refusesOverwriting: Bool, areConditional: Bool) {
        try await put("b", two)
        let refusesOverwriting = try await plainMove(one, to: two, ["Overwrite": "F"]) == 412
        if !refusesOverwriting { try await put("a", one) }

        // Onto an existing file, with a condition that does not hold, and with one that does.
        let url = client.root.url(of: two)
        guard try await server.propfind(two)?.etag != nil,
            try await plainMove(one, to: two, ["Overwrite": "T", "If": "<\(url)> ([\"yonder\"])"]) == 412,
            let etag = try await server.propfind(two)?.etag
        else { return (refusesOverwriting, false) }
        let status = try await plainMove(one, to: two, ["Overwrite": "T", "If": "<\(url)> ([\(etag)])"])
        return (refusesOverwriting, Self.isMoved(status))
    }

    /// Whether a moved file keeps its tag and its stored attributes; nil for these where the server had no room to store them.
    private func survivesMoves(_ one: RemotePath, _ two: RemotePath) async throws -> (tags: Bool, attributes: Bool?) {
        try await put("a", one)
        var stored: StoredAttributes?
        var hasRoom = true
        let fresh = try await server.propfind(one)
        if let fresh {
            let date = FileTimestamp(seconds: 1_000_000_000, nanoseconds: 1)
            let attributes = StoredAttributes(
                RemoteAttributes(contentModificationDate: date, permissions: 0o751), of: fresh.resource)
            do {
                if try await changes.store(attributes, of: fresh.resource, at: one) { stored = attributes }
            } catch let error as FileProviderError where error.code == .insufficientQuota {
                hasRoom = false
            }
        }
        let before = try await server.propfind(one)
        let response = try await move(one, to: two, ["Overwrite": "F"])
        guard Self.isMoved(response.status) else { throw ProbeMoveFailure(response, in: directoryName) }
        // A login page in front of the server also answers 200, and moves nothing.
        guard let after = try await server.propfind(two) else {
            throw FileProviderError(.serverUnreachable, "\(client.host) confirmed a move that it did not make")
        }
        let tagsSurvive = before?.entry.tag == after.entry.tag
        guard hasRoom else { return (tagsSurvive, nil) }
        guard let stored, fresh?.entry.tag == before?.entry.tag else { return (tagsSurvive, false) }
        let moved = try await client.resource(
            at: client.root.url(of: two), .usual + .attributes, what: two.name ?? "/"
        ).resource
        return (tagsSurvive, StoredAttributes(of: moved) == stored)
    }

    // MARK: - Reports

    /// Whether reports include a new collection in a collection, and a new file in that one; nil for a level that the server
    /// does not offer.
    private func reports(in top: RemotePath) async throws -> (ofCollections: Bool?, ofAll: Bool?) {
        guard server.announcement.offersReports else { return (nil, nil) }
        let inner = top.appending("a")
        defer { server.hiddenFiles.delete(top, isDirectory: true) }
        guard try await makeDirectory(top), let first = try await SyncCollection.token(of: top, by: client),
            try await makeDirectory(inner)
        else { return (false, false) }
        let ofCollections = try await isReported(inner, since: first, in: top, .members)
        guard let second = try await SyncCollection.token(of: top, by: client) else { return (ofCollections, false) }
        try await put("a", inner.appending("a"))
        let ofAll = try await isReported(inner.appending("a"), since: second, in: top, .all)
        return (ofCollections ?? false, ofAll)
    }

    private func makeDirectory(_ path: RemotePath) async throws -> Bool {
        try await completed {
            try await client.send("MKCOL", client.root.url(of: path, isDirectory: true)).head.isSuccess
        }
    }

    /// - Returns: nil when the server sends no report at this level.
    private func isReported(
        _ path: RemotePath, since token: String, in top: RemotePath, _ level: SyncCollection.Level
    ) async throws -> Bool? {
        let report = SyncCollection(client: client, path: top, level: level, token: token)
        guard case .report(let part) = try await report.send() else { return nil }
        return part.changes.present.contains(path)
    }

    // MARK: - Sending

    /// Content that is sent directly to its path.
    private func sending(_ one: RemotePath, _ two: RemotePath) async throws -> ServerCapabilities {
        async let showsOnlyWhole = showsOnlyWhole(two)
        var capabilities = ServerCapabilities()
        let text = [UInt8]("abc".utf8)
        let pieces = Mutex([text])
        capabilities.takesAnyLength = try await unlessRefused {
            try await putIfAbsent(one, .pieces(count: nil) { pieces.withLock { $0.popLast() } }).isSuccess
        }
        if !capabilities.takesAnyLength { try await put("abc", one) }
        let found = try await server.propfind(one)
        capabilities.takesAnyLength = capabilities.takesAnyLength && found?.entry.size == Int64(text.count)
        let head = try await server.describe(one, by: "HEAD")?.found
        capabilities.headsAreTrue = found != nil && head?.entry == found?.entry
        capabilities.refusesReplacing = try await putIfAbsent(one, .bytes(Array("abcd".utf8))).status == 412
        capabilities.showsOnlyWhole = try await showsOnlyWhole
        return capabilities
    }

    private func putIfAbsent(_ path: RemotePath, _ body: HTTPBody) async throws -> HTTPResponseHead {
        try await completed {
            try await client.send("PUT", client.root.url(of: path), ["If-None-Match": "*"], body: body).head
        }
    }

    /// Whether a file is invisible until its upload is complete, and stays so when the upload is aborted.
    private func showsOnlyWhole(_ path: RemotePath) async throws -> Bool {
        struct Aborted: Error {}
        let isSeen = Mutex(false)
        let count = Atomic<Int>(0)
        // The second piece is requested when the first one was passed to the kernel, the third when both were.
        let piece = [UInt8](repeating: 0x78, count: 96 << 10)
        let answer = try? await client.send(
            "PUT", client.root.url(of: path),
            body: .pieces(count: Int64(4 * piece.count)) {
                if count.add(1, ordering: .relaxed).newValue < 3 { return piece }
                if try await appears(path) { isSeen.withLock { $0 = true } }
                throw Aborted()
            })
        guard answer == nil, count.load(ordering: .relaxed) == 3, !isSeen.withLock({ $0 }) else { return false }
        return try await !appears(path)
    }

    /// Whether a file is visible within the time that a server may need to show it.
    private func appears(_ path: RemotePath) async throws -> Bool {
        for _ in 0..<2 {
            try await Task.sleep(for: .milliseconds(100))
            if try await server.propfind(path) != nil { return true }
        }
        return false
    }

    // MARK: - Tags

    /// Whether new content within one second has a tag that no older content had. Some servers make tags from the location of
    /// the file on the disk, which the content after the next one gets again. A second may end in between: four contents in a
    /// row have to be of one.
    private func followsContent(_ path: RemotePath) async throws -> Bool {
        var tags: Set<[UInt8]> = []
        var (date, inARow) = (Int64?.none, 0)
        for text in "abcdefghijklmnop" {
            try await put(String(text), path)
            guard let found = try await server.propfind(path), found.entry.tag.first == UInt8(ascii: "e") else {
                return false
            }
            let modified = found.resource.modifiedAt
            if modified != date { (tags, date, inARow) = ([], modified, 0) }
            guard tags.insert(found.entry.tag).inserted else { return false }
            inARow += 1
            if inARow == 4 { return true }
        }
        return false
    }

    private func deletions(_ path: RemotePath) async throws -> ServerCapabilities.Conditions {
        let url = client.root.url(of: path)
        for conditions in [ServerCapabilities.Conditions.tagged, .match] {
            if try await server.propfind(path) == nil { try await put("a", path) }
            guard let etag = try await server.propfind(path)?.etag else { return .none }
            let wrong = ETag.condition(conditions, "\"yonder\"", of: url)
            guard try await client.send("DELETE", url, wrong).status == 412 else { continue }
            guard let present = try await server.propfind(path)?.etag else { continue }
            let right = ETag.condition(conditions, present, of: url)
            // A tag that has become weak cannot be tested.
            if right.isEmpty, etag.hasPrefix("W/") { continue }
            if try await client.send("DELETE", url, right).head.isSuccess { return conditions }
        }
        return .none
    }

    // MARK: - Requests

    private func put(_ text: String, _ path: RemotePath) async throws {
        try await completed { _ = try await changes.put(.bytes(Array(text.utf8)), at: path, of: directoryName) }
    }

    /// For messages: the user knows the directory, and not the hidden files.
    private var directoryName: String { files.prefix.parent.name ?? "/" }

    private static func isMoved(_ status: Int) -> Bool { [200, 201, 204].contains(status) }

    /// Moves a file between names that any server takes.
    ///
    /// - Throws: ``ProbeMoveFailure`` for a status that says nothing about the capability.
    private func plainMove(_ path: RemotePath, to newPath: RemotePath, _ fields: HTTPFields) async throws -> Int {
        let response = try await move(path, to: newPath, fields)
        guard !ProbeMoveFailure.isPassing(response) else { throw ProbeMoveFailure(response, in: directoryName) }
        return response.status
    }

    private func move(_ path: RemotePath, to newPath: RemotePath, _ fields: HTTPFields) async throws -> HTTPResponse {
        var fields = fields
        fields["Destination"] = client.root.url(of: newPath).description
        return try await completed { [fields] in
            try await client.send("MOVE", client.root.url(of: path), fields)
        }
    }
}
