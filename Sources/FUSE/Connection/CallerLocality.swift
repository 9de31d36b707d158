import CFUSEShim
import Synchronization

/// Moves the serving threads to the processor of the caller while a single thread makes all requests.
///
/// Such a caller sleeps while a request is answered. On different processors every request costs two wake-ups across
/// processors, which in a virtual machine take longer than most answers (45 microseconds against 5). The kernel gives a
/// request to the serving thread that has waited longest, so all of them move. When a second caller appears, the threads
/// may run anywhere again.
final class CallerLocality: Sendable {
    /// The number of consecutive requests by one thread before the serving threads follow it.
    private static let patience: UInt32 = 64
    /// The number of requests after which the caller's processor is read again.
    private static let interval: UInt32 = 32

    /// The last caller and the number of its consecutive requests. Concurrent updates may lose a count; it is a hint.
    private let streak = Atomic<UInt64>(0)
    private let isFollowing = Atomic<Bool>(false)
    private let threads = Mutex(Threads())

    private struct Threads {
        /// The affinity of each serving thread without this type, by thread number.
        var allowed: [Int32: fuseshim_processors] = [:]
        var processor: Int32 = -1
    }

    /// Registers the calling thread as a serving thread, until ``leave()``.
    func join() {
        var allowed = fuseshim_processors()
        guard fuseshim_thread_allowed(&allowed) == 0 else { return }
        threads.withLock { $0.allowed[fuseshim_thread_number()] = allowed }
    }

    func leave() {
        threads.withLock { $0.allowed[fuseshim_thread_number()] = nil }
    }

    /// Counts a request that transfers no file content.
    func note(_ caller: Int32) {
        // Requests of the kernel itself (writeback, readahead) have no caller.
        guard caller > 0 else { return }
        let (last, count) = Self.parts(streak.load(ordering: .relaxed))
        guard caller == last else {
            streak.store(Self.whole(caller, 1), ordering: .relaxed)
            stop()
            return
        }
        streak.store(Self.whole(caller, count &+ 1), ordering: .relaxed)
        if count == Self.patience || (count > Self.patience && count % Self.interval == 0) { follow(caller) }
    }

    /// Counts a request that transfers file content: copying on another processor is worth the wake-ups.
    func noteTransfer() {
        streak.store(0, ordering: .relaxed)
        stop()
    }

    private func follow(_ caller: Int32) {
        let processor = fuseshim_thread_processor(caller)
        threads.withLock { threads in
            guard processor >= 0, processor != threads.processor else { return }
            threads.processor = processor
            for (thread, allowed) in threads.allowed {
                var narrowed = allowed
                guard fuseshim_processors_narrow(&narrowed, processor) else { continue }
                _ = fuseshim_thread_allow(thread, &narrowed)
            }
            isFollowing.store(true, ordering: .relaxed)
        }
    }

    private func stop() {
        guard isFollowing.load(ordering: .relaxed) else { return }
        threads.withLock { threads in
            guard threads.processor >= 0 else { return }
            threads.processor = -1
            for (thread, allowed) in threads.allowed {
                var allowed = allowed
                _ = fuseshim_thread_allow(thread, &allowed)
            }
            isFollowing.store(false, ordering: .relaxed)
        }
    }

    private static func whole(_ caller: Int32, _ count: UInt32) -> UInt64 {
        UInt64(UInt32(bitPattern: caller)) << 32 | UInt64(count)
    }

    private static func parts(_ whole: UInt64) -> (Int32, UInt32) {
        (Int32(bitPattern: UInt32(truncatingIfNeeded: whole >> 32)), UInt32(truncatingIfNeeded: whole))
    }
}
