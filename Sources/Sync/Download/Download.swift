import FileProvider
import Replica
import Synchronization
import Syscalls
import SystemPackage

/// The transfer of one version of a file's content, for all its readers: the running fetches, and the readers that
/// wait for ranges. Readers are answered as bytes arrive; the ranges are recorded when nothing is in flight, and whenever
/// much has come, so that a crash costs little.
final class Download: Sendable {
    let number: InodeNumber
    let identifier: ItemIdentifier
    let version: [UInt8]
    let generation: Int64
    let size: Int64
    let descriptor: FileDescriptor
    private let plan: FetchPlan
    private let calls: ProviderCalls
    private let budget: CacheBudget
    private let evictor: any ContentEvictor
    private let accounting: (any FetchAccounting)?
    private let state: Mutex<DownloadState>
    private let onEvent: @Sendable (Download, Event) -> Void
    private let observe: @Sendable () -> Observation

    enum Event: Sendable {
        /// Bytes begin to be fetched for a process, or for none; once for each.
        case begins(for: String?)
        /// A fetch that began at an observation has given attributes, too.
        case attributes(of: FileProviderItem, Observation)
        /// Much has come since ranges were recorded, and more is under way.
        case advanced
        /// Nothing is under way any more.
        case idle
        /// The remote does not have this version any more.
        case versionGone
        /// The provider gave bytes outside the file.
        case overflow(FileProviderError)
    }

    private typealias Waiter = DownloadState.Waiter
    private typealias Fetch = DownloadState.Fetch

    /// A transfer is kept this long after its last reader, because most come back for more.
    private static let linger = Duration.milliseconds(300)
    /// In bytes.
    private static let mostUnrecorded: Int64 = 32 << 20

    init(
        _ beginning: ContentBeginning, number: InodeNumber, calls: ProviderCalls, budget: CacheBudget,
        evictor: any ContentEvictor, accounting: (any FetchAccounting)?, observe: @escaping @Sendable () -> Observation,
        onEvent: @escaping @Sendable (Download, Event) -> Void
    ) {
        self.number = number
        identifier = beginning.identifier
        version = beginning.version
        generation = beginning.generation
        size = beginning.size
        descriptor = beginning.descriptor
        plan = FetchPlan(size: beginning.size, canFetchRanges: calls.provider.features.partialContentFetching)
        self.calls = calls
        self.budget = budget
        self.evictor = evictor
        self.accounting = accounting
        self.observe = observe
        self.onEvent = onEvent
        // That nothing is missing of an empty file has to be recorded, too.
        let recorded = beginning.size == 0 ? -1 : beginning.present.count
        state = Mutex(DownloadState(present: beginning.present, trusted: beginning.present, recorded: recorded))
    }

    deinit {
        try? descriptor.close()
    }

    /// How much is here of how much.
    var progress: (done: Int64, total: Int64) { (state.withLock { $0.present.count }, size) }

    /// The first process for which something was fetched, in words.
    var cause: String? { state.withLock { $0.causes.compactMap(\.self).first } }

    /// The processes that wait for bytes now, in words; nil stands for a call that no process made.
    var foregroundWaiters: [String?] {
        state.withLock { state in state.waiters.values.filter { !$0.isBackground }.map(\.request.cause) }
    }

    /// Whether a reader of a range need not wait: the end of a file counts once its fetch has ended well.
    func holds(_ range: Range<Int64>) -> Bool {
        state.withLock { (range.upperBound >= size ? $0.trusted : $0.present).contains(range) }
    }

    /// Whether bytes are on the disk.
    var holdsAny: Bool { state.withLock { !$0.present.isEmpty } }

    /// Whether a reader waits for bytes.
    var isWaitedFor: Bool { state.withLock { !$0.waiters.isEmpty } }

    /// Whether the last fetch to end has failed.
    var hasFailed: Bool { state.withLock { $0.hasFailed } }

    /// Whether anything is under way.
    var isRunning: Bool { state.withLock { !$0.fetches.isEmpty } }

