/// The state and the rules of an ``OperationLedger``: a value without a clock and without I/O, so that a model can check it.
///
/// Time comes in two forms. A *tick* orders what happens in this process: every beginning and every end of an operation gets
/// one. A ``Moment`` is passed in, and decides only how long a request without a response may still be applied.
package struct LedgerState: Sendable {
    private struct Unknown: Sendable {
        var record: Record
        /// When the server responded to anything for the first time since.
        var heardAt: ContinuousClock.Instant?
        var isOver = false
    }

    private struct Claim: Sendable {
        let extents: [PathExtent]
        let emptied: [PathExtent]
        /// Earlier claims that overlap it and have not ended.
        var blockers: Set<Tick>
        /// The paths that were renamed while it waited.
        var renamed: [String] = []
    }

    private struct Request: Sendable {
        let paths: [String]
        /// The key of the move that it makes.
        let move: [UInt8]?
    }

    private let settings: Settings
    private(set) package var tick: Tick = 0
    private var claims: [Tick: Claim] = [:]
    private var requests: [Tick: Request] = [:]
    package var moves: PossibleMoves
    /// Observers that wait for requests in flight.
    private var observers: [Tick: Set<Tick>] = [:]
    /// In the order of the paths' bytes.
    private var finished: [Finished] = []
    private var sweepAt = 1000
    private var forgottenThrough: Tick = 0
    private var unknown: [[UInt8]: Unknown] = [:]
    private var slowest: (took: Duration, at: ContinuousClock.Instant)?
    /// Whether the mark of a process that sends requests is on disk.
    private var isMarked = false
    private var durableChanges: [DurableChange] = []
    private var stored = StoredChanges()

    /// How long a response says how slow the server is, and how many times as long another request may take.
    private static let slownessMemory = Duration.seconds(120)
    private static let caution = 3
    /// For how many seconds content that arrives late is recognized.
    private static let tagMemory: Int64 = 3600

    package init(_ settings: Settings) {
        self.settings = settings
        moves = PossibleMoves(restoring: [])
    }

    /// - Parameter records: what an earlier process left on disk. All that had no response is in doubt again.
    package init(_ settings: Settings, restoring records: [Record], at now: Moment) {
        self.settings = settings
        moves = PossibleMoves(restoring: records.compactMap(\.move))
        for record in records where record.move == nil && record.ended == nil {
            unknown[record.name] = Unknown(record: record)
        }
        isMarked = unknown[Self.anywhere] != nil
        if settings.grace != nil { finished = stored.restore(records, within: settings.lag, at: now) }
    }

    /// What has to be written to disk since this was last asked.
    package mutating func takeDurableChanges() -> [DurableChange] {
        exchange(&durableChanges, with: [])
            + moves.takeDurableChanges().map { key, move in (key, move.map { Record(move: $0) }) }
    }

    package var hasUnstoredChanges: Bool { stored.isDue }

    /// What has to be written to disk soon, for listings after a restart.
    package mutating func takeRecentChanges(at now: Moment) -> [DurableChange] {
        guard stored.isDue else { return [] }
        let inFlight = Set(requests.values.flatMap(\.paths).map { Array($0.utf8) })
        return stored.take(finished, inFlight: inFlight, within: settings.lag, at: now)
    }

    private mutating func nextTick() -> Tick {
        tick += 1
        return tick
    }

    // MARK: - May this operation start?

    /// Claims paths. The claim may start once no earlier one that overlaps it is left, also none that itself waits:
    /// otherwise a claim of a large subtree would never start.
    package mutating func claim(_ extents: [PathExtent], emptying emptied: [PathExtent] = []) -> Tick {
        let blockers = claims.filter { earlier in
            earlier.value.extents.contains { one in extents.contains { $0.overlaps(one) } }
        }
        let number = nextTick()
        claims[number] = Claim(extents: extents, emptied: emptied, blockers: Set(blockers.keys))
        return number
    }

    /// Whether a claim, or an observer, waits for others.
    package func isWaiting(_ ticket: Tick) -> Bool {
        claims[ticket].map { !$0.blockers.isEmpty } ?? (observers[ticket] != nil)
    }

    /// Ends a claim, whether it had started or not.
    ///
    /// - Returns: the claims that may start now.
    package mutating func release(_ number: Tick) -> [Tick] {
        guard claims.removeValue(forKey: number) != nil else { return [] }
        var startable: [Tick] = []
        for other in claims.keys where claims[other]?.blockers.remove(number) != nil && !isWaiting(other) {
            startable.append(other)
        }
        return startable
    }

    package var claimCount: Int { claims.count }

    /// Whether an operation that has a path in common has started, or waits.
    package func isClaimed(_ extent: PathExtent) -> Bool {
        claims.values.contains { claim in claim.extents.contains { $0.overlaps(extent) } }
    }

    /// The paths that are empty once the claims that have started end.
    package var emptied: [PathExtent] { claims.values.filter(\.blockers.isEmpty).flatMap(\.emptied) }

    /// Tells the claims that wait that a path, and all below it, has another name now.
    package mutating func noteRenamed(_ path: String) {
        for number in claims.keys where isWaiting(number) { claims[number]?.renamed.append(path) }
    }

    package func renamed(before number: Tick) -> [String] { claims[number]?.renamed ?? [] }

    // MARK: - Requests

    /// A request is about to be sent.
    ///
    /// - Parameter move: what it does, where it moves an item.
    package mutating func send(_ paths: [String], making move: Move? = nil, at now: Moment) -> Tick {
        if settings.grace != nil, !isMarked {
            isMarked = true
            let mark = Record(path: [], tag: nil, sentAt: now.date)
            durableChanges.append((mark.name, mark))
        }
        for path in paths {
            let bytes = Array(path.utf8)
            if let change = stored.send(bytes, finished.latest(bytes)) { durableChanges.append(change) }
        }
        let number = nextTick()
        requests[number] = Request(paths: paths, move: move?.key)
        if let move { moves.send(move, as: number) }
        return number
    }

    /// - Returns: the observers that need not wait any more.
    package mutating func end(_ number: Tick, _ outcome: Outcome, at now: Moment) -> [Tick] {
        guard let request = requests.removeValue(forKey: number) else { return [] }
        if let move = request.move { moves.end(move, isMade: outcome.isApplied) }
        for path in request.paths {
            switch outcome {
            case .acknowledged(let effect): acknowledge(path, effect, at: now)
            case .refused, .unknown(.changed): finish(Array(path.utf8), nil, at: now)
            case .unknown(let effect): noteUnknown(path, tag: effect.tag, at: now)
            }
        }
        var ready: [Tick] = []
        for observer in observers.keys where observers[observer]?.remove(number) != nil {
            guard observers[observer]?.isEmpty == true else { continue }
            observers[observer] = nil
            ready.append(observer)
        }
        return ready
    }

    /// The server has acknowledged what it did to a path.
    package mutating func acknowledge(_ path: String, _ effect: Effect, at now: Moment) {
        finish(Array(path.utf8), effect, at: now)
        switch effect {
        case .written(let tag?): noteSeen(path, tag: tag)
        case .deleted:
            let bytes = Array(path.utf8)
            for (name, one) in unknown where one.record.isSeen && one.record.path == bytes {
                unknown[name]?.record.isSeen = false
                keep(name)
            }
        default: break
        }
    }

    /// A request for a path had no response. The server may have applied it, or may yet, even after a retry has succeeded.
    package mutating func noteUnknown(_ path: String, tag: String? = nil, at now: Moment) {
        let bytes = Array(path.utf8)
        let wasThere = tag.map { finished.latest(bytes)?.effect == .written(tag: $0) } ?? false
        finish(bytes, nil, isUnknown: true, at: now)
        guard settings.grace != nil else { return }
        if unknown.count >= settings.mostUnknown {
            for (name, one) in unknown where one.isOver && now.date - one.record.sentAt > Self.tagMemory { drop(name) }
            if unknown.count >= settings.mostUnknown {
                // None of them may be forgotten: from now on every path is in doubt.
                for name in unknown.keys { drop(name) }
                insert(Record(path: [], tag: nil, sentAt: now.date))
            }
        }
        var record = Record(path: bytes, tag: tag, sentAt: now.date)
        record.isSeen = wasThere || unknown[record.name]?.record.isSeen == true
        insert(record)
    }

    private mutating func insert(_ record: Record) {
        unknown[record.name] = Unknown(record: record)
        keep(record.name)
    }

    private mutating func keep(_ name: [UInt8]) { durableChanges.append((name, unknown[name]?.record)) }

    private mutating func drop(_ name: [UInt8]) {
        guard let one = unknown.removeValue(forKey: name) else { return }
        // The mark stays as long as the process sends requests.
        if !one.record.path.isEmpty { durableChanges.append((name, nil)) }
    }

    /// The server has responded to something.
    ///
    /// - Parameter took: how long that took, where it says how slow the server is.
    package mutating func noteResponse(after took: Duration? = nil, at now: Moment) {
        if let took, slowest.map({ took >= $0.took || now.instant - $0.at > Self.slownessMemory }) ?? true {
            slowest = (took, now.instant)
        }
        if unknown.isEmpty { return }
        for (name, one) in unknown where one.heardAt == nil { unknown[name]?.heardAt = now.instant }
        advance(to: now)
    }

    /// No request is sent any more. What is still in doubt is left on disk.
    package mutating func close(at now: Moment) {
        advance(to: now)
        guard isMarked, requests.isEmpty, unknown[Self.anywhere].map(\.isOver) ?? true else { return }
        isMarked = false
        unknown[Self.anywhere] = nil
        durableChanges.append((Self.anywhere, nil))
    }

    private static let anywhere = Record(path: [], tag: nil, sentAt: 0).name

    // MARK: - Is this observation still valid?

    /// Judges what was observed of some paths that were in no doubt when the observation was requested.
    ///
    /// - Parameters:
    ///   - tick: when the observation was requested.
    ///   - latest: requests that were sent later do not count as in flight; nil counts all.
    package func judge(_ extent: PathExtent, requestedAt tick: Tick, sentUntil latest: Tick? = nil) -> Verdict {
        let inFlight = requests.filter { number, request in
            number <= latest ?? number && request.paths.contains { extent.overlaps(.exactly($0)) }
        }
        if !inFlight.isEmpty { return .inFlight(Set(inFlight.keys)) }
        let newer = finished(in: extent).filter { $0.tick > tick }
        if tick < forgottenThrough { return .expired }
        return newer.isEmpty ? .fresh : .stale(newer)
    }

    /// Begins to wait until requests have ended.
    ///
    /// - Returns: nil when none of them is in flight.
    package mutating func observe(after numbers: Set<Tick>) -> Tick? {
        let pending = numbers.filter { requests[$0] != nil }
        if pending.isEmpty { return nil }
        let ticket = nextTick()
        observers[ticket] = pending
        return ticket
    }

    package mutating func dismiss(_ observer: Tick) { observers[observer] = nil }

    /// What may still be applied to some paths; nil when nothing may.
    package mutating func doubt(over extents: [PathExtent], at now: Moment) -> Doubt? {
        if unknown.isEmpty { return nil }
        advance(to: now)
        let due = unknown.values.filter { one in
            !one.isOver && (one.record.path.isEmpty || extents.contains { $0.contains(one.record.path) })
        }
        if due.isEmpty { return nil }
        var latest = now.instant
        for one in due {
            guard let heardAt = one.heardAt else { return .serverIsSilent }
            latest = max(latest, heardAt + grace(at: now))
        }
        return .until(latest)
    }

    /// Whether content with a tag at a path is what a request without a response has left there: it was neither seen nor
    /// acknowledged since it was last deleted.
    package func isLeftover(_ path: String, tag: String, at now: Moment) -> Bool {
        guard let one = unknown[Record(path: Array(path.utf8), tag: tag, sentAt: 0).name] else { return false }
        return !one.record.isSeen && now.date - one.record.sentAt <= Self.tagMemory
    }

    /// Content with a tag was seen at a path.
    package mutating func noteSeen(_ path: String, tag: String) {
        if unknown.isEmpty { return }
        let name = Record(path: Array(path.utf8), tag: tag, sentAt: 0).name
        guard unknown[name]?.record.isSeen == false else { return }
        unknown[name]?.record.isSeen = true
        keep(name)
    }

    // MARK: - Finished requests

    /// The contents below a prefix that were written or deleted, or may have been, as long ago as a listing may lag behind.
    package func recentChanges(below prefix: String, at now: Moment) -> [Finished] {
        finished(in: .below(prefix)).filter { one in
            one.isOfContent && now.instant - one.at <= settings.lag
        }
    }

    /// What a path has was requested when no request for it could be applied any more: an older listing does not count.
    /// Content that a request without a response has left there stays its leftover.
    package mutating func settle(_ one: Finished, as effect: Effect) {
        let index = finished.position(of: one.path, by: \.path)
        guard index < finished.count, finished[index].path == one.path, finished[index].tick == one.tick else { return }
        finished[index].effect = effect
        finished[index].isUncertain = false
        if settings.grace != nil { stored.note(finished[index]) }
    }

    /// Others have changed the path since.
    package mutating func forget(_ one: Finished) {
        let index = finished.position(of: one.path, by: \.path)
        guard index < finished.count, finished[index].path == one.path, finished[index].tick == one.tick else { return }
        finished.remove(at: index)
        stored.noteForgotten(one.path)
    }

    private func finished(in extent: PathExtent) -> [Finished] {
        let prefix = Array(extent.text.utf8)
        return finished[finished.position(of: prefix, by: \.path)...].prefix { $0.path.starts(with: prefix) }
            .filter { extent.contains($0.path) }
    }

    /// - Parameter effect: nil leaves the effect of the request before.
    private mutating func finish(_ path: [UInt8], _ effect: Effect?, isUnknown: Bool = false, at now: Moment) {
        if finished.count >= sweepAt { sweep(at: now) }
        let tick = nextTick()
        let index = finished.position(of: path, by: \.path)
        var one = Finished(
            path: path, tick: tick, effect: effect, isUncertain: isUnknown, at: now.instant, date: now.date)
        // An earlier attempt without a response may still be applied after this acknowledgement.
        if effect != nil { one.isUncertain = unknown.values.contains { !$0.isOver && $0.record.path == path } }
        if index < finished.count, finished[index].path == path {
            if effect == nil {
                one.effect = finished[index].effect
                one.isUncertain = isUnknown || finished[index].isUncertain
            }
            finished[index] = one
        } else {
            finished.insert(one, at: index)
        }
        if settings.grace != nil { stored.note(one) }
    }

    private mutating func sweep(at now: Moment) {
        for memory in [settings.memory, settings.shortMemory] {
            if memory == settings.shortMemory, finished.count < settings.most { break }
            let forgotten = finished.filter { now.instant - $0.at > memory }.map(\.tick)
            forgottenThrough = max(forgottenThrough, forgotten.max() ?? 0)
            finished.removeAll { now.instant - $0.at > memory }
        }
        sweepAt = max(1000, 2 * finished.count)
    }

    // MARK: - Time

    private func grace(at now: Moment) -> Duration {
        guard let grace = settings.grace else { return .zero }
        guard let slowest, now.instant - slowest.at <= Self.slownessMemory else { return grace.lowerBound }
        return min(grace.upperBound, max(grace.lowerBound, slowest.took * Self.caution))
    }

    /// Ends the doubts whose time is over.
    private mutating func advance(to now: Moment) {
        guard let limit = settings.grace?.upperBound else { return }
        let grace = grace(at: now)
        for (name, one) in unknown {
            guard let heardAt = one.heardAt else { continue }
            unknown[name]?.isOver = now.instant - heardAt >= grace
            // Until then a slow response may still extend the time.
            guard now.instant - heardAt > limit else { continue }
            if one.record.tag == nil || now.date - one.record.sentAt > Self.tagMemory { drop(name) }
        }
    }
}
