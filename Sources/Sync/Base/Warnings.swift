import FileProvider
import Logging
import Replica
import Synchronization

/// Warnings for the user: logged once, and kept for `status`, each text once with its count.
package final class Warnings: Sendable {
    /// Work that is done again and again: what was wrong with it is so no more when it succeeds.
    package enum Cause: Hashable, Sendable {
        /// To find out what is to be sent.
        case sending
        /// To find out what is kept downloaded.
        case keepingDownloaded
        /// To keep the limit of local content.
        case localContent
        /// To have space on the disk for what is fetched.
        case freeSpace
        case reimport
        /// To take in what has changed on the remote.
        case changes
        case listing(InodeNumber)
        /// To list all that a directory has on the remote.
        case omissions(InodeNumber)
        case comparison(InodeNumber)
        /// To read a file's content.
        case content(InodeNumber)
        /// To resolve a conflict, that is, to remove or rename its copy.
        case conflict(InodeNumber)
        /// To show an item under its own name.
        case decoratedName(ItemIdentifier)
        /// To delete an item of a directory, which the remote has refused.
        case deletion(of: ItemIdentifier, in: ItemIdentifier)
        /// To send what was changed at or below an item, as a caller has asked.
        case upload(InodeNumber)
        /// To download an item with all below it, as a caller has asked.
        case download(InodeNumber)
        /// To evict an item with all below it, as a caller has asked.
        case eviction(InodeNumber)
    }

    /// A warning about what is so until something changes, whichever process runs, with its causes by their kinds.
    struct Lasting: Codable, Hashable, Sendable {
        struct Deletion: Codable, Hashable, Sendable {
            var item: ItemIdentifier
            var directory: ItemIdentifier
        }

        var text: String
        var count: Int
        /// Of inodes.
        var conflicts: Set<Int64> = []
        /// Of inodes.
        var omissions: Set<Int64> = []
        var decoratedNames: Set<ItemIdentifier> = []
        var deletions: Set<Deletion> = []

        init(text: String, count: Int, causes: Set<Cause>) {
            (self.text, self.count) = (text, count)
            for cause in causes {
                switch cause {
                case .conflict(let number): conflicts.insert(number.rawValue)
                case .omissions(let number): omissions.insert(number.rawValue)
                case .decoratedName(let identifier): decoratedNames.insert(identifier)
                case .deletion(let item, let directory):
                    deletions.insert(Deletion(item: item, directory: directory))
                // The next process finds these by itself.
                case .sending, .keepingDownloaded, .localContent, .freeSpace, .reimport, .changes, .listing,
                    .comparison, .content, .upload, .download, .eviction:
                    break
                }
            }
        }

        var causes: Set<Cause> {
            var causes = Set(conflicts.map { Cause.conflict(InodeNumber(rawValue: $0)) })
            causes.formUnion(omissions.map { Cause.omissions(InodeNumber(rawValue: $0)) })
            causes.formUnion(decoratedNames.map { Cause.decoratedName($0) })
            causes.formUnion(deletions.map { Cause.deletion(of: $0.item, in: $0.directory) })
            return causes
        }
    }

    private struct Entry {
        var text: String
        var count = 0
        /// What has to succeed, all of it, for the warning to go.
        var causes: Set<Cause> = []
        /// Whether it was reported without a cause.
        var stays = false
    }

    private struct State {
        var entries: [Entry] = []
        /// The texts of the log. When they are too many, some are logged again.
        var logged: Set<String> = []

        /// - Returns: whether a text is to be logged.
        mutating func isNew(_ text: String) -> Bool {
            if logged.count == Warnings.mostLogged { logged = [] }
            return logged.insert(text).inserted
        }

        /// Ends a cause, except of the texts for which it goes on.
        ///
        /// - Returns: whether it was the cause of any other.
        mutating func end(_ cause: Cause, unless goesOn: (String) -> Bool = { _ in false }) -> Bool {
            var wasAny = false
            for index in entries.indices.reversed() where !goesOn(entries[index].text) {
                guard entries[index].causes.remove(cause) != nil else { continue }
                wasAny = true
                if entries[index].causes.isEmpty, !entries[index].stays { entries.remove(at: index) }
            }
            return wasAny
        }
    }

    private let state = Mutex(State())
    private let logger: Logger
    /// Woken when the warnings have changed.
    let changes = WakeSignal()
    /// The most that are kept.
    static let limit = 100
    private static let mostLogged = 10_000
    /// In bytes. A name or an identifier of the remote's in a text may be a megabyte long.
    private static let longest = 2000

    package init(logger: Logger) {
        self.logger = logger
    }

    /// - Parameter cause: what has to succeed for the warning to go; nil for one that stays.
    package func report(_ text: String, of cause: Cause? = nil) {
        let text = Self.cut(text)
        let isNew = state.withLock { state in
            var entry = Entry(text: text)
            let index = state.entries.firstIndex { $0.text == text }
            if let index { entry = state.entries[index] }
            entry.count += 1
            if let cause { entry.causes.insert(cause) } else { entry.stays = true }
            if let index {
                state.entries[index] = entry
                return false
            }
            if state.entries.count == Self.limit { state.entries.removeFirst() }
            state.entries.append(entry)
            return state.isNew(text)
        }
        changes.wake()
        if isNew { logger.warning("\(text)") }
    }

    /// Reports all that is wrong with something, in the place of what was reported of it before. While there are as many warnings as are
    /// kept, a new one is only logged: it may be reported often, and would take the place of another each time.
    ///
    /// - Parameter texts: a text that is there several times is kept with its count.
    package func report(all texts: [String], of cause: Cause) {
        let texts = texts.map(Self.cut)
        let (new, isChanged) = state.withLock { state -> ([String], Bool) in
            var counts: [String: Int] = [:]
            for text in texts { counts[text, default: 0] += 1 }
            let wasAny = state.end(cause) { counts[$0] != nil }
            var new: [String] = []
            for text in texts {
                guard let count = counts.removeValue(forKey: text) else { continue }
                if let index = state.entries.firstIndex(where: { $0.text == text }) {
                    if state.entries[index].causes.insert(cause).inserted {
                        state.entries[index].count += count
                    } else if state.entries[index].causes.count == 1, !state.entries[index].stays {
                        state.entries[index].count = count
                    }
                } else if state.entries.count < Self.limit {
                    state.entries.append(Entry(text: text, count: count, causes: [cause]))
                }
                if state.isNew(text) { new.append(text) }
            }
            return (new, wasAny || !texts.isEmpty)
        }
        if isChanged { changes.wake() }
        for text in new { logger.warning("\(text)") }
    }

    private static func cut(_ text: String) -> String {
        text.utf8.count <= longest ? text : String(decoding: text.utf8.prefix(longest), as: UTF8.self) + "…"
    }

    /// It is not so any more.
    package func withdraw(_ text: String) {
        let text = Self.cut(text)
        state.withLock { $0.entries.removeAll { $0.text == text } }
        changes.wake()
    }

    /// Something has succeeded: what was wrong with it is not so any more.
    package func succeeded(_ cause: Cause) {
        if state.withLock({ $0.end(cause) }) { changes.wake() }
    }

    /// What the next process is to give again.
    var lasting: [Lasting] {
        state.withLock { state in
            state.entries.compactMap { entry in
                let lasting = Lasting(text: entry.text, count: entry.count, causes: entry.causes)
                return lasting.causes.isEmpty ? nil : lasting
            }
        }
    }

    /// Gives what an earlier process has left, and has logged. Before any other warning.
    func restore(_ lasting: [Lasting]) {
        state.withLock { state in
            for warning in lasting.suffix(Self.limit) {
                state.entries.append(Entry(text: warning.text, count: warning.count, causes: warning.causes))
                state.logged.insert(warning.text)
            }
        }
    }

    /// The newest warning of a cause that has not succeeded since.
    func text(of cause: Cause) -> String? {
        state.withLock { $0.entries.last { $0.causes.contains(cause) }?.text }
    }

    /// What has to succeed for a warning to go.
    var causes: Set<Cause> {
        state.withLock { Set($0.entries.flatMap(\.causes)) }
    }

    /// The newest hundred, oldest first.
    package var texts: [String] {
        state.withLock { $0.entries.map { $0.count == 1 ? $0.text : "\($0.text) (\($0.count) times)" } }
    }
}
