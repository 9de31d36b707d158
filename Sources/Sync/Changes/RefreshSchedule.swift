import FileProvider
import Replica
import Synchronization

/// How often to look for changes without a signal of the provider.
package enum Polling: Hashable, Sendable {
    /// The provider signals changes.
    case never
    case every(Duration)
    /// Browsed directories every few seconds, all others every few minutes.
    case adaptive
}

/// When to look for remote changes: on a signal, at intervals, after a round that failed, and, while the remote is
/// unreachable, as its probe. With ``Polling/adaptive`` it compares browsed directories often and all others seldom.
final class RefreshSchedule: Sendable {
    private struct State {
        var polling: Polling
        var browsed = BrowsedDirectories()
        var lastFileAt: ContinuousClock.Instant?
        var lastMiss: (directory: InodeNumber, at: ContinuousClock.Instant)?
        var lastRound: (end: ContinuousClock.Instant, took: Duration)?
        /// How many rounds in a row have failed while the remote was there.
        var failures = 0
        /// Until when no poll asks the remote, because the last round failed; nil when it did not.
        var pausesUntil: ContinuousClock.Instant?
        /// Whether a round is wanted as soon as it takes no larger share of the time than polling. The next one is it.
        var isAsked = false
        /// How many rounds in a row were asked for: something stays in doubt.
        var askedInRow = 0
        /// The rounds under way.
        var running = 0
        var isIdle = true
        /// The last pause between two rounds.
        var pause = RefreshSchedule.pauseWhileBrowsing

        var roundTook: Duration { lastRound?.took ?? .zero }
    }

    private let replica: Replica
    private let connection: Connection
    private let state: Mutex<State>
    private let rounds = WakeSignal()
    private let requests = WakeSignal()
    private let probes = WakeSignal()
    private let browsing = WakeSignal()
    private let noted = WakeSignal()
    private let timer = WakeSignal()

    static let pauseWhileBrowsing = Duration.seconds(60)
    static let longestPause = Duration.seconds(300)
    /// Of many files opened in a row, a few tell which directories are in use.
    private static let pauseBetweenFiles = Duration.milliseconds(200)

    init(replica: Replica, connection: Connection, polling: Polling) {
        self.replica = replica
        self.connection = connection
        state = Mutex(State(polling: polling))
    }

    /// Asks for a round soon.
    func refresh() { rounds.wake() }

    /// Asks for a round, which takes no larger share of the time than polling, and a smaller one after each other that was asked for.
    /// Nothing is asked for after a round that failed: it is repeated after its pause. During a round the pause begins at its end.
    func refreshInTime() {
        state.withLock { state in
            // The round under way may be such a repetition, and may have begun before what the caller wants taken in.
            if state.pausesUntil == nil || state.running > 0 { state.isAsked = true }
        }
        requests.wake()
    }

    /// The remote is unreachable: probes it until it answers.
    func probe() { probes.wake() }

    /// Asks for a comparison of the directories that were noted to be compared. That takes no larger share of the time than the
    /// comparisons of browsed directories.
    func compareNoted() { noted.wake() }

    /// Another way of looking holds from now on.
    func change(to polling: Polling) {
        state.withLock { state in
            state.polling = polling
            if polling != .adaptive { state.browsed = BrowsedDirectories() }
        }
        startTimer()
    }

    /// - Parameters:
    ///   - compare: compares these directories with the remote.
    ///   - compareNoted: compares those that were noted to be compared, and returns how long it took.
    ///   - refresh: takes in all changes.
    func run(
        compare: @escaping @Sendable ([InodeNumber]) async -> Void,
        compareNoted: @escaping @Sendable () async -> Duration,
        refresh: @escaping @Sendable () async throws(FileProviderError) -> Void
    ) {
        rounds.run {
            await self.round(refresh)
            return .zero
        }
        requests.run {
            await self.refreshAsAsked()
            return .zero
        }
        probes.run {
            while self.connection.failure != nil, !Task.isCancelled {
                try? await Task.sleep(for: self.connection.pauseBeforeProbe)
                if self.connection.failure != nil { await self.round(refresh) }
            }
            return .zero
        }
        browsing.run {
            await self.compareBrowsed(compare)
            return .zero
        }
        noted.run {
            // Once the remote is there again, a round compares them.
            guard self.connection.failure == nil else { return .zero }
            let took = await compareNoted()
            self.compareLater()
            return took * BrowsedDirectories.longestShare
        }
        timer.run {
            if self.isTimeToPoll { self.refreshUnlessUnreachable() }
            self.startTimer()
            return .zero
        }
        startTimer()
    }

    func stop() {
        for signal in [rounds, requests, probes, browsing, noted, timer] { signal.stop() }
    }

    // MARK: - Browsing

    /// A process opened a listed directory. Returns at once.
    func directoryWasOpened(_ number: InodeNumber) {
        let isActive = state.withLock { state in
            guard state.polling == .adaptive else { return false }
            state.browsed.looked(into: number, at: .now)
            return true
        }
        if isActive { browsing.wake() }
    }

    /// A process opened a file. Returns at once; from any thread.
    func fileWasOpened(_ number: InodeNumber) {
        let now = ContinuousClock.now
        let isNew = state.withLock { state in
            guard state.polling == .adaptive else { return false }
            if let last = state.lastFileAt, now - last < Self.pauseBetweenFiles { return false }
            state.lastFileAt = now
            return true
        }
        guard isNew, let parent = try? replica.database.parent(of: number) else { return }
        directoryWasOpened(parent)
    }

