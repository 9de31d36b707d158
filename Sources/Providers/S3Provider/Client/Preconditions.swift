import FileProvider
import FileProviderPaths
import HTTPTransport
import Logging
import Synchronization

/// Finds out which preconditions a server honours, and sends them where it does.
final class Preconditions: Sendable {
    private struct State {
        /// Nil while it is not known.
        var support: ConditionSupport?
        var probe: Task<Void, Never>?
        /// What a probe has found, until the next change begins. A change that relies on ``support`` must not lose it because of a probe
        /// that it has begun.
        var found: Probed<ConditionSupport>?
        /// How many probes in a row were incomplete, and when the next one is due; nil after a complete one.
        var incomplete = 0
        var nextProbe: ContinuousClock.Instant?
        var deletesMany = true

        mutating func adoptFound(pause: Duration) {
            guard let found = self.found.take() else { return }
            if found.isComplete || support?.onCreating != true {
                var value = found.value
                if support?.hasRefusedRightTag == true { (value.replacing, value.hasRefusedRightTag) = (nil, true) }
                support = value
            }
            nextProbe = found.isComplete ? nil : ContinuousClock.now + pause * (1 << min(incomplete, 6))
            incomplete = found.isComplete ? 0 : incomplete + 1
        }
    }

    private struct Probed<Value: Sendable>: Sendable {
        var value: Value
        /// False where the server was too busy for some of it, or failed: a later probe may find more.
        var isComplete = true
    }

    private let client: S3Client
    private let rootPrefix: String
    private let pause: Duration
    private let state = Mutex(State())
    /// No process waits for the requests of a repeated probe.
    private static let background = CallContext(urgency: CallUrgency(false), wait: { _ in })

    /// - Parameter pause: how long after an incomplete probe the next one is made; twice as long after each further one.
    init(client: S3Client, pause: Duration) {
        self.client = client
        rootPrefix = client.location.prefix
        self.pause = pause
    }

    /// What was found out; nil before the first probe.
    var known: ConditionSupport? { state.withLock { $0.support } }

    /// Whether the server knows the request that deletes many objects.
    var deletesMany: Bool { state.withLock { $0.deletesMany } }

    /// The server does not honour the preconditions of deletions.
    func noteDeletionsUnchecked() {
        state.withLock { state in
            state.support?.deleting = nil
            state.support?.deletingMany = nil
        }
    }

    /// Which preconditions the server honours. Called when a change begins. The server is probed once, with objects made for that;
    /// concurrent callers share the probe. Where it was too busy to answer all, it is probed again later, in the background.
    @discardableResult
    func support() async -> ConditionSupport {
        let probing = state.withLock { state -> (task: Task<Void, Never>, isShared: Bool)? in
            state.adoptFound(pause: pause)
            if state.support != nil {
                if state.probe == nil, let next = state.nextProbe, next <= ContinuousClock.now {
                    state.probe = CallContext.$current.withValue(Self.background) { Task { await self.findOut() } }
                }
                return nil
            }
            if let running = state.probe { return (running, true) }
            let task = Task { await self.findOut() }
            state.probe = task
            return (task, false)
        }
        guard let (task, isShared) = probing else { return known ?? .none }
        if isShared { await CallContext.waiting { await task.value } } else { await task.value }
        return state.withLock { state in
            state.adoptFound(pause: pause)
            // A server that could not be reached is probed again the next time.
            return state.support ?? ConditionSupport.none
        }
    }

    /// Ends the probe in progress.
    func cancelProbe() { state.withLock { $0.probe }?.cancel() }

    // MARK: - Sending

    /// The fields of a precondition, where the server honours it.
    ///
    /// - Parameter tag: the object's ETag while it has the content that the condition wants.
    private func fields(for condition: RemoteCondition, _ support: ConditionSupport?, tag: String?) -> HTTPFields {
        guard let support, support.honours(condition) else { return [:] }
        switch condition {
        case .always, .empty: return [:]
        case .absent: return ["If-None-Match": "*"]
        case .unchanged:
            guard let spelling = support.replacing, let tag else { return [:] }
            return ["If-Match": spelling.value(tag)]
        }
    }

