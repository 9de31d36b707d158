import FileProvider
import Synchronization

/// Knows every operation of one remote that is in flight, was answered lately, or had no response, and answers two
/// questions: may this operation start, and is this observation of a path still valid? The rules are in ``LedgerState``; this
/// class adds the clock, the waiting and the disk.
package final class OperationLedger: Sendable {
    /// Other operations take longer than a later one may wait.
    package struct Busy: Error {
        package init() {}
    }

    private struct Locked {
        var state: LedgerState
        var waiters: [LedgerState.Tick: OneShot<Void>] = [:]
        /// Whether a task will write what is not on disk yet.
        var isStoring = false
    }

    private let locked: Mutex<Locked>
    private let kept: SurvivingRecords<LedgerState.Record>
    private let patience: Duration
    /// How long what listings need after a restart may be missing on disk.
    private static let delay = Duration.milliseconds(250)

    /// - Parameters:
    ///   - settings: the times that the rules need.
    ///   - patience: how long a claim waits for earlier ones.
    ///   - store: keeps the unknown requests, and the latest changes, across a restart.
    package init(
        _ settings: LedgerState.Settings = .init(), patience: Duration = .seconds(20),
        in store: ReportingStore = .temporary
    ) {
        self.patience = patience
        kept = SurvivingRecords("operations", in: store)
        let records = kept.all.map(\.record)
        locked = Mutex(Locked(state: LedgerState(settings, restoring: records, at: .now)))
    }

    /// Changes the state, and writes what has to outlive the process before anything else builds on it.
    private func change<Value: Sendable>(_ body: (inout LedgerState, LedgerState.Moment) -> Value) -> Value {
        locked.withLock { locked in
            let value = body(&locked.state, .now)
            kept.apply(locked.state.takeDurableChanges())
            if locked.state.hasUnstoredChanges, !locked.isStoring {
                locked.isStoring = true
                Task { [weak self] in
                    try? await Task.sleep(for: Self.delay)
                    self?.storeRecentChanges()
                }
            }
            return value
        }
    }

    /// Writes at once what listings need after a restart, where the caller must not acknowledge a change that a SIGKILL would forget.
    package func storeRecentChanges() {
        locked.withLock { locked in
            locked.isStoring = false
            kept.apply(locked.state.takeRecentChanges(at: .now))
        }
    }

    package var now: LedgerState.Tick { locked.withLock { $0.state.tick } }

    // MARK: - Claims

    /// Performs an operation when no earlier one that has a path in common is left.
    ///
    /// - Parameters:
    ///   - emptied: the extents that are empty when it is done.
    ///   - body: gets the paths that were renamed while it waited, of directories without their slash.
    /// - Throws: ``Busy``; `CancellationError`; what `body` throws.
    package func perform<Value>(
        claiming extents: [PathExtent], emptying emptied: [PathExtent] = [],
        _ body: (_ renamed: [String]) async throws -> Value
    ) async throws -> Value {
        let number = change { state, _ in state.claim(extents, emptying: emptied) }
        defer { resume(change { state, _ in state.release(number) }, ending: number) }
        try await wait(for: number, atMost: patience)
        return try await body(locked.withLock { $0.state.renamed(before: number) })
    }

    package var claimCount: Int { locked.withLock { $0.state.claimCount } }

    /// Whether an operation that has a path in common has started, or waits.
    package func isClaimed(_ extent: PathExtent) -> Bool { locked.withLock { $0.state.isClaimed(extent) } }

    package var emptied: [PathExtent] { locked.withLock { $0.state.emptied } }

    package func noteRenamed(_ path: String) { change { state, _ in state.noteRenamed(path) } }

    // MARK: - Requests

    /// A request that changes these paths is about to be sent.
    package func send(_ paths: [String], making move: LedgerState.Move? = nil) -> LedgerState.Tick {
        change { $0.send(paths, making: move, at: $1) }
    }

    /// Stores the record of a move in flight that is made part by part, before the first part is moved: without it, the halves
    /// would be two items after a power cut. Other operations go on meanwhile.
    ///
    /// - Throws: what the store throws.
    package func keep(_ move: LedgerState.Move) throws {
        try kept.saveLarge(move.key, LedgerState.Record(move: move), .synced)
    }

    package func end(_ number: LedgerState.Tick, _ outcome: LedgerState.Outcome) {
        resume(change { $0.end(number, outcome, at: $1) })
    }

    package func acknowledge(_ path: String, _ effect: LedgerState.Effect) {
        change { $0.acknowledge(path, effect, at: $1) }
    }

    /// - Parameter tag: of the content that was sent, where it is known.
    package func noteUnknown(_ path: String, tag: String? = nil) { change { $0.noteUnknown(path, tag: tag, at: $1) } }

    package func noteSeen(_ path: String, tag: String) { change { state, _ in state.noteSeen(path, tag: tag) } }

    package func noteResponse(after took: Duration? = nil) { change { $0.noteResponse(after: took, at: $1) } }

    package func isLeftover(_ path: String, tag: String) -> Bool { change { $0.isLeftover(path, tag: tag, at: $1) } }

    package func recentChanges(below prefix: String) -> [LedgerState.Finished] {
        change { $0.recentChanges(below: prefix, at: $1) }
    }

    /// Whether a request without a response may still be applied to some paths.
    package func isInDoubt(_ extent: PathExtent) -> Bool { change { $0.doubt(over: [extent], at: $1) != nil } }

    package func settle(_ one: LedgerState.Finished, as effect: LedgerState.Effect) {
        change { state, _ in state.settle(one, as: effect) }
    }

    package func forget(_ one: LedgerState.Finished) { change { state, _ in state.forget(one) } }

    /// No request is sent any more.
    package func close() {
        change { $0.close(at: $1) }
        storeRecentChanges()
    }

    // MARK: - Moves

    package var moves: PossibleMoves { locked.withLock { $0.state.moves } }

    package func settle(_ move: LedgerState.Move, isMade: Bool) {
        change { $0.moves.settle(move, isMade: isMade, at: $1.instant) }
    }

    package func noteNotMade(_ move: LedgerState.Move) { change { $0.moves.noteNotMade(move, at: $1.instant) } }

    package func giveUp(_ move: LedgerState.Move) { change { state, _ in state.moves.giveUp(move) } }

    package func noteHeard(_ item: String) { change { state, _ in state.moves.noteHeard(item) } }

    // MARK: - Observations

    /// Waits until no request without a response may still be applied to some paths.
    ///
    /// - Parameter probe: sends the server any request, to see whether it responds.
    package func settle(over extents: [PathExtent], probe: () async throws -> Void) async throws {
        while let doubt = change({ $0.doubt(over: extents, at: $1) }) {
            switch doubt {
            case .serverIsSilent:
                try await probe()
                noteResponse()
            case .until(let instant): try await Task.sleep(until: instant, clock: .continuous)
            }
        }
    }

    /// Judges what was observed of some paths, once the requests that are in flight there now have ended. Requests that
    /// begin meanwhile are not waited for: where one file after the other is written, there is always one.
    ///
    /// - Parameters:
    ///   - tick: when the observation was requested.
    ///   - limit: how long the requests in flight are waited for.
    /// - Returns: the paths that have to be observed again; nil when not all of them are remembered.
    package func staleness(
        of extent: PathExtent, requestedAt tick: LedgerState.Tick, atMost limit: Duration
    ) async throws -> [LedgerState.Finished]? {
        var latest = now
        while true {
            switch locked.withLock({ $0.state.judge(extent, requestedAt: tick, sentUntil: latest) }) {
            case .fresh: return []
            case .stale(let finished): return finished
            case .expired: return nil
            case .inFlight(let numbers):
                if try await !wait(until: numbers, atMost: limit) { latest = 0 }
            }
        }
    }

    /// Waits until requests have ended.
    ///
    /// - Returns: whether they have.
    package func wait(until numbers: Set<LedgerState.Tick>, atMost limit: Duration) async throws -> Bool {
        guard let ticket = change({ state, _ in state.observe(after: numbers) }) else { return true }
        defer {
            change { state, _ in state.dismiss(ticket) }
            resume([], ending: ticket)
        }
        do {
            try await wait(for: ticket, atMost: limit)
            return true
        } catch is Busy {
            return false
        }
    }

    // MARK: - Waiting

    private func wait(for ticket: LedgerState.Tick, atMost limit: Duration) async throws {
        let turn = OneShot<Void>()
        let isWaiting = locked.withLock { locked in
            guard locked.state.isWaiting(ticket) else { return false }
            locked.waiters[ticket] = turn
            return true
        }
        guard isWaiting else { return }
        let timer = Task {
            try await Task.sleep(for: limit)
            self.giveUp(ticket, turn, Busy())
        }
        defer { timer.cancel() }
        CallContext.current?.beginWaiting()
        defer { CallContext.current?.endWaiting() }
        try await turn.value { giveUp(ticket, turn, CancellationError()) }
    }

    private func giveUp(_ ticket: LedgerState.Tick, _ turn: OneShot<Void>, _ error: any Error) {
        if locked.withLock({ $0.state.isWaiting(ticket) }) { turn.give(.failure(error)) }
    }

    /// - Parameter ended: a ticket that is not used any more.
    private func resume(_ tickets: [LedgerState.Tick], ending ended: LedgerState.Tick? = nil) {
        let waiters = locked.withLock { locked in
            if let ended { locked.waiters[ended] = nil }
            return tickets.compactMap { locked.waiters.removeValue(forKey: $0) }
        }
        for waiter in waiters { waiter.give(.success(())) }
    }
}

extension LedgerState.Moment {
    static var now: Self { Self(instant: .now, date: FileTimestamp.now.seconds) }
}
