import FileProvider
import Replica

/// Decides which operations are possible now: a pure function of a ``PendingSnapshot``, the time, and what is claimed.
///
/// A parent is created before what it holds; a name is used once the item that had it on the remote is gone from there; a
/// directory is deleted after all it contained, and its time is set after all it contains. Where these rules make items wait for
/// each other in a circle, one of them is moved aside.
struct Planner: Sendable {
    /// Why an item's changes can be sent, or not.
    enum Readiness: Hashable, Sendable {
        case ready(ItemFields)
        /// Another item has to go first.
        case waits
        /// Another item has the name on the remote, and has to give it up first.
        case waitsForName
        case notBefore(FileTimestamp)
        case nothing
    }

    /// An operation, and what it touches: operations whose footprints overlap run one after the other.
    struct Step: Hashable, Sendable {
        var operation: SyncOperation
        var footprint: Footprint
    }

    struct Plan: Hashable, Sendable {
        var steps: [Step] = []
        /// When to plan again, as far as only time is waited for.
        var next: FileTimestamp?

        mutating func wait(until time: FileTimestamp) {
            next = next.map { min($0, time) } ?? time
        }
    }

    var delays = UploadDelays()
    /// Whether nothing may be changed on the remote: then items are only offered to be recognized.
    var isReadOnly = false
    /// Whether a caller waits: then nothing is held back to see whether it changes again.
    var isHurried = false
    /// Whether removals are held: then a change that was refused for them waits for its time, also if a caller waits.
    var holdsRemovals = false

    /// How often to check whether a file that was removed or replaced here is still in use.
    private static let pauseForReaders = Duration.milliseconds(200)

    // MARK: - Plans

    /// Reads what a plan is made of, in one transaction, and makes the plan.
    ///
    /// - Parameter position: where the plan begins; then where the next one begins.
    func plan(
        from replica: Replica, at now: FileTimestamp, limit: Int, position: inout PendingPosition,
        isBusy: (Footprint) -> Bool
    ) throws -> Plan {
        var undue = Plan()
        func isDue(_ time: FileTimestamp?) -> Bool {
            if let time { undue.wait(until: time) }
            return time == nil
        }
        let snapshot = try replica.pendingSnapshot(
            PendingQuery(now: now, limit: limit, start: position, hasOnlyOffers: isReadOnly),
            isDue: { !$0.isToBeOffered && isDue(heldBack($0, $1, at: now)) },
            isRemovalDue: { !$0.parent.isPlaceholder && isDue(heldBack($0, at: now)) },
            canBeSent: { pending in
                guard case .ready = readiness(of: pending, at: now) else { return false }
                return !isBusy(footprint(of: pending))
            },
            canBeRemoved: { readiness(of: $0, at: now) == .ready([]) && !isBusy(footprint(of: $0)) })
        position = snapshot.next
        var plan = plan(snapshot, at: now, isBusy: isBusy)
        if let time = undue.next { plan.wait(until: time) }
        return plan
    }

    func plan(_ snapshot: PendingSnapshot, at now: FileTimestamp, isBusy: (Footprint) -> Bool) -> Plan {
        var plan = Plan()
        var waits = CircularWaits()
        func steps(_ operation: SyncOperation, _ footprint: Footprint) -> [Step] {
            isBusy(footprint) ? [] : [Step(operation: operation, footprint: footprint)]
        }
        var deletions: [Step] = []
        for removal in snapshot.removals {
            switch readiness(of: removal, at: now) {
            case .ready: deletions += steps(.deletion(removal.deletion.id), footprint(of: removal))
            case .notBefore(let time): plan.wait(until: time)
            case .waits, .waitsForName: waits.add(removal)
            case .nothing: break
            }
        }
        var changes: [Step] = []
        for pending in snapshot.items {
            switch readiness(of: pending, at: now) {
            case .ready: changes += steps(Self.operation(for: pending.item), footprint(of: pending))
            case .notBefore(let time): plan.wait(until: time)
            case .waits, .waitsForName: waits.add(pending)
            case .nothing: break
            }
        }
        // They are first, because others wait for them.
        plan.steps = waits.itemsToMoveAside { isBusy(footprint(of: $0)) }
            .map { Step(operation: .moveAside(row: $0.item.id), footprint: footprint(of: $0)) }
        // By turns: neither many deletions nor many changes make the others wait.
        for index in 0..<max(deletions.count, changes.count) {
            if index < deletions.count { plan.steps.append(deletions[index]) }
            if index < changes.count { plan.steps.append(changes[index]) }
        }
        for offer in snapshot.offers { plan.steps += steps(.creation(row: offer.row), Footprint(offer)) }
        if plan.steps.isEmpty, let next = snapshot.nextOffer { plan.wait(until: next) }
        return plan
    }

    static func operation(for item: ItemRecord) -> SyncOperation {
        item.identifier == nil ? .creation(row: item.id) : .modification(row: item.id)
    }

    // MARK: - Footprints

