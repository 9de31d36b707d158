import Dispatch
import Foundation
import Replica

/// Files that were written and have been closed, until what was written is recorded: many in one transaction, because a
/// program that writes a thousand small files closes a thousand.
///
/// Nothing is lost with it: each is marked in the database since it was opened, and compared at the next start.
final class WrittenFiles: @unchecked Sendable {
    // Unchecked: the state is only touched under `lock`, a pthread mutex because every close of a written file passes.
    private let lock = NSLock()
    private var waiting: [(number: InodeNumber, release: @Sendable () -> Void)] = []
    private var isScheduled = false
    private var record: (@Sendable ([InodeNumber]) -> Bool)?
    private let queue = DispatchQueue(label: "yonder.written")
    private static let pause = DispatchTimeInterval.milliseconds(10)
    private static let pauseAfterFailure = DispatchTimeInterval.seconds(1)
    private static let most = 128

    /// - Parameter record: records what was written; false when it has to be tried again.
    func attach(_ record: @escaping @Sendable ([InodeNumber]) -> Bool) {
        self.record = record
    }

    /// Takes a file that was closed; `release` is called once it is recorded.
    func add(_ number: InodeNumber, release: @escaping @Sendable () -> Void) {
        lock.lock()
        waiting.append((number, release))
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

    /// Returns when all that were taken before are recorded.
    func flush() {
        queue.sync { drain() }
    }

    private func drain() {
        lock.lock()
        let batch = waiting
        waiting = []
        isScheduled = false
        lock.unlock()
        guard !batch.isEmpty else { return }
        if record?(batch.map(\.number)) == false {
            lock.lock()
            waiting = batch + waiting
            let isFirst = !isScheduled
            isScheduled = true
            lock.unlock()
            if isFirst { queue.asyncAfter(deadline: .now() + Self.pauseAfterFailure) { self.drain() } }
            return
        }
        for file in batch { file.release() }
    }
}
