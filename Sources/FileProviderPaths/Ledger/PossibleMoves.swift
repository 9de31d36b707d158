/// The moves of items that are in flight, had no response, or were acknowledged and are not known to the system yet. Whether a
/// move without a response was made is found out by looking at both paths, not by waiting.
///
/// All of them are on disk: after a restart, each is unknown until a caller has looked. One that was acknowledged is known to
/// have been made: its item is found in the new place also with other content, which may have been sent there since.
package struct PossibleMoves: Sendable {
    package typealias Tick = Int

    /// A move of an item to a name in a directory, by their identifiers.
    package struct Move: Codable, Sendable {
        package var item: String
        /// The tag of its content; empty for a directory.
        package var tag: [UInt8]
        package var directory: String
        package var name: String
        /// Whether the server has acknowledged the move, or the item was found where it leads. Nil also in a record of an
        /// earlier version.
        package internal(set) var isMade: Bool?
        /// What a directory consists of that the remote moves part by part; nil elsewhere, and once the move was made.
        package internal(set) var parts: DirectoryParts?

        package init(item: String, tag: [UInt8], directory: String, name: String, parts: DirectoryParts? = nil) {
            self.item = item
            self.tag = tag
            self.directory = directory
            self.name = name
            self.parts = parts
        }

        /// The record's key: no path begins with a zero byte.
        var key: [UInt8] { Array("\0\(item)\0\(directory)\0\(name)".utf8) }

        fileprivate func isOf(_ item: String) -> Bool { self.item.utf8.elementsEqual(item.utf8) }
    }

    private struct Entry: Sendable {
        var move: Move
        var request: Tick?
        var isUnknown = false
        /// Until when the server may still make it, once it was seen that it has not.
        var lateUntil: ContinuousClock.Instant?
    }

    private var entries: [[UInt8]: Entry] = [:]
    private var durableChanges: [(key: [UInt8], move: Move?)] = []
    private static let most = 4096
    /// For how long the server may still make a move after it was seen that it has not.
    package static let lateness = Duration.seconds(120)

    init(restoring moves: [Move]) {
        for move in moves { entries[move.key] = Entry(move: move, isUnknown: true) }
    }

    /// The moves that have to be written to disk, and those that are over, since this was last called.
    mutating func takeDurableChanges() -> [(key: [UInt8], move: Move?)] {
        exchange(&durableChanges, with: [])
    }

    // MARK: - Requests

    mutating func send(_ move: Move, as request: Tick) {
        if entries.count >= Self.most {
            for (key, entry) in entries where entry.request == nil && entry.move.parts == nil { drop(key) }
        }
        var move = move
        move.isMade = nil
        entries[move.key, default: Entry(move: move)].move = move
        entries[move.key]?.request = request
        // The record of one that is made part by part is large: the caller stores it.
        if move.parts == nil { durableChanges.append((move.key, move)) }
    }

    /// - Parameter isMade: nil when the request had no response.
    mutating func end(_ key: [UInt8], isMade: Bool?) {
        guard var entry = entries[key] else { return }
        entry.request = nil
        switch isMade {
        case true?:
            entry.isUnknown = false
            (entry.move.isMade, entry.move.parts) = (true, nil)
            durableChanges.append((key, entry.move))
            // The item has left the place from which earlier moves would have taken it.
            for (other, earlier) in entries
            where other != key && earlier.request == nil && earlier.move.isOf(entry.move.item) { drop(other) }
        case false?:
            // An earlier request for the same move may still have been applied.
            if !entry.isUnknown { return drop(key) }
        case nil: (entry.isUnknown, entry.lateUntil) = (true, nil)
        }
        entries[key] = entry
    }

    private mutating func noteMade(_ key: [UInt8]) {
        guard var move = entries[key]?.move, move.isMade != true else { return }
        (move.isMade, move.parts) = (true, nil)
        entries[key]?.move = move
        durableChanges.append((key, move))
    }

    private mutating func drop(_ key: [UInt8]) {
        if entries.removeValue(forKey: key) != nil { durableChanges.append((key, nil)) }
    }

    // MARK: - Where is an item?

    /// The moves that may have been made, of items that no request is moving now.
    package var unknown: [Move] {
        if entries.isEmpty { return [] }
        return entries.values.filter { entry in
            entry.isUnknown && !entries.values.contains { $0.request != nil && $0.move.isOf(entry.move.item) }
        }.map(\.move)
    }

    package func isUnknown(_ move: Move) -> Bool {
        entries[move.key].map { $0.isUnknown && $0.request == nil } ?? false
    }

    package var inFlight: [(item: String, request: Tick)] {
        entries.values.compactMap { entry in entry.request.map { (entry.move.item, $0) } }
    }

    /// Whether an item is being moved, or may have been.
    package func mayMove(_ item: String) -> Bool {
        entries.values.contains { ($0.isUnknown || $0.request != nil) && $0.move.isOf(item) }
    }

    /// An item was found where a move would have brought it, or neither there nor where it was before.
    package mutating func settle(_ move: Move, isMade: Bool, at now: ContinuousClock.Instant) {
        guard let entry = entries[move.key], entry.request == nil else { return }
        if isMade {
            entries[move.key]?.isUnknown = false
            noteMade(move.key)
            // It was sent after those that are known to have been made: an acknowledged move drops all earlier ones.
            for (other, earlier) in entries
            where other != move.key && earlier.request == nil && earlier.move.isMade == true
                && earlier.move.isOf(move.item)
            { drop(other) }
        } else if entries.contains(where: { $0 != move.key && $1.isUnknown && $1.move.isOf(move.item) }) {
            // Another unknown move may have brought it to where this one takes it from.
            noteNotMade(move, at: now)
        } else {
            drop(move.key)
        }
    }

    /// A move had not been made when its item was looked for. The server may still make it for a while.
    package mutating func noteNotMade(_ move: Move, at now: ContinuousClock.Instant) {
        guard let entry = entries[move.key], entry.request == nil else { return }
        let limit = entry.lateUntil ?? now + Self.lateness
        if now > limit { drop(move.key) } else { entries[move.key]?.lateUntil = limit }
    }

    /// A move was made in part, and its item is wanted elsewhere.
    package mutating func giveUp(_ move: Move) {
        if entries[move.key]?.request == nil { drop(move.key) }
    }

    /// The system knows where an item is.
    package mutating func noteHeard(_ item: String) {
        for (key, entry) in entries where !entry.isUnknown && entry.request == nil && entry.move.isOf(item) {
            drop(key)
        }
    }
}
