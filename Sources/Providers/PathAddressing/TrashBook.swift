import FileProvider
import Synchronization
import SystemPackage

/// What a remote's trash does not say of what lies in it, by the remote's own identifiers: which content it is, for there
/// a file may show another tag and another date, and what was not thrown away but deleted, which the remote keeps all the
/// same. It outlives the process.
final class TrashBook: Sendable {
    /// What was thrown away here, as it was before.
    struct Thrown: Codable, Hashable, Sendable {
        var name: String
        var kind: ItemKind
        var tag: [UInt8]
        var size: Int64?
        var date: FileTimestamp?
        var permissions: UInt16?
        /// Where in the trash it was seen; nil until it was.
        var place: [String]?
        /// It is being brought back, or was, and the rest of the change was not made.
        var isRestoring = false
        /// The tag that it had then.
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

    /// What was deleted here.
    private struct Deleted: Codable, Sendable {
        /// The older, the smaller.
        var number: Int
        /// Where in the trash it was seen; nil until it was.
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

    private let state: Mutex<State>
    private let keptThrown: SurvivingRecords<Thrown>
    private let keptDeleted: SurvivingRecords<Deleted>
    private let mostDeleted: Int
    private static let mostKnown = 4096

    /// - Parameters:
    ///   - directory: a folder for what has to outlive the process.
    ///   - mostDeleted: of so many deletions it is remembered that they were none into the trash.
    init(in directory: FilePath, mostDeleted: Int = 50_000) {
        self.mostDeleted = mostDeleted
        keptThrown = SurvivingRecords(path: directory.appending("thrown-away"))
        keptDeleted = SurvivingRecords(path: directory.appending("deleted"))
        var state = State()
        for (key, record) in keptThrown.all { state.thrown[String(decoding: key, as: UTF8.self)] = record }
        for (key, record) in keptDeleted.all {
            state.deleted[String(decoding: key, as: UTF8.self)] = record
            state.lastNumber = max(state.lastNumber, record.number)
        }
        // How what was under way ended nobody knows.
        state.uncertain = Set(state.thrown.filter { $0.value.place == nil }.keys)
            .union(state.deleted.filter { $0.value.place == nil }.keys)
        self.state = Mutex(state)
    }

    // MARK: - Our own doing

    /// An entry is about to be thrown away.
    func willThrow(_ entry: RemoteEntry) {
        guard let key = entry.stableIdentifier else { return }
        let thrown = Thrown(entry)
        let wasDeleted = state.withLock { state in
            state.thrown[key] = thrown
            state.uncertain.insert(key)
            state.clock += 1
            return state.deleted.removeValue(forKey: key) != nil
        }
        keptThrown.set(Array(key.utf8), thrown)
        if wasDeleted { keptDeleted.remove(Array(key.utf8)) }
    }

    /// An entry is about to be deleted.
    func willDelete(_ entry: RemoteEntry) {
        guard let key = entry.stableIdentifier else { return }
        let (deleted, forgotten, wasThrown) = state.withLock { state in
            state.lastNumber += 1
            state.clock += 1
            let deleted = Deleted(number: state.lastNumber)
            state.deleted[key] = deleted
            state.uncertain.insert(key)
            var forgotten: [String] = []
            if state.deleted.count > mostDeleted {
                // Many at once: it is a walk over all of them.
                let oldest = state.deleted.sorted { $0.value.number < $1.value.number }.prefix(mostDeleted / 10 + 1)
                forgotten = oldest.map(\.key)
                for key in forgotten { state.deleted[key] = nil }
            }
            return (deleted, forgotten, state.thrown.removeValue(forKey: key) != nil)
        }
        keptDeleted.set(Array(key.utf8), deleted)
        for key in forgotten { keptDeleted.remove(Array(key.utf8)) }
        if wasThrown { keptThrown.remove(Array(key.utf8)) }
    }

    /// It was done, was certainly not, or may have been.
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

    /// It is in the trash no more.
    func forget(_ key: String) {
        let (wasThrown, wasDeleted) = state.withLock { state in
            state.clock += 1
            state.uncertain.remove(key)
            state.doneAt[key] = nil
            for kind in [ItemKind.file, .directory, .symbolicLink] {
                state.known[MintedIdentifier.make(kind, remote: key)] = nil
            }
            return (
                state.thrown.removeValue(forKey: key) != nil, state.deleted.removeValue(forKey: key) != nil
            )
        }
        if wasThrown { keptThrown.remove(Array(key.utf8)) }
        if wasDeleted { keptDeleted.remove(Array(key.utf8)) }
    }

