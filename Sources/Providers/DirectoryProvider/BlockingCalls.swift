import Dispatch
import FileProvider
import Synchronization

/// Runs system calls that may hang, because a folder may be on a network mount, on Dispatch threads.
///
/// The thread of a body that hangs stays lost after its call was cancelled. The whole process has 255 such threads, and nothing runs
/// once all of them are lost: no body is started while too many hang.
final class BlockingCalls: Sendable {
    private let queue = DispatchQueue(label: "yonder.directory", attributes: .concurrent)
    private let bodies = Mutex(Bodies())
    private let grace: Duration
    /// The number of hanging bodies from which on none is started.
    static let mostHanging = 16

    /// - Parameter grace: the time after its cancellation from which on a body counts as one that hangs.
    init(grace: Duration = .seconds(10)) {
        self.grace = grace
    }

    /// The bodies that have not ended.
    private struct Bodies {
        var running: Set<ObjectIdentifier> = []
        /// Those of `running` whose calls were cancelled, with the time.
        var cancelled: [ObjectIdentifier: ContinuousClock.Instant] = [:]
    }

    /// Lets a running call check whether it was cancelled.
    final class Cancellation: Sendable {
        private let isRequested = Atomic<Bool>(false)

        func check() throws {
            if isRequested.load(ordering: .relaxed) { throw CancellationError() }
        }

        func request() { isRequested.store(true, ordering: .relaxed) }
    }

    private var hasTooManyHanging: Bool {
        let latest = ContinuousClock.now - grace
        return bodies.withLock { bodies in
            bodies.cancelled.values.filter { $0 <= latest }.count >= Self.mostHanging
        }
    }

    /// Runs a body on a Dispatch thread. When cancelled, it returns at once, even if the body hangs.
    ///
    /// - Throws: `serverUnreachable` if too many bodies hang; what the body throws.
    func run<Value: Sendable>(_ body: @escaping @Sendable (Cancellation) throws -> Value) async throws -> Value {
        if hasTooManyHanging {
            throw FileProviderError(.serverUnreachable, "the source does not answer: too many system calls hang")
        }
        let cancellation = Cancellation()
        let call = ObjectIdentifier(cancellation)
        let answer = OneShot<Value>()
        if !Task.isCancelled {
            bodies.withLock { _ = $0.running.insert(call) }
            queue.async { [self] in
                let result: Result<Value, any Error> = Result {
                    // It may have waited for a thread.
                    try cancellation.check()
                    return try body(cancellation)
                }
                bodies.withLock { bodies in
                    bodies.running.remove(call)
                    bodies.cancelled[call] = nil
                }
                answer.give(result)
            }
        }
        return try await answer.value {
            cancellation.request()
            bodies.withLock { bodies in
                if bodies.running.contains(call) { bodies.cancelled[call] = .now }
            }
            answer.give(.failure(FileProviderError(.userCancelled)))
        }
    }
}
