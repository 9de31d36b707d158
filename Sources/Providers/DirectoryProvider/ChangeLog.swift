import FileProvider
import Synchronization

/// The log of changed paths in watched directories. It is bounded and kept in memory; an anchor before its start has
/// expired.
final class ChangeLog: Sendable {
    /// A name in a directory, or the directory itself.
    struct Place: Hashable, Sendable {
        var directory: ItemIdentifier
        /// The UTF-8 of the encoded name (``FileNameText``): two Unicode forms of one text are two names.
        private var bytes: [UInt8]?

        init(_ name: String? = nil, in directory: ItemIdentifier) {
            self.directory = directory
            bytes = name.map { Array($0.utf8) }
        }

        var name: String? { bytes.map { String(decoding: $0, as: UTF8.self) } }
    }

    private struct Entry {
        var place: Place
        /// When it was logged, which is after the change.
        var time: FileTimestamp
    }

    private struct State {
        /// Identifies this instance: an anchor of another instance has expired.
        var life = UInt64.random(in: 1 ... .max)
        var first = 0
        var entries: [Entry] = []
        /// Paths from which a file was moved, until they have been examined.
        var movedAway: Set<Place> = []
        /// Paths whose move was examined, until the system knows the result.
        var examinedMoves: Set<Place> = []
        /// Changed paths whose directory the system has, and was not found. The next round of changes examines them again.
        var unfound: Set<Place> = []
        /// The position up to which the system knows the changes.
        var known = 0
        /// The position up to which it was told of them last.
        var told = 0
        /// Paths that could not be examined in the round of changes under way.
        var postponed: Set<Place> = []
    }

    private let state = Mutex(State())
    /// Logs what was changed before the call.
    let catchUp = Mutex<(@Sendable () -> Void)?>(nil)
    private static let capacity = 65_536

    var anchor: SyncAnchor {
        state.withLock { Self.anchor($0, at: $0.first + $0.entries.count) }
    }

    func append(_ places: [Place]) {
        state.withLock { state in
            let now = FileTimestamp.now
            state.entries += places.map { Entry(place: $0, time: now) }
            if state.entries.count > Self.capacity {
                let excess = state.entries.count - Self.capacity / 2
                state.entries.removeFirst(excess)
                state.first += excess
            }
        }
    }

    /// Keeps paths that cannot be examined now for the next round of changes.
    ///
    /// - Parameter isRoundComplete: whether the round under way ends with this.
    /// - Returns: whether there are such paths in this round.
    func postpone(_ places: [Place], isRoundComplete: Bool) -> Bool {
        let (isAny, next) = state.withLock { state -> (Bool, [Place]) in
            state.postponed.formUnion(places)
            let postponed = state.postponed
            if isRoundComplete { state.postponed = [] }
            return (!postponed.isEmpty, isRoundComplete ? Array(postponed) : [])
        }
        append(next)
        return isAny
    }

    /// The file at a path was moved and not deleted.
    func noteMovedAway(_ place: Place) {
        state.withLock { state in
            if state.movedAway.count < Self.capacity { state.movedAway.insert(place) }
        }
    }

    /// Whether a file was moved from a path since the last call of this function.
    ///
    /// - Parameter check: throws if the call was cancelled. The next call asks for its places after the cancellation: it finds what was
    ///   taken before, and nothing is taken after.
    func takeMovedAway(_ place: Place, checking check: () throws -> Void) throws -> Bool {
        try state.withLock { state in
            try check()
            guard state.movedAway.remove(place) != nil else { return false }
            state.examinedMoves.insert(place)
            return true
        }
    }

