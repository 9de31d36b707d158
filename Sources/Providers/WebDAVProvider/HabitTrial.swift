import FileProvider
import HTTPTransport
import PathAddressing
import Synchronization

/// Finds out what a server does with conditions and tags, on two files with hidden names that go again.
struct HabitTrial: Sendable {
    let remote: WebDAVRemote
    let directory: RemotePath
    let server: String?

    private var client: WebDAVClient { remote.client }

    /// - Throws: what keeps files from being made there.
    func run() async throws -> ServerHabits {
        let prefix = HiddenName.make()
        let one = directory.appending(prefix + "-1")
        let two = directory.appending(prefix + "-2")
        // Names that are not listed everywhere go by name.
        let odd = ["-3", "-4"].map { directory.appending(prefix + $0 + Self.oddEnd) }
        do {
            var habits = try await habits(one, two)
            habits.oddNames = try await oddNames(prefix, one, odd[0], odd[1])
            try await put("a", one)
            habits.listsHiddenNames = try await names(beginningWith: prefix).contains { $0 == one.name }
            await removeAll(prefix, [one, two] + odd)
            return habits
        } catch {
            await removeAll(prefix, [one, two] + odd)
            throw error
        }
    }

    /// Also what the server called otherwise than it was told.
    private func removeAll(_ prefix: String, _ paths: [RemotePath]) async {
        let names = (try? await names(beginningWith: prefix)) ?? []
        for path in Set(paths + names.map { directory.appending($0) }) {
            _ = try? await client.send("DELETE", client.url(of: path))
        }
    }

    private func names(beginningWith prefix: String) async throws -> [String] {
        try await remote.entries(in: directory, from: nil, limit: .max).entries.map(\.name)
            .filter { $0.utf8.starts(with: prefix.utf8) }
    }

    private static let oddEnd = "\n?#%41;\u{7F}"

    private func oddNames(
        _ prefix: String, _ one: RemotePath, _ moved: RemotePath, _ sent: RemotePath
    ) async throws -> ServerHabits.OddNames {
        try await put("a", one)
        if [200, 201, 204].contains(try await move(one, to: moved, ["Overwrite": "F"])),
            try await remote.sight(of: moved) != nil
        {
            return .kept
        }
        guard (try? await put("a", sent)) != nil else { return .lost }
        let isThere = try await remote.sight(of: sent) != nil
        let isListed = try await names(beginningWith: prefix).contains { $0.utf8.elementsEqual((sent.name ?? "").utf8) }
        return isThere && isListed ? .sent : .lost
    }

    private func habits(_ one: RemotePath, _ two: RemotePath) async throws -> ServerHabits {
        var habits = ServerHabits(server: server)
        habits.tagsFollowContent = try await followsContent(one)
        try await put("b", two)
        let refused = try await move(one, to: two, ["Overwrite": "F"])
        habits.refusesOverwriting = refused == 412
        if !habits.refusesOverwriting { try await put("a", one) }

        // Onto something, with a condition that does not hold, and with one that does.
        if let (wrong, _) = try await state(of: two) {
            if try await move(one, to: two, ["Overwrite": "T", "If": wrong]) == 412 {
                if let (_, right) = try await state(of: two) {
                    let status = try await move(one, to: two, ["Overwrite": "T", "If": right])
                    habits.movesConditionally = [200, 201, 204].contains(status)
                }
            }
        }
        try await put("a", one)
        let kept = try await attributesAreSet(one)
        let before = try await remote.sight(of: one)
        try? await deleteQuietly(two)
        guard [200, 201, 204].contains(try await move(one, to: two, ["Overwrite": "F"])) else {
            throw FileProviderError(.cannotSynchronize, "\(client.base.host) moves nothing")
        }
        let after = try await remote.sight(of: two)
        habits.tagsSurviveMoves = before?.entry.tag == after?.entry.tag && after != nil
        if let kept, kept.tag == before?.entry.tag {
            habits.keepsAttributes = try await attributes(of: two) == kept.held
        }

        habits.deletions = try await deletions(two)
        return habits
    }

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

    private func deleteQuietly(_ path: RemotePath) async throws {
        _ = try await client.send("DELETE", client.url(of: path))
    }

    private func move(_ path: RemotePath, to newPath: RemotePath, _ fields: HTTPFields) async throws -> Int {
        var fields = fields
        fields["Destination"] = client.url(of: newPath).description
        return try await client.send("MOVE", client.url(of: path), fields).status
    }
}
