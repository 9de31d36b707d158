import FileProvider
import FileProviderPaths
import HTTPTransport
import Logging
import Synchronization

/// Signed requests to one bucket.
final class S3Client: Sendable {
    private struct State {
        var location: S3Location
        /// How far the server's clock is ahead of this one, in seconds.
        var skew: Int64 = 0
        var habits = Habits()
        var isSwift = false
        /// Whether the server, or a proxy in front of it, gives whole objects where a range is requested.
        var ignoresRanges = false
    }

    /// What was seen of the server's listings. It is stored, because listings are compared with what an earlier process did, too.
    private struct Habits: Codable, Equatable {
        var listsOtherTags = false
        var listsLate = false
    }

    let transport: HTTPTransport
    let logger: Logger
    /// The operations on keys of the bucket.
    let ledger: OperationLedger
    private let state: Mutex<State>
    private let keptHabits: SurvivingRecords<Habits>
    private let source: CredentialSource
    private let isRegionKnown: Bool

    /// - Parameters:
    ///   - isRegionKnown: whether the user chose the region: no other is tried then.
    ///   - skew: by how many seconds the server's clock is assumed to be ahead at first.
    ///   - store: keeps what must survive a restart.
    init(
        _ location: S3Location, isRegionKnown: Bool, profile: String?,
        environment: @escaping @Sendable () -> [String: String],
        transport: HTTPTransport, logger: Logger, skew: Int64 = 0, store: ReportingStore = .temporary
    ) {
        ledger = OperationLedger(LedgerState.Settings(grace: .seconds(2)...(.seconds(30))), in: store)
        keptHabits = SurvivingRecords("s3.listings", in: store)
        state = Mutex(State(location: location, skew: skew, habits: keptHabits[Self.habitsKey] ?? Habits()))
        self.isRegionKnown = isRegionKnown
        self.transport = transport
        self.logger = logger
        source = CredentialSource(
            profile: profile, region: location.region, environment: environment, transport: transport)
    }

    var location: S3Location { state.withLock { $0.location } }

    /// Whether the server lists other ETags than it gives for the objects themselves.
    var listsOtherTags: Bool { state.withLock { $0.habits.listsOtherTags } }

    func noteOtherTagsListed() { noteHabit(\.listsOtherTags) }

    /// Whether a listing of this server was older than what it had acknowledged.
    var listsLate: Bool { state.withLock { $0.habits.listsLate } }

    func noteLateListing() { noteHabit(\.listsLate) }

    /// What the server says of an object. OpenStack Swift is asked for the first byte: to a HEAD of a missing object it sends the end of a
    /// body, which the next request on the connection would get as its response, and a connection for each object is slow.
    func head(_ key: String) async throws -> HTTPResponseHead {
        let (isSwift, ignoresRanges) = state.withLock { ($0.isSwift, $0.ignoresRanges) }
        guard isSwift else { return try await send { self.request("HEAD", key) }.head }
        if !ignoresRanges {
            do {
                let head = try await send { self.request("GET", key, fields: ["Range": "bytes=0-0"]) }.head
                if head.status == 206 { return head }
                // The body, which was not read, is the whole object.
                if head.contentLength.map({ $0 > 1 }) ?? true { state.withLock { $0.ignoresRanges = true } }
            } catch let failure as S3Failure where failure.status == 416 {
                // An empty object has no first byte.
            }
        }
        return try await send { self.request("HEAD", key, fields: ["Connection": "close"]) }.head
    }

    /// What a response says of the server. Called with every response: a process sends HEADs right after its first listing.
    func noteServer(_ head: HTTPResponseHead) {
        if head.fields["X-Openstack-Request-Id"] != nil { state.withLock { $0.isSwift = true } }
    }

    private static let habitsKey = Array("server".utf8)

    private func noteHabit(_ habit: WritableKeyPath<Habits, Bool>) {
        state.withLock { state in
            if state.habits[keyPath: habit] { return }
            state.habits[keyPath: habit] = true
            keptHabits.set(Self.habitsKey, state.habits)
        }
    }

