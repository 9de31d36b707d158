import Dispatch

/// Runs operations that may block outside of Swift's cooperative thread pool.
package enum BlockingWork {
    private static let queue = DispatchQueue(label: "yonder.blocking", attributes: .concurrent)

    package static func run<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            queue.async { continuation.resume(with: Result(catching: body)) }
        }
    }
}
