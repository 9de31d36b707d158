import Dispatch
import FUSE
import Foundation
import Syscalls
import Volume

/// Closed files whose changes the volume has not recorded yet. They are recorded in batches, because a program that writes
/// a thousand small files closes a thousand.
///
/// A crash loses nothing: the database has marked each of them since it was opened, and compares it at the next start.
final class ClosedFiles: @unchecked Sendable {
    // Unchecked: the state is only accessed under `lock`, a pthread mutex because every RELEASE of a written file locks it.
    private let lock = NSLock()
    private var waiting: [UInt64] = []
    private var isScheduled = false
    private let volume: Volume
    private let passthrough: Passthrough
    private let queue = DispatchQueue(label: "yonder.closed")
    private var lastDrained = DispatchTime(uptimeNanoseconds: 0)
    private static let pause = DispatchTimeInterval.milliseconds(1)
    /// Soon after another batch. The transaction that records a batch puts the new files that wait into the database, also those
    /// whose makers are still at work on them.
    private static let busyPause = DispatchTimeInterval.milliseconds(20)
    /// A batch counts as another's successor for so long.
    private static let busyFor = DispatchTimeInterval.milliseconds(100)
    private static let pauseAfterFailure = DispatchTimeInterval.seconds(1)
    private static let batchSize = 128

    init(volume: Volume, passthrough: Passthrough) {
        self.volume = volume
        self.passthrough = passthrough
    }

    /// Adds a file of which one handle for writing was closed, unless the request was counted before.
    func add(_ node: NodeID, request: RequestNumber?) {
        guard volume.noteClosing(node.rawValue, request: request) else { return }
        append([node.rawValue])
    }

    /// Adds the files of which the process that owned the mount before has counted closed handles.
    func resume(_ nodes: [UInt64]) {
        if !nodes.isEmpty { append(nodes) }
    }

    private func append(_ nodes: [UInt64]) {
        lock.lock()
        waiting += nodes
        let isFull = waiting.count >= Self.batchSize
        let isFirst = !isScheduled
        isScheduled = true
        let now = DispatchTime.now()
        let pause = now < lastDrained + Self.busyFor ? Self.busyPause : Self.pause
        lock.unlock()
        if isFull {
            queue.async { self.drain() }
        } else if isFirst {
            queue.asyncAfter(deadline: now + pause) { self.drain() }
        }
    }

    /// Returns when all files that were added before are recorded, or recording has failed.
    func flush() {
        queue.sync { drain() }
    }

    private func drain() {
        lock.lock()
        let batch = waiting
        waiting = []
        isScheduled = false
        lastDrained = .now()
        lock.unlock()
        guard !batch.isEmpty else { return }
        let failed = volume.closeWritten(batch, registry: passthrough.registry)
        guard !failed.isEmpty else { return }
        lock.lock()
        waiting = failed + waiting
        let isFirst = !isScheduled
        isScheduled = true
        lock.unlock()
        if isFirst { queue.asyncAfter(deadline: .now() + Self.pauseAfterFailure) { self.drain() } }
    }
}