    /// A lookup missed in a listed directory: the process may wait for the name. Returns at once; from any thread.
    func nameWasMissed(in directory: InodeNumber) {
        let now = ContinuousClock.now
        let isNew = state.withLock { state in
            guard state.polling == .adaptive else { return false }
            if let last = state.lastMiss, last.directory == directory, now - last.at < Self.pauseBetweenFiles {
                return false
            }
            state.lastMiss = (directory, now)
            return true
        }
        if isNew { directoryWasOpened(directory) }
    }

    /// The pause before the next round, without its random part.
    static func pause(after last: Duration, isIdle: Bool, roundTook: Duration) -> Duration {
        let wanted = isIdle ? min(longestPause, last * 3 / 2) : pauseWhileBrowsing
        return max(wanted, roundTook * BrowsedDirectories.longestShare)
    }

    /// The pause before a round that is asked for, after so many in a row.
    static func pause(beforeAskedAfter count: Int, roundTook: Duration) -> Duration {
        let shortest = roundTook * BrowsedDirectories.longestShare
        return Backoff(first: shortest, longest: max(shortest, pauseWhileBrowsing)).pause(after: count)
    }

    /// A round that failed is repeated after a pause, whatever the polling and the failure: without a signal nothing else would ask
    /// again. While the remote is unreachable, the probe does. One that will hardly succeed is repeated less and less often, and takes no
    /// larger share of the time than polling. Polls wait for that, too.
    private func round(_ refresh: @Sendable () async throws(FileProviderError) -> Void) async {
        let start = ContinuousClock.now
        state.withLock { state in
            state.running += 1
            state.askedInRow = state.isAsked ? state.askedInRow + 1 : 0
            state.isAsked = false
        }
        let failure: FileProviderError?
        do throws(FileProviderError) {
            try await refresh()
            failure = nil
        } catch {
            failure = error
        }
        let took = ContinuousClock.now - start
        let pause = state.withLock { state -> Duration? in
            state.lastRound = (.now, took)
            state.running -= 1
            guard let failure, failure.code.reaction != .latchDomain || connection.failure == nil else {
                (state.failures, state.pausesUntil) = (0, nil)
                return nil
            }
            let isTransient = Backoff.isTransient(failure)
            let pause = (isTransient ? Backoff.listing : .refusedRound).pause(after: state.failures)
            let longest = isTransient ? pause : max(pause, took * BrowsedDirectories.longestShare)
            state.failures += 1
            state.pausesUntil = .now + longest
            return longest
        }
        rounds.wake(after: pause)
        guard pause == nil else { return }
        compareLater()
        // A round that was asked for meanwhile has waited for this one.
        requests.wake()
    }

    /// A round that was asked for has succeeded: the next failure counts as the first.
    func roundSucceeded() { state.withLock { ($0.failures, $0.pausesUntil) = (0, nil) } }

    /// Directories that could not be compared are compared again when their time comes. A poll does that, too.
    func compareLater() {
        guard state.withLock({ $0.polling == .never && $0.pausesUntil == nil }),
            let pause = (try? replica.database.comparisons())?.next
        else { return }
        rounds.wake(after: pause)
    }

    /// Not while a round is under way: the poll would follow it at once, whatever comes of it.
    private var isTimeToPoll: Bool {
        state.withLock { state in state.running == 0 && state.pausesUntil.map { $0 <= .now } ?? true }
    }

    private func refreshAsAsked() async {
        while !Task.isCancelled {
            let earliest = state.withLock { state -> ContinuousClock.Instant? in
                // The end of a round under way wakes this again; the repetition of one that failed is the round that was asked for.
                guard state.isAsked, state.running == 0, state.pausesUntil == nil else { return nil }
                return state.lastRound.map {
                    $0.end + Self.pause(beforeAskedAfter: state.askedInRow, roundTook: $0.took)
                } ?? .now
            }
            guard let earliest else { return }
            if earliest <= .now { return refreshUnlessUnreachable() }
            try? await Task.sleep(until: earliest, clock: .continuous)
        }
    }

    /// While the remote is unreachable, only the probe asks it.
    private func refreshUnlessUnreachable() {
        if connection.failure == nil { refresh() }
    }

    private func startTimer() {
        timer.wake(
            after: state.withLock { state -> Duration? in
                switch state.polling {
                case .never: return nil
                case .every(let interval): return interval
                case .adaptive:
                    state.pause = Self.pause(after: state.pause, isIdle: state.isIdle, roundTook: state.roundTook)
                    return state.pause * Double.random(in: 0.8...1.2)
                }
            })
    }

    private func compareBrowsed(_ compare: @Sendable ([InodeNumber]) async -> Void) async {
        if beginsBrowsing() { refreshUnlessUnreachable() }
        while !Task.isCancelled, let due = state.withLock({ $0.browsed.nextDue }) {
            try? await Task.sleep(until: due, clock: .continuous)
            let directories = state.withLock { $0.browsed.takeDue(at: .now) }
            if directories.isEmpty { continue }
            let start = ContinuousClock.now
            if connection.failure == nil { await compare(directories) }
            let now = ContinuousClock.now
            state.withLock { $0.browsed.compared(directories, took: now - start, at: now) }
        }
        state.withLock { $0.isIdle = true }
    }

    /// A directory was opened after a while in which none was.
    ///
    /// - Returns: whether it is time for a round, too.
    private func beginsBrowsing() -> Bool {
        state.withLock { state in
            guard state.isIdle else { return false }
            state.isIdle = false
            guard let last = state.lastRound else { return false }
            return .now - last.end > max(Self.pauseWhileBrowsing, last.took * BrowsedDirectories.longestShare)
        }
    }
}
