import FileProvider
import Synchronization

/// Maps items to paths that the system does not know yet: this provider has moved them, or has seen that another client did.
/// It is small, and an entry is dropped when the system has heard of it. Moves outlive the process in the ledger: until the
/// system has heard of one, the item may be at either path.
final class PathMap: Sendable {
    /// A name in a directory.
    struct Place: Hashable, Sendable {
        var directory: ItemIdentifier
        var name: String

        static func == (one: Place, other: Place) -> Bool {
            one.directory == other.directory && one.name.utf8.elementsEqual(other.name.utf8)
        }

        func hash(into hasher: inout Hasher) {
            hasher.combine(directory)
            for byte in name.utf8 { hasher.combine(byte) }
        }

        /// The path in the ledger: names hold no zero byte.
        fileprivate var ledgerPath: String { directory.rawValue + "\0" + name }
    }

    /// What the system knows of a move.
    private enum News {
        case unheard
        /// It knows the item in the new place.
        case heard
        /// The item was removed, or the deadline has passed.
        case over
    }

    private struct State {
        var moves = Moves()
        /// When the entries that the system has heard of are dropped next, if there are many entries.
        var nextSweep = ContinuousClock.now
        var written: [ItemIdentifier: (version: [UInt8], deadline: ContinuousClock.Instant)] = [:]
        var minted: [Place: ItemIdentifier] = [:]
        var vanished: Set<[UInt8]> = []
    }

    let unfinished = UnfinishedMoves()
    private let ledger: OperationLedger
    private let state = Mutex(State())
    private let manager: any FileProviderManager
    /// How long an entry from a listing is kept of which the system does not hear: a response may get lost.
    private let patience: Duration
    private static let deepest = 64
    private static let mostEntries = 4096
    /// So many moves are examined each time: a move takes two queries.
    private static let few = 16

    /// - Parameter ledger: the operations on names, by directory and name.
    init(manager: any FileProviderManager, ledger: OperationLedger, patience: Duration = .seconds(120)) {
        self.manager = manager
        self.ledger = ledger
        self.patience = patience
    }

    // MARK: - Paths

    /// Where an item is on the remote; nil when that is not known.
    func path(of identifier: ItemIdentifier) -> RemotePath? {
        if state.withLock({ $0.moves.byItem.isEmpty }) {
            return manager.remotePath(of: identifier).map(RemotePath.init)
        }
        forgetHeard()
        var heard: Set<ItemIdentifier> = []
        return path(of: identifier, after: state.withLock { $0.moves }, &heard, depth: 0)
    }

    /// - Parameters:
    ///   - moves: as they were before the system is asked: one of which it hears meanwhile must not be missing.
    ///   - heard: the items of those that do not count any more.
    private func path(
        of identifier: ItemIdentifier, after moves: Moves, _ heard: inout Set<ItemIdentifier>, depth: Int
    ) -> RemotePath? {
        guard depth < Self.deepest else { return nil }
        if let move = moves.byItem[identifier], news(of: identifier, move) == .unheard {
            return path(of: move.to.directory, after: moves, &heard, depth: depth + 1)?.appending(move.to.name)
        }
        while let names = manager.remotePath(of: identifier) {
            let path = RemotePath(names)
            guard let (above, move) = moves.deepest(above: path, besides: heard) else { return path }
            if news(of: above, move) == .unheard {
                let top = self.path(of: move.to.directory, after: moves, &heard, depth: depth + 1)?
                    .appending(move.to.name)
                return top.map { RemotePath($0.names + names.dropFirst(move.from.names.count)) } ?? path
            }
            // The names may be older than what the system has heard.
            heard.insert(above)
        }
        return nil
    }

    private func news(of identifier: ItemIdentifier, _ move: Move) -> News {
        if manager.identifier(ofChildNamed: move.to.name, in: move.to.directory) == identifier { return .heard }
        if let deadline = move.deadline, ContinuousClock.now > deadline { return .over }
        // A removed item has no path: what comes there next is another item.
        return manager.knownIdentifiers(among: [identifier]).isEmpty ? .over : .unheard
    }

    /// Drops the entries that the system has heard of.
    ///
    /// - Parameter isListing: whether a listing is about to show items in other places. Otherwise many entries are examined only
    ///   once a second: each answer examines those that it depends on.
    func forgetHeard(isListing: Bool = false) {
        let now = ContinuousClock.now
        let moves = state.withLock { state -> [ItemIdentifier: Move] in
            guard isListing || state.moves.byItem.count <= Self.few || now >= state.nextSweep else { return [:] }
            state.nextSweep = now + .seconds(1)
            return state.moves.byItem
        }
        for (identifier, move) in moves where news(of: identifier, move) != .unheard {
            let isDropped = state.withLock { state in
                guard state.moves.byItem[identifier]?.to == move.to else { return false }
                state.moves.remove(identifier)
                return true
            }
            if isDropped { ledger.noteHeard(identifier.rawValue) }
        }
    }

