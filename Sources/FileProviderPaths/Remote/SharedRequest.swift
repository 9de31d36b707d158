/// Makes one request for several callers: a run answers all that asked before it began.
package actor SharedRequest<Value: Sendable> {
    private var running: Task<Value, any Error>?

    package init() {}

    package func callAsFunction(_ body: @escaping @Sendable () async throws -> Value) async throws -> Value {
        if let current = running {
            _ = await current.result
            if let next = running, next != current { return try await next.value }
        }
        let task = Task { try await body() }
        running = task
        defer { if running == task { running = nil } }
        return try await task.value
    }
}
