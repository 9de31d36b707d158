import FileProvider
import Synchronization

/// Contents that were sent and of which no answer has come yet, by the tags that the remote will give them, with the dates
/// that they have here.
///
/// Where the answer is lost, the system knows what it sent again by its size and date; a remote that shows the date of the
/// upload instead would make a stranger of it. No more than a few: what is forgotten is a stranger. They outlive the process.
package final class UnansweredContents: Sendable {
    private struct Key: Hashable {
        var name: [UInt8]
        var tag: [UInt8]

        var bytes: [UInt8] { name + [0] + tag }
    }

    private struct Record: Codable, Sendable {
        var name: [UInt8]
        var tag: [UInt8]
        var date: FileTimestamp
    }

    private struct State {
        var dates: [Key: FileTimestamp] = [:]
        var order: [Key] = []
    }

    private let state: Mutex<State>
    private let kept: SurvivingRecords<Record>
    private static let most = 1000

    package init(in store: ReportingStore) {
        kept = SurvivingRecords("unanswered", in: store)
        var found = State()
        for (_, record) in kept.all {
            let key = Key(name: record.name, tag: record.tag)
            found.dates[key] = record.date
            found.order.append(key)
        }
        state = Mutex(found)
    }

    /// Content is about to be sent.
    ///
    /// - Parameters:
    ///   - name: what tells the file from others; the place need not, for it may be moved before it is known again.
    ///   - date: nil is nothing to be known by.
    package func note(_ name: String, tag: [UInt8], date: FileTimestamp?) {
        guard let date else { return }
        note(Key(name: Array(name.utf8), tag: tag), date)
    }

    private func note(_ key: Key, _ date: FileTimestamp) {
        let forgotten = state.withLock { state -> Key? in
            if state.dates.updateValue(date, forKey: key) == nil { state.order.append(key) }
            guard state.order.count > Self.most else { return nil }
            let oldest = state.order.removeFirst()
            state.dates[oldest] = nil
            return oldest
        }
        kept.set(key.bytes, Record(name: key.name, tag: key.tag, date: date))
        if let forgotten { kept.remove(forgotten.bytes) }
    }

    /// A file is about to get another name: under that, too, it is what was sent.
    package func carry(_ name: String, to newName: String) {
        let (old, new) = (Array(name.utf8), Array(newName.utf8))
        guard old != new else { return }
        let carried = state.withLock { state in
            state.dates.isEmpty ? [] : state.dates.filter { $0.key.name == old }.map { ($0.key.tag, $0.value) }
        }
        for (tag, date) in carried { note(Key(name: new, tag: tag), date) }
    }

    /// The answer has come.
    package func forget(_ name: String, tag: [UInt8]) {
        let key = Key(name: Array(name.utf8), tag: tag)
        state.withLock { state in
            if state.dates.removeValue(forKey: key) != nil { state.order.removeAll { $0 == key } }
        }
        kept.remove(key.bytes)
    }

    /// The date of content that was sent and not answered; nil for everything else.
    package func date(_ name: String, tag: [UInt8]) -> FileTimestamp? {
        state.withLock { $0.dates.isEmpty ? nil : $0.dates[Key(name: Array(name.utf8), tag: tag)] }
    }

    /// Whether content whose sending failed in this way may have arrived. What could not be read here has not.
    static func mayHaveArrived(despite error: any Error) -> Bool {
        switch (error as? FileProviderError)?.code {
        case .posix: false
        case nil: error is CancellationError
        default: isLeft(by: error)
        }
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
