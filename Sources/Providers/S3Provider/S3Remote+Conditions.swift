import FileProvider
import HTTPTransport
import Logging
import PathAddressing
import Synchronization

/// Which preconditions a server honours. Each was seen to accept the right ETag and to refuse a wrong one: a server that
/// refuses the right one turns every overwrite into a conflict, and one that accepts any overwrites the work of others.
struct ConditionSupport: Sendable, Hashable {
    /// How an ETag is written in `If-Match`. RFC 9110 wants quotes; Ceph's gateway compares what it is sent with the ETag
    /// without quotes.
    enum Spelling: Sendable, Hashable, CaseIterable {
        case quoted
        case bare

        func value(_ tag: String) -> String {
            self == .quoted ? tag : String(tag.drop { $0 == "\"" }.prefix { $0 != "\"" })
        }
    }

    /// `If-None-Match: *` keeps a PUT from replacing an object.
    var onCreating = false
    /// `If-Match` of a PUT; nil: it is not relied on, and the object is compared first.
    var replacing: Spelling?
    /// `If-Match` of a DELETE.
    var deleting: Spelling?
    /// The ETags of a request that deletes many objects.
    var deletingMany: Spelling?
    /// Listings show other ETags than requests for the objects: no precondition can be made of them.
    var listsOtherTags = false
    /// What was written had the same ETag in the answer, in a request for the object and in a listing.
    var answersWithListedTags = false
    /// The server has refused the ETag that an object has.
    var hasRefusedRightTag = false

    static let none = ConditionSupport()

    /// Whether a write is checked by the server itself.
    var onWriting: Bool { onCreating && replacing != nil }

    /// Whether the server itself checks this condition when an object is written.
    func honours(_ condition: RemoteCondition) -> Bool {
        switch condition {
        case .always, .empty: true
        case .absent: onCreating
        case .unchanged: replacing != nil
        }
    }

    /// What the user should know of it.
    var peculiarities: [String] {
        var sentences: [String] = []
        let risk = "what two write at the same moment may overwrite each other"
        if listsOtherTags {
            sentences.append(
                "this server lists other ETags than it gives for the objects themselves: each object is compared before "
                    + "it is overwritten or deleted, and \(risk)")
        } else if !onCreating && replacing == nil {
            return ["this server checks no conditions: \(risk)"]
        } else if replacing == nil || hasRefusedRightTag {
            sentences.append(
                "this server does not accept an object's own ETag as the condition for overwriting it: each object is "
                    + "compared before it is overwritten, and \(risk)")
        } else if replacing == .bare {
            sentences.append("this server wants the ETags of conditions without quotes, and gets them so")
        }
        if deleting == nil, !listsOtherTags {
            sentences.append(
                "this server checks no conditions when it deletes: what somebody writes in the moment in which it is "
                    + "deleted here may be lost")
        }
        return sentences
    }
}

extension S3Remote {
    /// Finds out which preconditions the server honours: once, with objects of its own. All who ask meanwhile share it.
    func conditions() async -> ConditionSupport {
        let task = state.withLock { state -> Task<ConditionSupport?, Never>? in
            if state.conditions != nil { return nil }
            if let running = state.probe { return running }
            let task = Task { await self.probeConditions() }
            state.probe = task
            return task
        }
        guard let task else { return state.withLock { $0.conditions ?? .none } }
        let found = await task.value
        state.withLock { state in
            if state.probe == task { state.probe = nil }
            if let found, state.conditions == nil { state.conditions = found }
        }
        // A server that could not be reached is asked the next time.
        return found ?? .none
    }

    /// - Returns: nil when the server could not be reached.
    private func probeConditions() async -> ConditionSupport? {
        async let writing = probing(ConditionSupport.none) { try await self.probeWriting($0) }
        async let deleting = probing(ConditionSupport.Spelling?.none) { try await self.probeDeleting($0) }
        async let deletingMany = probing(ConditionSupport.Spelling?.none) { try await self.probeDeletingMany($0) }
        guard var found = await writing, let one = await deleting, let many = await deletingMany else { return nil }
        if found.listsOtherTags {
            client.noteOtherTagsListed()
            found.replacing = nil
        } else if found.onCreating {
            // What a server without conditions for writing says of deleting was never relied on.
            (found.deleting, found.deletingMany) = (one, one == nil ? nil : many)
        }
        return found
    }

    /// Runs one of the probes with an object of its own.
    ///
    /// - Returns: `nothing` for what the server refuses to be asked; nil when it could not be reached.
    private func probing<Value: Sendable>(
        _ nothing: Value, _ body: (_ key: String) async throws -> Value
    ) async -> Value? {
        let key = rootPrefix + HiddenName.make()
        defer { remove(key) }
        do {
            return try await body(key)
        } catch let failure as S3Failure {
            client.logger.debug("not all conditions could be tried: \(failure.error.message)")
            return nothing
        } catch let error as FileProviderError where error.code.reaction != .latchDomain && error.code != .userCancelled
        {
            client.logger.debug("not all conditions could be tried: \(error.message)")
            return nothing
        } catch {
            return nil
        }
    }

    /// An ETag that no object has.
    private static let wrongTag = "\"00000000000000000000000000000000\""

