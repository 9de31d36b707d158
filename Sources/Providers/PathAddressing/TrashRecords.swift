import FileProvider
import Synchronization

/// What a remote's trash does not tell about its items, by the remote's identifiers.
///
/// In the trash a file may show another tag and another date, so its content would look changed; and such a remote keeps
/// deleted items in the same place, which the system must not show in the trash. The records survive a restart.
final class TrashRecords: Sendable {
    /// An item that was trashed here, as it was before.
    struct Thrown: Codable, Hashable, Sendable {
        var name: String
        var kind: ItemKind
        var tag: [UInt8]
        var size: Int64?
        var date: FileTimestamp?
        var permissions: UInt16?
        /// Where in the trash a listing has shown it; nil before that.
        var place: [String]?
        /// It is being restored, or was, and the rest of the change was not made.
        var isRestoring = false
        /// The tag that it had after it was restored.
        var restoredTag: [UInt8]?

        init(_ entry: RemoteEntry, place: [String]? = nil) {
            name = entry.name
            kind = entry.kind
            tag = entry.tag
            size = entry.size
            date = entry.attributes.contentModificationDate
            permissions = entry.attributes.permissions
            self.place = place
        }
    }

    /// An item that was deleted here.
    private struct Deleted: Codable, Sendable {
        /// Grows with each deletion.
        var number: Int
        /// Where in the trash a listing has shown it; nil before that.
        var place: [String]?
    }

    private struct State {
        var thrown: [String: Thrown] = [:]
        var deleted: [String: Deleted] = [:]
        /// What is just being deleted or thrown away, or may be: a listing need not have it.
        var uncertain: Set<String> = []
        var known: [ItemIdentifier: TrashedEntry] = [:]
        var lastNumber = 0
        /// Counts what was done, to tell what is older than a listing.
        var clock = 0
        var doneAt: [String: Int] = [:]
    }

    /// Records to be stored, or with nil to be removed, in one transaction.
    private struct Changes {
        var thrown: [String: Thrown?] = [:]
        var deleted: [String: Deleted?] = [:]
    }

    private let state: Mutex<State>
    private let store: ReportingStore
    private let mostDeleted: Int
    private static let mostKnown = 4096
    private static let thrownItems = ProviderStoreNamespace<Thrown>("trash.trashed")
    private static let deletedItems = ProviderStoreNamespace<Deleted>("trash.deleted")

    /// - Parameter mostDeleted: how many deletions are remembered.
    init(in store: ReportingStore, mostDeleted: Int = 50_000) {
        self.store = store
        self.mostDeleted = mostDeleted
        var state = State()
        for (key, record) in store.all(in: Self.thrownItems) { state.thrown[key.description] = record }
        for (key, record) in store.all(in: Self.deletedItems) {
            state.deleted[key.description] = record
            state.lastNumber = max(state.lastNumber, record.number)
        }
        // The outcome of an operation that was in flight is unknown.
        state.uncertain = Set(state.thrown.filter { $0.value.place == nil }.keys)
            .union(state.deleted.filter { $0.value.place == nil }.keys)
        self.state = Mutex(state)
    }

    /// Changes the state, and stores the records that have changed. When that fails, the user is told, and the records live as
    /// long as the process.
    private func update<Value: Sendable>(_ body: (inout State, inout Changes) -> Value) -> Value {
        state.withLock { state in
            var changes = Changes()
            let value = body(&state, &changes)
            guard !changes.thrown.isEmpty || !changes.deleted.isEmpty else { return value }
            store.attempt { store in
                try store.write(.committed) { transaction in
                    try Self.store(changes.thrown, in: Self.thrownItems, transaction)
                    try Self.store(changes.deleted, in: Self.deletedItems, transaction)
                }
            }
            return value
        }
    }

    private static func store<Record>(
        _ records: [String: Record?], in namespace: ProviderStoreNamespace<Record>,
        _ transaction: any ProviderStoreTransaction
    ) throws {
        for (key, record) in records {
            if let record {
                try transaction.put(record, at: ProviderStoreKey(key), in: namespace)
            } else {
                try transaction.remove(ProviderStoreKey(key), in: namespace)
            }
        }
    }

    // MARK: - Changes made here

    /// An entry is about to be trashed.
    func willThrow(_ entry: RemoteEntry) {
        guard let key = entry.stableIdentifier else { return }
        update { state, changes in
            let thrown = Thrown(entry)
            state.thrown[key] = thrown
            changes.thrown[key] = .some(thrown)
            state.uncertain.insert(key)
            state.clock += 1
            if state.deleted.removeValue(forKey: key) != nil { changes.deleted[key] = .some(nil) }
        }
    }

    /// An entry is about to be deleted.
    func willDelete(_ entry: RemoteEntry) {
        guard let key = entry.stableIdentifier else { return }
        update { state, changes in
            state.lastNumber += 1
            state.clock += 1
            let deleted = Deleted(number: state.lastNumber)
            state.deleted[key] = deleted
            changes.deleted[key] = .some(deleted)
            state.uncertain.insert(key)
            if state.deleted.count > mostDeleted {
                // Many at once, because it takes a walk over all of them.
                let oldest = state.deleted.sorted { $0.value.number < $1.value.number }.prefix(mostDeleted / 10 + 1)
                for (key, _) in oldest {
                    state.deleted[key] = nil
                    changes.deleted[key] = .some(nil)
                }
            }
            if state.thrown.removeValue(forKey: key) != nil { changes.thrown[key] = .some(nil) }
        }
    }

