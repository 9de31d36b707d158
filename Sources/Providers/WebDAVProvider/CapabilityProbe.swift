import FileProvider
import HTTPTransport
import Logging
import PathAddressing
import Synchronization

/// Finds out what a server does with preconditions, ETags and odd names, on files with hidden names that it removes again.
struct CapabilityProbe: Sendable {
    let remote: WebDAVRemote
    let directory: RemotePath
    let server: String?

    private var client: WebDAVClient { remote.client }

    /// - Throws: what keeps files from being made there.
    func run() async throws -> ServerCapabilities {
        let prefix = directory.appending(HiddenName.make())
        try remote.hiddenFiles.add(prefix, isProbe: true)
        let result: Result<ServerCapabilities, any Error>
        do {
            result = .success(try await capabilities(Self.names(prefix)))
        } catch is MovesNothing {
            result = .failure(FileProviderError(.cannotSynchronize, "\(client.base.host) moves nothing"))
        } catch {
            result = .failure(error)
        }
        // Also when this task was cancelled, in which no request would be made.
        let isGone = await Task { [remote] in await Self.removeAll(of: prefix, on: remote) }.value
        if isGone { remote.hiddenFiles.remove(prefix) }
        // A server that shows a part may make it of what was broken off as late as it likes. Nothing goes before: some servers
        // cannot list a directory meanwhile.
        if case .success(let capabilities) = result, !capabilities.showsOnlyWhole {
            for path in Self.names(prefix).plain.suffix(1) { remote.removeLater(path) }
        }
        // A server with a trash bin keeps them there; nobody waits for that.
        Task { [remote] in await remote.clearTrash(ofNamesBeginningWith: prefix.name ?? HiddenName.prefix) }
        return try result.get()
    }

    private func capabilities(_ trial: Names) async throws -> ServerCapabilities {
        let (paths, odd) = (trial.plain, trial.odd)
        var capabilities = ServerCapabilities(server: server)
        // The first says whether anything can be made here at all.
        try await put("a", paths[0])
        // Some servers cannot list a directory while something in it goes: nothing is listed between here ...
        capabilities.listsHiddenNames = try await names(beginningWith: trial.prefix).contains { $0 == paths[0].name }
        // Each on files of its own, all at the same time: whoever waits is far away.
        async let moves = probe((false, false)) { try await self.moves(paths[0], paths[1]) }
        async let survival = probe((false, false)) { try await survivesMoves(paths[2], paths[3]) }
        async let tags = probe(false) { try await followsContent(paths[4]) }
        async let deletions = probe(.none) { try await self.deletions(paths[5]) }
        async let oddNames = fates(of: odd)
        async let sending = probe(ServerCapabilities()) { try await self.sending(paths[6], paths[7]) }
        async let reports = probe((nil, nil)) { try await self.reports(in: trial.folder) }
        (capabilities.refusesOverwriting, capabilities.movesConditionally) = try await moves
        (capabilities.tagsSurviveMoves, capabilities.keepsAttributes) = try await survival
        capabilities.tagsFollowContent = try await tags
        capabilities.deletions = try await deletions
        capabilities.oddNames = try await oddNames
        let sent = try await sending
        capabilities.refusesReplacing = sent.refusesReplacing
        capabilities.showsOnlyWhole = sent.showsOnlyWhole
        capabilities.headsAreTrue = sent.headsAreTrue
        capabilities.takesAnyLength = sent.takesAnyLength
        (capabilities.reportsCollections, capabilities.reportsAll) = try await reports
        // ... and here.
        if capabilities.oddNames.values.contains(.sent) {
            let listed = Set(try await names(beginningWith: trial.prefix).map { Array($0.utf8) })
            for trial in odd where capabilities.oddNames[trial.part] == .sent && !listed.contains(trial.sentName) {
                capabilities.oddNames[trial.part] = .lost
            }
        }
        return capabilities
    }

    /// Nothing can be written on such a server.
    private struct MovesNothing: Error {}

    // MARK: - Probes

