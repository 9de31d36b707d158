/// A provider that waits before it tries something again, as after the end of a program that it starts.
package protocol RetryingProvider: Sendable {
    /// The user asks to try now.
    func retryNow() async
}
