import PathAddressing
import Synchronization

/// The places that changes under way are about. Of two changes that have a place in common the one that came first is made
/// first: a renaming is many steps, and what is written, made or deleted between them would be copied half, or stay behind.
final class ClaimedPlaces: Sendable {
    /// Others take longer than whoever came later may wait.
    struct Busy: Error {}

    private struct Claim {
        let number: Int
        let places: [Stragglers.Reach]
        /// Those of them that have nothing any more when it is done.
        let emptied: [Stragglers.Reach]
        /// From where something was renamed meanwhile.
        var gone: [String] = []
        var waiter: CheckedContinuation<Void, any Error>?
        var isMade = false
        /// Why it is not waited for any more.
        var refusal: (any Error)?
    }

    private struct State {
        var count = 0
        /// In the order they came.
        var claims: [Claim] = []
    }

    private let state = Mutex(State())
    private let patience: Duration

    /// - Parameter patience: how long anybody waits for the others.
    init(patience: Duration = .seconds(20)) {
        self.patience = patience
    }

    /// Makes a change when no earlier one has to do with any of its places.
    ///
    /// - Parameters:
    ///   - emptied: those of the places that have nothing any more when it is done.
    ///   - body: gets the keys, of directories without their slash, of what was renamed while it waited.
    /// - Throws: ``Busy``; `CancellationError`; what `body` throws.
    func claim<Value>(
        _ places: [Stragglers.Reach], emptying emptied: [Stragglers.Reach] = [],
        _ body: (_ gone: [String]) async throws -> Value
    ) async throws -> Value {
        let (number, isMade) = state.withLock { state in
            state.count += 1
            state.claims.append(Claim(number: state.count, places: places, emptied: emptied))
            let index = state.claims.count - 1
            state.claims[index].isMade = Self.isFree(index, state)
            return (state.count, state.claims[index].isMade)
        }
        defer { end(number) }
        if !isMade { try await wait(for: number) }
        let gone = state.withLock { state in state.claims.first { $0.number == number }?.gone ?? [] }
        return try await body(gone)
    }

    /// The places that will have nothing any more when the changes under way are done.
    var emptied: [Stragglers.Reach] { state.withLock { $0.claims.filter(\.isMade).flatMap(\.emptied) } }

    /// How many changes are under way or wait.
    var count: Int { state.withLock { $0.claims.count } }

    /// What had a key has another now, and all below it.
    func noteRenamed(_ key: String) {
        state.withLock { state in
            for index in state.claims.indices where !state.claims[index].isMade { state.claims[index].gone.append(key) }
        }
    }

    private func wait(for number: Int) async throws {
        let limit = Task { [patience] in
            try await Task.sleep(for: patience)
            self.giveUp(number, Busy())
        }
        defer { limit.cancel() }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                // Others may have ended since it was claimed, or nobody want it any more.
                let result = state.withLock { state -> Result<Void, any Error>? in
                    guard let index = state.claims.firstIndex(where: { $0.number == number }) else { return nil }
                    if let refusal = state.claims[index].refusal { return .failure(refusal) }
                    if Self.isFree(index, state) {
                        state.claims[index].isMade = true
                        return .success(())
                    }
                    state.claims[index].waiter = continuation
                    return nil
                }
                if let result { continuation.resume(with: result) }
            }
        } onCancel: {
            giveUp(number, CancellationError())
        }
    }

    private func giveUp(_ number: Int, _ error: any Error) {
        let waiter = state.withLock { state -> CheckedContinuation<Void, any Error>? in
            guard let index = state.claims.firstIndex(where: { $0.number == number }), !state.claims[index].isMade
            else { return nil }
            state.claims[index].refusal = error
            defer { state.claims[index].waiter = nil }
            return state.claims[index].waiter
        }
        waiter?.resume(throwing: error)
    }

    private func end(_ number: Int) {
        let next = state.withLock { state in
            state.claims.removeAll { $0.number == number }
            var next: [CheckedContinuation<Void, any Error>] = []
            for index in state.claims.indices where Self.isFree(index, state) {
                guard let waiter = state.claims[index].waiter else { continue }
                state.claims[index].waiter = nil
                state.claims[index].isMade = true
                next.append(waiter)
            }
            return next
        }
        for waiter in next { waiter.resume() }
    }

    private static func isFree(_ index: Int, _ state: State) -> Bool {
        let places = state.claims[index].places
        return !state.claims[..<index].contains { earlier in
            earlier.places.contains { place in places.contains { $0.overlaps(place) } }
        }
    }
}
