import FileProvider

extension OperationLedger {
    /// Whether a call that failed with this error may have changed the remote.
    package static func isOutcomeUnknown(after error: any Error) -> Bool {
        if error is RemoteConditionFailure { return false }
        guard let error = error as? FileProviderError else { return true }
        if error.underlyingErrors.contains(where: { $0 is NothingSent }) { return false }
        switch error.code {
        case .serverUnreachable, .timedOut, .userCancelled, .malformedResponse, .posix,
            .providerDomainTemporarilyUnavailable:
            return true
        default: return false
        }
    }

    /// The cause of an error before the first request for a change.
    private struct NothingSent: Error {}

    /// Does what a call does before it requests its first change.
    ///
    /// - Throws: what `body` throws. After a `FileProviderError` it is known that the call has changed nothing.
    package static func preparing<Value>(
        isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Value
    ) async throws -> Value {
        do {
            return try await body()
        } catch let error as FileProviderError {
            throw nothingSent(error)
        }
    }

    /// An error of a call that has requested no change, as the error of one of which that is known.
    package static func nothingSent(_ error: FileProviderError) -> FileProviderError {
        var error = error
        error.underlyingErrors.append(NothingSent())
        return error
    }

    /// Looks up the result of a change that the remote has acknowledged.
    ///
    /// - Throws: an error after which the outcome is unknown, also where the look-up was refused: the change was made.
    package static func result<Value>(
        isolation: isolated (any Actor)? = #isolation, of lookUp: () async throws -> Value
    ) async throws -> Value {
        do {
            return try await lookUp()
        } catch let error as FileProviderError where !isOutcomeUnknown(after: error) {
            throw FileProviderError(
                .providerDomainTemporarilyUnavailable, "the result of a change cannot be looked up: \(error.message)")
        }
    }

    /// Whether content whose upload failed with this error may have arrived. What could not be read here has not.
    static func mayHaveArrived(despite error: any Error) -> Bool {
        switch (error as? FileProviderError)?.code {
        case .posix: false
        case nil: error is CancellationError
        default: isOutcomeUnknown(after: error)
        }
    }
}