    /// Makes a change with a precondition, and without it where it turns out that the server cannot be trusted with it: the
    /// condition was checked just before then.
    ///
    /// - Parameters:
    ///   - support: what was known when the change began. Where it honours the condition, nothing was checked before.
    ///   - tag: the object's ETag while it has the content that the condition wants.
    ///   - isUnchanged: whether the object still has that content.
    ///   - look: throws when the condition does not hold.
    ///   - body: gets the fields of the precondition.
    func sending(
        _ condition: RemoteCondition, _ support: ConditionSupport?, tag: String?,
        isUnchanged: () async throws -> Bool, look: () async throws -> Void,
        _ body: (HTTPFields) async throws -> Void
    ) async throws {
        var fields = fields(for: condition, support, tag: tag)
        for attempt in 1... {
            do {
                return try await body(fields)
            } catch let failure as S3Failure where failure.isUnimplemented && !fields.isEmpty {
                state.withLock { $0.support = ConditionSupport.none }
                try await look()
                return try await body([:])
            } catch let failure as S3Failure where failure.isRace && attempt < 3 {
                try await Task.sleep(for: .milliseconds(100 * attempt))
                if fields.isEmpty { try await look() }
            } catch let failure as S3Failure where failure.isUnmetCondition && !fields.isEmpty {
                guard case .unchanged = condition, try await isUnchanged() else { throw failure }
                client.logger.notice("the server refuses the ETag that an object has: objects are compared from now on")
                state.withLock { state in
                    state.support?.replacing = nil
                    state.support?.hasRefusedRightTag = true
                }
                fields = [:]
            }
        }
    }

    /// Deletes many objects with one request.
    ///
    /// - Parameter recheck: called before each repetition, where the server does not check the ETags.
    /// - Returns: the keys of those that have another ETag; nil when the server does not know this request.
    func delete(
        _ deletions: [Deletion], _ spelling: ConditionSupport.Spelling?,
        recheck: (@Sendable () async throws -> Void)? = nil
    ) async throws -> [String]? {
        let left = try await client.delete(deletions, spelling, recheck: recheck)
        if left == nil { state.withLock { $0.deletesMany = false } }
        return left
    }

    // MARK: - Probing

    private func findOut() async {
        let found = await probe()
        state.withLock { ($0.probe, $0.found) = (nil, found) }
    }

    /// - Returns: nil when the server could not be reached.
    private func probe() async -> Probed<ConditionSupport>? {
        async let writing = probing(ConditionSupport.none) { try await self.probeWriting($0) }
        async let copying = probing(false) { try await self.probeCopying($0) }
        async let comparing = probing(false) { try await self.probeSources($0) }
        async let deleting = probing(ConditionSupport.Spelling?.none) { try await self.probeDeleting($0) }
        async let deletingMany = probing(ConditionSupport.Spelling?.none) { try await self.probeDeletingMany($0) }
        guard let writes = await writing, let copies = await copying, let sources = await comparing,
            let one = await deleting, let many = await deletingMany
        else { return nil }
        var found = writes.value
        // Without the listing of what was written it is not known whether listings have other ETags.
        found.comparesSources = writes.isComplete && sources.value
        found.onCopying = found.onCreating && copies.value
        if found.listsOtherTags {
            client.noteOtherTagsListed()
            found.replacing = nil
            found.comparesSources = false
        } else if found.onCreating {
            // The preconditions of deletions are relied on only where those of writes are honoured.
            (found.deleting, found.deletingMany) = (one.value, one.value == nil ? nil : many.value)
        }
        let isComplete = [
            writes.isComplete, copies.isComplete, sources.isComplete, one.isComplete, many.isComplete,
        ].allSatisfy { $0 }
        return Probed(value: found, isComplete: isComplete)
    }

    /// Runs one of the probes with an object of its own.
    ///
    /// - Returns: `nothing` for a probe that the server refuses or does not answer; nil when it could not be reached.
    private func probing<Value: Sendable>(
        _ nothing: Value, _ body: (_ key: String) async throws -> Value
    ) async -> Probed<Value>? {
        do {
            return Probed(value: try await withObject(body))
        } catch let error {
            let translated = (error as? S3Failure)?.error ?? error as? FileProviderError
            guard let translated,
                error is S3Failure
                    || translated.code.reaction != .latchDomain && translated.code != .userCancelled
            else { return nil }
            client.logger.debug("not all conditions could be tried: \(translated.message)")
            return Probed(value: nothing, isComplete: !Self.isPassing(error))
        }
    }

    /// Whether an error says nothing of what the server honours.
    private static func isPassing(_ error: any Error) -> Bool {
        if let failure = error as? S3Failure {
            return failure.status == 429 || failure.status >= 500 && !failure.isUnimplemented
        }
        switch (error as? FileProviderError)?.code {
        case .malformedResponse?, .timedOut?, .providerDomainTemporarilyUnavailable?: return true
        default: return false
        }
    }

    /// Runs a body with a key of its own, and deletes what it leaves there.
    private func withObject<Value: Sendable>(_ body: (_ key: String) async throws -> Value) async throws -> Value {
        let key = rootPrefix + HiddenName.make()
        defer { Task { [client] in try? await client.send { client.request("DELETE", key) } } }
        return try await body(key)
    }