    private func probeWriting(_ key: String) async throws -> ConditionSupport {
        var found = ConditionSupport()
        func put(_ fields: HTTPFields) async throws -> Bool {
            try await answer { [client] in client.request("PUT", key, fields: fields, body: .bytes([])) } != nil
        }
        let made = try await answer { [client] in
            client.request("PUT", key, fields: ["If-None-Match": "*"], body: .bytes([]))
        }
        guard let made, let there = try await object(key) else { return found }
        // It was written once: whatever a listing shows of it is about just this.
        if let listed = try await client.list(prefix: key, isFlat: true, limit: 1, isRaw: true).entries.first,
            case .object(let object) = listed, object.key.utf8.elementsEqual(key.utf8)
        {
            found.listsOtherTags = object.tag != there.tag
            found.answersWithListedTags = made.fields["ETag"].map(S3Object.quoted) == object.tag
        }
        guard try await !put(["If-None-Match": "*"]) else { return found }
        found.onCreating = true
        for spelling in ConditionSupport.Spelling.allCases {
            guard try await put(["If-Match": spelling.value(there.tag)]) else { continue }
            if try await !put(["If-Match": spelling.value(Self.wrongTag)]) { found.replacing = spelling }
            break
        }
        return found
    }

    private func probeDeleting(_ key: String) async throws -> ConditionSupport.Spelling? {
        guard let tag = try await makeProbe(key) else { return nil }
        func delete(_ tag: String) async throws -> Bool {
            try await answer { [client] in client.request("DELETE", key, fields: ["If-Match": tag]) } != nil
        }
        for spelling in ConditionSupport.Spelling.allCases {
            if try await delete(spelling.value(Self.wrongTag)) { return nil }
            if try await delete(spelling.value(tag)) { return try await object(key) == nil ? spelling : nil }
        }
        return nil
    }

    private func probeDeletingMany(_ key: String) async throws -> ConditionSupport.Spelling? {
        guard state.withLock({ $0.deletesMany }), let tag = try await makeProbe(key) else { return nil }
        for spelling in ConditionSupport.Spelling.allCases {
            // A word in an answer is not enough where so much depends on it.
            guard try await deleteTogether([Deletion(key: key, tag: Self.wrongTag)], spelling) == [key],
                try await object(key) != nil
            else { return nil }
            if try await deleteTogether([Deletion(key: key, tag: tag)], spelling) == [] {
                return try await object(key) == nil ? spelling : nil
            }
        }
        return nil
    }

    /// - Returns: the ETag of the object that was made.
    private func makeProbe(_ key: String) async throws -> String? {
        _ = try await client.send { [client] in client.request("PUT", key, body: .bytes([])) }
        return try await object(key)?.tag
    }

    /// - Returns: nil when the request was refused because of its condition.
    private func answer(_ make: @Sendable () -> HTTPRequest) async throws -> HTTPResponse? {
        do {
            return try await client.send(make)
        } catch let failure as S3Failure where failure.isUnmetCondition {
            return nil
        }
    }

    private func remove(_ key: String) {
        Task { [client] in try? await client.send { client.request("DELETE", key) } }
    }

    /// The fields that say a condition about the object at a key, where the server honours it.
    private func fields(for condition: RemoteCondition, at key: String) -> [(String, String)] {
        guard let support = state.withLock({ $0.conditions }), support.honours(condition) else { return [] }
        switch condition {
        case .always, .empty: return []
        case .absent: return [("If-None-Match", "*")]
        case .unchanged(let content):
            return support.replacing.map { [("If-Match", $0.value(tag(of: content, at: key)))] } ?? []
        }
    }

    /// Makes a change on a condition, and without it where it turns out that the server cannot be trusted with it: then the
    /// condition was looked at just before.
    func conditional(
        _ condition: RemoteCondition, at key: String, of path: RemotePath,
        _ body: ([(String, String)]) async throws -> Void
    ) async throws {
        var fields = fields(for: condition, at: key)
        for attempt in 1... {
            do {
                return try await body(fields)
            } catch let failure as S3Failure where failure.isUnimplemented && !fields.isEmpty {
                state.withLock { $0.conditions = ConditionSupport.none }
                return try await body([])
            } catch let failure as S3Failure where failure.isRace && attempt < 3 {
                try await Task.sleep(for: .milliseconds(100 * attempt))
            } catch let failure as S3Failure where failure.isUnmetCondition && !fields.isEmpty {
                guard case .unchanged(let content) = condition, try await has(content, at: path, key: key) else {
                    throw failure
                }
                // Nobody has changed the object: there is no conflict.
                client.logger.notice("the server refuses the ETag that an object has: objects are compared from now on")
                state.withLock { state in
                    state.conditions?.replacing = nil
                    state.conditions?.hasRefusedRightTag = true
                }
                fields = []
            }
        }
    }

    /// Whether the object at a key is still the content that an entry's tag stands for: by the listing, and by the object
    /// itself, because a listing may be older.
    func has(_ content: [UInt8], at path: RemotePath, key: String) async throws -> Bool {
        guard try await object(key)?.tag == tag(of: content, at: key) else { return false }
        return try await present(at: path)?.tag == content
    }
}
