import FileProvider

/// Calls of a program that runs whenever it is needed.
struct ProgramCalls: Sendable {
    let host: ProgramHost
    /// How long a call waits because of `retryAfter`, in seconds, and how often.
    private static let longestWait = 30.0
    private static let attempts = 3

    /// Makes a call that changes nothing, again if the program ended during it.
    func ask<Value: Decodable & Sendable>(
        _ method: String, _ parameters: some Encodable & Sendable
    ) async throws -> Value {
        do {
            do {
                return try await change(method, parameters)
            } catch let error as FileProviderError where error.code == .providerDomainTemporarilyUnavailable {
                return try await change(method, parameters)
            }
        } catch let failure as ProgramFailure {
            throw failure.error()
        }
    }

    /// Makes a call, and again after the time that the program asks for.
    ///
    /// - Parameter onSent: as of ``ProgramSession/call(_:_:returning:onSent:)``. A call that is made again begins to count anew.
    /// - Throws: ``ProgramFailure`` for a condition that did not hold; `FileProviderError`.
    func change<Value: Decodable & Sendable>(
        _ method: String, _ parameters: some Encodable & Sendable,
        onSent: @escaping @Sendable (Int64) -> Void = { _ in }
    ) async throws -> Value {
        var attempt = 1
        while true {
            let session = try await host.running()
            do {
                return try await session.call(method, parameters, onSent: onSent)
            } catch let failure as ProgramFailure {
                if failure.isCondition { throw failure }
                guard let wait = failure.data?.retryAfter, wait > 0, attempt < Self.attempts else {
                    throw failure.error()
                }
                attempt += 1
                try await Task.sleep(for: .seconds(min(wait, Self.longestWait)))
            }
        }
    }
}
