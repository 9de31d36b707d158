/// Which of the latest changes of contents are on disk. A listing may be older than what was acknowledged before a restart, and
/// the next process has to correct it as well.
///
/// They are written a moment later, many in one transaction. A process that is killed loses those of the last moment, and leaves
/// none that is wrong: what a new request makes uncertain is written before the request is sent.
struct StoredChanges: Sendable {
    private struct Stored: Sendable {
        var isUncertain: Bool
        var at: ContinuousClock.Instant
    }

    /// What is on disk, by the path.
    private var stored: [[UInt8]: Stored] = [:]
    /// The paths of which something else is known than what is on disk.
    private var due: Set<[UInt8]> = []
    private var expiresAt: ContinuousClock.Instant?
    /// Of more the oldest are removed.
    private static let most = 2000

    var isDue: Bool { !due.isEmpty }

    /// Reads what an earlier process left on disk.
    ///
    /// - Parameter lag: how old it may be.
    /// - Returns: what is known of the paths, in their order.
    mutating func restore(
        _ records: [LedgerRecord], within lag: Duration, at now: LedgerMoment
    ) -> [FinishedRequest] {
        var found: [[UInt8]: FinishedRequest] = [:]
        func moment(of record: LedgerRecord) -> ContinuousClock.Instant {
            now.instant - .seconds(max(0, now.date - record.sentAt))
        }
        for record in records {
            guard let ended = record.ended else { continue }
            let at = moment(of: record)
            // Also those that are too old: they are removed with the next ones that are written.
            stored[record.path] = Stored(isUncertain: ended.isUncertain, at: at)
            guard now.instant - at <= lag else {
                due.insert(record.path)
                continue
            }
            found[record.path] = FinishedRequest(
                path: record.path, tick: 0, effect: ended.effect, isUncertain: ended.isUncertain, at: at,
                date: record.sentAt)
        }
        for record in records where record.ended == nil && record.move == nil && !record.path.isEmpty {
            let at = moment(of: record)
            let earlier = found[record.path]
            // What is certain on disk was so when no earlier request could be applied any more.
            guard now.instant - at <= lag, earlier.map({ $0.date <= record.sentAt }) ?? true else { continue }
            found[record.path] = FinishedRequest(
                path: record.path, tick: 0, effect: earlier?.effect, isUncertain: true, at: at, date: record.sentAt)
            due.insert(record.path)
        }
        return found.values.sorted { $0.path.lexicographicallyPrecedes($1.path) }
    }

    /// Something else is known of a path.
    mutating func note(_ one: FinishedRequest) {
        if one.isOfContent || stored[one.path] != nil { due.insert(one.path) }
    }

    mutating func noteForgotten(_ path: [UInt8]) {
        if stored[path] != nil { due.insert(path) }
    }

    /// A request for a path is about to be sent: what is on disk is uncertain until its end.
    ///
    /// - Parameter one: what is known of the path.
    /// - Returns: what has to be written before; nil where nothing has.
    mutating func send(_ path: [UInt8], _ one: FinishedRequest?) -> LedgerRecord.Change? {
        guard stored[path]?.isUncertain == false else { return nil }
        guard let one else {
            stored[path] = nil
            return (LedgerRecord.name(ofEnded: path), nil)
        }
        stored[path]?.isUncertain = true
        due.insert(path)
        return (LedgerRecord.name(ofEnded: path), LedgerRecord(one, isUncertain: true))
    }

    /// What has to be written.
    ///
    /// - Parameters:
    ///   - finished: all that is known, in the order of the paths.
    ///   - inFlight: the paths of requests in flight.
    mutating func take(
        _ finished: [FinishedRequest], inFlight: Set<[UInt8]>, within lag: Duration, at now: LedgerMoment
    ) -> [LedgerRecord.Change] {
        var changes: [LedgerRecord.Change] = []
        for path in due {
            if let one = finished.latest(path), one.isOfContent, now.instant - one.at <= lag {
                let isUncertain = one.isUncertain || inFlight.contains(path)
                let record = LedgerRecord(one, isUncertain: isUncertain)
                changes.append((record.name, record))
                stored[path] = Stored(isUncertain: isUncertain, at: one.at)
            } else if stored.removeValue(forKey: path) != nil {
                changes.append((LedgerRecord.name(ofEnded: path), nil))
            }
        }
        due = []
        for path in expire(within: lag, at: now.instant) { changes.append((LedgerRecord.name(ofEnded: path), nil)) }
        return changes
    }

    /// - Returns: the paths whose records are removed.
    private mutating func expire(within lag: Duration, at now: ContinuousClock.Instant) -> [[UInt8]] {
        guard stored.count > Self.most || expiresAt.map({ now >= $0 }) ?? true else { return [] }
        expiresAt = now + .seconds(60)
        var gone = stored.filter { now - $0.value.at > lag }.map(\.key)
        if stored.count - gone.count > Self.most {
            // Some more at once: sorting takes time.
            let surplus = stored.count - Self.most * 3 / 4
            gone = stored.sorted { $0.value.at < $1.value.at }.prefix(surplus).map(\.key)
        }
        for path in gone { stored[path] = nil }
        return gone
    }
}
