import Dispatch
import FUSE
import Foundation
import Volume

/// Files that were written and have been closed, until the volume has recorded what was written: many at once, because a
/// program that writes a thousand small files closes a thousand.
///
/// Nothing is lost with it: each is marked in the database since it was opened, and compared at the next start.
final class WrittenFiles: @unchecked Sendable {
    // Unchecked: the state is only touched under `lock`, a pthread mutex because every close of a written file passes.
    private let lock = NSLock()
    private var waiting: [UInt64] = []
    private var isScheduled = false
    private let volume: Volume
    private let passthrough: Passthrough
    private let queue = DispatchQueue(label: "yonder.written")
    private static let pause = DispatchTimeInterval.milliseconds(1)
    private static let pauseAfterFailure = DispatchTimeInterval.seconds(1)
    private static let most = 128

    init(volume: Volume, passthrough: Passthrough) {
        self.volume = volume
        self.passthrough = passthrough
    }

    /// Takes a file of which one handle for writing was closed.
    func add(_ node: NodeID) {
        volume.noteClosing(node.rawValue)
        lock.lock()
        waiting.append(node.rawValue)
        let isFull = waiting.count >= Self.most
        let isFirst = !isScheduled
        isScheduled = true
        lock.unlock()
        if isFull {
            queue.async { self.drain() }
        } else if isFirst {
            queue.asyncAfter(deadline: .now() + Self.pause) { self.drain() }
        }
    }

    /// Returns when all that were taken before are recorded, or cannot be.
    func flush() {
        queue.sync { drain() }
    }

    private func drain() {
        lock.lock()
        let batch = waiting
        waiting = []
        isScheduled = false
        lock.unlock()
        guard !batch.isEmpty, !volume.closeWritten(batch, registry: passthrough.registry) else { return }
        lock.lock()
        waiting = batch + waiting
        let isFirst = !isScheduled
        isScheduled = true
        lock.unlock()
        if isFirst { queue.asyncAfter(deadline: .now() + Self.pauseAfterFailure) { self.drain() } }
    }
}
