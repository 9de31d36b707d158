import FileProvider
import Replica
import Syscalls

/// What is here of one version of a file, what of it is being fetched, and which readers wait: a value without locks, which
/// ``Download`` shares.
struct DownloadState {
    struct Waiter {
        var range: Range<Int64>
        /// Waits for the end of the fetch, too: a reader that has read to the end believes that the file is complete.
        var isLast: Bool
        var request: FileProviderRequest
        let end = OneShot<Void>()

        /// Whether it waits for no process.
        var isBackground: Bool { !ProviderCalls.isUrgent(request) }
    }

    struct Fetch {
        var range: Range<Int64>
        /// Rises when a process comes to wait for it.
        var urgency: CallUrgency
        var task: Task<Void, Never>?
        let gate = WriteGate()
        var arrived = ByteRanges()
        /// Whether the call has said that the bytes that it gives are of the version.
        var isConfirmed = false
        /// The bytes of which the call has not said so: only the end of the fetch shows that they are of the version.
        var doubtful = ByteRanges()
        /// It is being cancelled because its last reader left: its failure does not concern later readers.
        var isEnding = false
        /// Bytes came that lie outside the file: nothing that this fetch gave can be right.
        var overflow: FileProviderError?

        /// Bytes are on the disk. A call that is repeated may write them over confirmed ones, and they may be of another version.
        mutating func take(_ range: Range<Int64>) {
            arrived.insert(range)
            if !isConfirmed { doubtful.insert(range) }
        }

        /// Bytes are of the version.
        ///
        /// - Parameter range: where they were written; nil for those that follow.
        mutating func confirm(_ range: Range<Int64>?) {
            if let range { doubtful = doubtful.subtracting(ByteRanges([range])) } else { isConfirmed = true }
        }

        /// Cancels the fetch, which writes nothing from now on.
        func stop() {
            // First, so that the answer of the call is the cancellation, and not the refusal of a write.
            task?.cancel()
            gate.close()
        }
    }

    /// The ranges on the disk.
    var present: ByteRanges
    /// The ranges whose fetch has ended and may be kept: of a fetch that has failed, those that are not doubtful.
    var trusted: ByteRanges
    var recorded: Int64
    var waiters: [Int: Waiter] = [:]
    var fetches: [Int: Fetch] = [:]
    var nextID = 0
    /// Counts what happens, so that an idle timer knows whether it still is.
    var activity = 0
    var isOver = false
    /// Whether the last fetch to end has failed.
    var hasFailed = false
    /// The process or command for which bytes were fetched, in words.
    var causes: [String?] = []

    func serves(_ waiter: Waiter) -> Bool {
        (waiter.isLast ? trusted : present).contains(waiter.range)
    }

    /// Takes in what a fetch has brought that has ended, or drops it.
    mutating func settle(_ fetch: Fetch, hasFailed: Bool) {
        let kept = hasFailed ? fetch.arrived.subtracting(fetch.doubtful) : fetch.arrived
        for range in kept.ranges { trusted.insert(range) }
        guard hasFailed, !fetch.doubtful.isEmpty else { return }
        present = trusted
        for range in fetches.values.flatMap(\.arrived.ranges) { present.insert(range) }
    }

    /// Removes the waiters whose range is here.
    mutating func takeServed() -> [Waiter] {
        let served = waiters.filter { serves($0.value) }
        for id in served.keys { waiters[id] = nil }
        return Array(served.values)
    }
}