    /// Makes one probe. A server that answers a probe with nonsense, or breaks its connection each time, is not known to do
    /// what the probe is about, and is used for all the rest.
    ///
    /// - Parameter caution: what is assumed then.
    /// - Throws: what says nothing about the probe: no connection, no room, other credentials.
    private func probe<Value: Sendable>(
        _ caution: Value, _ body: @Sendable () async throws -> Value
    ) async throws -> Value {
        var isSecond = false
        while true {
            do {
                return try await body()
            } catch let error as FileProviderError {
                switch error.code {
                case .malformedResponse, .fileReadNoPermission, .cannotSynchronize: return giveUp(error, caution)
                case .serverUnreachable where isSecond && !Task.isCancelled:
                    // A connection that breaks twice where another request is answered is broken by what was asked.
                    guard (try? await remote.sight(of: directory, isDirectory: true)) != nil else { throw error }
                    return giveUp(error, caution)
                case .serverUnreachable where !Task.isCancelled: isSecond = true
                default: throw error
                }
            } catch let failure as RemoteConditionFailure {
                return giveUp(failure, caution)
            }
        }
    }

    private func giveUp<Value>(_ error: any Error, _ caution: Value) -> Value {
        client.transport.logger.debug("\(client.base.host) cannot be tried out in one respect: \(error)")
        return caution
    }

    /// What was sent whole the server may act on after the answer to the deletion of it: it is waited for, also when the
    /// trial is cancelled.
    private func completed<Value: Sendable>(
        _ body: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        try Task.checkCancellation()
        return try await Task { try await body() }.value
    }

    // MARK: - Names

    private func fates(of trials: [NameProbe]) async throws -> [ServerCapabilities.OddPart: ServerCapabilities.NameFate]
    {
        try await withThrowingTaskGroup(of: (ServerCapabilities.OddPart, ServerCapabilities.NameFate).self) { group in
            for trial in trials {
                group.addTask { (trial.part, try await probe(.lost) { try await fate(of: trial) }) }
            }
            return try await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
        }
    }

    /// - Returns: `sent` where that which was sent has still to be looked for in a listing.
    private func fate(of trial: NameProbe) async throws -> ServerCapabilities.NameFate {
        try await put("a", trial.source)
        // Cyrus writes the new name into a field of its answer as it is, and with a line's end in it that is no HTTP.
        let isMoved = try await unlessRefused {
            [200, 201, 204].contains(try await move(trial.source, to: trial.moved, ["Overwrite": "F"]))
        }
        if isMoved, try await isThere(trial.moved) { return .kept }
        let isTaken = try await unlessRefused {
            try await put("a", trial.sent)
            return true
        }
        guard isTaken else { return .lost }
        return try await isThere(trial.sent) ? .sent : .lost
    }

    private func isThere(_ path: RemotePath) async throws -> Bool {
        try await unlessRefused { try await remote.sight(of: path) != nil }
    }

    /// Some servers refuse a name whatever is asked of it, each with an answer of its own.
    ///
    /// - Throws: what says nothing about the name: no connection, no room, other credentials.
    private func unlessRefused(_ body: () async throws -> Bool) async throws -> Bool {
        do {
            return try await body()
        } catch let error as FileProviderError {
            switch error.code {
            case .malformedResponse, .cannotSynchronize, .noSuchItem, .fileReadNoPermission: return false
            default: throw error
            }
        } catch is RemoteConditionFailure {
            return false
        }
    }

    // MARK: - Moving

    /// - Parameter one: something is there.
    private func moves(
        _ one: RemotePath, _ two: RemotePath
    ) async throws -> (refusesOverwriting: Bool, areConditional: Bool) {
        try await put("b", two)
        let refusesOverwriting = try await move(one, to: two, ["Overwrite": "F"]) == 412
        if !refusesOverwriting { try await put("a", one) }

        // Onto something, with a condition that does not hold, and with one that does.
        guard let (wrong, _) = try await state(of: two),
            try await move(one, to: two, ["Overwrite": "T", "If": wrong]) == 412,
            let (_, right) = try await state(of: two)
        else { return (refusesOverwriting, false) }
        let status = try await move(one, to: two, ["Overwrite": "T", "If": right])
        return (refusesOverwriting, [200, 201, 204].contains(status))
    }