    /// A request about a key, or the bucket.
    ///
    /// - Parameters:
    ///   - payloadHash: SHA-256 of the body where it is known already.
    ///   - keys: the keys that the request changes, where that is not `key`.
    ///   - recheck: called before each repetition, where the server does not check what the request changes.
    func request(
        _ method: String, _ key: String?, query: [(String, String)] = [], fields: HTTPFields = [:],
        body: HTTPBody? = nil, payloadHash: String? = nil, repetition: HTTPRequest.Repetition? = nil,
        changing keys: [String]? = nil, recheck: (@Sendable () async throws -> Void)? = nil
    ) -> HTTPRequest {
        var request = HTTPRequest(
            method, location.url(of: key, query: query), fields: fields, body: body, repetition: repetition)
        // After other statuses the request may have been applied. A body that is given once is not sent again at all.
        if !request.passingStatuses.isEmpty {
            request.passingStatuses = request.repetition == .harmless ? [429, 500, 502, 503, 504] : [429, 503]
        }
        request.followsRedirects = false
        let changes = keys ?? Self.changed(by: method, key, query)
        let mayRefuseName = ["PUT", "POST"].contains(method) && key.map(KeyNames.hasControlCharacters) ?? false
        if mayRefuseName { request.patience = Self.patienceForNames }
        request.authorizer = Signer(
            client: self, payloadHash: payloadHash, changes: changes, mayRefuseName: mayRefuseName,
            attempts: Attempts())
        if let recheck {
            let tag = request.tagOfWritten
            request.beforeRepetition = { [ledger] in
                // The check may end the request, and the attempt before had no response.
                for key in changes { ledger.noteUnknown(key, tag: tag) }
                try await recheck()
            }
        }
        return request
    }

    /// Some servers need a minute to refuse a key with control characters.
    private static let patienceForNames = Duration.seconds(120)

    /// The keys that a request changes; none for a request whose effect no other client sees.
    private static func changed(by method: String, _ key: String?, _ query: [(String, String)]) -> [String] {
        guard let key else { return [] }
        switch method {
        case "PUT", "DELETE": return query.isEmpty ? [key] : []
        case "POST": return query.contains { $0.0 == "uploadId" } ? [key] : []
        default: return []
        }
    }

    /// Sends a request as it is, and records its outcome in the ledger.
    func attempt(_ request: HTTPRequest) async throws -> HTTPResponse {
        let keys = (request.authorizer as? Signer)?.changes ?? []
        let number = keys.isEmpty ? nil : ledger.send(keys)
        let start = ContinuousClock.now
        var outcome = LedgerState.Outcome.refused
        defer { if let number { ledger.end(number, outcome) } }
        let isDeletion = request.method == "DELETE" || request.url.query?.hasPrefix("delete") == true
        let unknown = LedgerState.Outcome.unknown(isDeletion ? .deleted : .written(tag: request.tagOfWritten))
        do {
            let isRange = request.fields["Range"] != nil
            let answer = try await transport.send(request, bodyLimit: 8 << 20) { !isRange || $0.status != 200 }
            noteServer(answer.head)
            // The time for content does not tell how slow the server is.
            ledger.noteResponse(after: request.body?.isContent == true ? nil : .now - start)
            if answer.status >= 500 {
                // A gateway responds with these when it has lost the server's response.
                outcome = unknown
            } else if answer.head.isSuccess {
                let tag = answer.fields["ETag"].map(S3Object.quoted)
                outcome = .acknowledged(isDeletion ? .deleted : .written(tag: tag))
                if !isDeletion, let sent = request.tagOfWritten { for key in keys { ledger.noteSeen(key, tag: sent) } }
            }
            return answer
        } catch {
            if OperationLedger.isOutcomeUnknown(after: error) { outcome = unknown }
            throw error
        }
    }

