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

        fileprivate func request() { isRequested.store(true, ordering: .relaxed) }
    }

    /// Runs a body on a Dispatch thread. When cancelled, it returns at once, even if the body hangs.
    func run<Value: Sendable>(_ body: @escaping @Sendable (Cancellation) throws -> Value) async throws -> Value {
        let cancellation = Cancellation()
        let answer = Answer<Value>()
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                answer.hold(continuation)
                if Task.isCancelled { return answer.give(.failure(FileProviderError(.userCancelled))) }
                queue.async { answer.give(Result { try body(cancellation) }) }
            }
        } onCancel: {
            cancellation.request()
            answer.give(.failure(FileProviderError(.userCancelled)))
        }
    }

    /// A continuation that is resumed by the first of two results.
    private final class Answer<Value: Sendable>: Sendable {
        private let continuation = Mutex<CheckedContinuation<Value, any Error>?>(nil)

        func hold(_ continuation: CheckedContinuation<Value, any Error>) {
            self.continuation.withLock { $0 = continuation }
        }

        func give(_ result: Result<Value, any Error>) {
            let first = continuation.withLock { continuation in
                defer { continuation = nil }
                return continuation
            }
            first?.resume(with: result)
        }
    }
}