    /// Waits until a range is here; one that reaches the end of the file, until its fetch has ended well too.
    ///
    /// - Returns: false when the transfer is over and another has to be begun.
    func wait(for range: Range<Int64>, request: FileProviderRequest) async throws -> Bool {
        enum Answer { case here, over, waits(Int, OneShot<Void>) }
        try Task.checkCancellation()
        let answer: Answer = state.withLock { state in
            state.activity += 1
            if state.isOver { return .over }
            let waiter = Waiter(range: range, isLast: range.upperBound >= size, request: request)
            if state.serves(waiter) { return .here }
            state.nextID += 1
            state.waiters[state.nextID] = waiter
            return .waits(state.nextID, waiter.end)
        }
        if case .over = answer { return false }
        if case .here = answer { idleIfComplete() }
        pump(wanted: range, request: request)
        if ProviderCalls.isUrgent(request) { makeUrgent(range) }
        if case .waits(let id, let end) = answer { try await end.value { leave(id) } }
        return true
    }

    /// Gives up all that no process waits for.
    ///
    /// - Returns: false when a process waits.
    func stopUnlessWaitedFor() -> Bool {
        end(with: CancellationError()) { $0.values.allSatisfy(\.isBackground) }
    }

    /// Cancels everything: waiters get `domainDisabled`.
    func shutDown() {
        _ = end(with: FileProviderError(.domainDisabled)) { _ in true }
    }

    private func end(with error: any Error, if mayEnd: ([Int: Waiter]) -> Bool) -> Bool {
        let ended: ([Int: Waiter], [Fetch])? = state.withLock { state in
            guard mayEnd(state.waiters) else { return nil }
            state.isOver = true
            defer { state.waiters = [:] }
            return (state.waiters, Array(state.fetches.values))
        }
        guard let (waiters, fetches) = ended else { return false }
        for waiter in waiters.values { waiter.end.give(.failure(error)) }
        fetches.forEach { $0.stop() }
        return true
    }

    /// The ranges to record; nil when nothing was added since the last call. Running fetches are left out: their end may show
    /// that not all bytes were of one version.
    func takeUnrecorded() -> ByteRanges? {
        state.withLock { state in
            guard state.trusted.count != state.recorded else { return nil }
            state.recorded = state.trusted.count
            return state.trusted
        }
    }

    private var hasMuchUnrecorded: Bool {
        state.withLock { !$0.isOver && $0.trusted.count - max(0, $0.recorded) >= Self.mostUnrecorded }
    }

    /// Marks the transfer as over when nothing is under way.
    ///
    /// - Returns: whether it is over.
    func endIfIdle() -> Bool {
        state.withLock { state in
            guard state.waiters.isEmpty, state.fetches.isEmpty else { return false }
            state.isOver = true
            return true
        }
    }

    // MARK: - Private

    /// A reader was interrupted. With the last one the transfer is cancelled.
    private func leave(_ id: Int) {
        let (waiter, fetches) = state.withLock { state -> (Waiter?, [Fetch]) in
            let waiter = state.waiters.removeValue(forKey: id)
            guard waiter != nil, state.waiters.isEmpty else { return (waiter, []) }
            for id in state.fetches.keys { state.fetches[id]?.isEnding = true }
            return (waiter, Array(state.fetches.values))
        }
        waiter?.end.give(.failure(CancellationError()))
        fetches.forEach { $0.stop() }
        if waiter != nil { idleSoon() }
    }

    /// Starts what fetches are wanted and allowed.
    private func pump(wanted: Range<Int64>? = nil, request: FileProviderRequest? = nil) {
        state.withLock { state in
            guard !state.isOver else { return }
            let waiters = state.waiters.sorted { $0.key < $1.key }.map(\.value)
            let ranges = waiters.map(\.range) + (wanted.map { [$0] } ?? [])
            let first = waiters.first { !$0.isBackground } ?? waiters.first
            guard let request = first?.request ?? request else { return }
            let coming = ByteRanges(state.fetches.values.map(\.range))
            for range in plan.fetches(
                present: state.present, coming: coming, wanted: ranges, running: state.fetches.count)
            {
                state.nextID += 1
                state.activity += 1
                let id = state.nextID
                // The task's first step waits for this lock, so it always finds itself in the table.
                let urgency = CallUrgency(ProviderCalls.isUrgent(request))
                var fetch = Fetch(range: range, urgency: urgency)
                fetch.task = Task { [gate = fetch.gate] in
                    await self.fetch(range, id: id, urgency: urgency, gate: gate, request: request)
                }
                state.fetches[id] = fetch
            }
        }
    }