    /// The response to a request does not say whether it was applied.
    func noteUnknown(_ request: HTTPRequest) {
        for key in (request.authorizer as? Signer)?.changes ?? [] {
            ledger.noteUnknown(key, tag: request.tagOfWritten)
        }
    }

    /// Sends a request, and once more with another clock, other credentials or another region where the first was wrong.
    ///
    /// - Throws: ``S3Failure`` for a response without success; ``FileProviderError``.
    func send(_ make: @Sendable () -> HTTPRequest) async throws -> HTTPResponse {
        try await again { tries in
            let request = make()
            if tries > 0 { try await request.beforeRepetition?() }
            let answer = try await self.attempt(request)
            guard answer.head.isSuccess else { throw self.failure(answer, of: request) }
            return answer
        }
    }

    func failure(_ answer: HTTPResponse, of request: HTTPRequest) -> S3Failure {
        var failure = S3Failure(answer, bucket: location.bucket)
        failure.mayBeAboutName = (request.authorizer as? Signer)?.mayRefuseName == true
        return failure
    }

    /// Repeats a body with another clock, other credentials or another region where the first was wrong.
    ///
    /// - Parameter body: gets the number of tries before.
    func again<Value: Sendable>(_ body: (_ tries: Int) async throws -> Value) async throws -> Value {
        var tries = 0
        while true {
            let start = ContinuousClock.now
            do {
                return try await body(tries)
            } catch let failure as S3Failure {
                tries += 1
                guard tries <= 3, await adapt(to: failure, since: start) else { throw failure }
            }
        }
    }

    /// - Parameter start: when the request began.
    /// - Returns: whether another attempt may succeed.
    private func adapt(to failure: S3Failure, since start: ContinuousClock.Instant) async -> Bool {
        if failure.isAboutTime, let date = failure.date {
            let skew = date - FileTimestamp.now.seconds
            return state.withLock { state in
                guard abs(state.skew - skew) > 5 else { return false }
                state.skew = skew
                logger.notice("the server's clock is \(skew) seconds ahead of this machine's")
                return true
            }
        }
        if failure.isAboutExpiry { return await source.renew(after: start, now: FileTimestamp.now.seconds) }
        if let region = failure.rightRegion, !isRegionKnown {
            return state.withLock { state in
                guard state.location.region != region else { return false }
                state.location.region = region
                return true
            }
        }
        return false
    }

    fileprivate func sign(_ request: inout HTTPRequest, payloadHash: String?) async throws {
        let (region, skew) = state.withLock { ($0.location.region, $0.skew) }
        let credentials = try await source.credentials(now: FileTimestamp.now.seconds)
        let hash: String
        switch request.body {
        case nil: hash = Signature.hash([])
        case .bytes(let bytes): hash = payloadHash ?? Signature.hash(bytes)
        case .content, .pieces: hash = payloadHash ?? Signature.unsignedPayload
        }
        Signature(region: region, credentials: credentials, time: FileTimestamp.now.seconds + skew).sign(
            &request, payloadHash: hash)
    }

    /// How often a request was sent.
    private final class Attempts: Sendable {
        private let count = Atomic<Int>(0)

        func next() -> Int { count.add(1, ordering: .relaxed).newValue }
    }

    private struct Signer: RequestAuthorizer {
        let client: S3Client
        let payloadHash: String?
        /// As ``S3Client/changed(by:_:_:)`` says.
        let changes: [String]
        /// Whether the request writes a key with control characters.
        let mayRefuseName: Bool
        let attempts: Attempts

        func authorize(_ request: inout HTTPRequest) async throws {
            // The attempts before this one had no response.
            if attempts.next() > 1 {
                for key in changes { client.ledger.noteUnknown(key, tag: request.tagOfWritten) }
            }
            try await client.sign(&request, payloadHash: payloadHash)
        }
    }
}

extension HTTPBody {
    fileprivate var isContent: Bool {
        switch self {
        case .bytes: false
        case .content, .pieces: true
        }
    }
}
