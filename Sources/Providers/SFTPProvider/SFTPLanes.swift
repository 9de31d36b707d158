import Synchronization

/// A file that is open in a session.
struct SFTPLane: Sendable {
    let session: SFTPSession
    let handle: [UInt8]

    /// Does not wait for the response.
    func close() { session.closeHandle(handle) }
}

/// The lanes of one transfer. The first is the caller's; more join when they are open, and leave when they fail.
final class SFTPLanes: Sendable {
    private struct State {
        var lanes: [SFTPLane]
        var inFlight: [Int64]
        var isDone = false
    }

    private let state: Mutex<State>
    let first: SFTPLane

    init(_ first: SFTPLane) {
        self.first = first
        state = Mutex(State(lanes: [first], inFlight: [0]))
    }

    /// - Returns: false when the transfer is over: the caller closes the lane.
    func add(_ lane: SFTPLane) -> Bool {
        state.withLock { state in
            guard !state.isDone else { return false }
            state.lanes.append(lane)
            state.inFlight.append(0)
            return true
        }
    }

    /// The lane with the fewest bytes in flight, with a place for more; nil when all are full. The bytes that are here and were not
    /// taken yet count as well. On a slow line the first lane is the only one: others would take its part of the line.
    func take(_ count: Int64) -> (index: Int, lane: SFTPLane)? {
        let isWide = first.session.isWide
        return state.withLock { state in
            let free = state.lanes.indices.filter { index in
                let (session, inFlight) = (state.lanes[index].session, state.inFlight[index])
                if index == 0, inFlight == 0 { return true }
                guard index == 0 || isWide && session.isOpen else { return false }
                return inFlight + count <= SFTPWindow.largest && session.hasRoom(for: count)
            }
            guard let index = free.min(by: { state.inFlight[$0] < state.inFlight[$1] }) else { return nil }
            state.inFlight[index] += count
            return (index, state.lanes[index])
        }
    }

    func give(back count: Int64, to index: Int) {
        state.withLock { $0.inFlight[index] -= count }
    }

    /// No lane joins any more.
    ///
    /// - Returns: the lanes beside the first.
    func finish() -> [SFTPLane] {
        state.withLock { state in
            state.isDone = true
            return Array(state.lanes.dropFirst())
        }
    }
}

/// More connections to one server, for large files: a channel of SSH has a window of 2 MB, which a distant line does not fill.
/// They are opened by the first large transfer, and closed when there has been none for a while.
actor SFTPBulkConnections {
    private let open: @Sendable () async throws -> SFTPSession
    private var sessions: [Task<SFTPSession, any Error>] = []
    private var transfers = 0
    private var lastUse = ContinuousClock.now
    private var lastFailure: ContinuousClock.Instant?
    private var isClosed = false

    private static let count = 3
    private static let idleTime = Duration.seconds(60)
    /// The server may allow one connection alone, and each may need a touch on a token.
    private static let pauseAfterFailure = Duration.seconds(600)
    /// The most transfers with lanes of their own at once: each has up to 16 MB in flight.
    private static let mostTransfers = 3
    /// The bytes from which a transfer is large.
    static let largeSize: Int64 = 8 << 20

    init(open: @escaping @Sendable () async throws -> SFTPSession) {
        self.open = open
    }

    /// Runs a transfer, and opens its file in more sessions meanwhile. A lane that cannot be opened is left out.
    ///
    /// - Parameter closeLane: called with each opened lane after the transfer.
    nonisolated func widen<Value: Sendable>(
        _ lanes: SFTPLanes, openLane: @escaping @Sendable (SFTPSession) async throws -> SFTPLane,
        closeLane: @escaping @Sendable (SFTPLane) -> Void, _ transfer: () async throws -> Value
    ) async throws -> Value {
        let sessions = await begin()
        let joining = sessions.map { session in
            Task {
                guard let session = try? await session.value, !Task.isCancelled else { return }
                guard let lane = try? await openLane(session) else { return }
                if !lanes.add(lane) { closeLane(lane) }
            }
        }
        let result: Result<Value, any Error>
        do { result = .success(try await transfer()) } catch { result = .failure(error) }
        for task in joining { task.cancel() }
        for lane in lanes.finish() { closeLane(lane) }
        if !sessions.isEmpty { await end() }
        return try result.get()
    }

    private func begin() -> [Task<SFTPSession, any Error>] {
        guard !isClosed, transfers < Self.mostTransfers else { return [] }
        if let lastFailure, lastFailure.duration(to: .now) < Self.pauseAfterFailure { return [] }
        transfers += 1
        while sessions.count < Self.count {
            sessions.append(
                Task {
                    do {
                        return try await open()
                    } catch {
                        lastFailure = .now
                        throw error
                    }
                })
        }
        return sessions
    }

    private func end() {
        transfers -= 1
        lastUse = .now
        let used = sessions
        Task {
            // A session that broke is opened again by the next transfer.
            var isBroken = false
            for session in used where !isBroken {
                isBroken = (try? await session.value.isOpen) != true
            }
            if isBroken, transfers == 0 { closeAll() }
            try await Task.sleep(for: Self.idleTime)
            if transfers == 0, lastUse.duration(to: .now) >= Self.idleTime { closeAll() }
        }
    }

    /// Transfers have no lanes of their own for a while.
    func pause() { lastFailure = .now }

    private func closeAll() {
        let sessions = sessions
        self.sessions = []
        Task {
            for session in sessions { try? await session.value.close() }
        }
    }

    func close() {
        isClosed = true
        for session in sessions { session.cancel() }
        closeAll()
    }
}
