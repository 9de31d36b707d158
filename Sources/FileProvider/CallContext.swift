/// What the code that makes a provider's requests has to know of the call that they belong to. The system sets it around
/// every call; the code finds it in its task.
package final class CallContext: Sendable {
    @TaskLocal package static var current: CallContext?

    private let urgency: @Sendable () -> Bool
    private let wait: @Sendable (Bool) -> Void

    /// - Parameters:
    ///   - isUrgent: whether a process waits for the call.
    ///   - wait: told when the call begins and stops to wait for a place among others.
    package init(isUrgent: @escaping @Sendable () -> Bool, wait: @escaping @Sendable (Bool) -> Void) {
        urgency = isUrgent
        self.wait = wait
    }

    /// Whether a process waits for the call; that may change while it runs.
    package var isUrgent: Bool { urgency() }

    /// The call waits for a place: meanwhile nobody expects it to make progress.
    package func beginWaiting() { wait(true) }

    package func endWaiting() { wait(false) }
}
