import Synchronization

/// Whether a process waits for a call. A call that was begun ahead becomes urgent when a process comes to wait for it, and stays so.
package final class CallUrgency: Sendable {
    private struct State {
        var isUrgent: Bool
        /// By what waits in an ``AdmissionLine``.
        var observers: [ObjectIdentifier: @Sendable () -> Void] = [:]
    }

    private let state: Mutex<State>

    package init(_ isUrgent: Bool) {
        state = Mutex(State(isUrgent: isUrgent))
    }

    package var isUrgent: Bool { state.withLock { $0.isUrgent } }

    /// A process now waits for the call. All lines in which it waits are told.
    package func raise() {
        let observers = state.withLock { state in
            defer { (state.isUrgent, state.observers) = (true, [:]) }
            return state.observers
        }
        for observer in observers.values { observer() }
    }

    /// Calls `observer` once, when the call becomes urgent, outside any lock.
    func observe(_ waiter: AnyObject, _ observer: @escaping @Sendable () -> Void) {
        state.withLock { state in
            if !state.isUrgent { state.observers[ObjectIdentifier(waiter)] = observer }
        }
    }

    func stopObserving(_ waiter: AnyObject) {
        state.withLock { $0.observers[ObjectIdentifier(waiter)] = nil }
    }
}
