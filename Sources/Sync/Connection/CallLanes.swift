import FileProvider

/// Limits the concurrent calls of a provider. Calls that a process waits for go first, and a quarter of the places is
/// reserved for them.
final class CallLanes: Sendable {
    private struct Place {
        let isInBackground: Bool
    }

    private struct Places: AdmissionLimit {
        let most: Int
        let mostInBackground: Int
        var running = 0
        var runningInBackground = 0

        func admits(isUrgent: Bool) -> Bool {
            running < most && (isUrgent || runningInBackground < mostInBackground)
        }

        mutating func takePlace(isUrgent: Bool) -> Place {
            running += 1
            if !isUrgent { runningInBackground += 1 }
            return Place(isInBackground: !isUrgent)
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
    func run<Value: Sendable>(_ urgency: CallUrgency, _ body: () async throws -> Value) async throws -> Value {
        try Task.checkCancellation()
        let place = try await line.enter(urgency)
        defer { leave(place) }
        return try await body()
    }

    private func leave(_ place: Place) {
        line.change { places in
            places.running -= 1
            if place.isInBackground { places.runningInBackground -= 1 }
        }
    }
}
