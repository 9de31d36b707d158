import FileProvider
import Synchronization

/// Limits the concurrent calls of a provider. Calls that a process waits for go first, and a quarter of the places is
/// reserved for them.
final class CallLanes: Sendable {
    enum Lane: Hashable, Sendable {
        case foreground
        case background
    }

    /// Which lane a call is in, for as long as that can change: a process may come to wait for what was begun ahead of it.
    final class Ticket: Sendable {
        private let current: Mutex<Lane>

        init(_ lane: Lane) {
            current = Mutex(lane)
        }

        fileprivate(set) var lane: Lane {
            get { current.withLock { $0 } }
            set { current.withLock { $0 = newValue } }
        }
    }

    private struct Places: AdmissionLimit {
        let most: Int
        let mostInBackground: Int
        var running = 0
        var runningInBackground = 0

        func admits(isUrgent: Bool) -> Bool {
            running < most && (isUrgent || runningInBackground < mostInBackground)
        }

        mutating func takePlace(isUrgent: Bool) -> Lane {
            running += 1
            if !isUrgent { runningInBackground += 1 }
            return isUrgent ? .foreground : .background
        }
    }

    private let line: AdmissionLine<Places>

    /// - Parameter limit: how many calls at once; background calls leave a quarter of the places free.
    init(limit: Int) {
        let most = max(2, limit)
        line = AdmissionLine(Places(most: most, mostInBackground: max(1, most - max(1, most / 4))))
    }

    /// Runs a call when there is a place for it.
    ///
    /// - Throws: `CancellationError` when the task is cancelled before it got a place; what `body` throws.
    func run<Value: Sendable>(_ ticket: Ticket, _ body: () async throws -> Value) async throws -> Value {
        try Task.checkCancellation()
        let lane = try await line.enter { ticket.lane == .foreground }
        defer { leave(lane) }
        return try await body()
    }

    /// A process now waits for a call that was made in the background.
    func promote(_ ticket: Ticket) { line.change { _ in ticket.lane = .foreground } }

    private func leave(_ lane: Lane) {
        line.change { places in
            places.running -= 1
            if lane == .background { places.runningInBackground -= 1 }
        }
    }
}