    /// What sending an item touches: the item, the name it has on the remote and the one it is to have.
    func footprint(of pending: PendingEntry) -> Footprint {
        let item = pending.item
        var footprint = Footprint(identifiers: [item.identifier ?? item.placeholder])
        if let parent = item.base.parent, let name = item.base.name {
            footprint.places.insert(Footprint.Place(parent: parent, name: name))
        }
        if let directory = pending.directory, item.inode.number != .root {
            footprint.places.insert(Footprint.Place(parent: directory, name: item.name))
        }
        footprint.ancestors = pending.ancestors
        if item.inode.kind == .directory, !item.changedFields.isDisjoint(with: [.filename, .parentItemIdentifier]) {
            footprint.movedDirectory = item.identifier
        }
        return footprint
    }

    func footprint(of removal: PendingRemoval) -> Footprint {
        var footprint = Footprint(removal.deletion)
        footprint.ancestors = removal.ancestors
        return footprint
    }

    // MARK: - Readiness

    /// When an item's time comes; nil when it has come.
    private func heldBack(_ item: ItemRecord, _ state: PendingState, at now: FileTimestamp) -> FileTimestamp? {
        if let time = pause(of: state, at: now) { return time }
        if isHurried { return nil }
        let due = min(
            Self.end(of: delays.delay, from: item.inode.changedAt, now),
            Self.end(of: delays.longestDelay, from: state.since, now))
        return due > now ? due : nil
    }

    /// The end of a pause after a failure; nil if it is over. What was refused because removals were held is tried once none is.
    private func pause(of state: PendingState, at now: FileTimestamp) -> FileTimestamp? {
        guard state.waitsForRemovals else {
            return Self.pause(until: state.nextTry, Backoff.longestPause(ofChangeWith: state.attempts), now)
        }
        let longest = Backoff.whileRemovalsAreHeld.pause(after: state.attempts - 1)
        return holdsRemovals ? Self.pause(until: state.nextTry, longest, now) : nil
    }

    /// The end of a pause; nil if it is over. One that would last longer than any after such failures was begun before the clock was set
    /// back.
    private static func pause(
        until time: FileTimestamp?, _ longestAfterFailure: Duration, _ now: FileTimestamp
    ) -> FileTimestamp? {
        let longest = max(Executor.longestDelay, longestAfterFailure)
        guard let time, time > now, time <= now.advanced(by: longest + clockStep) else { return nil }
        return time
    }

    /// The end of a delay after a change. What was changed in the future was changed before the clock was set back.
    private static func end(
        of delay: Duration, from change: FileTimestamp, _ now: FileTimestamp
    ) -> FileTimestamp {
        change > now.advanced(by: clockStep) ? now : change.advanced(by: delay)
    }

    private static let clockStep = Duration.seconds(1)

    private func heldBack(_ deletion: PendingDeletion, at now: FileTimestamp) -> FileTimestamp? {
        let longest = Backoff.longestPause(ofChangeWith: deletion.attempts)
        if let time = Self.pause(until: deletion.nextTry, longest, now) { return time }
        let due = Self.end(of: delays.delay, from: deletion.since, now)
        return !isHurried && due > now ? due : nil
    }

    /// Whether an item's changes can be sent now, and which.
    func readiness(of pending: PendingEntry, at now: FileTimestamp) -> Readiness {
        let item = pending.item
        guard !item.changedFields.isEmpty, !item.isExcluded else { return .nothing }
        if let time = heldBack(item, pending.state, at: now) { return .notBefore(time) }
        if let content = pending.content {
            let quiet = Self.end(of: isHurried ? .zero : delays.writtenDelay, from: content.changedAt, now)
            let due = min(quiet, Self.end(of: delays.longest(forSize: content.size), from: pending.state.since, now))
            if due > now { return .notBefore(due) }
        }
        if pending.isReplacedFileInUse { return .notBefore(now.advanced(by: Self.pauseForReaders)) }
        let calls = pending.calls(after: pending.state.failure)
        let fields = calls[max(0, pending.state.attempts) % calls.count]
        if item.inode.number == .root { return fields.isEmpty ? .waits : .ready(fields) }
        guard pending.directory != nil, !item.isHidden, !fields.isEmpty, !pending.isBelowItself else { return .waits }
        switch pending.nameHolder {
        case nil: break
        case .deletion:
            return pending.isNameHolderInUse ? .notBefore(now.advanced(by: Self.pauseForReaders)) : .waitsForName
        case .item(_, let changes):
            if !changes.isDisjoint(with: [.filename, .parentItemIdentifier]) { return .waitsForName }
        }
        return .ready(fields)
    }

    func readiness(of removal: PendingRemoval, at now: FileTimestamp) -> Readiness {
        if let time = heldBack(removal.deletion, at: now) { return .notBefore(time) }
        if removal.deletion.isToBeFound { return .ready([]) }
        if removal.isInUse { return .notBefore(now.advanced(by: Self.pauseForReaders)) }
        return removal.isDirectoryWaiting ? .waits : .ready([])
    }
}
