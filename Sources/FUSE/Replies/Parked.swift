import Synchronization

/// Holds a reply that will be answered later, so that several may hold on to it: the one that has the answer, and the
/// one that gives up waiting. Whoever takes it first answers. One that nobody takes answers EIO by its end.
package final class Parked<Held: Reply & ~Copyable>: Sendable {
    // Cold state: touched twice in a life.
    private let held: Mutex<Held?>

    package init(_ reply: consuming Held) {
        held = Mutex(reply)
    }

    /// Parks a reply together with what is to be done when its caller is interrupted, typically to take it and to
    /// answer EINTR. The handler runs as ``Reply/onInterrupt(_:)`` says, and can always take the reply if nobody else
    /// has.
    package init(_ reply: consuming Held, onInterrupt handler: @escaping @Sendable (Parked<Held>) -> Void) {
        held = Mutex(nil)
        var reply: Held? = consume reply
        // The lock is held until the reply lies here: a handler that runs at once finds it.
        held.withLock { held in
            if var taken = reply.take() {
                taken.onInterrupt { [weak self] in
                    if let self { handler(self) }
                }
                held = consume taken
            }
        }
    }

    /// The reply, to the first who asks.
    package func take() -> Held? {
        held.withLock { $0.take() }
    }
}
