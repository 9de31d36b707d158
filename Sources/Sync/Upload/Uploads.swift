import FileProvider
import Replica

/// Picks what is sent to the remote, and when: so many at once, what was changed first goes first, and nothing while the
/// remote is away.
actor Uploads {
    private let replica: Replica
    private let connection: Connection
    private let executor: Executor
    private let traffic: UploadTraffic
    private let listings: Listings
    private var planner: Planner
    private let limit: Int
    private let isInteractive: Bool

    private var queue: [SyncOperation] = []
    private var running: [SyncOperation: Task<Void, Never>] = [:]
    private var progress: [InodeNumber: (done: Int64, total: Int64)] = [:]
    private var isStopped = false
    private var isPaused = false
    private var hurries = 0
    private var hasFinishedSome = false
    private let onIdle: @Sendable () -> Void
    private var loop: Task<Void, Never>?
    private var timer: Task<Void, Never>?
    private let wakes: AsyncStream<Void>
    private nonisolated let wakeUp: AsyncStream<Void>.Continuation

    /// - Parameter onIdle: called when all that could be sent has been.
    init(
        replica: Replica, connection: Connection, executor: Executor, traffic: UploadTraffic, listings: Listings,
        limit: Int, isInteractive: Bool, onIdle: @escaping @Sendable () -> Void
    ) {
        self.onIdle = onIdle
        self.replica = replica
        self.connection = connection
        self.executor = executor
        self.traffic = traffic
        self.listings = listings
        self.limit = max(1, limit)
        self.isInteractive = isInteractive
        planner = Planner(replica: replica)
        (wakes, wakeUp) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// There is something to do, or may be. Returns at once; from any thread.
    nonisolated func wake() {
        wakeUp.yield()
    }

    func start() {
        guard loop == nil, !isInteractive else { return }
        loop = Task { [wakes] in
            for await _ in wakes {
                self.pump()
                // Whoever creates a thousand files wakes a thousand times.
                try? await Task.sleep(for: Self.shortestPause)
            }
        }
        wake()
    }

    /// Begins nothing any more and ends what is under way; what was not answered is sent again at the next start.
    func stop(patience: Duration) async {
        isStopped = true
        wakeUp.finish()
        loop?.cancel()
        timer?.cancel()
        let tasks = Array(running.values)
        for task in tasks { task.cancel() }
        await withTaskGroup(of: Void.self) { group in
            group.addTask { for task in tasks { await task.value } }
            group.addTask { try? await Task.sleep(for: patience) }
            await group.next()
            group.cancelAll()
        }
    }

    /// Somebody waits: nothing is held back for a moment to see whether it changes again.
    func hurry(_ isHurried: Bool) {
        hurries += isHurried ? 1 : -1
        wake()
    }

    func pause(_ isPaused: Bool) {
        self.isPaused = isPaused
        wake()
    }

    /// The uploads under way: which inode, how much of how much.
    var transfers: [(number: InodeNumber, done: Int64, total: Int64)] {
        progress.map { ($0.key, $0.value.done, $0.value.total) }
    }

    /// Whether an item is on its way.
    func isRunning(row: Int64) -> Bool {
        running[.creation(row: row)] != nil || running[.modification(row: row)] != nil
    }

    // MARK: - Interactive mode

    /// What is possible now, whatever the time.
    func possibleOperations() throws -> [SyncOperation] {
        var planner = planner
        planner.delay = .zero
        planner.writtenDelay = .zero
        let plan = try planner.plan(at: .distantFuture, limit: .max, isHurried: true) { running[$0] != nil }
        return plan.operations.isEmpty ? Array(plan.blocked.prefix(1)) : plan.operations
    }

    /// Runs one operation to its end.
    func run(_ operation: SyncOperation) async {
        begin(operation)
        await running[operation]?.value
    }

    // MARK: - Private

    private static let shortestPause = Duration.milliseconds(20)
    private static let planSize = 512

    private func pump() {
        guard !isStopped, !isPaused, connection.state == .online else { return }
        do {
            while running.count < limit {
                if queue.isEmpty {
                    try plan()
                    if queue.isEmpty {
                        if running.isEmpty, hasFinishedSome {
                            hasFinishedSome = false
                            onIdle()
                        }
                        return
                    }
                }
                begin(queue.removeFirst())
            }
        } catch {
            executor.warnings.report("what is to be sent cannot be found out: \(error)")
            sleep(until: Replica.now.advanced(by: .seconds(5)))
        }
    }

    private func plan() throws {
        let now = Replica.now
        let plan = try planner.plan(at: now, limit: Self.planSize, isHurried: hurries > 0) { running[$0] != nil }
        queue = plan.operations
        if queue.isEmpty, running.isEmpty, plan.next == nil, let blocked = plan.blocked.first { queue = [blocked] }
        if let next = plan.next { sleep(until: next) }
    }

    private func sleep(until time: FileTimestamp) {
        timer?.cancel()
        let wait = max(1_000_000, time.nanosecondsSince1970 - Replica.now.nanosecondsSince1970)
        timer = Task {
            try? await Task.sleep(for: .nanoseconds(wait))
            if !Task.isCancelled { self.wake() }
        }
    }

    private func begin(_ operation: SyncOperation) {
        guard running[operation] == nil, !isStopped else { return }
        running[operation] = Task {
            await self.execute(operation)
            self.finish(operation)
        }
    }

    private func finish(_ operation: SyncOperation) {
        running[operation] = nil
        hasFinishedSome = true
        guard !isStopped, !isInteractive else { return }
        if queue.isEmpty { wake() } else { pump() }
    }

    private func execute(_ operation: SyncOperation) async {
        do {
            switch operation {
            case .creation(let row), .modification(let row):
                guard let (item, state) = try replica.database.pendingItem(row) else { return }
                let now: FileTimestamp = isInteractive ? .distantFuture : Replica.now
                let readiness = try planner.readiness(of: item, state, at: now, isHurried: true)
                guard case .ready(let fields) = readiness else { return }
                try await send(replica.prepare(row, fields: fields))
            case .moveAside(let row):
                try await send(
                    replica.prepare(
                        row, fields: [.filename, .parentItemIdentifier], as: Self.asideName(row)))
            case .deletion(let id):
                guard let deletion = try replica.deletion(id) else { return }
                let subject = UploadTraffic.Subject(
                    identifiers: [deletion.identifier], places: [.init(parent: deletion.parent, name: deletion.name)])
                await traffic.begin(operation, subject)
                await executor.delete(deletion)
                await end(operation, subject)
            case .ingestion: break
            }
        } catch {
            executor.warnings.report("\(operation) cannot be prepared: \(error)")
        }
    }

    private func send(_ prepared: SentChange?) async throws {
        guard let prepared else { return }
        let operation: SyncOperation =
            prepared.identifier == nil ? .creation(row: prepared.row) : .modification(row: prepared.row)
        let subject = UploadTraffic.Subject(
            identifiers: prepared.identifier.map { [$0] } ?? [],
            places: [.init(parent: prepared.item.parentItemIdentifier, name: prepared.item.filename)])
        await traffic.begin(operation, subject)
        await executor.send(prepared) { done, total in
            Task { await self.note(prepared.inode, done, total) }
        }
        progress[prepared.inode] = nil
        await end(operation, subject, row: prepared.row)
    }

    private func note(_ number: InodeNumber, _ done: Int64, _ total: Int64) {
        progress[number] = (done, total)
    }

    private func end(_ operation: SyncOperation, _ subject: UploadTraffic.Subject, row: Int64? = nil) async {
        var identifiers = subject.identifiers
        if let row, let identifier = try? replica.database.item(row: row)?.identifier { identifiers.insert(identifier) }
        await listings.willChange(Array(identifiers))
        await traffic.end(operation, touching: identifiers)
    }

    /// A name that nobody gives a file.
    private static func asideName(_ row: Int64) -> String { ".yonder-aside-\(row)" }
}

extension FileTimestamp {
    static let distantFuture = FileTimestamp(nanosecondsSince1970: .max)
}
