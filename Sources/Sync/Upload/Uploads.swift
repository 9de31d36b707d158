import FileProvider
import Replica
import Synchronization

/// Schedules uploads: a limited number at once, none while the remote is unreachable. All items whose delay is over have their turn,
/// although others go on changing.
actor Uploads: SyncPart {
    private let executor: Executor
    nonisolated var context: SyncContext { executor.context }
    private let offers: OfferQueue
    private var ordering: RemoteOrdering { replica.ordering }
    private var planner = Planner()
    /// Where the next plan begins.
    private var position = PendingPosition()
    private let limit: Int
    private let isInteractive: Bool

    private var queue: [Planner.Step] = []
    private var running: [SyncOperation: Task<Void, Never>] = [:] {
        didSet {
            let changes = Set(running.keys.compactMap(\.change))
            runningChanges.withLock { $0 = changes }
        }
    }
    /// The changes of ``running``, for threads that serve the kernel and must not wait for this actor.
    private nonisolated let runningChanges = Mutex<Set<PendingMark>>([])
    private var sending: [InodeNumber: UploadTransfer] = [:]
    private var isStopped = false
    private var isPaused = false
    private var hurries = 0
    private nonisolated let changesHere = Mutex(BurstOfChanges())
    /// No plan is made before: making one costs time that the programs here need.
    private var nextPlan = ContinuousClock.now
    private var watch: Task<Void, Never>?
    private var hasFinishedSome = false
    private let onIdle: @Sendable () -> Void
    private let onLateAnswer: @Sendable () -> Void
    private nonisolated let signal: WakeSignal

    /// - Parameters:
    ///   - onIdle: called when all that could be sent has been.
    ///   - onLateAnswer: called when an operation has ended for which an observation of its items may not have waited.
    init(
        executor: Executor, offers: OfferQueue, signal: WakeSignal, isInteractive: Bool,
        onIdle: @escaping @Sendable () -> Void, onLateAnswer: @escaping @Sendable () -> Void
    ) {
        self.onIdle = onIdle
        self.onLateAnswer = onLateAnswer
        self.executor = executor
        self.offers = offers
        limit = max(1, executor.calls.provider.features.concurrentCalls)
        self.isInteractive = isInteractive
        planner.isReadOnly = executor.calls.isReadOnly
        planner.delays = executor.delays
        self.signal = signal
    }

    /// Something was changed here. Returns at once; from any thread.
    nonisolated func noteLocalChange() {
        changesHere.withLock { $0.note(at: .now) }
        signal.wake()
    }

    /// There is something to do, or may be. Returns at once; from any thread.
    nonisolated func wake() {
        signal.wake()
    }

    func start() {
        guard !isInteractive else { return }
        signal.run {
            await self.pump()
            // A program that creates a thousand files wakes it a thousand times.
            return Self.shortestPause
        }
        wake()
    }

    /// Begins nothing any more. What has been sent may be answered for a quarter of `patience`, because a request that is
    /// cancelled may still arrive. Then all is cancelled; what was not answered is sent again at the next start.
    func stop(patience: Duration) async {
        isStopped = true
        signal.stop()
        watch?.cancel()
        if connection.state == .online { await wait(atMost: patience / 4) { running.count <= incompleteTransfers } }
        for task in running.values { task.cancel() }
        await wait(atMost: patience) { running.isEmpty }
    }

    /// How many uploads have bytes that are not sent yet.
    private var incompleteTransfers: Int { transfers.count { $0.done < $0.total } }

    private func wait(atMost patience: Duration, until isDone: () -> Bool) async {
        let end = ContinuousClock.now + patience
        while !isDone(), .now < end, (try? await Task.sleep(for: Self.checkInterval)) != nil {}
    }

    /// A caller waits for the remote: nothing is held back to see whether it changes again.
    func setHurried(_ isHurried: Bool) {
        hurries += isHurried ? 1 : -1
        nextPlan = .now
        wake()
    }

    /// Begins nothing until it is told to go on, although the connection is not paused. What is under way ends by itself: a request
    /// that is cancelled may still arrive.
    func pause(_ isPaused: Bool) {
        self.isPaused = isPaused
        wake()
    }

    /// The uploads under way: which inode, how much of how much.
    var transfers: [(number: InodeNumber, done: Int64, total: Int64)] {
        sending.compactMap { number, transfer in transfer.progress.map { (number, $0.done, $0.total) } }
    }

    /// Whether an item is on its way. From any thread.
    nonisolated func isRunning(row: Int64) -> Bool { runningChanges.withLock { $0.contains(.item(row)) } }

    /// The changes that are on their way. From any thread.
    nonisolated var changesUnderWay: Set<PendingMark> { runningChanges.withLock { $0 } }

    // MARK: - Interactive mode

    /// The operations that are possible now, without any delay.
    func possibleOperations() throws -> [SyncOperation] {
        if context.holdsChanges { return [] }
        var planner = currentPlanner(isHurried: true)
        planner.delays.delay = .zero
        planner.delays.writtenDelay = .zero
        let plan = try planner.plan(from: replica, at: .distantFuture, limit: .max, position: &position) {
            ordering.isClaimed($0)
        }
        return plan.steps.map(\.operation)
    }

    func run(_ operation: SyncOperation) async {
        begin(Planner.Step(operation: operation, footprint: Footprint()))
        await running[operation]?.value
    }

    private static let checkInterval = Duration.milliseconds(5)
    private static let shortestPause = Duration.milliseconds(20)
    private static let planSize = 512
    /// So many changes are looked at to find the one that comes first.
    private static let mostPredecessors = 100
    /// After a plan the next one waits for this many times as long as the plan took, unless a caller waits.
    private static let pauseInPlans = 4
    /// While programs are busy, what has become due is collected for this long.
    private static let busyPause = Duration.milliseconds(100)
    private static let longestPauseBetweenPlans = Duration.seconds(1)
    /// How often files that are open for writing are looked at: the kernel writes them without telling.
    private static let writtenInterval = Duration.seconds(5)

    private func pump() {
        guard !isStopped, !isPaused, !context.holdsChanges, connection.state == .online else { return }
        preferOffers()
        if hurries == 0, let end = changesHere.withLock({ $0.endOfPrecedence(at: .now) }) {
            return signal.wake(after: end - .now)
        }
        do {
            while running.count < places {
                if queue.isEmpty {
                    guard ContinuousClock.now >= nextPlan else {
                        return signal.wake(after: nextPlan - ContinuousClock.now)
                    }
                    try plan()
                    warnings.succeeded(.sending)
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
            warnings.report("what is to be sent cannot be found out: \(error)", of: .sending)
            signal.wake(after: .seconds(5))
        }
    }

    /// Whether programs are changing files right now, and no caller waits for the remote.
    private var isBusyHere: Bool { hurries == 0 && changesHere.withLock { $0.isOn(at: .now) } }

    /// How many operations may run now: while programs change files here they get most of the machine.
    private var places: Int { isBusyHere ? max(1, limit / 4) : limit }

    private func currentPlanner(isHurried: Bool) -> Planner {
        var planner = planner
        (planner.isHurried, planner.holdsRemovals) = (isHurried, context.guardian.holdsRemovals)
        return planner
    }

    private func plan() throws {
        let (now, start) = (FileTimestamp.now, ContinuousClock.now)
        let planner = currentPlanner(isHurried: hurries > 0)
        let plan = try planner.plan(from: replica, at: now, limit: Self.planSize, position: &position) {
            ordering.isClaimed($0)
        }
        try watchWrittenFiles()
        if hurries == 0 {
            let pause = (ContinuousClock.now - start) * Self.pauseInPlans
            nextPlan =
                ContinuousClock.now
                + min(Self.longestPauseBetweenPlans, max(pause, isBusyHere ? Self.busyPause : .zero))
        }
        // What ran may have another identifier by now, and so be no more what is busy: it is planned when it has ended.
        queue = plan.steps.filter { running[$0.operation] == nil }
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
            try commits.noteWrittenFiles()
        } catch {
            warnings.report("what was written to open files cannot be noted: \(error)")
        }
        wake()
    }

    private func sleep(until time: FileTimestamp) {
        let wait = time.nanosecondsSince1970.saturatingSubtract(FileTimestamp.now.nanosecondsSince1970)
        signal.wake(after: .nanoseconds(max(1_000_000, wait)))
    }

    /// Begins a step, unless an operation that runs has claimed one of its items or names: then the step is planned again.
    private func begin(_ step: Planner.Step) {
        let operation = step.operation
        guard running[operation] == nil, !isStopped, let id = ordering.claim(step.footprint) else { return }
        running[operation] = Task {
            let start = ContinuousClock.now
            await self.execute(step, id)
            self.finish(operation, id, took: .now - start)
        }
    }

    private func finish(_ operation: SyncOperation, _ id: OrderingState.OperationID, took: Duration) {
        ordering.release(id)
        running[operation] = nil
        hasFinishedSome = true
        if took >= RemoteOrdering.patience { onLateAnswer() }
        guard !isStopped, !isInteractive else { return }
        if queue.isEmpty { wake() } else { pump() }
    }

    private func execute(_ step: Planner.Step, _ id: OrderingState.OperationID) async {
        do {
            switch step.operation {
            case .creation(let row), .modification(let row):
                if try await offer(row, id) { return }
                guard let pending = try replica.pendingItem(row), case .ready(let fields) = readiness(of: pending)
                else { return }
                // The item, or a directory above it, may have been renamed since the plan.
                let footprint = planner.footprint(of: pending)
                guard footprint == step.footprint || ordering.claim(footprint, for: id),
                    let prepared = try replica.prepare(row, fields: fields), footprint.covers(prepared)
                else { return }
                try await send(prepared, id)
            case .moveAside(let row):
                // A rename here may have ended the circle since it was planned.
                guard let pending = try replica.pendingItem(row),
                    [.waits, .waitsForName].contains(readiness(of: pending)),
                    ordering.claim(planner.footprint(of: pending), for: id)
                else { return }
                try await send(
                    replica.prepare(
                        row, fields: [.filename, .parentItemIdentifier], as: CircularWaits.asideName(row),
                        in: pending.directoryWhenAside), id)
            case .deletion(let row):
                // A reimport may have given up its directory since it was planned.
                guard let removal = try replica.pendingRemoval(row), !removal.deletion.parent.isPlaceholder,
                    ordering.claim(planner.footprint(of: removal), for: id)
                else { return }
                ordering.send(id)
                let identifier = await executor.delete(removal.deletion)
                // An item whose creation was never answered has been found only now: a listing may have found it, too.
                ordering.answer(id, of: [removal.deletion.identifier, identifier])
            case .ingestion: break
            }
        } catch {
            if Task.isCancelled { return }
            warnings.report("\(step.operation) cannot be prepared: \(error)")
            await executor.pauseUnrecorded()
        }
    }

    /// What was planned, or is waited for by a caller, has no delay.
    private var withoutDelays: (planner: Planner, now: FileTimestamp) {
        (currentPlanner(isHurried: true), isInteractive ? .distantFuture : FileTimestamp.now)
    }

    private func readiness(of pending: PendingEntry) -> Planner.Readiness {
        let (planner, now) = withoutDelays
        return planner.readiness(of: pending, at: now)
    }

    private func send(_ prepared: SentChange?, _ id: OrderingState.OperationID) async throws {
        guard let prepared else { return }
        let refusal = await transfer(prepared.inode, id) { await executor.send(prepared, transfer: $0) }
        answered(id, row: prepared.row, prepared.identifier)
        // Remote changes are taken in meanwhile: downloading all of a withdrawn item may take long.
        if let refusal { await executor.withdraw(prepared, refusal) }
    }

    private func transfer<Value>(
        _ number: InodeNumber, _ id: OrderingState.OperationID, _ body: (UploadTransfer) async -> Value
    ) async -> Value {
        ordering.send(id)
        let transfer = UploadTransfer(traffic: calls.traffic)
        sending[number] = transfer
        defer { sending[number] = nil }
        return await body(transfer)
    }

    /// Offers an item again whose identifier was given up.
    ///
    /// - Returns: false for any other.
    private func offer(_ row: Int64, _ id: OrderingState.OperationID) async throws -> Bool {
        let number: InodeNumber
        switch try replica.database.reimports.offering(of: row) {
        case .none: return false
        case .waits: return true
        case .ready(_, let inode): number = inode
        }
        let isMade = await transfer(number, id) { await executor.offer(row, transfer: $0) }
        // For an item that was only recognized, an observation is as good as the answer.
        if isMade { answered(id, row: row, nil) } else { ordering.answer(id, of: []) }
        return true
    }

    /// An item's operation is over and recorded: observations of the item that were requested before do not count.
    private func answered(_ id: OrderingState.OperationID, row: Int64, _ identifier: ItemIdentifier?) {
        let present = try? replica.database.item(row: row)?.identifier
        ordering.answer(id, of: Set([identifier, present].compactMap(\.self)))
    }

    /// Puts a change that a caller waits for before all others, or what has to be sent before it.
    func prefer(_ mark: PendingMark) throws {
        let (planner, now) = withoutDelays
        guard !planner.isReadOnly else { return }
        var next: PendingMark? = mark
        for _ in 0..<Self.mostPredecessors {
            let step: Planner.Step
            switch next {
            case .item(let row):
                guard let pending = try replica.pendingItem(row), !pending.item.isToBeOffered else { return }
                guard case .ready = planner.readiness(of: pending, at: now) else {
                    next = pending.predecessors.first
                    continue
                }
                step = Planner.Step(
                    operation: Planner.operation(for: pending.item), footprint: planner.footprint(of: pending))
            case .deletion(let id):
                guard let removal = try replica.pendingRemoval(id), !removal.deletion.parent.isPlaceholder,
                    planner.readiness(of: removal, at: now) == .ready([])
                else { return }
                step = Planner.Step(operation: .deletion(id), footprint: planner.footprint(of: removal))
            case .reimport, nil: return
            }
            guard running[step.operation] == nil, queue.first != step else { return }
            queue = [step] + queue.filter { $0.operation != step.operation }
            return wake()
        }
    }

    /// Puts the items that a caller waits for before all others.
    private func preferOffers() {
        let steps = offers.takePreferred().compactMap { row in
            (try? replica.database.reimports.readyOffer(of: row)).map {
                Planner.Step(operation: .creation(row: row), footprint: Footprint($0))
            }
        }
        let preferred = Set(steps.map(\.operation))
        if !steps.isEmpty { queue = steps + queue.filter { !preferred.contains($0.operation) } }
    }
}
