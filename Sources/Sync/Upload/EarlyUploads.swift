import Dispatch
import FileProvider
import Replica
import Synchronization
import Syscalls
import SystemPackage

/// Uploads large new files while they are still being written, so that the first bytes wait neither for the last nor
/// for close and fsync.
///
/// Nothing becomes visible before the upload of the whole file (``Executor``) takes it over.
final class EarlyUploads: SyncPart {
    private struct State {
        var isStopped = false
        var lastChange = ContinuousClock.now
        var underWay: [InodeNumber: GrowingContent] = [:]
        /// Open for writing, and tried.
        var tried: Set<InodeNumber> = []
    }

    let context: SyncContext
    private let receiver: any EarlyContentReceiver
    private let state = Mutex(State())
    private let signal = WakeSignal()
    /// Smaller files are sent soon enough when they are closed.
    private static let least: Int64 = 8 << 20
    private static let atOnce = 2
    private static let interval = Duration.milliseconds(25)
    /// A program that has not written this much by then is slower than what an early upload saves.
    private static let patience = Duration.seconds(5)

    /// - Returns: nil when the provider takes only what is whole, and for a read-only domain.
    init?(_ context: SyncContext) {
        guard !context.calls.isReadOnly, let receiver = context.calls.provider as? any EarlyContentReceiver else {
            return nil
        }
        self.context = context
        self.receiver = receiver
        // The kernel writes without requests, so the files are compared for some time after each change.
        signal.run {
            // Under a limit the line is the bottleneck: nothing is won.
            if self.connection.state == .online, self.calls.traffic.sending.rate == nil { self.look() }
            guard self.state.withLock({ ContinuousClock.now - $0.lastChange <= Self.patience }) else { return .zero }
            self.signal.wake()
            return Self.interval
        }
    }

    /// Something was changed here: a file may have been made. Returns at once; from any thread.
    func noteLocalChange() {
        state.withLock { $0.lastChange = .now }
        signal.wake()
    }

    func content(of number: InodeNumber) -> GrowingContent? {
        state.withLock { $0.underWay[number] }
    }

    /// No more is sent of what is not whole.
    func giveUp() {
        for content in state.withLock({ Array($0.underWay.values) }) { content.giveUp() }
    }

    /// The last call.
    func stop() {
        state.withLock { $0.isStopped = true }
        signal.stop()
        giveUp()
    }

    private func look() {
        guard let written = try? replica.database.filesBeingWritten() else { return }
        let open = Set(written)
        let candidates = state.withLock { state in
            state.tried.formIntersection(open)
            return state.underWay.count < Self.atOnce ? open.subtracting(state.tried) : []
        }
        for number in candidates {
            guard let status = try? replica.contentStatus(of: number), status.size >= Self.least else { continue }
            guard let item = try? replica.database.item(ofInode: number) else { continue }
            state.withLock { _ = $0.tried.insert(number) }
            // What the remote has already may be changed anywhere, and most of it stay as it is.
            guard item.identifier == nil, !item.isExcluded, !item.isHidden, let directory = item.parent,
                let parent = try? replica.database.item(ofInode: directory)?.identifier, parent != .trashContainer
            else { continue }
            begin(number, in: parent)
            if state.withLock({ $0.underWay.count >= Self.atOnce }) { return }
        }
    }

    private func begin(_ number: InodeNumber, in parent: ItemIdentifier) {
        guard let file = try? OpenContent(replica.openContent(of: number)) else { return }
        let progress = CallProgress()
        let content = GrowingContent { [traffic = calls.traffic] offset, count in
            progress.advance()
            let bytes = try file.read(at: offset, count: count)
            traffic.send(Int64(bytes.count))
            return bytes
        }
        let isWanted = state.withLock { state in
            guard !state.isStopped else { return false }
            state.underWay[number] = content
            return true
        }
        guard isWanted else { return }
        Task { [receiver] in
            // After a failure the upload of the whole file sends everything.
            _ = try? await calls.make(
                .receive, for: FileProviderRequest(reason: .synchronization), progress: progress
            ) { _ in await receiver.receive(content, in: parent) }
            state.withLock { $0.underWay[number] = nil }
        }
    }
}

/// An open content file; it is closed with the last reference.
private final class OpenContent: Sendable {
    private let descriptor: FileDescriptor
    private let ordered = Atomic<Int64>(0)
    private let disk = DispatchQueue(label: "yonder.early.disk")
    private static let stride: Int64 = 8 << 20

    init(_ descriptor: FileDescriptor) {
        self.descriptor = descriptor
    }

    deinit {
        try? descriptor.close()
    }

    /// The bytes written at an offset; a hole is not written yet.
    func read(at offset: Int64, count: Int) throws -> [UInt8] {
        let end: Int64
        do {
            end = try descriptor.seek(to: .hole, from: offset)
        } catch Errno.noSuchAddressOrDevice {
            return []
        }
        // It has to be on the disk before it counts: the less there is left to write then, the better.
        let before = ordered.load(ordering: .relaxed)
        if end - before >= Self.stride {
            ordered.store(end, ordering: .relaxed)
            disk.async { self.descriptor.beginWritingBack(from: before, count: end - before) }
        }
        guard end > offset else { return [] }
        return try descriptor.readBytes(at: offset, count: Int(min(Int64(count), end - offset)))
    }
}
