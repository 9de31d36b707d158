import HTTPTransport
import Synchronization

/// What the server has acknowledged lately: the keys that were written or deleted, in the order of their bytes.
///
/// The listings of some servers lag behind what they have answered: OpenStack Swift gives an older one when it is busy. What
/// was acknowledged is true all the same, and the object itself is the witness.
final class RecentAnswers: Sendable {
    struct Change: Sendable {
        enum Outcome: Sendable, Hashable {
            /// With a tag, in quotes, where the answer said which.
            case written(tag: String?)
            case deleted
        }

        var key: String
        var outcome: Outcome
        var at: ContinuousClock.Instant
    }

    private struct State {
        var changes: [Change] = []
        var sweepAt = 1000
        var hasLagged = false
    }

    private let state = Mutex(State())
    /// How far a listing may lag behind: Swift brings what it could not note at once up to date every five minutes.
    private static let memory = Duration.seconds(600)
    /// And how far while more is changed than is held for so long.
    private static let shortMemory = Duration.seconds(60)
    private static let most = 50_000

    func note(_ key: String, _ outcome: Change.Outcome) {
        let now = ContinuousClock.now
        state.withLock { state in
            if state.changes.count >= state.sweepAt {
                state.changes.removeAll { now - $0.at > Self.memory }
                if state.changes.count >= Self.most { state.changes.removeAll { now - $0.at > Self.shortMemory } }
                state.sweepAt = max(1000, 2 * state.changes.count)
            }
            let change = Change(key: key, outcome: outcome, at: now)
            let index = state.changes.position(of: key, by: \.key)
            if index < state.changes.count, state.changes[index].key.utf8.elementsEqual(key.utf8) {
                state.changes[index] = change
            } else {
                state.changes.insert(change, at: index)
            }
        }
    }

    /// Whether the last change of a key has written what has a tag.
    func says(_ key: String, hasTag tag: String) -> Bool {
        state.withLock { state in
            let index = state.changes.position(of: key, by: \.key)
            guard index < state.changes.count, state.changes[index].key.utf8.elementsEqual(key.utf8),
                case .written(let written?) = state.changes[index].outcome
            else { return false }
            return written == tag
        }
    }

    /// What was changed below a prefix.
    func changes(below prefix: String) -> [Change] {
        let now = ContinuousClock.now
        return state.withLock { state in
            var found: [Change] = []
            for change in state.changes[state.changes.position(of: prefix, by: \.key)...] {
                guard change.key.utf8.starts(with: prefix.utf8) else { break }
                if now - change.at <= Self.memory { found.append(change) }
            }
            return found
        }
    }

    /// Somebody else has changed it since.
    func forget(_ change: Change) {
        state.withLock { state in
            let index = state.changes.position(of: change.key, by: \.key)
            guard index < state.changes.count, state.changes[index].at == change.at,
                state.changes[index].key.utf8.elementsEqual(change.key.utf8)
            else { return }
            state.changes.remove(at: index)
        }
    }

    /// A listing was older than an answer.
    func noteLag() { state.withLock { $0.hasLagged = true } }

    /// Whether this server's listings have been seen to lag.
    var hasLagged: Bool { state.withLock { $0.hasLagged } }
}

extension S3Client {
    /// A listing as it has to be after what was acknowledged: where it says otherwise, the object itself is asked for.
    ///
    /// - Parameter isFirst: whether it begins with the prefix.
    func current(_ listing: S3Listing, prefix: String, isFlat: Bool, isFirst: Bool) async throws -> S3Listing {
        let changes = recent.changes(below: prefix)
        if changes.isEmpty { return listing }
        var listing = listing
        var looked: Set<String> = []
        let (first, last) = (listing.entries.first?.key, listing.entries.last?.key)
        for change in changes {
            // What another part of the listing is about.
            if listing.next != nil, last.map({ $0.utf8.lexicographicallyPrecedes(change.key.utf8) }) ?? true {
                continue
            }
            if !isFirst, first.map({ change.key.utf8.lexicographicallyPrecedes($0.utf8) }) ?? true { continue }
            let rest = change.key.utf8.dropFirst(prefix.utf8.count)
            if !isFlat, let slash = rest.firstIndex(of: UInt8(ascii: "/")) {
                let below = prefix + String(decoding: Array(rest[...slash]), as: UTF8.self)
                if looked.insert(below).inserted { try await put(change, of: below, right: &listing) }
                continue
            }
            let index = listing.index(of: change.key)
            var shown: S3Object?
            if let index, case .object(let object) = listing.entries[index] { shown = object }
            switch change.outcome {
            case .written(let tag): if let shown, tag == nil || tag == shown.tag { continue }
            case .deleted: if shown == nil { continue }
            }
            let present = try await object(change.key)
            if present?.tag == shown?.tag, present?.size == shown?.size {
                recent.forget(change)
                continue
            }
            if listsOtherTags, let shown, shown.size == present?.size,
                change.outcome == .written(tag: present?.tag)
            {
                // It is what was written, by the ETag under which this server lists it.
                recent.note(change.key, .written(tag: shown.tag))
                continue
            }
            recent.noteLag()
            if let index { listing.entries.remove(at: index) }
            if let present { listing.insert(.object(present)) }
        }
        return listing
    }

    /// Shows what begins many keys where one of them was written, and does not where all are gone.
    private func put(_ change: RecentAnswers.Change, of below: String, right listing: inout S3Listing) async throws {
        let index = listing.index(of: below)
        // That nothing is left of what is shown costs a question each time: it is asked where there was reason to.
        if index != nil, change.outcome != .deleted || !recent.hasLagged { return }
        if index == nil, change.outcome == .deleted { return }
        let isThere = try await !list(prefix: below, isFlat: true).entries.isEmpty
        if isThere == (index != nil) { return }
        recent.noteLag()
        if let index { listing.entries.remove(at: index) } else { listing.insert(.prefix(below)) }
    }

    /// An object as it is just now, without its date; nil when there is none.
    func object(_ key: String) async throws -> S3Object? {
        do {
            return S3Object(key: key, head: try await send { self.request("HEAD", key) }.head)
        } catch let failure as S3Failure where failure.status == 404 && failure.code != "NoSuchBucket" {
            return nil
        }
    }
}

extension S3Listing {
    fileprivate mutating func insert(_ entry: Entry) {
        entries.insert(entry, at: entries.position(of: entry.key, by: \.key))
    }

    fileprivate func index(of key: String) -> Int? {
        let position = entries.position(of: key, by: \.key)
        return position < entries.count && entries[position].key.utf8.elementsEqual(key.utf8) ? position : nil
    }
}

extension Array {
    /// Where a key is in the order of the keys' bytes, or would be.
    fileprivate func position(of key: String, by path: KeyPath<Element, String>) -> Int {
        var (low, high) = (0, count)
        while low < high {
            let middle = (low + high) / 2
            let isBefore = self[middle][keyPath: path].utf8.lexicographicallyPrecedes(key.utf8)
            if isBefore { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