    /// The change of an entry that was announced has succeeded, or has failed with an error that tells whether it may have
    /// been made.
    func ended(_ entry: RemoteEntry, because error: (any Error)? = nil) {
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
        update { state, changes in
            state.clock += 1
            state.uncertain.remove(key)
            state.doneAt[key] = nil
            for kind in [ItemKind.file, .directory, .symbolicLink] {
                state.known[MintedIdentifier.make(kind, remote: key)] = nil
            }
            if state.thrown.removeValue(forKey: key) != nil { changes.thrown[key] = .some(nil) }
            if state.deleted.removeValue(forKey: key) != nil { changes.deleted[key] = .some(nil) }
        }
    }

    /// An item is about to be restored.
    func willRestore(_ entry: TrashedEntry) { noteRestoring(entry, tag: nil) }

    /// An item was restored, and has this tag now.
    func noteRestored(_ entry: TrashedEntry, as restored: RemoteEntry) { noteRestoring(entry, tag: restored.tag) }

    private func noteRestoring(_ entry: TrashedEntry, tag: [UInt8]?) {
        guard let key = entry.entry.stableIdentifier else { return }
        update { state, changes in
            var thrown = state.thrown[key] ?? Thrown(entry.entry, place: entry.place)
            (thrown.isRestoring, thrown.restoredTag) = (true, tag)
            state.thrown[key] = thrown
            changes.thrown[key] = .some(thrown)
        }
    }

    /// The record of an item that is, or was, in the trash.
    func thrown(_ key: String) -> Thrown? { state.withLock { $0.thrown[key] } }

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
        return update { state, changes in
            // What was begun before the listing and is not in it has been emptied out, or was never kept.
            func isGone(_ key: String, _ state: borrowing State) -> Bool {
                places[key] == nil && !state.uncertain.contains(key) && state.doneAt[key, default: 0] <= moment
            }
            var found = (thrown: 0, deleted: 0)
            for (key, place) in places {
                if let thrown = state.thrown[key] {
                    found.thrown += 1
                    if thrown.place == nil {
                        state.thrown[key]?.place = place
                        changes.thrown[key] = .some(state.thrown[key])
                    } else if thrown.place != place {
                        // Another client has restored it and trashed it again, perhaps with other content.
                        changes.thrown[key] = .some(nil)
                    }
                }
                if let deleted = state.deleted[key] {
                    found.deleted += 1
                    if deleted.place == nil {
                        state.deleted[key]?.place = place
                        changes.deleted[key] = .some(state.deleted[key])
                    } else if deleted.place != place {
                        changes.deleted[key] = .some(nil)
                    }
                }
            }
            // As a rule every record is in the listing or was begun just now. Only when more are missing are all records
            // walked over.
            let begun = state.uncertain.union(state.doneAt.filter { $0.value > moment }.keys)
                .filter { places[$0] == nil }
            if state.thrown.count > found.thrown + begun.count(where: { state.thrown[$0] != nil }) {
                for (key, thrown) in state.thrown where isGone(key, state) && !thrown.isRestoring {
                    changes.thrown[key] = .some(nil)
                }
            }
            if state.deleted.count > found.deleted + begun.count(where: { state.deleted[$0] != nil }) {
                for key in state.deleted.keys where isGone(key, state) { changes.deleted[key] = .some(nil) }
            }
            for (key, record) in changes.thrown where record == nil { state.thrown[key] = nil }
            for case (let key, nil) in changes.deleted { state.deleted[key] = nil }
            for key in places.keys { state.uncertain.remove(key) }
            state.doneAt = state.doneAt.filter { $0.value > moment }
            var shown: [TrashedEntry] = []
            for entry in listing {
                guard let key = entry.entry.stableIdentifier, state.deleted[key] == nil else { continue }
                let thrown = state.thrown[key]
                guard entry.wasHere || thrown != nil else { continue }
                shown.append(entry.with(thrown))
            }
            state.known = [:]
            for entry in shown.prefix(Self.mostKnown) {
                if let identifier = entry.identifier { state.known[identifier] = entry }
            }
            return shown
        }
    }

    /// Where an item was in the trash when that was listed last.
    func known(_ identifier: ItemIdentifier) -> TrashedEntry? { state.withLock { $0.known[identifier] } }

    /// An entry as it was before it was trashed, where there is a record of it.
    func complete(_ entry: TrashedEntry) -> TrashedEntry {
        entry.with(entry.entry.stableIdentifier.flatMap(thrown))
    }
}

extension TrashedEntry {
    fileprivate func with(_ thrown: TrashRecords.Thrown?) -> TrashedEntry {
        guard let thrown, thrown.kind == entry.kind, thrown.size == entry.size,
            thrown.place == nil || thrown.place == place
        else { return self }
        var own = self
        own.entry.name = thrown.name
        own.entry.tag = thrown.tag
        own.entry.attributes.contentModificationDate = thrown.date
        own.entry.attributes.permissions = thrown.permissions
        return own
    }
}
