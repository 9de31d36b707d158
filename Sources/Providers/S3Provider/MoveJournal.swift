import FileProvider
import HTTPTransport
import PathAddressing
import Synchronization

/// A renaming, which in a bucket is many steps: everything is copied, and when all copies are there, what was copied is
/// deleted.
struct MoveRecord: Codable, Hashable, Sendable {
    enum Stage: String, Codable, Sendable {
        /// The old place is what counts; what is at the new one by now is hidden.
        case copying
        /// The new place is what counts; what is still at the old one is hidden.
        case deleting
    }

    /// Keys; of a directory with the slash at the end.
    var from: String
    var to: String
    var stage: Stage
    /// Seconds since 1970.
    var begun: Int64

    var isTree: Bool { from.hasSuffix("/") }

    /// Whether it goes from the same place to the same.
    func hasPlaces(of other: MoveRecord?) -> Bool {
        guard let other else { return false }
        return from.utf8.elementsEqual(other.from.utf8) && to.utf8.elementsEqual(other.to.utf8)
    }

    /// What is not shown.
    var hidden: String { stage == .copying ? to : from }
}

/// The renames in progress. A record is on the disk before the first object is copied, so that a restarted daemon can finish
/// or undo the rename.
final class MoveJournal: Sendable {
    private let moves: SurvivingRecords<MoveRecord>
    private let running = Mutex<Set<KeyBytes>>([])
    /// From where things were renamed that cannot be deleted there.
    private let stuck = Mutex<Set<KeyBytes>>([])

    init(in store: ReportingStore) {
        moves = SurvivingRecords("s3.moves", in: store)
    }

    var records: [MoveRecord] { moves.all.map(\.record) }

    /// Whether a key, or all with a prefix, is half of a renaming that is not done.
    func hides(_ key: String) -> Bool {
        records.contains { record in
            record.isTree
                ? key.utf8.starts(with: record.hidden.utf8) : key.utf8.elementsEqual(record.hidden.utf8)
        }
    }

    func record(from key: String) -> MoveRecord? {
        records.first { $0.from.utf8.elementsEqual(key.utf8) }
    }

    /// Renamings that something at a key would get mixed up with.
    func records(over key: String) -> [MoveRecord] {
        records.filter { record in
            [record.from, record.to].contains { Self.holds($0, key) || Self.holds(key, $0) }
        }
    }

    /// Whether somebody is about a renaming at the moment.
    func isRunning(_ record: MoveRecord) -> Bool { running.withLock { $0.contains(KeyBytes(record.from)) } }

    /// Whether two keys, with or without the slash of a directory, are of the same place, or the second lies in the first.
    static func holds(_ key: String, _ other: String) -> Bool {
        let place = key.utf8.last == UInt8(ascii: "/") ? key.utf8.dropLast() : key.utf8[...]
        let rest = other.utf8.dropFirst(place.count)
        return other.utf8.starts(with: place) && (rest.isEmpty || rest.first == UInt8(ascii: "/"))
    }

    /// Renamings that nobody carries on at the moment, of which only the deleting is left.
    var abandonedDeletions: [MoveRecord] {
        let records = records
        if records.isEmpty { return [] }
        let running = running.withLock { $0 }
        let stuck = stuck.withLock { $0 }
        return records.filter {
            $0.stage == .deleting && !running.contains(KeyBytes($0.from)) && !stuck.contains(KeyBytes($0.from))
        }
    }

    /// It is no use before the next start.
    func noteStuck(_ record: MoveRecord) { stuck.withLock { _ = $0.insert(KeyBytes(record.from)) } }

    func isStuck(_ record: MoveRecord) -> Bool { stuck.withLock { $0.contains(KeyBytes(record.from)) } }

    func save(_ record: MoveRecord) throws { try moves.save(Array(record.from.utf8), record, .synced) }

    func remove(_ record: MoveRecord) { moves.remove(Array(record.from.utf8)) }

    /// Carries on a renaming of what was at a key, or takes it back.
    ///
    /// - Returns: nil when somebody else is about it.
    func run<Value>(from key: String, _ body: () async throws -> Value) async throws -> Value? {
        guard running.withLock({ $0.insert(KeyBytes(key)).inserted }) else { return nil }
        defer { running.withLock { _ = $0.remove(KeyBytes(key)) } }
        return try await body()
    }
}
