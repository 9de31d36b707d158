import FileProvider
import Synchronization

/// What a remote's trash does not tell about its items, by the remote's identifiers.
///
/// In the trash a file may show another tag and another date, so its content would look changed; and such a remote keeps
/// deleted items in the same place, which the system must not show in the trash. The records survive a restart.
final class TrashRecords: Sendable {
    /// How an item came into the remote's trash.
    enum Removal {
        case trashed
        case deleted
    }

    /// An item that was trashed here, as it was before.
    struct Trashed: Codable, Hashable, Sendable {
        var name: String
        var kind: ItemKind
        var tag: [UInt8]
        var size: Int64?
        var date: FileTimestamp?
        var permissions: UInt16?
        /// It is being restored, or was, and the rest of the change was not made.
        var isRestoring = false
        /// The tag that it had after it was restored.
        var restoredTag: [UInt8]?

        init(_ entry: RemoteEntry) {
            name = entry.name
            kind = entry.kind
            tag = entry.tag
            size = entry.size
            date = entry.attributes.contentModificationDate
            permissions = entry.attributes.permissions
        }
    }

    private struct Record: Codable, Sendable {
        /// Nil for an item that was deleted here.
        var trashed: Trashed?
        /// Grows with each removal.
        var number: Int
        /// Where in the trash a listing has shown it; nil before that.
        var place: [String]?
    }

    private struct State {
        private(set) var records: [String: Record]
        private(set) var deletedCount: Int
        /// Records to be stored, or with nil to be removed, in one transaction.
        var changes: [String: Record?] = [:]
        /// Items that are being removed, or may be: a listing need not have them.
        var uncertain: Set<String>
        var known: [ItemIdentifier: TrashedEntry] = [:]
        var lastNumber: Int
        /// Advances with each change made here.
        var clock = 0
        var doneAt: [String: Int] = [:]

        init(_ records: [String: Record]) {
            self.records = records
            deletedCount = records.values.count { $0.trashed == nil }
            lastNumber = records.values.map(\.number).max() ?? 0
            // The outcome of a request that was in flight is unknown.
            uncertain = Set(records.filter { $0.value.place == nil }.keys)
        }

        mutating func set(_ key: String, _ record: Record?) {
            let old = records[key]
            if old == nil, record == nil { return }
            if let old, old.trashed == nil { deletedCount -= 1 }
            if let record, record.trashed == nil { deletedCount += 1 }
            records[key] = record
            changes[key] = .some(record)
        }
    }

    private let state: Mutex<State>
    private let store: ReportingStore
    private let mostDeleted: Int
    static let usualMostDeleted = 50_000
    private static let mostKnown = 4096
    private static let namespace = ProviderStoreNamespace<Record>("trash")

    /// - Parameter mostDeleted: how many deletions are remembered at least, if there were so many.
    init(in store: ReportingStore, mostDeleted: Int = TrashRecords.usualMostDeleted) {
        self.store = store
        self.mostDeleted = mostDeleted
        let found = store.all(in: Self.namespace).map { ($0.key.description, $0.record) }
        state = Mutex(State(Dictionary(found, uniquingKeysWith: { $1 })))
    }

    /// Changes the state, and stores the records that have changed. When that fails, the user is told, and the records live as
    /// long as the process.
    private func update<Value: Sendable>(_ body: (inout State) -> Value) -> Value {
        state.withLock { state in
            let value = body(&state)
            if state.changes.isEmpty { return value }
            store.apply(state.changes.map { (ProviderStoreKey($0.key), $0.value) }, in: Self.namespace)
            state.changes = [:]
            return value
        }
    }

    // MARK: - Changes made here

    /// Removes an entry, and records how.
    func recording(_ entry: RemoteEntry, as removal: Removal, _ body: () async throws -> Void) async throws {
        begin(entry, as: removal)
        do {
            try await body()
            end(entry)
        } catch {
            end(entry, because: error)
            throw error
        }
    }

    /// An entry is about to be removed.
    func begin(_ entry: RemoteEntry, as removal: Removal) {
        guard let key = entry.stableIdentifier else { return }
        update { state in
            state.lastNumber += 1
            state.clock += 1
            state.set(key, Record(trashed: removal == .trashed ? Trashed(entry) : nil, number: state.lastNumber))
            state.uncertain.insert(key)
            // Many at once, because it takes a walk over all of them.
            guard state.deletedCount > mostDeleted + mostDeleted / 10 else { return }
            let oldest = state.records.filter { $0.value.trashed == nil }
                .sorted { $0.value.number < $1.value.number }.prefix(state.deletedCount - mostDeleted)
            for (key, _) in oldest { state.set(key, nil) }
        }
    }

