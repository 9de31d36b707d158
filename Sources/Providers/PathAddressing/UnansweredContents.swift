import FileProvider
import Synchronization

/// Contents that were sent and of which no answer has come yet, by the tags that the remote will give them, with the dates
/// that they have here.
///
/// Where the answer is lost, the system knows what it sent again by its size and date; a remote that shows the date of the
/// upload instead would make a stranger of it. In memory, and no more than a few: what is forgotten is a stranger.
package final class UnansweredContents: Sendable {
    private struct Key: Hashable {
        var name: [UInt8]
        var tag: [UInt8]
    }

    private struct State {
        var dates: [Key: FileTimestamp] = [:]
        var order: [Key] = []
    }

    private let state = Mutex(State())
    private static let most = 1000

    package init() {}

    /// Content is about to be sent.
    ///
    /// - Parameters:
    ///   - name: what tells the file from others; the place need not, for it may be moved before it is known again.
    ///   - date: nil is nothing to be known by.
    package func note(_ name: String, tag: [UInt8], date: FileTimestamp?) {
        guard let date else { return }
        let key = Key(name: Array(name.utf8), tag: tag)
        state.withLock { state in
            if state.dates.updateValue(date, forKey: key) == nil { state.order.append(key) }
            if state.order.count > Self.most { state.dates[state.order.removeFirst()] = nil }
        }
    }

    /// The answer has come.
    package func forget(_ name: String, tag: [UInt8]) {
        let key = Key(name: Array(name.utf8), tag: tag)
        state.withLock { state in
            if state.dates.removeValue(forKey: key) != nil { state.order.removeAll { $0 == key } }
        }
    }

    /// The date of content that was sent and not answered; nil for everything else.
    package func date(_ name: String, tag: [UInt8]) -> FileTimestamp? {
        state.withLock { $0.dates.isEmpty ? nil : $0.dates[Key(name: Array(name.utf8), tag: tag)] }
    }

    /// Whether a call that failed in this way may have done what it was to do.
    package static func isLeft(by error: any Error) -> Bool {
        if error is RemoteConditionFailure { return false }
        guard let error = error as? FileProviderError else { return true }
        switch error.code {
        case .serverUnreachable, .timedOut, .userCancelled, .malformedResponse, .posix,
            .providerDomainTemporarilyUnavailable:
            return true
        default: return false
        }
    }
}
