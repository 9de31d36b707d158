import FileProvider

extension OperationLedger {
    /// Whether a call that failed with this error may have changed the remote.
    package static func isOutcomeUnknown(after error: any Error) -> Bool {
        if error is RemoteConditionFailure { return false }
        guard let error = error as? FileProviderError else { return true }
        switch error.code {
        case .serverUnreachable, .timedOut, .userCancelled, .malformedResponse, .posix,
            .providerDomainTemporarilyUnavailable:
            return true
        default: return false
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