    /// The removal of an entry has succeeded, or has failed with an error that tells whether it may have been made.
    func end(_ entry: RemoteEntry, because error: (any Error)? = nil) {
        guard let key = entry.stableIdentifier else { return }
        if let error {
            if OperationLedger.isOutcomeUnknown(after: error) { return }
            return forget(key)
        }
        state.withLock { state in
            state.clock += 1
            state.doneAt[key] = state.clock
            state.uncertain.remove(key)
        }
    }

    /// An item has left the trash.
    func forget(_ key: String) {
        update { state in
            state.clock += 1
            state.uncertain.remove(key)
            state.doneAt[key] = nil
            for kind in [ItemKind.file, .directory, .symbolicLink] {
                state.known[MintedIdentifier.make(kind, remote: key)] = nil
            }
            state.set(key, nil)
        }
    }

    /// An item is about to be restored, or was.
    ///
    /// - Parameter tag: the tag that it has now; nil before.
    func noteRestoring(_ entry: TrashedEntry, tag: [UInt8]? = nil) {
        guard let key = entry.entry.stableIdentifier else { return }
        update { state in
            let known = state.records[key].flatMap { $0.trashed == nil ? nil : $0 }
            var record = known ?? Record(number: state.lastNumber, place: entry.place)
            var trashed = record.trashed ?? Trashed(entry.entry)
            (trashed.isRestoring, trashed.restoredTag) = (true, tag)
            record.trashed = trashed
            state.set(key, record)
        }
    }

    /// An item that is, or was, in the trash, as it was before.
    func trashed(_ key: String) -> Trashed? { state.withLock { $0.records[key]?.trashed } }

    // MARK: - Listings

    /// A logical time, to be taken before a listing is requested. It advances with each change made here.
    var now: Int { state.withLock { $0.clock } }

    /// Compares the records with a complete listing of the trash.
    ///
    /// - Parameter moment: ``now`` before the listing was requested.
    /// - Returns: the entries that were trashed, as they were before.
    func settle(_ listing: [TrashedEntry], since moment: Int) -> [TrashedEntry] {
        let places = Dictionary(
            listing.compactMap { entry in entry.entry.stableIdentifier.map { ($0, entry.place) } },
            uniquingKeysWith: { first, _ in first })
        return update { state in
            var found = 0
            for (key, place) in places {
                guard var record = state.records[key] else { continue }
                guard record.place == nil || record.place == place else {
                    // Another client has restored it and trashed it again, perhaps with other content.
                    state.set(key, nil)
                    continue
                }
                found += 1
                guard record.place == nil else { continue }
                record.place = place
                state.set(key, record)
            }
            // A record that began before the listing and is not in it is over: the trash was emptied, or has never kept the
            // item. As a rule every record is in the listing or began just now, and the walk over all of them is saved.
            let begun = state.uncertain.union(state.doneAt.filter { $0.value > moment }.keys)
                .filter { places[$0] == nil && state.records[$0] != nil }
            if state.records.count > found + begun.count {
                for (key, record) in state.records
                where places[key] == nil && !begun.contains(key) && record.trashed?.isRestoring != true {
                    state.set(key, nil)
                }
            }
            for key in places.keys { state.uncertain.remove(key) }
            state.doneAt = state.doneAt.filter { $0.value > moment }
            let shown = listing.compactMap { entry -> TrashedEntry? in
                guard let key = entry.entry.stableIdentifier else { return nil }
                guard let record = state.records[key] else { return entry.wasHere ? entry : nil }
                return record.trashed.map { entry.restored(from: $0, at: record.place) }
            }
            state.known = [:]
            for entry in shown.prefix(Self.mostKnown) {
                if let identifier = entry.identifier { state.known[identifier] = entry }
            }
            return shown
        }
    }

    /// Where an item was in the latest listing of the trash.
    func known(_ identifier: ItemIdentifier) -> TrashedEntry? { state.withLock { $0.known[identifier] } }

    /// An entry as it was before it was trashed, where there is a record of it.
    func complete(_ entry: TrashedEntry) -> TrashedEntry {
        let record = entry.entry.stableIdentifier.flatMap { key in state.withLock { $0.records[key] } }
        return record?.trashed.map { entry.restored(from: $0, at: record?.place) } ?? entry
    }
}

extension TrashedEntry {
    /// - Parameter place: where the record knows the item in the trash.
    fileprivate func restored(from trashed: TrashRecords.Trashed, at place: [String]?) -> TrashedEntry {
        guard trashed.kind == entry.kind, trashed.size == entry.size, place == nil || place == self.place
        else { return self }
        var own = self
        own.entry.name = trashed.name
        own.entry.tag = trashed.tag
        own.entry.attributes.contentModificationDate = trashed.date
        own.entry.attributes.permissions = trashed.permissions
        return own
    }
}
