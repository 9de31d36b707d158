import Logging
import Synchronization

/// Warnings for the user: logged, and kept for `status`, each text once with its count.
package final class Warnings: Sendable {
    private struct Entry {
        var text: String
        var count: Int
    }

    private let entries = Mutex<[Entry]>([])
    private let logger: Logger
    private static let limit = 100

    package init(logger: Logger) {
        self.logger = logger
    }

    package func report(_ text: String) {
        let isNew = entries.withLock { entries in
            if let index = entries.firstIndex(where: { $0.text == text }) {
                entries[index].count += 1
                return false
            }
            if entries.count == Self.limit { entries.removeFirst() }
            entries.append(Entry(text: text, count: 1))
            return true
        }
        if isNew { logger.warning("\(text)") }
    }

    /// It is not so any more.
    package func withdraw(_ text: String) {
        entries.withLock { $0.removeAll { $0.text == text } }
    }

    /// The newest hundred, oldest first.
    package var texts: [String] {
        entries.withLock { $0.map { $0.count == 1 ? $0.text : "\($0.text) (\($0.count) times)" } }
    }
}
