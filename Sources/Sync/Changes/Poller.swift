import Replica
import Synchronization

/// How often to look for changes unasked.
package enum Polling: Hashable, Sendable {
    /// The provider tells of them.
    case never
    case every(Duration)
    /// Browsed directories every few seconds, all others every few minutes.
    case adaptive
}

/// Compares browsed directories often and everything else seldom: see ``Polling/adaptive``.
final class Poller: Sendable {
    private struct State {
        var browsed = BrowsedDirectories()
        var lastFileAt: ContinuousClock.Instant?
        var lastMiss: (directory: InodeNumber, at: ContinuousClock.Instant)?
        var lastRoundAt: ContinuousClock.Instant?
        var roundTook = Duration.zero
        var isIdle = true
        var isActive: Bool
    }

    private let replica: Replica
    private let state: Mutex<State>
    private let looks: AsyncStream<Void>
    private let look: AsyncStream<Void>.Continuation
    private let tasks = Mutex<[Task<Void, Never>]>([])

    static let pauseWhileLooking = Duration.seconds(60)
    static let longestPause = Duration.seconds(300)
    /// Of many files opened in a row, a few tell which directories are in use.
    private static let pauseBetweenFiles = Duration.milliseconds(200)

    /// - Parameter isActive: false where the provider's signals or a fixed interval start the rounds.
    init(replica: Replica, isActive: Bool) {
        self.replica = replica
        state = Mutex(State(isActive: isActive))
        (looks, look) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Whether it looks at all, from now on.
    func activate(_ isActive: Bool) {
        state.withLock { state in
            state.isActive = isActive
            if !isActive { state.browsed = BrowsedDirectories() }
        }
    }

    /// A process opened a listed directory. Returns at once.
    func directoryWasOpened(_ number: InodeNumber) {
        let isActive = state.withLock { state in
            if state.isActive { state.browsed.looked(into: number, at: .now) }
            return state.isActive
        }
        if isActive { look.yield() }
    }

    /// A process opened a file. Returns at once; from any thread.
    func fileWasOpened(_ number: InodeNumber) {
        let now = ContinuousClock.now
        let isNew = state.withLock { state in
            guard state.isActive else { return false }
            if let last = state.lastFileAt, now - last < Self.pauseBetweenFiles { return false }
            state.lastFileAt = now
            return true
        }
        guard isNew, let parent = try? replica.database.parent(of: number) else { return }
        directoryWasOpened(parent)
    }

    /// A process asked for a name that a listed directory does not have: it may wait for it. Returns at once; from any
    /// thread.
    func nameWasMissed(in directory: InodeNumber) {
        let now = ContinuousClock.now
        let isNew = state.withLock { state in
            guard state.isActive else { return false }
            if let last = state.lastMiss, last.directory == directory, now - last.at < Self.pauseBetweenFiles {
                return false
            }
            state.lastMiss = (directory, now)
            return true
        }
        if isNew { directoryWasOpened(directory) }
    }

    /// A look at everything is over.
    func roundEnded(after duration: Duration) {
        state.withLock { ($0.lastRoundAt, $0.roundTook) = (.now, duration) }
    }

    /// - Parameters:
    ///   - compare: compares these directories with the remote.
    ///   - refresh: asks for a look at everything, and returns at once.
    func run(compare: @escaping @Sendable ([InodeNumber]) async -> Void, refresh: @escaping @Sendable () -> Void) {
        let quick = Task { [looks] in
            for await _ in looks {
                if self.wakesUp() { refresh() }
                while !Task.isCancelled, let due = self.state.withLock({ $0.browsed.nextDue }) {
                    try? await Task.sleep(until: due, clock: .continuous)
                    let directories = self.state.withLock { $0.browsed.takeDue(at: .now) }
                    if directories.isEmpty { continue }
                    let start = ContinuousClock.now
                    await compare(directories)
                    let now = ContinuousClock.now
                    self.state.withLock { $0.browsed.compared(directories, took: now - start, at: now) }
                }
                self.state.withLock { $0.isIdle = true }
            }
        }
        let slow = Task {
            var pause = Self.pauseWhileLooking
            while !Task.isCancelled {
                let (isIdle, took) = self.state.withLock { ($0.isIdle, $0.roundTook) }
                pause = Self.pause(after: pause, isIdle: isIdle, roundTook: took)
                try? await Task.sleep(for: pause * Double.random(in: 0.8...1.2))
                if self.state.withLock({ $0.isActive }) { refresh() }
            }
        }
        tasks.withLock { $0 = [quick, slow] }
    }

    func stop() {
        look.finish()
        for task in tasks.withLock({ $0 }) { task.cancel() }
    }

    /// How long nothing is looked at, before chance has its part in it.
    static func pause(after last: Duration, isIdle: Bool, roundTook: Duration) -> Duration {
        let wanted = isIdle ? min(longestPause, last * 3 / 2) : pauseWhileLooking
        return max(wanted, roundTook * BrowsedDirectories.longestShare)
    }

    /// A directory was opened after a while in which none was.
    ///
    /// - Returns: whether it is time for a look at everything, too.
    private func wakesUp() -> Bool {
        state.withLock { state in
            guard state.isIdle else { return false }
            state.isIdle = false
            guard let last = state.lastRoundAt else { return false }
            return .now - last > max(Self.pauseWhileLooking, state.roundTook * BrowsedDirectories.longestShare)
        }
    }
}
