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
        var waiters: [OrderingState.OperationID: [CheckedContinuation<Void, Never>]] = [:]
    }

    private let guarded = Mutex(Guarded())

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
            return guarded.waiters.removeValue(forKey: id) ?? []
        }
        for waiter in waiters { waiter.resume() }
    }

    func acknowledge(_ identifier: ItemIdentifier) { with { $0.acknowledge(identifier) } }

    // MARK: - Observations

    /// To be called before the provider is asked.
    package func observe() -> Observation { Observation(at: with { $0.beginObservation() }, of: self) }

    fileprivate func end(_ tick: OrderingState.Tick) { with { $0.endObservation(tick) } }

    package func report(_ identifiers: some Sequence<ItemIdentifier>) { with { $0.report(identifiers) } }

    package func isStale(_ identifier: ItemIdentifier, _ observation: Observation, isListing: Bool = false) -> Bool {
        with { $0.isStale(identifier, observedAt: observation.tick, isListing: isListing) }
    }

    package func hasNews(since observation: Observation) -> Bool { with { $0.hasNews(since: observation.tick) } }

    /// Waits until no operation is in flight that touches these items or their names.
    ///
    /// - Returns: the items of which the observation is stale. An operation may be answered after this returns, so the
    ///   transaction that records the others asks again.
    package func settle(
        _ items: [FileProviderItem], deleted: [ItemIdentifier] = [], _ observation: Observation
    ) async -> Set<ItemIdentifier> {
        let footprint = Footprint(
            identifiers: Set(items.map(\.itemIdentifier)).union(deleted),
            places: Set(items.map { Footprint.Place(parent: $0.parentItemIdentifier, name: $0.filename) }))
        while true {
            switch with({ $0.verdict(on: footprint, observedAt: observation.tick) }) {
            case .fresh: return []
            case .stale(let identifiers): return identifiers
            case .wait(let id): await answered(id)
            }
        }
    }

    private func answered(_ id: OrderingState.OperationID) async {
        await withCheckedContinuation { continuation in
            let isInFlight = guarded.withLock { guarded in
                guard guarded.state.isInFlight(id) else { return false }
                guarded.waiters[id, default: []].append(continuation)
                return true
            }
            if !isInFlight { continuation.resume() }
        }
    }

    // MARK: - Missing items

    package func beginLookup(of identifier: ItemIdentifier) { with { $0.beginLookup(of: identifier) } }

    package func lookupFailed(of identifier: ItemIdentifier) -> Bool { with { $0.lookupFailed(of: identifier) } }

    package func found(_ identifiers: some Sequence<ItemIdentifier>) { with { $0.found(identifiers) } }

    /// The items that the remote does not have any more, until they are found or taken.
    package var missing: Set<ItemIdentifier> { with { $0.confirmedMissing } }

    package func takeMissing() -> Set<ItemIdentifier> { with { $0.takeMissing() } }
}