    /// A process waits for a range.
    private func makeUrgent(_ range: Range<Int64>) {
        let calls = state.withLock { state in
            state.fetches.values.filter { $0.range.overlaps(range) }.map(\.urgency)
        }
        for call in calls { call.raise() }
    }

    private func fetch(
        _ range: Range<Int64>, id: Int, urgency: CallUrgency, gate: WriteGate, request: FileProviderRequest
    ) async {
        let cause = request.cause
        let isNews = state.withLock { state in
            if state.causes.contains(cause) { return false }
            state.causes.append(cause)
            return true
        }
        if isNews { onEvent(self, .begins(for: cause)) }
        let wasUrgent = urgency.isUrgent
        var failure = await fetchOnce(range, id: id, urgency: urgency, gate: gate, request: request)
        // A process waits for it now, and gets more of the disk. Or the disk ran full meanwhile: what can be spared goes.
        if failure?.errno == .noSpace, !Task.isCancelled {
            var isRepeated = !wasUrgent && urgency.isUrgent
            if !isRepeated {
                isRepeated = await budget.makeRoom(missing(of: range), for: number, evictor: evictor)
            }
            if isRepeated {
                failure = await fetchOnce(range, id: id, urgency: urgency, gate: gate, request: request)
            }
        }
        // Before another fetch may complete the file, which can be written from then on.
        gate.close()
        ended(id, failure)
    }

    private func fetchOnce(
        _ range: Range<Int64>, id: Int, urgency: CallUrgency, gate: WriteGate, request: FileProviderRequest
    ) async -> FileProviderError? {
        let isAll = range == 0..<size
        let moves = CallProgress()
        // What a command downloads is charged to no process.
        let reader = request.reason == .reading ? request.processIdentifier : nil
        do throws(FileProviderError) {
            let reservation = try await budget.admit(
                missing(of: range), for: number, isBackground: { !urgency.isUrgent }, evictor: evictor)
            defer { reservation.release() }
            let sink = DownloadSink(
                identifier: identifier, size: size, descriptor: descriptor, gate: gate,
                arrived: { range in
                    moves.advance()
                    guard !range.isEmpty else { return }
                    reservation.fill(range.upperBound - range.lowerBound)
                    self.calls.traffic.receive(range.upperBound - range.lowerBound)
                    if let reader { self.accounting?.charge(range.upperBound - range.lowerBound, to: reader) }
                    self.arrived(range, of: id)
                },
                overflowed: { error in self.state.withLock { $0.fetches[id]?.overflow = error } },
                paced: { [traffic = calls.traffic] in try await traffic.receiving.pass($0) { moves.advance() } },
                confirmed: { range in
                    // The next fetch of a file that comes whole writes all bytes again, also over those that would be kept.
                    guard range == nil || !self.plan.isWhole else { return }
                    self.state.withLock { $0.fetches[id]?.confirm(range) }
                })
            let observation = calls.provider.features.attributesComeWithContents ? observe() : nil
            let item = try await calls.make(.fetchContents, for: request, urgency: urgency, progress: moves) {
                [self] provider async throws -> FileProviderItem in
                // A call that is repeated confirms the version anew.
                state.withLock { $0.fetches[id]?.isConfirmed = false }
                return try await provider.fetchContents(
                    for: identifier, version: version, range: isAll ? nil : range, request: request, into: sink)
            }
            let failure = verdict(on: range, item: item)
            if failure == nil, let observation { onEvent(self, .attributes(of: item, observation)) }
            return failure
        } catch {
            return error
        }
    }