    /// An ETag that no object has.
    private static let wrongTag = "\"00000000000000000000000000000000\""

    private func probeWriting(_ key: String) async throws -> ConditionSupport {
        var found = ConditionSupport()
        guard let (made, isConditional) = try await makeNew(key) else { return found }
        // It was written once: every listing shows this content.
        async let written = client.object(key)
        async let listing = client.list(prefix: key, isFlat: true, limit: 1, isRaw: true).entries.first
        guard let there = try await written else { return found }
        if case .object(let object)? = try await listing, object.key.utf8.elementsEqual(key.utf8) {
            found.listsOtherTags = object.tag != there.tag
            found.answersWithListedTags = made.fields["ETag"].map(S3Object.quoted) == object.tag
        }
        guard isConditional, try await send("PUT", key, ["If-None-Match": "*"]) == nil else { return found }
        found.onCreating = true
        for spelling in ConditionSupport.Spelling.allCases {
            guard try await send("PUT", key, ["If-Match": spelling.value(there.tag)]) != nil else { continue }
            let isRefused = try await send("PUT", key, ["If-Match": spelling.value(Self.wrongTag)]) == nil
            if isRefused { found.replacing = spelling }
            break
        }
        return found
    }

    /// - Returns: nil when the server says that there is an object of that name.
    private func makeNew(_ key: String) async throws -> (response: HTTPResponse, isConditional: Bool)? {
        do {
            return try await send("PUT", key, ["If-None-Match": "*"]).map { ($0, true) }
        } catch let failure as S3Failure where failure.isUnimplemented {
            return try await send("PUT", key, [:]).map { ($0, false) }
        }
    }

    private func probeCopying(_ key: String) async throws -> Bool {
        guard try await makeObject(key) != nil else { return false }
        return try await withObject { copy in
            let fields: HTTPFields = [
                "x-amz-copy-source": self.client.copySource(key), "If-None-Match": "*",
            ]
            guard try await self.send("PUT", copy, fields) != nil, try await self.client.object(copy) != nil else {
                return false
            }
            return try await self.send("PUT", copy, fields) == nil
        }
    }

    private func probeSources(_ key: String) async throws -> Bool {
        guard let tag = try await makeObject(key) else { return false }
        return try await withObject { copy in
            func isCopied(ifTagged tag: String) async throws -> Bool {
                let fields: HTTPFields = [
                    "x-amz-copy-source": self.client.copySource(key), "x-amz-copy-source-if-match": tag,
                ]
                return try await self.send("PUT", copy, fields) != nil
            }
            // The response alone is not trusted.
            guard try await !isCopied(ifTagged: Self.wrongTag), try await self.client.object(copy) == nil,
                try await isCopied(ifTagged: tag)
            else { return false }
            return try await self.client.object(copy) != nil
        }
    }

    private func probeDeleting(_ key: String) async throws -> ConditionSupport.Spelling? {
        guard let tag = try await makeObject(key) else { return nil }
        for spelling in ConditionSupport.Spelling.allCases {
            if try await send("DELETE", key, ["If-Match": spelling.value(Self.wrongTag)]) != nil { return nil }
            if try await send("DELETE", key, ["If-Match": spelling.value(tag)]) != nil {
                return try await client.object(key) == nil ? spelling : nil
            }
        }
        return nil
    }

    private func probeDeletingMany(_ key: String) async throws -> ConditionSupport.Spelling? {
        guard deletesMany, let tag = try await makeObject(key) else { return nil }
        for spelling in ConditionSupport.Spelling.allCases {
            // The response alone is not trusted.
            guard try await delete([Deletion(key: key, tag: Self.wrongTag)], spelling) == [key],
                try await client.object(key) != nil
            else { return nil }
            if try await delete([Deletion(key: key, tag: tag)], spelling) == [] {
                return try await client.object(key) == nil ? spelling : nil
            }
        }
        return nil
    }

    /// - Returns: the ETag of the object that was made.
    private func makeObject(_ key: String) async throws -> String? {
        _ = try await send("PUT", key, [:])
        return try await client.object(key)?.tag
    }

    /// - Returns: nil when the request was refused because of its precondition.
    private func send(_ method: String, _ key: String, _ fields: HTTPFields) async throws -> HTTPResponse? {
        do {
            return try await client.send { [client] in
                client.request(method, key, fields: fields, body: method == "PUT" ? .bytes([]) : nil)
            }
        } catch let failure as S3Failure where failure.isUnmetCondition {
            return nil
        }
    }
}
