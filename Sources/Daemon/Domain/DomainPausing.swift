import Sync
import Synchronization

/// Pauses and resumes a mounted domain: for its user, and while the network connection is metered.
final class DomainPausing: Sendable {
    private struct State {
        var reasons: PauseReasons
        var hasStarted = false
        /// Nil while the domain does not ask whether the connection is metered.
        var following: Task<Void, Never>?
    }

    private let engine: SyncEngine
    private let source: String
    private let metered: MeteredConnection?
    /// The engine is told while it is locked, so that it follows the last change.
    private let state: Mutex<State>

    /// Pauses the engine if the user has, or if the connection is known to be metered.
    ///
    /// - Parameter metered: nil if no connection is.
    init(_ engine: SyncEngine, of source: String, _ options: DomainOptions, metered: MeteredConnection?) {
        self.engine = engine
        self.source = source
        self.metered = metered
        var reasons = PauseReasons(
            isPausedByUser: options.isPaused == true,
            avoidsMeteredConnection: metered != nil && options.avoidsMeteredConnection(to: source))
        if reasons.avoidsMeteredConnection { reasons.isMetered = metered?.isMetered ?? false }
        if let pause = reasons.pause { engine.connection.pause(pause) }
        state = Mutex(State(reasons: reasons))
    }

    /// Follows the connection from now on, if the domain asks for it.
    func start() {
        state.withLock { state in
            state.hasStarted = true
            follow(&state)
        }
    }

    /// The last call.
    func stop() {
        state.withLock { state in
            state.hasStarted = false
            follow(&state)
        }
    }

    func pause(_ isPaused: Bool) {
        state.withLock { state in
            if isPaused { state.reasons.isPausedByUser = true } else { state.reasons.resume() }
            engine.pause(state.reasons.pause)
        }
    }

    /// Follows new options, but for that of ``pause(_:)``.
    func keep(to options: DomainOptions) {
        let avoids = metered != nil && options.avoidsMeteredConnection(to: source)
        change { $0.avoidsMeteredConnection = avoids }
        state.withLock { follow(&$0) }
    }

    private func change(_ change: (inout PauseReasons) -> Void) {
        state.withLock { state in
            let old = state.reasons.pause
            change(&state.reasons)
            guard state.reasons.pause != old else { return }
            engine.pause(state.reasons.pause)
        }
    }

    private func note(isMetered: Bool) {
        change { reasons in
            // A task that was cancelled may report late.
            if reasons.avoidsMeteredConnection { reasons.isMetered = isMetered }
        }
    }

    private func follow(_ state: inout State) {
        guard let metered else { return }
        let isWanted = state.hasStarted && state.reasons.avoidsMeteredConnection
        if isWanted, state.following == nil {
            metered.join()
            state.following = Task { [self] in await metered.follow { note(isMetered: $0) } }
        }
        if !isWanted, let following = state.following {
            following.cancel()
            metered.leave()
            state.following = nil
        }
    }
}
