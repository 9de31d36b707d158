import CoreMetrics
import FileProvider
import Replica
import Synchronization

/// Something that happened between this machine and the remote.
package struct SyncEvent: Sendable {
    package enum Kind: String, Sendable {
        case uploading
        case uploaded
        case created
        case deleted
        case failed
        case conflict
        /// A process, or the system, has content fetched.
        case downloading
        case downloaded
        /// Content or a directory's listing was evicted, to make room or because a user wanted it.
        case evicted
        /// A process has had as many bytes fetched as it may, and gets no more.
        case overBudget
        /// An item whose identifier was given up was recognized, or made anew.
        case reimported
        /// An item was removed because neither the remote nor the replica has its content.
        case lost
        /// Everything has been offered to the provider again.
        case importFinished
        case offline
        case online
    }

    package var kind: Kind
    /// The inode that it is about; nil for what has none any more.
    package var number: InodeNumber?
    /// The directory that held what has none any more, if that is known here.
    package var directory: InodeNumber?
    /// The name that it has or had.
    package var name: String
    package var bytes: Int64
    /// The process that caused it, in words; nil for the system itself.
    package var process: String?
    package var time: FileTimestamp
}

/// Counts events, and sends them to listeners. A listener that falls behind loses the oldest events; it delays nothing.
final class SyncEvents: Sendable {
    private struct State {
        var listeners: [Int: AsyncStream<SyncEvent>.Continuation] = [:]
        var lastID = 0
        var isFinished = false
    }

    private let domain: String
    private let state = Mutex(State())
    private static let buffer = 4096

    init(domain: String) {
        self.domain = domain
    }

    func tell(
        _ kind: SyncEvent.Kind, of number: InodeNumber?, in directory: InodeNumber? = nil, named name: String,
        bytes: Int64 = 0, process: String? = nil
    ) {
        Counter(label: "yonder_events_total", dimensions: [("domain", domain), ("kind", kind.rawValue)]).increment()
        let listeners = state.withLock { Array($0.listeners.values) }
        guard !listeners.isEmpty else { return }
        let event = SyncEvent(
            kind: kind, number: number, directory: directory, name: name, bytes: bytes, process: process,
            time: FileTimestamp.now)
        for listener in listeners { listener.yield(event) }
    }

    /// The events from now on, until ``finish()``.
    var stream: AsyncStream<SyncEvent> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: SyncEvent.self, bufferingPolicy: .bufferingNewest(Self.buffer))
        let id: Int? = state.withLock { state in
            guard !state.isFinished else { return nil }
            state.lastID += 1
            state.listeners[state.lastID] = continuation
            return state.lastID
        }
        guard let id else {
            continuation.finish()
            return stream
        }
        continuation.onTermination = { [weak self] _ in self?.state.withLock { $0.listeners[id] = nil } }
        return stream
    }

    /// Nothing happens any more.
    func finish() {
        let listeners = state.withLock { state in
            state.isFinished = true
            return Array(state.listeners.values)
        }
        for listener in listeners { listener.finish() }
    }
}

extension FileProviderRequest {
    /// The process that asks, such as `cat (pid 123)`; nil for the system itself.
    var cause: String? {
        guard let processIdentifier else { return nil }
        let name = requestingExecutable?.split(separator: "/").last.map(String.init) ?? "a process"
        return "\(name) (pid \(processIdentifier))"
    }
}