    /// Ends the examination of changed paths. Only what was found of the paths of ``Changes/unfound`` moves the anchor: it is in the
    /// log, before what was logged meanwhile, and examined once more if the answer is not taken in.
    ///
    /// - Parameters:
    ///   - lost: those whose directory was not found. They are kept until it is found or the system does not have it any more.
    ///   - check: throws if the call was cancelled, as in ``takeMovedAway(_:checking:)``.
    /// - Returns: the anchor of the answer.
    func settle(_ changes: Changes, lost: Set<Place>, checking check: () throws -> Void) throws -> SyncAnchor {
        let found = changes.places.filter { changes.unfound.contains($0) && !lost.contains($0) }
        return try state.withLock { state in
            try check()
            state.unfound.subtract(found)
            state.unfound.formUnion(lost)
            // Instead of all of them the whole folder is examined.
            if state.unfound.count > Self.capacity { state = State() }
            guard !found.isEmpty, let position = Self.position(of: changes.anchor, in: state) else {
                return changes.anchor
            }
            let now = FileTimestamp.now
            let entries = found.map { Entry(place: $0, time: now) }
            state.entries.insert(contentsOf: entries, at: position - state.first)
            state.told = max(state.told, position + found.count)
            return Self.anchor(state, at: position + found.count)
        }
    }

    /// Logs what was changed before the call.
    func catchUpNow() { catchUp.withLock { $0 }?() }

    /// Whether a path has a change that the system does not know yet, and no file was moved away from it.
    func isChanged(_ place: Place) -> Bool {
        catchUpNow()
        return state.withLock { state in
            let unknown = state.entries.dropFirst(max(0, state.known - state.first))
            return isInPlace(place, state) && (state.unfound.contains(place) || unknown.contains { $0.place == place })
        }
    }

    /// Whether a change of a path was logged at a time or later, also one that the system knows, and no file was moved away from it.
    func isChanged(_ place: Place, since time: FileTimestamp) -> Bool {
        catchUpNow()
        return state.withLock { state in
            isInPlace(place, state)
                && (state.unfound.contains(place)
                    || state.entries.contains { $0.time >= time && $0.place == place })
        }
    }

    private func isInPlace(_ place: Place, _ state: State) -> Bool {
        !state.movedAway.contains(place) && !state.examinedMoves.contains(place)
    }

    /// Whether there is a path from which a file was moved and that has not been examined.
    var hasMovedAway: Bool { state.withLock { !$0.movedAway.isEmpty } }

    /// Events were lost: all anchors expire.
    func reset() {
        state.withLock { $0 = State() }
    }

    struct Changes {
        /// Without duplicates.
        var places: [Place]
        /// Before ``settle(_:lost:checking:)``.
        var anchor: SyncAnchor
        /// Whether these are the last ones of the round.
        var isAll: Bool
        /// The paths whose directory was not found before.
        var unfound: Set<Place>
    }

    /// The changed paths since an anchor, from at most `limit` log entries. The last ones of a round include those of
    /// ``settle(_:lost:checking:)``.
    ///
    /// - Returns: nil if the anchor has expired.
    func places(since anchor: SyncAnchor, limit: Int) -> Changes? {
        state.withLock { state in
            guard let position = Self.position(of: anchor, in: state) else { return nil }
            if position < state.told {
                // The last answer was not taken in.
                state.movedAway.formUnion(state.examinedMoves)
            }
            (state.known, state.examinedMoves) = (position, [])
            let end = state.first + state.entries.count
            let stop = min(end, position + limit)
            var seen: Set<Place> = []
            var places = state.entries[position - state.first..<stop - state.first].map(\.place)
                .filter { seen.insert($0).inserted }
            if stop == end { places += state.unfound.subtracting(seen) }
            state.told = stop
            return Changes(
                places: places, anchor: Self.anchor(state, at: stop), isAll: stop == end, unfound: state.unfound)
        }
    }

    /// - Returns: nil if the anchor has expired.
    private static func position(of anchor: SyncAnchor, in state: State) -> Int? {
        let parts = String(decoding: anchor.rawValue, as: UTF8.self).split(separator: ".")
        guard parts.count == 2, UInt64(parts[0], radix: 16) == state.life, let position = Int(parts[1]) else {
            return nil
        }
        return state.first...state.first + state.entries.count ~= position ? position : nil
    }

    private static func anchor(_ state: State, at position: Int) -> SyncAnchor {
        SyncAnchor(String(state.life, radix: 16) + "." + String(position))
    }
}
