import Synchronization

/// Decides who is admitted. A value, which an ``AdmissionLine`` keeps in its lock.
package protocol AdmissionLimit: Sendable {
    associatedtype Place: Sendable
    /// Whether a place is free.
    func admits(isUrgent: Bool) -> Bool
    /// Takes a free place, which is given back with ``AdmissionLine/change(_:)``.
    mutating func takePlace(isUrgent: Bool) -> Place
}

/// The tasks that wait until a limit admits them: urgent ones first, and otherwise in the order in which they came.
package final class AdmissionLine<Limit: AdmissionLimit>: Sendable {
    private struct Waiter {
        let urgency: CallUrgency
        let place = OneShot<Limit.Place>()
    }

    private struct State {
        var limit: Limit
        var waiters: [Waiter] = []
    }

    private let state: Mutex<State>

    package init(_ limit: Limit) {
        state = Mutex(State(limit: limit))
    }

    package var limit: Limit { state.withLock { $0.limit } }

    /// Waits for a place.
    ///
    /// - Parameters:
    ///   - urgency: may rise while the task waits.
    ///   - onWait: called with true when the task begins to wait, and with false when it ends.
    /// - Throws: `CancellationError` when the task is cancelled while it waits.
    package func enter(
        _ urgency: CallUrgency, onWait: (Bool) -> Void = { _ in }
    ) async throws -> Limit.Place {
        let waiter = Waiter(urgency: urgency)
        let place = state.withLock { state -> Limit.Place? in
            let goesFirst = urgency.isUrgent
            // Earlier tasks go first.
            if state.limit.admits(isUrgent: goesFirst),
                !state.waiters.contains(where: { !goesFirst || $0.urgency.isUrgent })
            {
                return state.limit.takePlace(isUrgent: goesFirst)
            }
            state.waiters.append(waiter)
            return nil
        }
        if let place { return place }
        onWait(true)
        defer { onWait(false) }
        urgency.observe(waiter.place) { [weak self] in self?.change { _ in } }
        defer { urgency.stopObserving(waiter.place) }
        // It may have become urgent, or a place free, since it was looked at.
        change { _ in }
        return try await waiter.place.value {
            let wasWaiting = state.withLock { state in
                let count = state.waiters.count
                state.waiters.removeAll { $0.place === waiter.place }
                return state.waiters.count < count
            }
            // Otherwise it has got a place, and gives it back after its work.
            if wasWaiting { waiter.place.give(.failure(CancellationError())) }
        }
    }

    /// Changes the limit, and admits the tasks for which there is a place then.
    package func change(_ body: (inout Limit) -> Void) {
        let admitted = state.withLock { state in
            body(&state.limit)
            var admitted: [(waiter: Waiter, place: Limit.Place)] = []
            for isUrgent in [true, false] {
                while state.limit.admits(isUrgent: isUrgent),
                    let index = state.waiters.firstIndex(where: { $0.urgency.isUrgent == isUrgent })
                {
                    admitted.append((state.waiters.remove(at: index), state.limit.takePlace(isUrgent: isUrgent)))
                }
            }
            return admitted
        }
        for (waiter, place) in admitted { waiter.place.give(.success(place)) }
    }
}