    /// Whether what is moved keeps its tag, and properties of our own.
    private func survivesMoves(
        _ one: RemotePath, _ two: RemotePath
    ) async throws -> (tags: Bool, attributes: Bool) {
        try await put("a", one)
        let kept = try await attributesAreSet(one)
        let before = try await remote.sight(of: one)
        guard [200, 201, 204].contains(try await move(one, to: two, ["Overwrite": "F"])) else {
            throw MovesNothing()
        }
        let after = try await remote.sight(of: two)
        let isSame = before?.entry.tag == after?.entry.tag && after != nil
        guard let kept, kept.tag == before?.entry.tag else { return (isSame, false) }
        return (isSame, try await attributes(of: two) == kept.held)
    }

    // MARK: - Reports

    /// Whether reports tell of a collection that came in another, and of what came in that; nil for what is not offered.
    private func reports(in top: RemotePath) async throws -> (ofCollections: Bool?, ofAll: Bool?) {
        guard remote.reportCapabilities.isOffered else { return (nil, nil) }
        let inner = top.appending("a")
        defer { remote.removeLater(top, isDirectory: true) }
        guard try await makeDirectory(top), let first = try await remote.token(of: top), try await makeDirectory(inner)
        else { return (false, false) }
        let ofCollections = try await isReported(inner, since: first, in: top, .members)
        guard let second = try await remote.token(of: top) else { return (ofCollections, false) }
        try await put("a", inner.appending("a"))
        let ofAll = try await isReported(inner.appending("a"), since: second, in: top, .all)
        return (ofCollections ?? false, ofAll)
    }

    private func makeDirectory(_ path: RemotePath) async throws -> Bool {
        try await completed {
            try await client.send("MKCOL", client.url(of: path, isDirectory: true)).head.isSuccess
        }
    }

    /// - Returns: nil where nothing is reported at this level.
    private func isReported(
        _ path: RemotePath, since token: String, in top: RemotePath, _ level: SyncCollection.Level
    ) async throws -> Bool? {
        let question = SyncCollection(client: client, path: top, level: level, token: token)
        guard case .report(let part) = try await question.ask() else { return nil }
        return part.changes.present.contains(path)
    }

    // MARK: - Sending

    /// What a server does with what is sent to its place at once.
    private func sending(_ one: RemotePath, _ two: RemotePath) async throws -> ServerCapabilities {
        async let showsOnlyWhole = showsOnlyWhole(two)
        var capabilities = ServerCapabilities()
        let text = [UInt8]("abc".utf8)
        let given = Once()
        capabilities.takesAnyLength = try await unlessRefused {
            try await completed {
                try await client.send(
                    "PUT", client.url(of: one), ["If-None-Match": "*"],
                    body: .pieces(count: nil) { given.take() ? nil : text }
                ).head.isSuccess
            }
        }
        if !capabilities.takesAnyLength { try await put("abc", one) }
        let sight = try await remote.sight(of: one)
        capabilities.takesAnyLength = capabilities.takesAnyLength && sight?.entry.size == Int64(text.count)
        capabilities.headsAreTrue = try await remote.glance(at: one)?.entry == sight?.entry && sight != nil
        let again = try await completed {
            try await client.send(
                "PUT", client.url(of: one), ["If-None-Match": "*"], body: .bytes(Array("abcd".utf8))
            ).status
        }
        capabilities.refusesReplacing = again == 412
        capabilities.showsOnlyWhole = try await showsOnlyWhole
        return capabilities
    }

    /// Whether nobody sees what has come in part: neither while more is to come, nor when no more does.
    private func showsOnlyWhole(_ path: RemotePath) async throws -> Bool {
        struct BrokenOff: Error {}
        let isSeen = Mutex(false)
        let count = Mutex(0)
        // The second piece goes when the first has been given to the kernel, the look when both are on their way.
        let piece = [UInt8](repeating: 0x78, count: 96 << 10)
        let answer = try? await client.send(
            "PUT", client.url(of: path),
            body: .pieces(count: Int64(4 * piece.count)) {
                let number = count.withLock { count in
                    count += 1
                    return count
                }
                if number < 3 { return piece }
                for _ in 0..<2 {
                    try await Task.sleep(for: Self.pause)
                    if try await remote.sight(of: path) != nil { isSeen.withLock { $0 = true } }
                }
                throw BrokenOff()
            })
        guard answer == nil, count.withLock({ $0 }) == 3, !isSeen.withLock({ $0 }) else { return false }
        for _ in 0..<2 {
            try await Task.sleep(for: Self.pause)
            if try await remote.sight(of: path) != nil { return false }
        }
        return true
    }