    /// It is about to be brought back.
    func willRestore(_ entry: TrashedEntry) {
        guard let key = entry.entry.stableIdentifier else { return }
        let thrown = state.withLock { state in
            var thrown = state.thrown[key] ?? Thrown(entry.entry, place: entry.place)
            (thrown.isRestoring, thrown.restoredTag) = (true, nil)
            state.thrown[key] = thrown
            return thrown
        }
        keptThrown.set(Array(key.utf8), thrown)
    }

    /// It was brought back, and has this tag there.
    func noteRestored(_ entry: TrashedEntry, as restored: RemoteEntry) {
        guard let key = entry.entry.stableIdentifier else { return }
        let thrown = state.withLock { state in
            var thrown = state.thrown[key] ?? Thrown(entry.entry, place: entry.place)
            (thrown.isRestoring, thrown.restoredTag) = (true, restored.tag)
            state.thrown[key] = thrown
            return thrown
        }
        keptThrown.set(Array(key.utf8), thrown)
    }

    /// What is known of something that is, or was, in the trash.
    func thrown(_ key: String) -> Thrown? { state.withLock { $0.thrown[key] } }

    // MARK: - Listings

    /// A moment, to be taken before a listing is asked for; another after whatever was done here.
    var now: Int { state.withLock { $0.clock } }

    /// The trash was listed: nothing else is in it.
    ///
    /// - Parameter moment: before it was asked for.
    /// - Returns: what of it was thrown away, as it was before.
    func settle(_ listing: [TrashedEntry], since moment: Int) -> [TrashedEntry] {
        let places = Dictionary(
            listing.compactMap { entry in entry.entry.stableIdentifier.map { ($0, entry.place) } },
            uniquingKeysWith: { first, _ in first })
        let (shown, changes) = state.withLock { state in
            var changes = Changes()
            // What was begun before and is not there has been emptied out, or was never kept.
            func isGone(_ key: String, _ state: borrowing State) -> Bool {
                places[key] == nil && !state.uncertain.contains(key) && state.doneAt[key, default: 0] <= moment
            }
            var found = (thrown: 0, deleted: 0)
            for (key, place) in places {
                if let thrown = state.thrown[key] {
                    found.thrown += 1
                    if thrown.place == nil {
                        state.thrown[key]?.place = place
                        changes.thrown[key] = state.thrown[key]
                    } else if thrown.place != place {
                        // Somebody else has brought it back, and thrown it away again: as what, nobody knows.
                        changes.goneThrown.append(key)
                    }
                }
                if let deleted = state.deleted[key] {
                    found.deleted += 1
                    if deleted.place == nil {
                        state.deleted[key]?.place = place
                        changes.deleted[key] = state.deleted[key]
                    } else if deleted.place != place {
                        changes.goneDeleted.append(key)
                    }
                }
            }
            // What is remembered is there, as a rule, or was begun just now: only when more of it is missing is all of it
            // looked through, and not at each listing.
            let begun = state.uncertain.union(state.doneAt.filter { $0.value > moment }.keys)
                .filter { places[$0] == nil }
            if state.thrown.count > found.thrown + begun.count(where: { state.thrown[$0] != nil }) {
                changes.goneThrown += state.thrown.filter { isGone($0.key, state) && !$0.value.isRestoring }.keys
            }
            if state.deleted.count > found.deleted + begun.count(where: { state.deleted[$0] != nil }) {
                changes.goneDeleted += state.deleted.filter { isGone($0.key, state) }.keys
            }
            for key in changes.goneThrown { state.thrown[key] = nil }
            for key in changes.goneDeleted { state.deleted[key] = nil }
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
            return (shown, changes)
        }
        for (key, record) in changes.thrown { keptThrown.set(Array(key.utf8), record) }
        for (key, record) in changes.deleted { keptDeleted.set(Array(key.utf8), record) }
        for key in changes.goneThrown { keptThrown.remove(Array(key.utf8)) }
        for key in changes.goneDeleted { keptDeleted.remove(Array(key.utf8)) }
        return shown
    }

    private struct Changes {
        var thrown: [String: Thrown] = [:]
        var deleted: [String: Deleted] = [:]
        var goneThrown: [String] = []
        var goneDeleted: [String] = []
    }

    /// Where an item was in the trash when that was listed last.
    func known(_ identifier: ItemIdentifier) -> TrashedEntry? { state.withLock { $0.known[identifier] } }

    /// An entry as it was before it was thrown away, where that is known.
    func complete(_ entry: TrashedEntry) -> TrashedEntry {
        entry.with(entry.entry.stableIdentifier.flatMap(thrown))
    }
}

extension TrashedEntry {
    fileprivate func with(_ thrown: TrashBook.Thrown?) -> TrashedEntry {
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
