import CoreMetrics
import FileProvider

/// Records how long the provider's calls take, and how they end.
struct CallMetrics: Sendable {
    let domain: String

    /// - Parameter error: nil for a call that succeeded.
    func record(_ call: CallName, took duration: Duration, error: (any Error)?) {
        let outcome =
            switch error {
            case nil: "success"
            case let error as FileProviderError: error.code.rawValue
            case is CancellationError: FileProviderError.Code.userCancelled.rawValue
            default: FileProviderError.Code.posix.rawValue
            }
        CoreMetrics.Timer(
            label: "yonder_provider_call_seconds",
            dimensions: [("domain", domain), ("call", call.rawValue), ("outcome", outcome)]
        ).recordNanoseconds(Int64(duration / .nanoseconds(1)))
    }
}
