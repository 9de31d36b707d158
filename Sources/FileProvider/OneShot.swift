import Synchronization

/// A result that is given once and awaited by one task, before or after; later awaits get it again. Later results are dropped.
package final class OneShot<Value: Sendable>: Sendable {
    private enum State {
        case open
        case awaited(CheckedContinuation<Value, any Error>)
        case given(Result<Value, any Error>)
    }

    private let state = Mutex(State.open)

    package init() {}

    /// - Returns: whether it is the first result.
    @discardableResult
    package func give(_ result: Result<Value, any Error>) -> Bool {
        let (isFirst, continuation) = state.withLock { state -> (Bool, CheckedContinuation<Value, any Error>?) in
            switch state {
            case .open:
                state = .given(result)
                return (true, nil)
            case .awaited(let continuation):
                state = .given(result)
                return (true, continuation)
            case .given:
                return (false, nil)
            }
        }
        continuation?.resume(with: result)
        return isFirst
    }

    /// Waits for the result.
    ///
    /// - Parameter onCancel: called when the task is cancelled; it has to see to it that a result is given.
    package func value(onCancel: @Sendable () -> Void) async throws -> Value {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let result: Result<Value, any Error>? = state.withLock { state in
                    guard case .given(let result) = state else {
                        state = .awaited(continuation)
                        return nil
                    }
                    return result
                }
                if let result { continuation.resume(with: result) }
            }
        } onCancel: {
            onCancel()
        }
    }
}

extension Task where Failure == any Error {
    /// The result; `CancellationError` as soon as the task that waits for it is cancelled. This task goes on then.
    package var valueUnlessCancelled: Success {
        get async throws {
            let end = OneShot<Success>()
            Task<Void, Never> { end.give(await result) }
            return try await end.value { end.give(.failure(Swift.CancellationError())) }
        }
    }

    /// The result; nil if the task has not ended in time. It goes on in that case.
    package func result(within limit: Duration) async -> Result<Success, any Error>? {
        let end = OneShot<Result<Success, any Error>?>()
        Task<Void, Never> { end.give(.success(await result)) }
        let timer = Task<Void, any Error> {
            try await Task<Never, Never>.sleep(for: limit)
            end.give(.success(nil))
        }
        defer { timer.cancel() }
        return try? await end.value { end.give(.success(nil)) }
    }
}
