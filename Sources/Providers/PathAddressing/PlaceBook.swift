import FileProvider
import Synchronization

/// Where items are that the system does not know to be there yet: because this provider is just moving them, or has seen
/// that somebody did. It is small, and everything in it is forgotten when the system has heard of it. What was being moved
/// outlives the process: until the system knows better, it may be here or there.
final class PlaceBook: Sendable {
    /// A name in a directory.
    struct Place: Hashable, Sendable, Codable {
        var directory: ItemIdentifier
        var name: String

        static func == (one: Place, other: Place) -> Bool {
            one.directory == other.directory && one.name.utf8.elementsEqual(other.name.utf8)
        }

        func hash(into hasher: inout Hasher) {
            hasher.combine(directory)
            for byte in name.utf8 { hasher.combine(byte) }
        }
    }

    private struct Move {
        var from: RemotePath
        var to: Place
        var isUnderWay: Bool
        var deadline: ContinuousClock.Instant
    }

    private struct Touch {
        var place: Place
        /// Nil while it is under way.
        var endedAt: Int?
    }

    private struct State {
        var moves: [ItemIdentifier: Move] = [:]
        var touches: [Int: Touch] = [:]
        var clock = 0
        var written: [ItemIdentifier: (version: [UInt8], deadline: ContinuousClock.Instant)] = [:]
        var minted: [Place: ItemIdentifier] = [:]
        var uncertain: [ItemIdentifier: UncertainMove] = [:]
    }

    private let state: Mutex<State>
    private let manager: any FileProviderManager
    private let kept: SurvivingRecords<UncertainMove>
    /// How long anything is kept that the system does not come to know: an answer may get lost.
    private static let patience = Duration.seconds(120)
    private static let deepest = 64
    private static let mostEntries = 4096

    init(manager: any FileProviderManager) {
        self.manager = manager
        kept = SurvivingRecords("moving", in: ReportingStore(of: manager))
        var state = State()
        for (_, move) in kept.all { state.uncertain[move.identifier] = move }
        self.state = Mutex(state)
    }

    // MARK: - Paths

    /// Where an item is on the remote; nil when that is not known.
    func path(of identifier: ItemIdentifier) -> RemotePath? {
        if state.withLock({ $0.moves.isEmpty }) { return manager.remotePath(of: identifier).map(RemotePath.init) }
        forgetWhatIsKnown()
        return path(of: identifier, depth: 0)
    }

    private func path(of identifier: ItemIdentifier, depth: Int) -> RemotePath? {
        guard depth < Self.deepest else { return nil }
        let moves = state.withLock { $0.moves }
        if let move = moves[identifier], !move.isUnderWay {
            return path(of: move.to.directory, depth: depth + 1)?.appending(move.to.name)
        }
        guard let names = manager.remotePath(of: identifier) else { return nil }
        let path = RemotePath(names)
        // The directory farthest down that moved decides.
        let above = moves.filter { !$0.value.isUnderWay && path.isBelow($0.value.from) }
            .max { $0.value.from.names.count < $1.value.from.names.count }
        guard let above, let top = self.path(of: above.key, depth: depth + 1) else { return path }
        return RemotePath(top.names + names.dropFirst(above.value.from.names.count))
    }

    /// What the system has come to know need not be known here.
    private func forgetWhatIsKnown() {
        let now = ContinuousClock.now
        for (identifier, move) in state.withLock({ $0.moves }) where !move.isUnderWay {
            let isKnown =
                manager.identifier(ofChildNamed: move.to.name, in: move.to.directory) == identifier
                || now > move.deadline
                // What is gone has no place: the next who comes there is somebody else.
                || manager.knownIdentifiers(among: [identifier]).isEmpty
            guard isKnown else { continue }
            let isOver = state.withLock { state in
                guard state.moves[identifier]?.to == move.to else { return false }
                state.moves[identifier] = nil
                return state.uncertain[identifier] == nil
            }
            if isOver { kept.remove(Self.key(identifier)) }
        }
    }

    private static func key(_ identifier: ItemIdentifier) -> [UInt8] { Array(identifier.rawValue.utf8) }

