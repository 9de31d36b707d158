import FileProvider
import Replica
import Synchronization
import Syscalls
import SystemPackage

/// The transfer of one file's content, of one version, for everyone who reads it: the fetches that run, and who waits for
/// which bytes. Bytes are handed to the waiting as they arrive; what is here is recorded when nothing is under way.
final class Download: Sendable {
    let number: InodeNumber
    let identifier: ItemIdentifier
    let version: [UInt8]
    let generation: Int64
    let size: Int64
    private let descriptor: FileDescriptor
    private let plan: FetchPlan
    private let calls: ProviderCalls
    private let state: Mutex<State>
    /// Called once, when nothing is under way any more.
    private let onIdle: @Sendable (Download) -> Void
    private let onVersionGone: @Sendable (Download) -> Void

    private struct Waiter {
        var range: Range<Int64>
        var request: FileProviderRequest
        var continuation: CheckedContinuation<Void, any Error>
    }

    private struct Fetch {
        var range: Range<Int64>
        var task: Task<Void, Never>?
    }

    private struct State {
        var present: ByteRanges
        var recorded: Int64
        var waiters: [Int: Waiter] = [:]
        var fetches: [Int: Fetch] = [:]
        var nextID = 0
        /// Counts what happens, so that an idle timer knows whether it still is.
        var activity = 0
        var isOver = false
    }

    /// A transfer is kept this long after its last reader, because most come back for more.
    private static let linger = Duration.milliseconds(300)

    init(
        _ beginning: ContentBeginning, number: InodeNumber, calls: ProviderCalls,
        onIdle: @escaping @Sendable (Download) -> Void, onVersionGone: @escaping @Sendable (Download) -> Void
    ) {
        self.number = number
        identifier = beginning.identifier
        version = beginning.version
        generation = beginning.generation
        size = beginning.size
        descriptor = beginning.descriptor
        plan = FetchPlan(size: beginning.size, canFetchRanges: calls.provider.features.partialContentFetching)
        self.calls = calls
        self.onIdle = onIdle
        self.onVersionGone = onVersionGone
        state = Mutex(State(present: beginning.present, recorded: beginning.present.count))
    }

    deinit {
        try? descriptor.close()
    }

    /// How much is here of how much.
    var progress: (done: Int64, total: Int64) { (state.withLock { $0.present.count }, size) }

    /// Whether somebody waits for bytes.
    var isWaitedFor: Bool { state.withLock { !$0.waiters.isEmpty } }

    /// Whether anything is under way.
    var isRunning: Bool { state.withLock { !$0.fetches.isEmpty } }

