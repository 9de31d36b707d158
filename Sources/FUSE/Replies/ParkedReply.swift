import Synchronization

/// Holds a reply that is answered later, for two owners: the code that will have the answer and the handler that gives up
/// waiting. The first to take the reply answers it. A reply that is never taken answers EIO when its last owner drops it.
package final class ParkedReply<Held: Reply & ~Copyable>: Sendable {
    // Uncontended: locked twice in its life.
    private let held: Mutex<Held?>

    /// Parks a reply with a handler for the interruption of its caller, which typically takes the reply and answers
    /// EINTR. The handler runs as described by ``Reply/onInterrupt(_:)``.
    package init(_ reply: consuming Held, onInterrupt handler: @escaping @Sendable (ParkedReply<Held>) -> Void) {
        held = Mutex(nil)
        var reply: Held? = consume reply
        // The lock is held until the reply is stored, so a handler that runs at once finds the reply.
        held.withLock { held in
            if var taken = reply.take() {
                taken.onInterrupt { [weak self] in
                    if let self { handler(self) }
                }
                held = consume taken
            }
        }
    }

    /// Returns the reply to the first caller, and nil to all others.
    package func take() -> Held? {
        held.withLock { $0.take() }
    }
}