    /// The item that was moved to a place, and that the system does not know to be there.
    func identifier(at place: Place) -> ItemIdentifier? {
        state.withLock { state in
            if state.moves.isEmpty { return state.minted[place] }
            return state.moves.first { $0.value.to == place && !$0.value.isUnderWay }?.key ?? state.minted[place]
        }
    }

    /// Whether an item was moved, or is being, and the system does not know where to.
    func isMoving(_ identifier: ItemIdentifier) -> Bool { state.withLock { $0.moves[identifier] != nil } }

    /// Where an item was moved that the system knows elsewhere.
    func place(of identifier: ItemIdentifier) -> Place? {
        state.withLock { $0.moves[identifier].flatMap { $0.isUnderWay ? nil : $0.to } }
    }

    /// Whether something was moved into a directory, and the system does not know that.
    func holdsUnheard(_ directory: ItemIdentifier) -> Bool {
        forgetWhatIsKnown()
        return state.withLock { state in
            state.moves.values.contains { $0.to.directory == directory && !$0.isUnderWay }
        }
    }

    /// Whether an item is known to be elsewhere than in a place.
    func hasMoved(_ identifier: ItemIdentifier, from place: Place) -> Bool {
        state.withLock { state in
            guard let move = state.moves[identifier], !move.isUnderWay else { return false }
            return move.to != place
        }
    }

    /// An item was seen in another place than the system knows.
    func noteSeen(_ identifier: ItemIdentifier, from path: RemotePath, at place: Place) {
        note(identifier, Move(from: path, to: place, isUnderWay: false, deadline: .now + Self.patience))
    }

    private func note(_ identifier: ItemIdentifier, _ move: Move) {
        state.withLock { state in
            if state.moves.count > Self.mostEntries { state.moves = state.moves.filter { $0.value.isUnderWay } }
            state.moves[identifier] = move
        }
    }

    /// An identifier that was not the first choice for its place: the next who looks has to choose the same.
    func noteMinted(_ identifier: ItemIdentifier, at place: Place) {
        state.withLock { state in
            if state.minted.count > Self.mostEntries { state.minted = [:] }
            state.minted[place] = identifier
        }
    }

    // MARK: - Changes of our own

    /// Moves an item, and knows where it is as soon as it is there.
    ///
    /// - Parameter tag: of what is moved.
    func moving<Value: Sendable>(
        _ identifier: ItemIdentifier, tag: [UInt8], from path: RemotePath, at old: Place, to new: Place,
        _ body: () async throws -> Value
    ) async throws -> Value {
        let before = state.withLock { $0.moves[identifier] }
        var move = Move(from: before?.from ?? path, to: new, isUnderWay: true, deadline: .now + Self.patience)
        note(identifier, move)
        state.withLock { $0.minted[new] = nil }
        let uncertain = UncertainMove(identifier: identifier, tag: tag, to: new)
        kept.set(Self.key(identifier), uncertain)
        do {
            let value = try await changing([old, new], body)
            (move.isUnderWay, move.deadline) = (false, .now + Self.patience)
            note(identifier, move)
            state.withLock { $0.uncertain[identifier] = nil }
            return value
        } catch {
            let known = state.withLock { state -> UncertainMove? in
                state.moves[identifier] = before
                guard UnansweredContents.isLeft(by: error) else { return state.uncertain[identifier] }
                if state.uncertain.count > Self.mostEntries { state.uncertain = [:] }
                state.uncertain[identifier] = uncertain
                return uncertain
            }
            if let known {
                kept.set(Self.key(identifier), known)
            } else if let before {
                kept.set(Self.key(identifier), UncertainMove(identifier: identifier, tag: tag, to: before.to))
            } else {
                kept.remove(Self.key(identifier))
            }
            throw error
        }
    }

    // MARK: - Lost answers

    /// Renamings near a path that may have been made, or not, with where the item was and where it is then.
    func uncertainMoves(near path: RemotePath) -> [(move: UncertainMove, from: RemotePath, target: RemotePath)] {
        let all = state.withLock { state in
            state.uncertain.isEmpty
                ? [] : state.uncertain.values.filter { state.moves[$0.identifier]?.isUnderWay != true }
        }
        return all.compactMap { move in
            // What holds either place may have been moved itself since.
            guard let from = self.path(of: move.identifier),
                let target = self.path(of: move.to.directory)?.appending(move.to.name), from != target
            else {
                forget(move)
                return nil
            }
            let isNear = [from, target].contains { path == $0 || path.isBelow($0) || path == $0.parent }
            return isNear ? (move, from, target) : nil
        }
    }