    /// Waits until a range is here.
    ///
    /// - Returns: false when the transfer is over and another has to be begun.
    func wait(for range: Range<Int64>, request: FileProviderRequest) async throws -> Bool {
        let id = state.withLock { state in
            state.nextID += 1
            state.activity += 1
            return state.nextID
        }
        return try await withTaskCancellationHandler {
            enum Answer { case here, over, waits }
            var answer = Answer.waits
            try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
                answer = state.withLock { state in
                    if state.isOver { return .over }
                    if state.present.contains(range) { return .here }
                    state.waiters[id] = Waiter(range: range, request: request, continuation: continuation)
                    return .waits
                }
                if answer != .waits { continuation.resume() }
                if Task.isCancelled { leave(id) } else { pump(wanted: range, request: request) }
            }
            return answer != .over
        } onCancel: {
            leave(id)
        }
    }

    /// Gives up all that nobody waits for.
    ///
    /// - Returns: false when somebody waits.
    func stopUnlessWaitedFor() -> Bool {
        let tasks: [Task<Void, Never>]? = state.withLock { state in
            guard state.waiters.isEmpty else { return nil }
            state.isOver = true
            return state.fetches.values.compactMap(\.task)
        }
        tasks?.forEach { $0.cancel() }
        return tasks != nil
    }

    /// What is here and was not recorded yet; nil when nothing was added since.
    func takeUnrecorded() -> ByteRanges? {
        state.withLock { state in
            guard state.present.count != state.recorded else { return nil }
            state.recorded = state.present.count
            return state.present
        }
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

    /// The reader has gone. With the last one the transfer stops.
    private func leave(_ id: Int) {
        let (waiter, tasks) = state.withLock { state -> (Waiter?, [Task<Void, Never>]) in
            let waiter = state.waiters.removeValue(forKey: id)
            guard waiter != nil, state.waiters.isEmpty else { return (waiter, []) }
            return (waiter, state.fetches.values.compactMap(\.task))
        }
        waiter?.continuation.resume(throwing: CancellationError())
        tasks.forEach { $0.cancel() }
        if waiter != nil { idleSoon() }
    }

    /// Starts what fetches are wanted and allowed.
    private func pump(wanted: Range<Int64>? = nil, request: FileProviderRequest? = nil) {
        state.withLock { state in
            guard !state.isOver else { return }
            let waiters = state.waiters.sorted { $0.key < $1.key }.map(\.value)
            let ranges = waiters.map(\.range) + (wanted.map { [$0] } ?? [])
            guard let request = waiters.first?.request ?? request else { return }
            let coming = ByteRanges(state.fetches.values.map(\.range))
            for range in plan.fetches(
                present: state.present, coming: coming, wanted: ranges, running: state.fetches.count)
            {
                state.nextID += 1
                state.activity += 1
                let id = state.nextID
                // The task's first step waits for this lock, so it always finds itself in the table.
                state.fetches[id] = Fetch(range: range)
                state.fetches[id]?.task = Task { await self.fetch(range, id: id, request: request) }
            }
        }
    }

    private func fetch(_ range: Range<Int64>, id: Int, request: FileProviderRequest) async {
        let isAll = range == 0..<size
        let moves = CallProgress()
        let sink = Sink(download: self, moves: moves)
        let failure: FileProviderError?
        do throws(FileProviderError) {
            let item = try await calls.make(for: request, progress: moves) { [identifier, version] provider in
                try await provider.fetchContents(
                    for: identifier, version: version, range: isAll ? nil : range, request: request, into: sink)
            }
            failure = verdict(on: range, item: item)
        } catch {
            failure = error
        }
        ended(id, failure)
    }

    /// What was wrong with a fetch that the provider calls a success.
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

    private func ended(_ id: Int, _ failure: FileProviderError?) {
        let isGone = failure?.code == .versionNoLongerAvailable
        let losers = state.withLock { state -> [Waiter] in
            guard let fetch = state.fetches.removeValue(forKey: id) else { return [] }
            state.activity += 1
            if isGone { state.isOver = true }
            guard failure != nil else { return [] }
            let lost = state.waiters.filter { isGone || $0.value.range.overlaps(fetch.range) }
            for id in lost.keys { state.waiters[id] = nil }
            return Array(lost.values)
        }
        if let failure {
            for waiter in losers { waiter.continuation.resume(throwing: failure) }
        }
        if isGone { onVersionGone(self) }
        pump()
        idleSoon()
    }

    /// Reports that nothing is under way, unless something happens before.
    private func idleSoon() {
        let (activity, isIdle, isComplete) = state.withLock { state in
            (state.activity, state.waiters.isEmpty && state.fetches.isEmpty, state.present.contains(0..<size))
        }
        guard isIdle else { return }
        if isComplete { return onIdle(self) }
        Task {
            try? await Task.sleep(for: Self.linger)
            let isStillIdle = state.withLock {
                $0.activity == activity && $0.waiters.isEmpty && $0.fetches.isEmpty
            }
            if isStillIdle { onIdle(self) }
        }
    }

    private func arrived(_ range: Range<Int64>) {
        let served = state.withLock { state -> [Waiter] in
            state.present.insert(range)
            state.activity += 1
            let served = state.waiters.filter { state.present.contains($0.value.range) }
            for id in served.keys { state.waiters[id] = nil }
            return Array(served.values)
        }
        for waiter in served { waiter.continuation.resume() }
    }

    /// Takes bytes from the provider: on disk first, then to those who wait.
    private struct Sink: ContentSink {
        let download: Download
        let moves: CallProgress

        func write(_ bytes: RawSpan, at offset: Int64) throws {
            let range = try check(offset, Int64(bytes.byteCount))
            try download.descriptor.writeAll(bytes, at: offset)
            moves.advance()
            download.arrived(range)
        }

        func write(from source: FileDescriptor, at offset: Int64, count: Int64) throws {
            let range = try check(offset, count)
            let copied = try download.descriptor.copy(from: source, at: offset, to: offset, count: count)
            moves.advance()
            if copied > 0 { download.arrived(range.lowerBound..<range.lowerBound + copied) }
            guard copied == count else {
                throw FileProviderError(
                    .malformedResponse,
                    "the source of '\(download.identifier)' ends at \(offset + copied) of \(download.size) bytes",
                    itemIdentifier: download.identifier)
            }
        }

        private func check(_ offset: Int64, _ count: Int64) throws -> Range<Int64> {
            try Task.checkCancellation()
            let (end, overflow) = offset.addingReportingOverflow(count)
            guard !overflow, offset >= 0, count >= 0, end <= download.size else {
                throw FileProviderError(
                    .malformedResponse,
                    "the provider gave bytes \(offset) to \(offset &+ count) of '\(download.identifier)', which has "
                        + "\(download.size)",
                    itemIdentifier: download.identifier)
            }
            return offset..<end
        }
    }
}
