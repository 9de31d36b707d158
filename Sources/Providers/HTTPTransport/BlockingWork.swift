import Dispatch

/// Runs what may wait for a disk away from Swift's own threads.
package enum BlockingWork {
    private static let queue = DispatchQueue(label: "yonder.http.disk", attributes: .concurrent)

    package static func run<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            queue.async { continuation.resume(with: Result(catching: body)) }
        }
    }
}
