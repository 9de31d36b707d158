import FileProvider
import Replica
import Synchronization

/// Picks what is sent to the remote, and when: so many at once, what was changed first goes first, and nothing while the
/// remote is away. An item that was left alone for its delay is sent though others go on changing.
actor Uploads {
    private let replica: Replica
    private let connection: Connection
    private let executor: Executor
    private let traffic: UploadTraffic
    private let listings: Listings
    private let offers: OfferQueue
    private var planner: Planner
    private let limit: Int
    private let isInteractive: Bool

    private var queue: [Planner.Step] = []
    private var running: [SyncOperation: Task<Void, Never>] = [:]
    /// What the operations that run are about.
    private var subjects: [SyncOperation: UploadTraffic.Subject] = [:]
    private var sending: [InodeNumber: UploadTransfer] = [:]
    private var isStopped = false
    private var isPaused = false
    private var hurries = 0
    private nonisolated let lastChange = LastChange()
    /// No plan is made before: making one costs time that the programs here need.
    private var nextPlan = ContinuousClock.now
    private var watch: Task<Void, Never>?
    private var hasFinishedSome = false
    private let onIdle: @Sendable () -> Void
    private var loop: Task<Void, Never>?
    private var timer: Task<Void, Never>?
    private nonisolated let signal: WakeSignal

    /// - Parameter onIdle: called when all that could be sent has been.
    init(
        replica: Replica, connection: Connection, executor: Executor, traffic: UploadTraffic, listings: Listings,
        offers: OfferQueue, signal: WakeSignal, limit: Int, isReadOnly: Bool = false, isInteractive: Bool,
        onIdle: @escaping @Sendable () -> Void
    ) {
        self.onIdle = onIdle
        self.replica = replica
        self.connection = connection
        self.executor = executor
        self.traffic = traffic
        self.listings = listings
        self.offers = offers
        self.limit = max(1, limit)
        self.isInteractive = isInteractive
        planner = Planner(replica)
        planner.isReadOnly = isReadOnly
        self.signal = signal
    }

    /// Something was changed here. Returns at once; from any thread.
    nonisolated func noteLocalChange() {
        lastChange.store(ContinuousClock.now)
        signal.wake()
    }

    /// There is something to do, or may be. Returns at once; from any thread.
    nonisolated func wake() {
        signal.wake()
    }

    func start() {
        guard loop == nil, !isInteractive else { return }
        loop = Task { [signal] in
            for await _ in signal.wakes {
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
        signal.finish()
        loop?.cancel()
        timer?.cancel()
        watch?.cancel()
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
        nextPlan = .now
        wake()
    }

    func pause(_ isPaused: Bool) {
        self.isPaused = isPaused
        wake()
    }

    /// The uploads under way: which inode, how much of how much.
    var transfers: [(number: InodeNumber, done: Int64, total: Int64)] {
        sending.compactMap { number, transfer in transfer.progress.map { (number, $0.done, $0.total) } }
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
        let plan = try planner.plan(at: .distantFuture, limit: .max, isHurried: true) { isBusy($0) }
        return (plan.steps.isEmpty ? Array(plan.blocked.prefix(1)) : plan.steps).map(\.operation)
    }

    /// Runs one operation to its end.
    func run(_ operation: SyncOperation) async {
        begin(Planner.Step(operation: operation, subject: UploadTraffic.Subject(identifiers: [], places: [])))
        await running[operation]?.value
    }

    // MARK: - Private

    private static let shortestPause = Duration.milliseconds(20)
    /// Programs count as busy for this long after their last change.
    private static let quiet = Duration.milliseconds(250)
    private static let planSize = 512
    /// After a plan the next one waits for this many times as long as the plan took, unless somebody waits.
    private static let pauseInPlans = 4
    /// While programs are busy, what has become due is collected for this long.
    private static let busyPause = Duration.milliseconds(100)
    private static let longestPauseBetweenPlans = Duration.seconds(1)
    /// How often files that are open for writing are looked at: the kernel writes them without telling.
    private static let writtenInterval = Duration.seconds(5)

    private func pump() {
        guard !isStopped, !isPaused, connection.state == .online else { return }
        preferOffers()
        do {
            while running.count < places {
                if queue.isEmpty {
                    guard ContinuousClock.now >= nextPlan else {
                        let wait = nextPlan - ContinuousClock.now
                        return sleep(until: Replica.now.advanced(by: wait))
                    }
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

    /// Whether programs are changing files here right now, and nobody waits for the remote.
    private var isBusyHere: Bool { hurries == 0 && ContinuousClock.now - lastChange.value < Self.quiet }

    /// How many operations may run now: while programs change files here they get most of the machine.
    private var places: Int { isBusyHere ? max(1, limit / 4) : limit }

    private func plan() throws {
        let (now, start) = (Replica.now, ContinuousClock.now)
        let plan = try planner.plan(at: now, limit: Self.planSize, isHurried: hurries > 0) { isBusy($0) }
        try watchWrittenFiles()
        if hurries == 0 {
            let pause = (ContinuousClock.now - start) * Self.pauseInPlans
            nextPlan =
                ContinuousClock.now
                + min(Self.longestPauseBetweenPlans, max(pause, isBusyHere ? Self.busyPause : .zero))
        }
        // What ran may have another identifier by now, and so be no more what is busy: it is planned when it has ended.
        queue = plan.steps.filter { running[$0.operation] == nil }
        if queue.isEmpty, running.isEmpty, plan.next == nil, let blocked = plan.blocked.first { queue = [blocked] }
        if let next = plan.next { sleep(until: next) }
    }

    /// As long as files are open for writing, has what was written to them noted every few seconds.
    private func watchWrittenFiles() throws {
        guard watch == nil, !isInteractive, try !replica.database.filesBeingWritten().isEmpty else { return }
        watch = Task {
            try? await Task.sleep(for: Self.writtenInterval)
            if !Task.isCancelled { self.lookAtWrittenFiles() }
        }
    }

    private func lookAtWrittenFiles() {
        watch = nil
        guard !isStopped else { return }
        do {
            try executor.commits.noteWrittenFiles()
        } catch {
            executor.warnings.report("what was written to open files cannot be noted: \(error)")
        }
        wake()
    }

    private func sleep(until time: FileTimestamp) {
        timer?.cancel()
        let wait = max(1_000_000, time.nanosecondsSince1970.saturatingSubtract(Replica.now.nanosecondsSince1970))
        timer = Task {
            try? await Task.sleep(for: .nanoseconds(wait))
            if !Task.isCancelled { self.wake() }
        }
    }

    /// Whether something that runs is about the same item or name.
    private func isBusy(_ subject: UploadTraffic.Subject) -> Bool {
        subjects.values.contains { $0.overlaps(subject) }
    }

    /// What overlaps with something that runs is planned again when that is over.
    private func begin(_ step: Planner.Step) {
        let operation = step.operation
        guard running[operation] == nil, !isStopped, !isBusy(step.subject) else { return }
        subjects[operation] = step.subject
        running[operation] = Task {
            await self.execute(operation)
            self.finish(operation)
        }
    }

    /// An operation turns out to be about something else than when it was planned: a file was renamed since, or what holds it.
    ///
    /// - Returns: false when something else that runs is about that, too: it is planned anew.
    private func claim(_ subject: UploadTraffic.Subject, for operation: SyncOperation) -> Bool {
        guard !subjects.contains(where: { $0.key != operation && $0.value.overlaps(subject) }) else { return false }
        subjects[operation] = subject
        return true
    }

    private func finish(_ operation: SyncOperation) {
        running[operation] = nil
        subjects[operation] = nil
        hasFinishedSome = true
        guard !isStopped, !isInteractive else { return }
        if queue.isEmpty { wake() } else { pump() }
    }

    private func execute(_ operation: SyncOperation) async {
        do {
            switch operation {
            case .creation(let row), .modification(let row):
                if try await offer(row, operation) { return }
                guard let (item, state) = try replica.database.pendingItem(row) else { return }
                let now: FileTimestamp = isInteractive ? .distantFuture : Replica.now
                let readiness = try planner.readiness(of: item, state, at: now, isHurried: true)
                guard case .ready(let fields) = readiness else { return }
                let subject = try planner.subject(of: item)
                guard claim(subject, for: operation), let prepared = try replica.prepare(row, fields: fields),
                    subject.covers(prepared)
                else { return }
                try await send(prepared)
            case .moveAside(let row):
                guard let (item, _) = try replica.database.pendingItem(row),
                    claim(try planner.subject(of: item), for: operation)
                else { return }
                try await send(
                    replica.prepare(
                        row, fields: [.filename, .parentItemIdentifier], as: Self.asideName(row)))
            case .deletion(let id):
                guard let deletion = try replica.deletion(id), claim(try planner.subject(of: deletion), for: operation)
                else { return }
                let subject = UploadTraffic.Subject(deletion)
                await traffic.begin(operation, subject)
                let identifier = await executor.delete(deletion)
                // What was never answered has been found only now: a listing may have found it, too.
                var known = subject
                known.identifiers.insert(identifier)
                await end(operation, known)
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
        let transfer = UploadTransfer()
        sending[prepared.inode] = transfer
        let refusal = await executor.send(prepared, transfer: transfer)
        sending[prepared.inode] = nil
        await end(operation, subject, row: prepared.row)
        // News may come in meanwhile: it may take long to bring all of it here.
        if let refusal { await executor.withdraw(prepared, refusal) }
    }

    /// Offers an item again whose identifier was given up.
    ///
    /// - Returns: false for any other.
    private func offer(_ row: Int64, _ operation: SyncOperation) async throws -> Bool {
        let (ready, number): (ReadyOffer, InodeNumber)
        switch try replica.database.offering(of: row) {
        case .none: return false
        case .waits: return true
        case .ready(let offer, let inode): (ready, number) = (offer, inode)
        }
        let subject = UploadTraffic.Subject(ready)
        await traffic.begin(operation, subject)
        let transfer = UploadTransfer()
        sending[number] = transfer
        let isMade = await executor.offer(row, transfer: transfer)
        sending[number] = nil
        // News of what only was recognized are as good as the answer.
        if isMade {
            await end(operation, UploadTraffic.Subject(identifiers: [], places: []), row: row)
        } else {
            await traffic.end(operation, touching: [])
        }
        return true
    }

    /// Puts the items that a caller waits for before all others.
    private func preferOffers() {
        let steps = offers.takePreferred().compactMap { row in
            (try? replica.database.readyOffer(of: row)).map {
                Planner.Step(operation: .creation(row: row), subject: UploadTraffic.Subject($0))
            }
        }
        let preferred = Set(steps.map(\.operation))
        if !steps.isEmpty { queue = steps + queue.filter { !preferred.contains($0.operation) } }
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

/// When something was changed here last.
private final class LastChange: Sendable {
    private let moment = Mutex(ContinuousClock.now - .seconds(60))

    func store(_ moment: ContinuousClock.Instant) {
        self.moment.withLock { $0 = moment }
    }

    var value: ContinuousClock.Instant { moment.withLock { $0 } }
}