    /// Whether an item may have been moved by a call that had no answer.
    func isUncertain(_ identifier: ItemIdentifier) -> Bool { state.withLock { $0.uncertain[identifier] != nil } }

    /// It is known now what became of a renaming.
    func forget(_ move: UncertainMove) {
        let isOver = state.withLock { state in
            guard state.uncertain[move.identifier]?.to == move.to else { return false }
            state.uncertain[move.identifier] = nil
            return state.moves[move.identifier] == nil
        }
        if isOver { kept.remove(Self.key(move.identifier)) }
    }

    /// It was not made by now: for a while it may be yet, for what was sent may be on its way.
    func noteNotMade(_ move: UncertainMove) {
        let isOver = state.withLock { state -> Bool in
            guard state.uncertain[move.identifier]?.to == move.to else { return false }
            let deadline = state.uncertain[move.identifier]?.deadline ?? .now + Self.patience
            state.uncertain[move.identifier]?.deadline = deadline
            return .now > deadline
        }
        if isOver { forget(move) }
    }

    /// Changes what has these names: listings that were asked for before it is over are not believed about them.
    func changing<Value: Sendable>(
        _ places: [Place], _ body: () async throws -> Value
    ) async rethrows -> Value {
        let touches = state.withLock { state in
            places.map { place in
                state.clock += 1
                state.touches[state.clock] = Touch(place: place)
                return state.clock
            }
        }
        defer {
            state.withLock { state in
                state.clock += 1
                for touch in touches { state.touches[touch]?.endedAt = state.clock }
                if state.touches.count > Self.mostEntries {
                    let oldest = state.clock - Self.mostEntries
                    state.touches = state.touches.filter { $0.value.endedAt.map { $0 > oldest } ?? true }
                }
            }
        }
        return try await body()
    }

    /// A moment, to ask later what was changed since.
    var now: Int { state.withLock { $0.clock } }

    /// The names in a directory that were changed since a moment, by changes that are over now. Waits for those that are
    /// not, but for none that begins meanwhile: where one file after the other is written, there is always one.
    func changed(in directory: ItemIdentifier, since moment: Int) async throws -> Set<Place> {
        let latest = now
        func find() -> (places: Set<Place>, isOver: Bool) {
            state.withLock { state in
                var places: Set<Place> = []
                var isOver = true
                for (number, touch) in state.touches where touch.place.directory == directory {
                    guard let end = touch.endedAt else {
                        if number <= latest { isOver = false }
                        continue
                    }
                    if end > moment { places.insert(touch.place) }
                }
                return (places, isOver)
            }
        }
        let deadline = ContinuousClock.now + Self.patience
        while true {
            let found = find()
            if found.isOver || .now > deadline { return found.places }
            try await Task.sleep(for: .milliseconds(5))
        }
    }

    /// Waits until nothing is being moved that a path leads through.
    func waitForMoves(over path: RemotePath) async throws {
        let deadline = ContinuousClock.now + Self.patience
        while ContinuousClock.now < deadline {
            let isUnderWay = state.withLock { state in
                state.moves.values.contains { $0.isUnderWay && (path == $0.from || path.isBelow($0.from)) }
            }
            if !isUnderWay { return }
            try await Task.sleep(for: .milliseconds(5))
        }
    }

    // MARK: - What we wrote

    /// We gave an item its content: nobody need doubt it because it is so new.
    func noteWritten(_ identifier: ItemIdentifier, version: [UInt8]) {
        let now = ContinuousClock.now
        state.withLock { state in
            if state.written.count > Self.mostEntries {
                state.written = state.written.filter { $0.value.deadline > now }
            }
            state.written[identifier] = (version, now + Self.patience)
        }
    }

    func wrote(_ identifier: ItemIdentifier, version: [UInt8]) -> Bool {
        state.withLock { $0.written[identifier]?.version == version }
    }
}

extension RemotePath {
    /// Whether it leads through another path, and further.
    package func isBelow(_ other: RemotePath) -> Bool {
        names.count > other.names.count && RemotePath(Array(names.prefix(other.names.count))) == other
    }
}
