import FileProvider
import Logging
import Replica
import Sync
import Synchronization

/// How many bytes each process has had fetched by reading, and how many it may: a program that reads everything is stopped
/// before it has brought everything here. What somebody asks for by command counts for nobody.
package final class FetchBudget: FetchAccounting {
    /// A process that had something fetched.
    struct Reader: Hashable, Sendable {
        var process: Int32
        var name: String
        var fetched: Int64
        /// Nil for as much as it likes.
        var limit: Int64?

        var isRefused: Bool { limit.map { fetched >= $0 } ?? false }
        /// Such as `grep (pid 123)`.
        var words: String { "\(name) (pid \(process))" }
    }

    private struct Entry {
        var reader: Reader
        var startTime: UInt64
        /// Whether somebody was told that it gets no more.
        var isTold = false
    }

    private let limit: Int64?
    private let exceptions: MaterializationRules
    private let logger: Logger
    private let entries = Mutex<[Int32: Entry]>([:])
    private let refusals = Mutex<[Place: String]>([:])
    private static let mostEntries = 4096
    private static let mostRefusals = 1024

    /// An item of a domain.
    struct Place: Hashable, Sendable {
        var domain: String
        var inode: InodeNumber
    }

    /// - Parameters:
    ///   - limit: how many bytes a process may have fetched; nil for as many as it likes.
    ///   - exceptions: the programs and units that may have as many as they like.
    init(limit: Int64?, exceptions: MaterializationRules, logger: Logger) {
        self.limit = limit
        self.exceptions = exceptions
        self.logger = logger
    }

    package func charge(_ bytes: Int64, to process: Int32) {
        let isKnown = entries.withLock { entries in
            guard entries[process] != nil else { return false }
            entries[process]?.reader.fetched += bytes
            return true
        }
        guard !isKnown, let entry = newEntry(of: process) else { return }
        entries.withLock { entries in
            if entries[process] == nil { entries[process] = entry }
            entries[process]?.reader.fetched += bytes
        }
    }

    package func admits(_ process: Int32) -> Bool {
        entries.withLock { $0[process]?.reader.isRefused } != true
    }

    /// Whether a process gets no more, and whether that is news. Reads /proc: not for the kernel's threads.
    func refusal(of process: Int32) -> (reader: Reader, isNews: Bool)? {
        guard let observed = ObservedProcess(process) else { return nil }
        let isKnown = entries.withLock { $0[process]?.startTime == observed.identity.startTime }
        if !isKnown, let entry = newEntry(of: process, observed) { add(entry) }
        let found = entries.withLock { entries -> (Reader, Bool)? in
            guard let entry = entries[process], entry.reader.isRefused else { return nil }
            entries[process]?.isTold = true
            return (entry.reader, !entry.isTold)
        }
        if let (reader, isNews) = found, isNews {
            logger.notice(
                """
                '\(reader.name)' (pid \(process)) has had \(reader.fetched) bytes fetched and gets no more: \
                'yonder allow \(process)' lets it go on
                """)
        }
        return found
    }

    /// Notes for whom an item was not fetched.
    func note(_ reader: Reader, refused place: Place) {
        refusals.withLock { refusals in
            if refusals.count >= Self.mostRefusals { refusals.removeAll() }
            refusals[place] = reader.words
        }
    }

    /// For whom an item was not fetched last; nil when that is over.
    func refused(_ place: Place) -> String? { refusals.withLock { $0[place] } }

    /// Lets a process have more.
    ///
    /// - Parameter bytes: how many more than it has had; nil for its usual budget once more.
    /// - Returns: the process; nil for one that has had nothing fetched, or that is gone.
    func allow(_ process: Int32, bytes: Int64?) -> Reader? {
        guard let observed = ObservedProcess(process) else { return nil }
        let reader = entries.withLock { entries -> Reader? in
            guard var entry = entries[process], entry.startTime == observed.identity.startTime else { return nil }
            if let more = bytes ?? limit {
                let (sum, isTooMuch) = entry.reader.fetched.addingReportingOverflow(more)
                entry.reader.limit = isTooMuch ? .max : sum
            }
            entry.isTold = false
            entries[process] = entry
            return entry.reader
        }
        if let reader {
            refusals.withLock { refusals in refusals = refusals.filter { $0.value != reader.words } }
        }
        return reader
    }

    /// The processes that had most fetched, of those that are still there.
    func readers(limit: Int) -> [Reader] {
        let all = entries.withLock { Array($0.values) }
        return all.filter { $0.reader.fetched > 0 }.sorted { $0.reader.fetched > $1.reader.fetched }.lazy
            .filter { ObservedProcess($0.reader.process)?.identity.startTime == $0.startTime }
            .prefix(limit).map(\.reader)
    }

    private func newEntry(of process: Int32, _ observed: ObservedProcess? = nil) -> Entry? {
        guard let observed = observed ?? ObservedProcess(process) else { return nil }
        let isFree = exceptions.isException(
            executable: observed.identity.executable, name: observed.name, controlGroup: observed.controlGroup)
        return Entry(
            reader: Reader(
                process: process, name: observed.name ?? "?", fetched: 0, limit: isFree ? nil : limit),
            startTime: observed.identity.startTime)
    }

    private func add(_ entry: Entry) {
        var gone: [Int32] = []
        let known = entries.withLock { $0.count >= Self.mostEntries ? Array($0.values) : [] }
        for other in known where ObservedProcess(other.reader.process)?.identity.startTime != other.startTime {
            gone.append(other.reader.process)
        }
        entries.withLock { entries in
            for process in gone { entries[process] = nil }
            // All of them are there: those that had least are forgotten.
            if entries.count >= Self.mostEntries {
                let least = entries.values.sorted { $0.reader.fetched < $1.reader.fetched }
                for other in least.prefix(Self.mostEntries / 2) { entries[other.reader.process] = nil }
            }
            entries[entry.reader.process] = entry
        }
    }
}
