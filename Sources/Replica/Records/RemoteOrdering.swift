import FileProvider
import Synchronization

/// An observation of the remote, from its request until it is recorded or given up: it ends with its last reference.
package final class Observation: Sendable {
    fileprivate let tick: OrderingState.Tick
    private let ordering: RemoteOrdering

    fileprivate init(at tick: OrderingState.Tick, of ordering: RemoteOrdering) {
        self.tick = tick
        self.ordering = ordering
    }

    deinit { ordering.end(tick) }
}

/// Orders remote changes against operations: see ``OrderingState`` for the rules.
///
/// It belongs to the replica because transactions ask it: an acknowledgement is noted in the transaction that records it,
/// and an observation is checked in the transaction that records the observation, so of two transactions the later one
/// always knows.
package final class RemoteOrdering: Sendable {
    private struct Guarded {
        var state = OrderingState()
        var waiters: [OrderingState.OperationID: [Int: CheckedContinuation<Void, Never>]] = [:]
        var nextWaiter = 0
        var unsettledCount = 0
        /// When each item was last left out of an observation.
        var leftOut: [ItemIdentifier: ContinuousClock.Instant] = [:]
        /// Items without an entry may have been left out up to then; nil if none was removed from the entries.
        var forgottenUpTo: ContinuousClock.Instant?
    }

    /// The items of which an observation says nothing.
    package struct Unsettled: Sendable {
        /// An acknowledgement is newer than the observation.
        package var stale: Set<ItemIdentifier> = []
        /// An operation on the item or its name has not been answered, and may take long: an upload of a large file, or a directory
        /// that is moved part by part.
        package var inFlight: Set<ItemIdentifier> = []

        package var all: Set<ItemIdentifier> { stale.union(inFlight) }
    }

    /// How long an observation waits for operations in flight.
    package static let patience = Duration.seconds(1)
    private static let mostLeftOut = 4096

    private let guarded = Mutex(Guarded())
    /// Nil until a transaction has asked the database.
    private let removalsMayBeHeld = Mutex<Bool?>(nil)

    init() {}

    private func with<Value: Sendable>(_ body: (inout OrderingState) -> sending Value) -> Value {
        guarded.withLock { body(&$0.state) }
    }

    // MARK: - Operations

    package func isClaimed(_ footprint: Footprint) -> Bool { with { $0.isClaimed(footprint) } }

    package func claim(_ footprint: Footprint) -> OrderingState.OperationID? { with { $0.claim(footprint) } }

    package func claim(_ footprint: Footprint, for id: OrderingState.OperationID) -> Bool {
        with { $0.claim(footprint, for: id) }
    }

    package func send(_ id: OrderingState.OperationID) { with { $0.send(id) } }

    /// An operation was answered, and the answer is recorded: observations that waited for it continue.
    package func answer(_ id: OrderingState.OperationID, of identifiers: Set<ItemIdentifier>) {
        resume(id) { $0.answer(id, of: identifiers) }
    }

    package func release(_ id: OrderingState.OperationID) {
        resume(id) { $0.release(id) }
    }

    private func resume(_ id: OrderingState.OperationID, _ change: (inout OrderingState) -> Void) {
        let waiters = guarded.withLock { guarded in
            change(&guarded.state)
            return guarded.waiters.removeValue(forKey: id) ?? [:]
        }
        for waiter in waiters.values { waiter.resume() }
    }

    func acknowledge(_ identifier: ItemIdentifier) { with { $0.acknowledge(identifier) } }

    // MARK: - Held removals

    /// Whether removals may be held. Only transactions of this process change that.
    ///
    /// - Parameter areHeld: asks the database; to be called before the transaction changes what is held.
    func mayHoldRemovals(_ areHeld: () throws -> Bool) throws -> Bool {
        if let known = removalsMayBeHeld.withLock({ $0 }) { return known }
        let found = try areHeld()
        removalsMayBeHeld.withLock { $0 = found }
        return found
    }

    /// A transaction is about to hold removals. That they are forgotten is not noted: it may be rolled back.
    func noteHeldRemovals() { removalsMayBeHeld.withLock { $0 = true } }

    // MARK: - Observations

    /// To be called before the provider is asked.
    package func observe() -> Observation { Observation(at: with { $0.beginObservation() }, of: self) }

    fileprivate func end(_ tick: OrderingState.Tick) { with { $0.endObservation(tick) } }

    package func report(_ identifiers: some Sequence<ItemIdentifier>) { with { $0.report(identifiers) } }

    package func isStale(_ identifier: ItemIdentifier, _ observation: Observation, isListing: Bool = false) -> Bool {
        with { $0.isStale(identifier, observedAt: observation.tick, isListing: isListing) }
    }

    package func hasNews(since observation: Observation) -> Bool { with { $0.hasNews(since: observation.tick) } }

    /// Waits a moment until no operation is in flight that touches these items or their names.
    ///
    /// - Returns: the items of which the observation says nothing. An operation may be answered after this returns, so the
    ///   transaction that records the others asks again.
    package func settle(
        _ items: [FileProviderItem], deleted: [ItemIdentifier] = [], _ observation: Observation
    ) async -> Unsettled {
        let footprint = Footprint(
            identifiers: Set(items.map(\.itemIdentifier)).union(deleted),
            places: Set(items.map { Footprint.Place(parent: $0.parentItemIdentifier, name: $0.filename) }))
        let end = ContinuousClock.now + Self.patience
        while true {
            switch with({ $0.verdict(on: footprint, observedAt: observation.tick) }) {
            case .fresh: return Unsettled()
            case .stale(let identifiers): return Unsettled(stale: identifiers)
            case .wait(let id):
                if .now < end, !Task.isCancelled {
                    await answered(id, by: end)
                } else {
                    return unsettled(items, deleted: deleted, observation)
                }
            }
        }
    }

    /// How often something was left out because an operation was in flight.
    package var unsettledCount: Int { guarded.withLock { $0.unsettledCount } }

    /// When an item was last left out because an operation was in flight; nil for never. A time that is too late is possible.
    package func lastLeftOut(_ identifier: ItemIdentifier) -> ContinuousClock.Instant? {
        guarded.withLock { $0.leftOut[identifier] ?? $0.forgottenUpTo }
    }

    private func noteLeftOut(_ identifiers: Set<ItemIdentifier>) {
        let now = ContinuousClock.now
        guarded.withLock { guarded in
            guarded.unsettledCount += 1
            if guarded.leftOut.count + identifiers.count > Self.mostLeftOut {
                (guarded.leftOut, guarded.forgottenUpTo) = ([:], now)
            } else {
                for identifier in identifiers { guarded.leftOut[identifier] = now }
            }
        }
    }

    private func unsettled(
        _ items: [FileProviderItem], deleted: [ItemIdentifier], _ observation: Observation
    ) -> Unsettled {
        let tick = observation.tick
        let unsettled: Unsettled = with { state in
            var unsettled = Unsettled()
            func note(_ identifier: ItemIdentifier, _ places: Set<Footprint.Place>) {
                if state.isInFlight(Footprint(identifiers: [identifier], places: places)) {
                    unsettled.inFlight.insert(identifier)
                } else if state.isStale(identifier, observedAt: tick) {
                    unsettled.stale.insert(identifier)
                }
            }
            for item in items {
                note(item.itemIdentifier, [Footprint.Place(parent: item.parentItemIdentifier, name: item.filename)])
            }
            for identifier in deleted { note(identifier, []) }
            return unsettled
        }
        noteLeftOut(unsettled.all)
        return unsettled
    }

    /// Waits until an operation is answered, or until a time. A task that is cancelled does not wait.
    private func answered(_ id: OrderingState.OperationID, by end: ContinuousClock.Instant) async {
        let waiter = guarded.withLock { guarded in
            guarded.nextWaiter += 1
            return guarded.nextWaiter
        }
        let timer = Task {
            guard (try? await Task.sleep(until: end, clock: .continuous)) != nil else { return }
            self.giveUp(waiter, on: id)
        }
        defer { timer.cancel() }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isWaiting = guarded.withLock { guarded in
                    // What gives up before this has nothing to resume.
                    guard guarded.state.isInFlight(id), .now < end, !Task.isCancelled else { return false }
                    guarded.waiters[id, default: [:]][waiter] = continuation
                    return true
                }
                if !isWaiting { continuation.resume() }
            }
        } onCancel: {
            self.giveUp(waiter, on: id)
        }
    }

    private func giveUp(_ waiter: Int, on id: OrderingState.OperationID) {
        let continuation = guarded.withLock { $0.waiters[id]?.removeValue(forKey: waiter) }
        continuation?.resume()
    }

    // MARK: - Missing items

    package func beginLookup(of identifier: ItemIdentifier) { with { $0.beginLookup(of: identifier) } }

    package func lookupFailed(of identifier: ItemIdentifier) -> Bool { with { $0.lookupFailed(of: identifier) } }

    package func found(_ identifiers: some Sequence<ItemIdentifier>) { with { $0.found(identifiers) } }

    /// The items that the remote does not have any more, until they are found or taken.
    package var missing: Set<ItemIdentifier> { with { $0.confirmedMissing } }

    package func takeMissing() -> Set<ItemIdentifier> { with { $0.takeMissing() } }
}