    /// How many bytes of a range are not on the disk.
    private func missing(of range: Range<Int64>) -> Int64 {
        state.withLock { $0.present.gaps(in: range) }.reduce(0) { $0 + $1.upperBound - $1.lowerBound }
    }

    /// What is wrong with a fetch that the provider reported as successful.
    private func verdict(on range: Range<Int64>, item: FileProviderItem) -> FileProviderError? {
        if item.itemVersion.contentVersion != version {
            return FileProviderError(.versionNoLongerAvailable, itemIdentifier: identifier)
        }
        let missing = state.withLock { $0.present.gaps(in: range) }
        guard let gap = missing.first else { return nil }
        return FileProviderError(
            .malformedResponse,
            "the provider gave too few bytes for '\(identifier)': none at \(gap.lowerBound) of \(size)",
            itemIdentifier: identifier)
    }

    private func ended(_ id: Int, _ outcome: FileProviderError?) {
        // Why none of what came can be kept.
        var end: Event?
        var failure = outcome
        let (served, losers, useless) = state.withLock { state -> ([Waiter], [Waiter], [Fetch]) in
            guard let fetch = state.fetches.removeValue(forKey: id) else { return ([], [], []) }
            state.activity += 1
            if let overflow = fetch.overflow {
                failure = overflow
                end = .overflow(overflow)
            } else if outcome?.code == .versionNoLongerAvailable {
                end = .versionGone
            }
            if !state.isOver { state.hasFailed = failure != nil }
            guard end == nil else {
                state.isOver = true
                defer { state.waiters = [:] }
                return ([], Array(state.waiters.values), Array(state.fetches.values))
            }
            state.settle(fetch, hasFailed: failure != nil)
            let served = state.takeServed()
            guard failure != nil, !fetch.isEnding else { return (served, [], []) }
            let lost = state.waiters.filter { $0.value.range.overlaps(fetch.range) }
            for id in lost.keys { state.waiters[id] = nil }
            return (served, Array(lost.values), [])
        }
        for waiter in served { waiter.end.give(.success(())) }
        if let failure {
            for waiter in losers { waiter.end.give(.failure(failure)) }
        }
        useless.forEach { $0.stop() }
        if let end { onEvent(self, end) }
        pump()
        if isRunning, hasMuchUnrecorded { onEvent(self, .advanced) }
        idleSoon()
        calls.connection.changes.notify()
    }

    /// A reader that found everything here starts no timer that would end the transfer.
    private func idleIfComplete() {
        let isComplete = state.withLock {
            $0.waiters.isEmpty && $0.fetches.isEmpty && $0.trusted.contains(0..<size)
        }
        if isComplete { onEvent(self, .idle) }
    }

    /// Reports that nothing is under way, unless something happens before.
    private func idleSoon() {
        let (activity, isIdle, isComplete) = state.withLock { state in
            (state.activity, state.waiters.isEmpty && state.fetches.isEmpty, state.present.contains(0..<size))
        }
        guard isIdle else { return }
        if isComplete { return onEvent(self, .idle) }
        // Weakly: what is evicted meanwhile gives its room back only when its file is closed.
        Task { [weak self] in
            try? await Task.sleep(for: Self.linger)
            guard let self else { return }
            let isStillIdle = self.state.withLock {
                $0.activity == activity && $0.waiters.isEmpty && $0.fetches.isEmpty
            }
            if isStillIdle { self.onEvent(self, .idle) }
        }
    }

    /// Bytes of a fetch are on the disk. Those whose write overlapped the end of the fetch are dropped.
    private func arrived(_ range: Range<Int64>, of id: Int) {
        let served = state.withLock { state -> [Waiter] in
            guard state.fetches[id] != nil else { return [] }
            state.fetches[id]?.take(range)
            state.present.insert(range)
            state.activity += 1
            return state.takeServed()
        }
        for waiter in served { waiter.end.give(.success(())) }
    }
}
