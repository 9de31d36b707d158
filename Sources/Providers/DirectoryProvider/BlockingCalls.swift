import Dispatch
import FileProvider
import Synchronization

/// Runs system calls that may hang, because a folder may be on a network mount, on Dispatch threads.
struct BlockingCalls: Sendable {
    private let queue = DispatchQueue(label: "yonder.directory", attributes: .concurrent)

    /// Lets a running call check whether it was cancelled.
    final class Cancellation: Sendable {
        private let isRequested = Atomic<Bool>(false)

        func check() throws {
            if isRequested.load(ordering: .relaxed) { throw CancellationError() }
        }

        func request() { isRequested.store(true, ordering: .relaxed) }
    }

    /// Runs a body on a Dispatch thread. When cancelled, it returns at once, even if the body hangs.
    func run<Value: Sendable>(_ body: @escaping @Sendable (Cancellation) throws -> Value) async throws -> Value {
        let cancellation = Cancellation()
        let answer = OneShot<Value>()
        if !Task.isCancelled {
            queue.async {
                let result: Result<Value, any Error> = Result {
                    // It may have waited for a thread.
                    try cancellation.check()
                    return try body(cancellation)
                }
                answer.give(result)
            }
        }
        return try await answer.value {
            cancellation.request()
            answer.give(.failure(FileProviderError(.userCancelled)))
        }
    }
}
