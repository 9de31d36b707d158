import FileProvider
import Synchronization

/// Maps items to paths that the system does not know yet: this provider is moving them, or has seen that another client did.
/// It is small, and an entry is dropped when the system has heard of it. Moves outlive the process: until the system has
/// heard of one, the item may be at either path.
final class PathMap: Sendable {
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
        /// The request in flight; nil when the item has been moved.
        var request: LedgerState.Tick?
        var deadline: ContinuousClock.Instant

        var isUnderWay: Bool { request != nil }
    }

    private struct State {
        var moves: [ItemIdentifier: Move] = [:]
        var written: [ItemIdentifier: (version: [UInt8], deadline: ContinuousClock.Instant)] = [:]
        var minted: [Place: ItemIdentifier] = [:]
        var unknown: [ItemIdentifier: UnknownMove] = [:]
    }

    /// The operations on names, by directory and name.
    let ledger: OperationLedger
    private let state: Mutex<State>
    private let manager: any FileProviderManager
    private let kept: SurvivingRecords<UnknownMove>
    /// How long anything is kept that the system does not come to know: an answer may get lost.
    private static let patience = Duration.seconds(120)
    private static let deepest = 64
    private static let mostEntries = 4096

    init(manager: any FileProviderManager) {
        self.manager = manager
        var settings = LedgerState.Settings()
        // A listing of a large directory takes long, and what it is compared with must not be forgotten before its end.
        (settings.memory, settings.shortMemory) = (.seconds(3600), .seconds(600))
        ledger = OperationLedger(settings)
        kept = SurvivingRecords("moving", in: ReportingStore(of: manager))
        var state = State()
        for (_, move) in kept.all { state.unknown[move.identifier] = move }
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
                return state.unknown[identifier] == nil
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
        note(identifier, Move(from: path, to: place, deadline: .now + Self.patience))
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
        let request = ledger.send([old.ledgerPath, new.ledgerPath])
        var outcome = LedgerState.Outcome.refused
        defer { ledger.end(request, outcome) }
        var move = Move(from: before?.from ?? path, to: new, request: request, deadline: .now + Self.patience)
        note(identifier, move)
        state.withLock { $0.minted[new] = nil }
        let unknown = UnknownMove(identifier: identifier, tag: tag, to: new)
        kept.set(Self.key(identifier), unknown)
        do {
            let value = try await body()
            (move.request, move.deadline) = (nil, .now + Self.patience)
            note(identifier, move)
            state.withLock { $0.unknown[identifier] = nil }
            outcome = .acknowledged(.changed)
            return value
        } catch {
            if OperationLedger.isOutcomeUnknown(after: error) { outcome = .unknown(.changed) }
            let known = state.withLock { state -> UnknownMove? in
                state.moves[identifier] = before
                guard OperationLedger.isOutcomeUnknown(after: error) else { return state.unknown[identifier] }
                if state.unknown.count > Self.mostEntries { state.unknown = [:] }
                state.unknown[identifier] = unknown
                return unknown
            }
            if let known {
                kept.set(Self.key(identifier), known)
            } else if let before {
                kept.set(Self.key(identifier), UnknownMove(identifier: identifier, tag: tag, to: before.to))
            } else {
                kept.remove(Self.key(identifier))
            }
            throw error
        }
    }

    // MARK: - Unknown moves

    /// Renamings near a path that may have been made, or not, with where the item was and where it is then.
    func unknownMoves(near path: RemotePath) -> [(move: UnknownMove, from: RemotePath, target: RemotePath)] {
        let all = state.withLock { state in
            state.unknown.isEmpty
                ? [] : state.unknown.values.filter { state.moves[$0.identifier]?.isUnderWay != true }
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
    func isUnknown(_ identifier: ItemIdentifier) -> Bool { state.withLock { $0.unknown[identifier] != nil } }

    /// It is known now what became of a renaming.
    func forget(_ move: UnknownMove) {
        let isOver = state.withLock { state in
            guard state.unknown[move.identifier]?.to == move.to else { return false }
            state.unknown[move.identifier] = nil
            return state.moves[move.identifier] == nil
        }
        if isOver { kept.remove(Self.key(move.identifier)) }
    }

    /// It was not made by now: for a while it may be yet, for what was sent may be on its way.
    func noteNotMade(_ move: UnknownMove) {
        let isOver = state.withLock { state -> Bool in
            guard state.unknown[move.identifier]?.to == move.to else { return false }
            let deadline = state.unknown[move.identifier]?.deadline ?? .now + Self.patience
            state.unknown[move.identifier]?.deadline = deadline
            return .now > deadline
        }
        if isOver { forget(move) }
    }

    /// Changes what has these names. Listings that were requested before the change has ended are stale there.
    func changing<Value: Sendable>(
        _ places: [Place], _ body: () async throws -> Value
    ) async throws -> Value {
        let request = ledger.send(places.map(\.ledgerPath))
        var outcome = LedgerState.Outcome.refused
        defer { ledger.end(request, outcome) }
        do {
            let value = try await body()
            outcome = .acknowledged(.changed)
            return value
        } catch {
            if OperationLedger.isOutcomeUnknown(after: error) { outcome = .unknown(.changed) }
            throw error
        }
    }

    /// The current tick, to ask later what was changed since.
    var now: LedgerState.Tick { ledger.now }

    /// The names in a directory of which an observation is stale, once the changes in flight there have ended.
    ///
    /// - Parameter tick: when the observation was requested.
    /// - Throws: `pageExpired` when so much was changed since that not all of it is remembered.
    func changed(in directory: ItemIdentifier, since tick: LedgerState.Tick) async throws -> Set<Place> {
        let prefix = Place(directory: directory, name: "").ledgerPath
        let stale = try await ledger.staleness(of: .below(prefix), requestedAt: tick, atMost: Self.patience)
        guard let stale else { throw FileProviderError(.pageExpired) }
        let names = stale.map { String(decoding: $0.path.dropFirst(prefix.utf8.count), as: UTF8.self) }
        return Set(names.map { Place(directory: directory, name: $0) })
    }

    /// Waits until no move is in flight of an item, or of a directory, that a path leads through.
    func waitForMoves(over path: RemotePath) async throws {
        let deadline = ContinuousClock.now + Self.patience
        while ContinuousClock.now < deadline {
            let requests = state.withLock { state in
                state.moves.values.filter { path == $0.from || path.isBelow($0.from) }.compactMap(\.request)
            }
            if requests.isEmpty { return }
            guard try await ledger.wait(until: Set(requests), atMost: deadline - .now) else { return }
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

/// A move without a response: the server may have made it.
struct UnknownMove: Sendable, Codable {
    var identifier: ItemIdentifier
    /// What it held, or nothing for a directory.
    var tag: [UInt8]
    var to: PathMap.Place
    /// Until when the server may still make it, once it was seen that it has not.
    var deadline: ContinuousClock.Instant?

    /// What outlives the process.
    private enum CodingKeys: String, CodingKey { case identifier, tag, to }
}

extension PathMap.Place {
    /// The path in the ledger: names hold no zero byte.
    fileprivate var ledgerPath: String { directory.rawValue + "\0" + name }
}

extension RemotePath {
    /// Whether it leads through another path, and further.
    package func isBelow(_ other: RemotePath) -> Bool {
        names.count > other.names.count && RemotePath(Array(names.prefix(other.names.count))) == other
    }
}
