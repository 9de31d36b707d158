import FileProvider
import FileProviderPaths
import Foundation
import Synchronization

/// A rename, which in a bucket takes many requests: everything is copied, and when all copies are there, the originals are
/// deleted.
struct MoveRecord: Codable, Hashable, Sendable {
    enum Stage: String, Codable, Sendable {
        /// The old place is valid; the copies in the new one are hidden.
        case copying
        /// The new place is valid; the originals that are left in the old one are hidden.
        case deleting
    }

    /// Keys; of a directory with the slash at the end.
    var from: String
    var to: String
    var stage: Stage
    /// Seconds since 1970.
    var begun: Int64
    /// Of this rename alone, whichever machine makes it; nil in records of earlier versions.
    var identifier: String?

    var isTree: Bool { from.hasSuffix("/") }

    /// What the copy of an object with an ETag has in its metadata. Other machines make other marks, and a tool that keeps metadata when it
    /// copies or writes an object gives the mark to another key, or to content with another ETag.
    func mark(at key: String, ofCopied tag: String) -> String? { mark(at: key).map { $0 + Self.digest(tag) } }

    /// What the marks of all copies at a key begin with.
    func mark(at key: String) -> String? { identifier.map { Self.digest("\($0) \(key)") } }

    private static func digest(_ text: String) -> String { String(Signature.hash(Array(text.utf8)).prefix(32)) }

    /// Whether both renames have the same old and new places.
    func hasPlaces(of other: MoveRecord?) -> Bool {
        guard let other else { return false }
        return from.utf8.elementsEqual(other.from.utf8) && to.utf8.elementsEqual(other.to.utf8)
    }

    /// The place that is not shown.
    var hidden: String { stage == .copying ? to : from }
}

/// The renames in progress. A record is on the disk before the first object is copied, so that a restarted daemon can finish
/// or undo the rename.
final class MoveJournal: Sendable {
    private let moves: SurvivingRecords<MoveRecord>
    private let ledger: OperationLedger
    /// The old places in which the server does not let us delete the originals.
    private let stuck = Mutex<Set<KeyBytes>>([])
    /// The identifiers of the renames that this process has begun.
    private let begun = Mutex<Set<String>>([])

    init(in store: ReportingStore, ledger: OperationLedger) {
        moves = SurvivingRecords("s3.moves", in: store)
        self.ledger = ledger
    }

    var records: [MoveRecord] { moves.all.map(\.record) }

    /// Whether a key, or all keys with a prefix, belong to the hidden half of a rename in progress.
    func hides(_ key: String) -> Bool {
        records.contains { record in
            record.isTree
                ? key.utf8.starts(with: record.hidden.utf8) : key.utf8.elementsEqual(record.hidden.utf8)
        }
    }

    func record(from key: String) -> MoveRecord? {
        records.first { $0.from.utf8.elementsEqual(key.utf8) }
    }

    /// The renames that a change at a key has to do with.
    func records(over key: String) -> [MoveRecord] {
        records.filter { record in
            [record.from, record.to].contains { Self.holds($0, key) || Self.holds(key, $0) }
        }
    }

    /// Whether two keys, with or without the slash of a directory, are of the same place, or the second lies in the first.
    static func holds(_ key: String, _ other: String) -> Bool {
        let place = key.utf8.last == UInt8(ascii: "/") ? key.utf8.dropLast() : key.utf8[...]
        let rest = other.utf8.dropFirst(place.count)
        return other.utf8.starts(with: place) && (rest.isEmpty || rest.first == UInt8(ascii: "/"))
    }

    /// The renames that no caller is continuing, and of which only the deletions are left.
    var abandonedDeletions: [MoveRecord] {
        records.filter { $0.stage == .deleting && !isRunning($0) && !isStuck($0) }
    }

    /// The rename is not continued before the next start.
    func noteStuck(_ record: MoveRecord) { stuck.withLock { _ = $0.insert(KeyBytes(record.from)) } }

    func isStuck(_ record: MoveRecord) -> Bool { stuck.withLock { $0.contains(KeyBytes(record.from)) } }

    func save(_ record: MoveRecord) throws { try moves.save(Array(record.from.utf8), record, .synced) }

    func remove(_ record: MoveRecord) {
        moves.remove(Array(record.from.utf8))
        if let identifier = record.identifier { begun.withLock { _ = $0.remove(identifier) } }
    }

    /// Makes the record of a new rename.
    func begin(from: String, to: String) throws -> MoveRecord {
        let identifier = UUID().uuidString
        let record = MoveRecord(
            from: from, to: to, stage: .copying, begun: FileTimestamp.now.seconds, identifier: identifier)
        try save(record)
        begun.withLock { _ = $0.insert(identifier) }
        return record
    }

    /// Whether this process has begun a rename, and not an earlier one.
    func hasBegun(_ record: MoveRecord) -> Bool {
        record.identifier.map { identifier in begun.withLock { $0.contains(identifier) } } ?? false
    }

    // MARK: - Running

    /// Whether a caller is making, continuing or undoing a rename now.
    func isRunning(_ record: MoveRecord) -> Bool { ledger.isClaimed(Self.extent(record.from)) }

    /// Makes, continues or undoes a rename, once no other caller does.
    ///
    /// - Throws: ``OperationLedger/Busy``; what `body` throws.
    func run<Value>(from key: String, _ body: () async throws -> Value) async throws -> Value {
        try await ledger.perform(claiming: [Self.extent(key)]) { _ in try await body() }
    }

    /// A path in the ledger that is no key: no key begins with a zero byte.
    private static func extent(_ key: String) -> PathExtent { .exactly("\0" + key) }
}
