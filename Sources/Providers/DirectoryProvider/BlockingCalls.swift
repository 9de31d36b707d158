import Dispatch
import FileProvider
import Synchronization

/// Runs system calls that may hang, for a folder may lie on a network mount, away from Swift's own threads.
struct BlockingCalls: Sendable {
    private let queue = DispatchQueue(label: "yonder.directory", attributes: .concurrent)

    /// What a call under way can ask: whether anybody still wants its result.
    final class Wish: Sendable {
        private let isOver = Atomic<Bool>(false)

        var isCancelled: Bool { isOver.load(ordering: .relaxed) }

        func check() throws {
            if isCancelled { throw CancellationError() }
        }

        fileprivate func cancel() { isOver.store(true, ordering: .relaxed) }
    }

    /// Runs a body on a thread of its own. Cancelled, it returns at once, also while the body hangs.
    func run<Value: Sendable>(_ body: @escaping @Sendable (Wish) throws -> Value) async throws -> Value {
        let wish = Wish()
        let answer = Answer<Value>()
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                answer.hold(continuation)
                if Task.isCancelled { return answer.give(.failure(FileProviderError(.userCancelled))) }
                queue.async { answer.give(Result { try body(wish) }) }
            }
        } onCancel: {
            wish.cancel()
            answer.give(.failure(FileProviderError(.userCancelled)))
        }
    }

    /// A continuation that takes the first of two answers.
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