    /// The item that was moved to a place, or is new there, and that the system does not know to be there.
    func identifier(at place: Place) -> ItemIdentifier? {
        let (moved, minted) = state.withLock { ($0.moves.items(at: place), $0.minted[place]) }
        // One of which the system has heard in the meantime is there, too.
        if let there = moved.first(where: { news(of: $0.item, $0.move) != .over }) { return there.item }
        // Since the system heard of it, it may have been moved away or removed: what is there now is another item.
        guard let minted, !hasMoved(minted, from: place) else { return nil }
        let known = manager.identifier(ofChildNamed: place.name, in: place.directory)
        if known == minted { return minted }
        guard manager.knownIdentifiers(among: [minted]).isEmpty else { return nil }
        // An item of the same kind that is known there and was not moved away is the one that is there.
        guard let known, !hasMoved(known, from: place),
            MintedIdentifier.kind(of: known) == MintedIdentifier.kind(of: minted)
        else { return minted }
        return nil
    }

    /// Whether an item was moved, is being moved, or may have been, and the system does not know where to.
    func isMoving(_ identifier: ItemIdentifier) -> Bool {
        move(of: identifier).map { news(of: identifier, $0) == .unheard } ?? false || mayMove(identifier)
    }

    /// Whether an item is being moved, or may have been by a request without a response.
    func mayMove(_ identifier: ItemIdentifier) -> Bool { ledger.moves.mayMove(identifier.rawValue) }

    private func move(of identifier: ItemIdentifier) -> Move? { state.withLock { $0.moves.byItem[identifier] } }

    /// Where an item was moved that the system knows elsewhere, or knew just now.
    func place(of identifier: ItemIdentifier) -> Place? {
        guard let found = move(of: identifier), news(of: identifier, found) != .over else { return nil }
        return found.to
    }

    /// Whether something was moved into a directory, and the system does not know that.
    func holdsUnheard(_ directory: ItemIdentifier) -> Bool {
        let moves = state.withLock { $0.moves.byItem.filter { $0.value.to.directory == directory } }
        return moves.contains { news(of: $0.key, $0.value) == .unheard }
    }

    /// Whether an item is known to be elsewhere than in a place.
    func hasMoved(_ identifier: ItemIdentifier, from place: Place) -> Bool {
        self.place(of: identifier).map { $0 != place } ?? false
    }

    /// An item is in another place than the system knows.
    ///
    /// - Parameters:
    ///   - path: where the system knows it.
    ///   - isMadeHere: whether this provider has moved it.
    func noteSeen(
        _ identifier: ItemIdentifier, from path: RemotePath, at place: Place, isMadeHere: Bool = false
    ) {
        let unheard = move(of: identifier).flatMap { news(of: identifier, $0) == .unheard ? $0 : nil }
        let new = Move(from: unheard?.from ?? path, to: place, deadline: isMadeHere ? nil : .now + patience)
        state.withLock { $0.moves.insert(new, of: identifier) }
    }

    /// An identifier that was not the first choice for its place: the next listing has to choose the same.
    func noteMinted(_ identifier: ItemIdentifier, at place: Place) {
        state.withLock { state in
            if state.minted.count > Self.mostEntries { state.minted = [:] }
            state.minted[place] = identifier
        }
    }

    // MARK: - Changes made here

    /// Moves an item, and knows where it is as soon as it is there.
    ///
    /// - Parameters:
    ///   - tag: of its content; empty for a directory.
    ///   - parts: of a directory that the remote moves part by part.
    /// - Throws: what `body` throws; before `body` is called, what the store throws where the move needs its record.
    func moving<Value: Sendable>(
        _ identifier: ItemIdentifier, tag: [UInt8], parts: DirectoryParts? = nil, from path: RemotePath, at old: Place,
        to new: Place, _ body: () async throws -> Value
    ) async throws -> Value {
        let move = LedgerState.Move(
            item: identifier.rawValue, tag: tag, directory: new.directory.rawValue, name: new.name, parts: parts)
        return try await sending([old, new], making: move) {
            if parts != nil { try await OperationLedger.preparing { try ledger.keep(move) } }
            state.withLock { $0.minted[new] = nil }
            let value = try await body()
            noteSeen(identifier, from: path, at: new, isMadeHere: true)
            return value
        }
    }

    /// Changes what has these names. Listings that were requested before the change has ended are stale there.
    func changing<Value: Sendable>(_ places: [Place], _ body: () async throws -> Value) async throws -> Value {
        try await sending(places, making: nil, body)
    }

    private func sending<Value: Sendable>(
        _ places: [Place], making move: LedgerState.Move?, _ body: () async throws -> Value
    ) async throws -> Value {
        let request = ledger.send(places.map(\.ledgerPath), making: move)
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
        let stale = try await ledger.staleness(of: .below(prefix), requestedAt: tick, atMost: patience)
        guard let stale else { throw FileProviderError(.pageExpired) }
        let names = stale.map { String(decoding: $0.path.dropFirst(prefix.utf8.count), as: UTF8.self) }
        return Set(names.map { Place(directory: directory, name: $0) })
    }

