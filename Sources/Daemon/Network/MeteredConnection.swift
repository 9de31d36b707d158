import FileProvider
import Synchronization

/// Whether the network connection of this machine is metered. Looks only while a domain asks, that is between ``join()`` and
/// ``leave()``.
package final class MeteredConnection: Sendable {
    /// Reports answers until the task is cancelled.
    typealias Watch = @Sendable (_ report: @escaping @Sendable (Bool) -> Void) async -> Void

    private struct State {
        var users = 0
        /// Nil until it is known.
        var isMetered: Bool?
        var watching: Task<Void, Never>?
    }

    private let state = Mutex(State())
    private let changes = ChangeSignal()
    private let watch: Watch
    /// A bus that does not answer holds up no mount for longer.
    private static let patience = Duration.seconds(2)

    init(watch: @escaping Watch) {
        self.watch = watch
    }

    /// Begins to look, unless another user has. Each call needs one of ``leave()``.
    func join() {
        state.withLock { state in
            state.users += 1
            guard state.watching == nil else { return }
            state.watching = Task { [self] in await watch { self.note($0) } }
        }
    }

    /// Ends looking with the last user.
    func leave() {
        state.withLock { state in
            state.users -= 1
            guard state.users == 0 else { return }
            state.watching?.cancel()
            state.watching = nil
            state.isMetered = nil
        }
    }

    /// Whether a domain asks.
    var isInUse: Bool { state.withLock { $0.users > 0 } }

    /// The present answer; false until it is known.
    var isMetered: Bool { state.withLock { $0.isMetered ?? false } }

    /// Waits until it is known whether the connection is metered; false if that takes long. After ``join()``.
    func answer() async -> Bool {
        let deadline = ContinuousClock.now + Self.patience
        while true {
            let count = changes.count
            if let isMetered = state.withLock({ $0.isMetered }) { return isMetered }
            guard (try? await changes.wait(after: count, until: deadline)) == true else { return false }
        }
    }

    /// Reports the present answer, and each later one, until the task is cancelled. After ``join()``.
    func follow(_ report: @Sendable (Bool) -> Void) async {
        while !Task.isCancelled {
            let count = changes.count
            if let isMetered = state.withLock({ $0.isMetered }) { report(isMetered) }
            _ = try? await changes.wait(after: count)
        }
    }

    private func note(_ isMetered: Bool) {
        let isNew = state.withLock { state in
            // A watch that was cancelled may report late.
            guard state.users > 0, state.isMetered != isMetered else { return false }
            state.isMetered = isMetered
            return true
        }
        if isNew { changes.notify() }
    }
}
