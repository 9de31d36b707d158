import Logging
import Replica
import Sync
import Synchronization

/// Counts the bytes fetched for the reads of each process, and refuses further fetches above a limit, so that a
/// program that reads everything does not download everything. Downloads that a user requests by command are not
/// counted.
package final class FetchBudget: FetchAccounting {
    /// A process that has caused fetches.
    struct Reader: Hashable, Sendable {
        var process: Int32
        var name: String
        var fetched: Int64
        /// The limit in bytes; nil for none.
        var limit: Int64?

        var isRefused: Bool { limit.map { fetched >= $0 } ?? false }
        /// For example `grep (pid 123)`.
        var words: String { "\(name) (pid \(process))" }
    }

    private struct Entry {
        var reader: Reader
        var startTime: UInt64
        /// The domains of the files whose content was fetched for it.
        var domains: Set<String> = []
        /// Whether the refusal has been logged.
        var isTold = false

        mutating func charge(_ bytes: Int64, in domain: String?) {
            reader.fetched += bytes
            if let domain { domains.insert(domain) }
        }
    }

    private let limit: Int64?
    private let exceptions: MaterializationRules
    private let logger: Logger
    private let entries = Mutex<[Int32: Entry]>([:])
    private let refusals = Mutex<[Place: String]>([:])
    private static let mostEntries = 4096
    private static let mostRefusals = 1024

    struct Place: Hashable, Sendable {
        var domain: String
        var inode: InodeNumber
    }

    /// - Parameters:
    ///   - limit: the limit per process in bytes; nil for none.
    ///   - exceptions: its exceptions are the programs and units without a limit.
    init(limit: Int64?, exceptions: MaterializationRules, logger: Logger) {
        self.limit = limit
        self.exceptions = exceptions
        self.logger = logger
    }

    /// The number under which is counted what is fetched for a thread: that of its process; its own, if an exception names the thread and
    /// not the process. Reads /proc: must not be called on a serving thread.
    func account(of thread: Int32) -> Int32 {
        let process = ObservedProcess.leader(of: thread)
        guard limit != nil, process != thread, exceptions.haveThreadExceptions, isFree(thread), !isFree(process) else {
            return process
        }
        return thread
    }

    private func isFree(_ process: Int32) -> Bool {
        ObservedProcess(process).map { exceptions.isException($0.subject) } == true
    }

    package func charge(_ bytes: Int64, to process: Int32) { charge(bytes, to: process, in: nil) }

    private func charge(_ bytes: Int64, to process: Int32, in domain: String?) {
        let isKnown = entries.withLock { $0[process]?.charge(bytes, in: domain) != nil }
        guard !isKnown, let entry = newEntry(of: process) else { return }
        entries.withLock { entries in
            if entries[process] == nil { entries[process] = entry }
            entries[process]?.charge(bytes, in: domain)
        }
    }

    /// The accounting of a domain. The limit of a process is for all domains together.
    func accounting(of domain: String) -> any FetchAccounting { DomainAccounting(budget: self, domain: domain) }

    private struct DomainAccounting: FetchAccounting {
        let budget: FetchBudget
        let domain: String

        func charge(_ bytes: Int64, to process: Int32) { budget.charge(bytes, to: process, in: domain) }
        func admits(_ process: Int32) -> Bool { budget.admits(process) }
    }

    package func admits(_ process: Int32) -> Bool {
        entries.withLock { $0[process]?.reader.isRefused } != true
    }

    /// The process if it has reached its limit, and whether this is its first refusal. Reads /proc: must not be
    /// called on a serving thread.
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

    /// Records the process for which an item was not fetched.
    func note(_ reader: Reader, refused place: Place) {
        refusals.withLock { refusals in
            if refusals.count >= Self.mostRefusals { refusals.removeAll() }
            refusals[place] = reader.words
        }
    }

    /// The last process for which an item was not fetched; nil if there is none, or its limit was raised since.
    func refused(_ place: Place) -> String? { refusals.withLock { $0[place] } }

    /// Raises the limit of a process. Never lowers it.
    ///
    /// - Parameter bytes: the number of bytes that it may fetch from now on, at least; nil for the default limit.
    /// - Returns: the process; nil if it has caused no fetches or does not exist.
    func allow(_ process: Int32, bytes: Int64?) -> Reader? {
        guard let observed = ObservedProcess(process) else { return nil }
        let reader = entries.withLock { entries -> Reader? in
            guard var entry = entries[process], entry.startTime == observed.identity.startTime else { return nil }
            if let more = bytes ?? limit, let present = entry.reader.limit {
                let (sum, isTooMuch) = entry.reader.fetched.addingReportingOverflow(more)
                entry.reader.limit = max(present, isTooMuch ? .max : sum)
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

    /// The running processes with the most fetched bytes.
    ///
    /// - Parameter domain: only those for which something of this domain was fetched; nil for all.
    func readers(limit: Int, of domain: String? = nil) -> [Reader] {
        let all = entries.withLock { entries in
            entries.values.filter { entry in domain.map { entry.domains.contains($0) } ?? true }
        }
        return all.filter { $0.reader.fetched > 0 }.sorted { $0.reader.fetched > $1.reader.fetched }.lazy
            .filter { ObservedProcess($0.reader.process)?.identity.startTime == $0.startTime }
            .prefix(limit).map(\.reader)
    }

    private func newEntry(of process: Int32, _ observed: ObservedProcess? = nil) -> Entry? {
        guard let observed = observed ?? ObservedProcess(process) else { return nil }
        let isFree = exceptions.isException(observed.subject)
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
            // All processes are running: drop those with the fewest bytes.
            if entries.count >= Self.mostEntries {
                let least = entries.values.sorted { $0.reader.fetched < $1.reader.fetched }
                for other in least.prefix(Self.mostEntries / 2) { entries[other.reader.process] = nil }
            }
            entries[entry.reader.process] = entry
        }
    }
}
