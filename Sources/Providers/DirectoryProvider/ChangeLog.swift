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

    private struct State {
        /// Identifies this instance: an anchor of another instance has expired.
        var life = UInt64.random(in: 1 ... .max)
        var first = 0
        var entries: [Place] = []
        /// Paths at which a file was written, each with a time that is not before the change time that the last write gave the file.
        var written: [Place: FileTimestamp] = [:]
        /// When events were lost, or writes forgotten: any file may have been written before.
        var lostAt: FileTimestamp?
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

        /// All anchors expire. What was written stays known.
        mutating func expire() { self = State(written: written, lostAt: lostAt) }

        mutating func noteWritten(_ places: Set<Place>, before now: FileTimestamp) {
            // The clock may have been set back.
            for place in places { written[place] = max(now, written[place] ?? now) }
            guard written.count > ChangeLog.capacity else { return }
            let times = written.values.sorted()
            let oldest = times[times.count - ChangeLog.capacity / 2]
            written = written.filter { $0.value >= oldest }
            lostAt = max(oldest, lostAt ?? oldest)
        }
    }

    private let state = Mutex(State())
    /// Logs what was changed before the call.
    let catchUp = Mutex<(@Sendable () -> Void)?>(nil)
    private static let capacity = 65_536

    var anchor: SyncAnchor {
        state.withLock { Self.anchor($0, at: $0.first + $0.entries.count) }
    }

    /// - Parameter written: the paths at which a file was written.
    func append(_ places: [Place], written: Set<Place> = []) {
        state.withLock { state in
            state.entries += places
            state.noteWritten(written, before: .now)
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

    /// A file was moved within the watched directories: what was written to it is known at its new path, too.
    func noteMoved(from old: Place, to new: Place) {
        state.withLock { state in
            guard let write = state.written[old] else { return }
            state.written[new] = max(write, state.written[new] ?? write)
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
            if state.unfound.count > Self.capacity { state.expire() }
            guard !found.isEmpty, let position = Self.position(of: changes.anchor, in: state) else {
                return changes.anchor
            }
            state.entries.insert(contentsOf: found, at: position - state.first)
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
            return !state.movedAway.contains(place) && !state.examinedMoves.contains(place)
                && (state.unfound.contains(place) || unknown.contains(place))
        }
    }

    /// A time that is not before the change time that the last known write gave the file at a path.
    func lastWrite(at place: Place) -> FileTimestamp? { state.withLock { $0.written[place] } }

    /// The file at a path was looked at: its last write is not later than the change time that it had then.
    ///
    /// - Parameter write: ``lastWrite(at:)`` from before the look.
    func noteSeen(_ place: Place, changedAt time: FileTimestamp, after write: FileTimestamp) {
        // Where change times are whole seconds, two writes may have one.
        guard time.nanoseconds != 0 else { return }
        state.withLock { state in
            // It may have been written since.
            if state.written[place] == write { state.written[place] = min(write, time) }
        }
    }

    /// Whether the file at a path may have been written since it had a change time, also if the system knows that.
    func isWritten(_ place: Place, since time: FileTimestamp) -> Bool {
        catchUpNow()
        return state.withLock { max($0.written[place] ?? time, $0.lostAt ?? time) > time }
    }

    /// Whether there is a path from which a file was moved and that has not been examined.
    var hasMovedAway: Bool { state.withLock { !$0.movedAway.isEmpty } }

    /// The whole folder is to be compared: all anchors expire.
    func expire() {
        state.withLock { $0.expire() }
    }

    /// Events were lost: all anchors expire.
    func reset() {
        let now = FileTimestamp.now
        state.withLock { $0 = State(lostAt: max(now, $0.lostAt ?? now)) }
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
            var places = state.entries[position - state.first..<stop - state.first]
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
