/// The call in whose task a provider's requests are made. The system sets it for every call.
package final class CallContext: Sendable {
    @TaskLocal package static var current: CallContext?

    /// Whether the call changes the remote. Its lookups are part of the change.
    package let isChange: Bool
    /// Whether a process waits for the call; may rise during the call.
    package let urgency: CallUrgency
    private let wait: @Sendable (Bool) -> Void
    private let answered: @Sendable () -> Void

    /// - Parameters:
    ///   - isChange: whether it changes the remote.
    ///   - urgency: whether a process waits for the call.
    ///   - wait: called with true when the call starts to wait for a connection or for another call, and with false afterwards.
    ///   - answered: called when the remote has answered a request of the call.
    package init(
        isChange: Bool = false, urgency: CallUrgency, wait: @escaping @Sendable (Bool) -> Void,
        answered: @escaping @Sendable () -> Void = {}
    ) {
        self.isChange = isChange
        self.urgency = urgency
        self.wait = wait
        self.answered = answered
    }

    /// The call waits for a connection, for what another call does, or for a server that stores a large upload, or copies, moves or
    /// deletes much; meanwhile it is not expected to make progress.
    package func beginWaiting() { wait(true) }

    package func endWaiting() { wait(false) }

    /// Waits for a task that several calls share, such as a probe of the server. Its answers are progress of the call that
    /// began it; the others are not watched meanwhile.
    package static func waiting<Value>(_ body: () async throws -> Value) async rethrows -> Value {
        let context = current
        context?.beginWaiting()
        defer { context?.endWaiting() }
        return try await body()
    }

    /// The remote has answered a request, or takes more of one. A call may make many of them, so a slow server is not one that makes
    /// no progress.
    package func noteAnswer() { answered() }
}
