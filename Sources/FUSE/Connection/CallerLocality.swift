import CFUSEShim
import Synchronization

/// Lets the threads that answer run where the one who asks runs, as long as it is a single thread that asks for one
/// thing after the other.
///
/// Such a caller sleeps while it is answered, and wakes when it is: on two processors each question costs two wake-ups
/// across processors, which in a virtual machine take longer than most answers (45 microseconds against 5). The kernel
/// hands a request to whichever thread has waited longest, so all of them move. As soon as somebody else asks, they may
/// run anywhere again.
final class CallerLocality: Sendable {
    /// So many requests in a row are a caller's, before it is followed.
    private static let patience: UInt32 = 64
    /// After so many more it is looked for again: it may have been moved.
    private static let interval: UInt32 = 32

    /// Who asked last, and how often in a row. Two threads may count at once and lose one of the other's: it is a hint.
    private let streak = Atomic<UInt64>(0)
    private let isFollowing = Atomic<Bool>(false)
    private let threads = Mutex(Threads())

    private struct Threads {
        /// The kernel's numbers of the threads that answer, and where each of them may run by itself.
        var allowed: [Int32: fuseshim_processors] = [:]
        var processor: Int32 = -1
    }

    /// The calling thread answers from now on, until ``leave()``.
    func join() {
        var allowed = fuseshim_processors()
        guard fuseshim_thread_allowed(&allowed) == 0 else { return }
        threads.withLock { $0.allowed[fuseshim_thread_number()] = allowed }
    }

    func leave() {
        threads.withLock { $0.allowed[fuseshim_thread_number()] = nil }
    }

    /// A thread has asked for something small.
    func note(_ caller: Int32) {
        // The kernel itself: what it writes back, what it reads ahead.
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

    /// Somebody asks for what is worth another processor: bytes.
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
