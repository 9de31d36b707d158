import Sync
import Synchronization

/// The events of a mounted domain, from the creation of this value to the end of the mount.
struct DomainEvents: Sendable {
    let host: DomainHost
    let events: AsyncStream<SyncEvent>

    init(of host: DomainHost) {
        self.host = host
        events = host.engine.events
    }
}

/// The clients that follow the events of all domains. They learn of a new mount before the command that has made it returns.
final class EventFollowers: Sendable {
    private struct State {
        var followers: [Int: AsyncStream<DomainEvents>.Continuation] = [:]
        var lastID = 0
    }

    private let state = Mutex(State())

    /// Adds a follower.
    ///
    /// - Parameters:
    ///   - present: the domains that the follower gets first.
    ///   - isLasting: whether it gets later mounts, too.
    func add(after present: [DomainEvents], isLasting: Bool) -> AsyncStream<DomainEvents> {
        let (stream, continuation) = AsyncStream.makeStream(of: DomainEvents.self)
        for domain in present { continuation.yield(domain) }
        guard isLasting else {
            continuation.finish()
            return stream
        }
        let id = state.withLock { state in
            state.lastID += 1
            state.followers[state.lastID] = continuation
            return state.lastID
        }
        continuation.onTermination = { [weak self] _ in self?.state.withLock { $0.followers[id] = nil } }
        return stream
    }

    /// A domain was mounted.
    func tell(of host: DomainHost) {
        let followers = state.withLock { Array($0.followers.values) }
        for follower in followers { follower.yield(DomainEvents(of: host)) }
    }

    /// Nothing is mounted any more.
    func finish() {
        let followers = state.withLock { Array($0.followers.values) }
        for follower in followers { follower.finish() }
    }
}
