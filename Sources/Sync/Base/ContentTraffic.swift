import Synchronization

/// The content bytes that a domain has received from its remote and sent to it since it was mounted. Bytes that a repeated call
/// transfers again count again; and the limits of both. From any thread.
package final class ContentTraffic: Sendable {
    private let receivedBytes = Atomic<Int64>(0)
    private let sentBytes = Atomic<Int64>(0)
    let (receiving, sending) = (RateLimit(), RateLimit())

    package var received: Int64 { receivedBytes.load(ordering: .relaxed) }
    package var sent: Int64 { sentBytes.load(ordering: .relaxed) }
    var total: Int64 { received &+ sent }

    func receive(_ bytes: Int64) {
        receivedBytes.wrappingAdd(bytes, ordering: .relaxed)
    }

    func send(_ bytes: Int64) {
        sentBytes.wrappingAdd(bytes, ordering: .relaxed)
    }
}
