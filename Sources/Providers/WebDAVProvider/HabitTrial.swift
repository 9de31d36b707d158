import FileProvider
import HTTPTransport
import PathAddressing
import Synchronization

/// Finds out what a server does with conditions and tags, on files with hidden names that go again.
struct HabitTrial: Sendable {
    let remote: WebDAVRemote
    let directory: RemotePath
    let server: String?

    private var client: WebDAVClient { remote.client }

    /// - Throws: what keeps files from being made there.
    func run() async throws -> ServerHabits {
        let prefix = HiddenName.make()
        let paths = (1...9).map { directory.appending("\(prefix)-\($0)") }
        // Names that are not listed everywhere go by name.
        let odd = ["-a", "-b"].map { directory.appending(prefix + $0 + Self.oddEnd) }
        do {
            var habits = ServerHabits(server: server)
            // The first says whether anything can be made here at all.
            try await put("a", paths[0])
            // Some servers cannot list a directory while something in it goes: nothing is listed between here ...
            habits.listsHiddenNames = try await names(beginningWith: prefix).contains { $0 == paths[0].name }
            // Each on files of its own, all at the same time: whoever waits is far away.
            async let moves = moves(paths[0], paths[1])
            async let survival = survivesMoves(paths[2], paths[3])
            async let tags = followsContent(paths[4])
            async let deletions = deletions(paths[5])
            async let oddNames = oddNames(paths[6], odd[0], odd[1])
            async let sending = sending(paths[7], paths[8])
            (habits.refusesOverwriting, habits.movesConditionally) = try await moves
            (habits.tagsSurviveMoves, habits.keepsAttributes) = try await survival
            habits.tagsFollowContent = try await tags
            habits.deletions = try await deletions
            habits.oddNames = try await oddNames
            let sent = try await sending
            habits.refusesReplacing = sent.refusesReplacing
            habits.showsOnlyWhole = sent.showsOnlyWhole
            habits.headsAreTrue = sent.headsAreTrue
            habits.takesAnyLength = sent.takesAnyLength
            // ... and here.
            if habits.oddNames == .sent, let name = odd[1].name,
                try await !names(beginningWith: prefix).contains(where: { $0.utf8.elementsEqual(name.utf8) })
            {
                habits.oddNames = .lost
            }
            await removeAll(prefix, paths + odd)
            return habits
        } catch {
            await removeAll(prefix, paths + odd)
            throw error
        }
    }

    /// Also what the server called otherwise than it was told.
    private func removeAll(_ prefix: String, _ paths: [RemotePath]) async {
        let names = (try? await names(beginningWith: prefix)) ?? []
        await withTaskGroup(of: Void.self) { group in
            for path in Set(paths + names.map { directory.appending($0) }) {
                group.addTask { _ = try? await client.send("DELETE", client.url(of: path)) }
            }
        }
    }

    private func names(beginningWith prefix: String) async throws -> [String] {
        try await remote.entries(in: directory, from: nil, limit: .max).entries.map(\.name)
            .filter { $0.utf8.starts(with: prefix.utf8) }
    }

    private static let oddEnd = "\n?#%41;\u{7F}"

    /// - Returns: `sent` where that which was sent has still to be looked for in a listing.
    private func oddNames(
        _ one: RemotePath, _ moved: RemotePath, _ sent: RemotePath
    ) async throws -> ServerHabits.OddNames {
        try await put("a", one)
        if [200, 201, 204].contains(try await move(one, to: moved, ["Overwrite": "F"])),
            try await remote.sight(of: moved) != nil
        {
            return .kept
        }
        guard (try? await put("a", sent)) != nil else { return .lost }
        return try await remote.sight(of: sent) != nil ? .sent : .lost
    }

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
            throw FileProviderError(.cannotSynchronize, "\(client.base.host) moves nothing")
        }
        let after = try await remote.sight(of: two)
        let isSame = before?.entry.tag == after?.entry.tag && after != nil
        guard let kept, kept.tag == before?.entry.tag else { return (isSame, false) }
        return (isSame, try await attributes(of: two) == kept.held)
    }

    // MARK: - Sending

    /// What a server does with what is sent to its place at once.
    private func sending(_ one: RemotePath, _ two: RemotePath) async throws -> ServerHabits {
        async let showsOnlyWhole = showsOnlyWhole(two)
        var habits = ServerHabits()
        let text = [UInt8]("abc".utf8)
        let given = Mutex(false)
        let status = try await client.send(
            "PUT", client.url(of: one), ["If-None-Match": "*"],
            body: .pieces(count: nil) { take(given) ? nil : text }
        ).status
        habits.takesAnyLength = (200..<300).contains(status)
        if !habits.takesAnyLength { try await put("abc", one) }
        let sight = try await remote.sight(of: one)
        habits.takesAnyLength = habits.takesAnyLength && sight?.entry.size == Int64(text.count)
        habits.headsAreTrue = try await remote.glance(at: one)?.entry == sight?.entry && sight != nil
        let again = try await client.send(
            "PUT", client.url(of: one), ["If-None-Match": "*"], body: .bytes(Array("abcd".utf8)))
        habits.refusesReplacing = again.status == 412
        habits.showsOnlyWhole = try await showsOnlyWhole
        return habits
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

    private func take(_ isTaken: borrowing Mutex<Bool>) -> Bool {
        isTaken.withLock { isTaken in
            defer { isTaken = true }
            return isTaken
        }
    }

    /// So long a server may need to do what is seen at once otherwise.
    private static let pause = Duration.milliseconds(100)

    /// Whether new content within a second has a new tag. Tried twice, for a second may end in between.
    private func followsContent(_ path: RemotePath) async throws -> Bool {
        for _ in 0..<3 {
            try await put("a", path)
            let first = try await remote.sight(of: path)
            try await put("b", path)
            let second = try await remote.sight(of: path)
            guard let first, let second, first.entry.tag.first == UInt8(ascii: "e") else { return false }
            if first.entry.tag == second.entry.tag { return false }
            if first.resource.modifiedAt == second.resource.modifiedAt { return true }
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

    private func deletions(_ path: RemotePath) async throws -> ServerHabits.Conditions {
        let url = client.url(of: path)
        for conditions in [ServerHabits.Conditions.tagged, .match] {
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
        try await remote.put(.bytes(Array(text.utf8)), at: path, for: path.name ?? "/")
    }

    private func move(_ path: RemotePath, to newPath: RemotePath, _ fields: HTTPFields) async throws -> Int {
        var fields = fields
        fields["Destination"] = client.url(of: newPath).description
        return try await client.send("MOVE", client.url(of: path), fields).status
    }
}
