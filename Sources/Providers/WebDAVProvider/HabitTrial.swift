import FileProvider
import HTTPTransport
import PathAddressing

/// Finds out what a server does with conditions and tags, on two files with hidden names that go again.
struct HabitTrial: Sendable {
    let remote: WebDAVRemote
    let directory: RemotePath
    let server: String?

    private var client: WebDAVClient { remote.client }

    /// - Throws: what keeps files from being made there.
    func run() async throws -> ServerHabits {
        let one = directory.appending(HiddenName.make())
        let two = directory.appending(HiddenName.make())
        do {
            let habits = try await habits(one, two)
            await remove(one, two)
            return habits
        } catch {
            await remove(one, two)
            throw error
        }
    }

    private func remove(_ paths: RemotePath...) async {
        for path in paths { _ = try? await client.send("DELETE", client.url(of: path)) }
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
        let before = try await remote.sight(of: one)
        try? await deleteQuietly(two)
        guard [200, 201, 204].contains(try await move(one, to: two, ["Overwrite": "F"])) else {
            throw FileProviderError(.cannotSynchronize, "\(client.base.host) moves nothing")
        }
        let after = try await remote.sight(of: two)
        habits.tagsSurviveMoves = before?.entry.tag == after?.entry.tag && after != nil

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