    /// Waits until no move is in flight of an item, or of a directory, that a path leads through.
    ///
    /// - Returns: false when one goes on for long: then the path says nothing of its item.
    func waitForMoves(over path: RemotePath) async throws -> Bool {
        let deadline = ContinuousClock.now + patience
        while ContinuousClock.now < deadline {
            let requests = ledger.moves.inFlight.filter { item, _ in
                self.path(of: ItemIdentifier(item)).map { path == $0 || path.isBelow($0) } ?? false
            }
            if requests.isEmpty { return true }
            guard try await ledger.wait(until: Set(requests.map(\.request)), atMost: deadline - .now) else { break }
        }
        return false
    }

    // MARK: - Unknown moves

    /// The moves near a path that may have been made, with where the item was and where it is then.
    ///
    /// A directory that the remote refuses to move further is what either place shows, until one of them is missing.
    ///
    /// - Parameters:
    ///   - isTree: whether all that is below the path is near.
    ///   - isMissing: whether a path was found to be missing.
    func unknownMoves(
        near path: RemotePath, isTree: Bool = false, isMissing: (RemotePath) -> Bool = { _ in false }
    ) -> [(move: LedgerState.Move, from: RemotePath, target: RemotePath)] {
        ledger.moves.unknown.compactMap { move -> (LedgerState.Move, RemotePath, RemotePath)? in
            // Either directory may have been moved since.
            guard let from = self.path(of: move.identifier),
                let target = self.path(of: move.place.directory)?.appending(move.name), from != target
            else {
                ledger.settle(move, isMade: false)
                return nil
            }
            let isNear = [from, target].contains {
                path == $0 || path.isBelow($0) || path == $0.parent || isTree && $0.isBelow(path)
            }
            if !isNear || unfinished.isRefused(move.target) && !isMissing(from) && !isMissing(target) { return nil }
            return (move, from, target)
        }
    }

    func unknownMoves(to place: Place) -> [LedgerState.Move] {
        ledger.moves.unknown.filter { $0.place == place && !unfinished.isRefused($0.target) }
    }

    func unknownMoves(of item: ItemIdentifier) -> [LedgerState.Move] {
        ledger.moves.unknown.filter { $0.identifier == item }
    }

    func isUnknown(_ move: LedgerState.Move) -> Bool { ledger.moves.isUnknown(move) }

    /// Whether the system knows another item in the place to which a move leads, which has not left it.
    func isOfAnother(_ move: LedgerState.Move) -> Bool {
        let known = manager.identifier(ofChildNamed: move.name, in: move.place.directory)
        return known.map { $0 != move.identifier && !isMoving($0) } ?? false
    }

    func noteNotMade(_ move: LedgerState.Move) { ledger.noteNotMade(move) }

    func giveUp(_ move: LedgerState.Move) { ledger.giveUp(move) }

    /// An unknown move was found to have been made; or neither was the item where it was, nor is it in the new place.
    func settle(_ move: LedgerState.Move, isMade: Bool) {
        if isMade, let known = manager.remotePath(of: move.identifier).map(RemotePath.init) {
            noteSeen(move.identifier, from: known, at: move.place, isMadeHere: true)
            ledger.settle(move, isMade: true)
        } else {
            ledger.settle(move, isMade: false)
        }
    }

    // MARK: - Written contents

    /// An item got its content from this provider: it is not in doubt although it is new. Kept until the system has
    /// recorded the answer.
    func noteWritten(_ identifier: ItemIdentifier, version: [UInt8]) {
        let now = ContinuousClock.now
        state.withLock { state in
            if state.written.count > Self.mostEntries {
                state.written = state.written.filter { $0.value.deadline > now }
            }
            state.written[identifier] = (version, now + patience)
        }
    }

    /// A file was to be deleted and was not where it was known: another client may have renamed it.
    ///
    /// - Parameter version: the one of its settled tag.
    func noteVanished(version: [UInt8]) {
        state.withLock { state in
            if state.vanished.count >= Self.mostEntries { state.vanished = [] }
            state.vanished.insert(version)
        }
    }

    func hasVanished(version: [UInt8]) -> Bool { state.withLock { $0.vanished.contains(version) } }

    func wrote(_ identifier: ItemIdentifier, version: [UInt8]) -> Bool {
        state.withLock { $0.written[identifier]?.version == version }
            || manager.knownVersion(of: identifier)?.contentVersion == version
    }
}

extension LedgerState.Move {
    var identifier: ItemIdentifier { ItemIdentifier(item) }
    var place: PathMap.Place { PathMap.Place(directory: ItemIdentifier(directory), name: name) }
}