    /// Says once that something has not been taken.
    private final class Once: Sendable {
        private let isTaken = Mutex(false)

        func take() -> Bool {
            isTaken.withLock { isTaken in
                defer { isTaken = true }
                return isTaken
            }
        }
    }

    /// So long a server may need to do what is seen at once otherwise.
    private static let pause = Duration.milliseconds(100)

    /// Whether new content within a second has a tag that no older content has: some take theirs from where the file
    /// lies, which the one after the next does again. Tried more than once, for a second may end in between.
    private func followsContent(_ path: RemotePath) async throws -> Bool {
        for _ in 0..<3 {
            var sights: [WebDAVRemote.Sight] = []
            for text in ["a", "b", "c", "d"] {
                try await put(text, path)
                guard let sight = try await remote.sight(of: path), sight.entry.tag.first == UInt8(ascii: "e") else {
                    return false
                }
                if sights.contains(where: { $0.entry.tag == sight.entry.tag }) { return false }
                sights.append(sight)
            }
            if Set(sights.map(\.resource.modifiedAt)).count == 1 { return true }
        }
        return false
    }

    /// Sets properties of our own.
    ///
    /// - Returns: what was set, and the tag that the file had before; nil when the server says that it was not.
    private func attributesAreSet(_ path: RemotePath) async throws -> (held: HeldAttributes, tag: [UInt8])? {
        guard let there = try await remote.sight(of: path) else { return nil }
        let wanted = RemoteAttributes(
            contentModificationDate: FileTimestamp(seconds: 1_000_000_000, nanoseconds: 1), permissions: 0o751)
        let held = HeldAttributes(wanted, of: there.resource)
        return try await remote.hold(held, of: there.resource, at: path) ? (held, there.entry.tag) : nil
    }

    private func attributes(of path: RemotePath) async throws -> HeldAttributes? {
        let found = Mutex<DAVResource?>(nil)
        _ = try await client.properties(
            client.url(of: path), depth: 0,
            body: DAVResource.request(withIdentifiers: false, withQuota: false, withHeld: true), what: path.name ?? "/"
        ) { resource, _ in found.withLock { $0 = $0 ?? resource } }
        return found.withLock { $0 }.flatMap { HeldAttributes(of: $0) }
    }

    private func deletions(_ path: RemotePath) async throws -> ServerCapabilities.Conditions {
        let url = client.url(of: path)
        for conditions in [ServerCapabilities.Conditions.tagged, .match] {
            if try await remote.sight(of: path) == nil { try await put("a", path) }
            guard let etag = try await remote.sight(of: path)?.etag else { return .none }
            let wrong = WebDAVRemote.condition(conditions, "\"yonder\"", of: url)
            guard try await client.send("DELETE", url, wrong).status == 412 else { continue }
            guard let present = try await remote.sight(of: path)?.etag else { continue }
            let right = WebDAVRemote.condition(conditions, present, of: url)
            // One that is weak by now cannot be tried.
            if right.isEmpty, etag.hasPrefix("W/") { continue }
            if try await client.send("DELETE", url, right).head.isSuccess { return conditions }
        }
        return .none
    }

    /// The conditions that a file has a tag which it has not, and that it has the one it has; nil where there are no tags.
    private func state(of path: RemotePath) async throws -> (wrong: String, right: String)? {
        guard let etag = try await remote.sight(of: path)?.etag else { return nil }
        let url = client.url(of: path)
        return ("<\(url)> ([\"yonder\"])", "<\(url)> ([\(etag)])")
    }

    private func put(_ text: String, _ path: RemotePath) async throws {
        try await completed { try await remote.put(.bytes(Array(text.utf8)), at: path, for: path.name ?? "/") }
    }

    private func move(_ path: RemotePath, to newPath: RemotePath, _ fields: HTTPFields) async throws -> Int {
        var fields = fields
        fields["Destination"] = client.url(of: newPath).description
        return try await completed { [fields] in
            try await client.send("MOVE", client.url(of: path), fields).status
        }
    }
}
