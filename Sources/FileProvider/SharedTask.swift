import Synchronization

/// Work that is done once for all callers that come while it is under way. It goes on when they are cancelled.
package final class SharedTask<Value: Sendable>: Sendable {
    private let running = Mutex<Task<Value, any Error>?>(nil)

    package init() {}

    /// The work under way.
    package var current: Task<Value, any Error>? { running.withLock { $0 } }

    /// The result of the work under way, or else of a body. Callers that have not begun the work are not expected to make progress.
    ///
    /// - Throws: what the work throws; `CancellationError` as soon as the caller is cancelled.
    package func value(_ body: @escaping @Sendable () async throws -> Value) async throws -> Value {
        let (task, isShared) = running.withLock { running -> (Task<Value, any Error>, Bool) in
            if let running { return (running, true) }
            let task = Task {
                defer { self.running.withLock { $0 = nil } }
                return try await body()
            }
            running = task
            return (task, false)
        }
        if isShared { return try await CallContext.waiting { try await task.valueUnlessCancelled } }
        return try await task.valueUnlessCancelled
    }
}
