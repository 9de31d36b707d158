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

    private struct Move {
        /// Where the system knows the item.
        var from: RemotePath
        var to: Place
        /// When the entry is dropped although the system has not heard of it. Nil for a move made here: until its call
        /// succeeds, which may take any number of attempts, only this entry leads to the item.
        var deadline: ContinuousClock.Instant?
    }

    private struct State {
        var moves: [ItemIdentifier: Move] = [:]
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

    /// - Parameter ledger: the operations on names, by directory and name.
    init(manager: any FileProviderManager, ledger: OperationLedger, patience: Duration = .seconds(120)) {
        self.manager = manager
        self.ledger = ledger
        self.patience = patience
    }

    // MARK: - Paths

    /// Where an item is on the remote; nil when that is not known.
    func path(of identifier: ItemIdentifier) -> RemotePath? {
        if state.withLock({ $0.moves.isEmpty }) { return manager.remotePath(of: identifier).map(RemotePath.init) }
        forgetHeard()
        return path(of: identifier, after: state.withLock { $0.moves }, depth: 0)
    }

    private func path(
        of identifier: ItemIdentifier, after moves: [ItemIdentifier: Move], depth: Int
    ) -> RemotePath? {
        guard depth < Self.deepest else { return nil }
        if let move = moves[identifier] {
            return path(of: move.to.directory, after: moves, depth: depth + 1)?.appending(move.to.name)
        }
        guard let names = manager.remotePath(of: identifier) else { return nil }
        let path = RemotePath(names)
        // The deepest directory that was moved decides.
        let above = moves.filter { path.isBelow($0.value.from) }
            .max { $0.value.from.names.count < $1.value.from.names.count }
        guard let above, let top = self.path(of: above.key, after: moves, depth: depth + 1) else { return path }
        return RemotePath(top.names + names.dropFirst(above.value.from.names.count))
    }

    /// Drops the entries that the system has heard of.
    private func forgetHeard() {
        let now = ContinuousClock.now
        for (identifier, move) in state.withLock({ $0.moves }) {
            let isHeard =
                manager.identifier(ofChildNamed: move.to.name, in: move.to.directory) == identifier
                || move.deadline.map { now > $0 } ?? false
                // A removed item has no path: what comes there next is another item.
                || manager.knownIdentifiers(among: [identifier]).isEmpty
            guard isHeard else { continue }
            let isDropped = state.withLock { state in
                guard state.moves[identifier]?.to == move.to else { return false }
                state.moves[identifier] = nil
                return true
            }
            if isDropped { ledger.noteHeard(identifier.rawValue) }
        }
    }

    /// The item that was moved to a place, or is new there, and that the system does not know to be there.
    func identifier(at place: Place) -> ItemIdentifier? {
        let (moved, minted) = state.withLock { state in
            (state.moves.first { $0.value.to == place }?.key, state.minted[place])
        }
        if let moved { return moved }
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
        state.withLock { $0.moves[identifier] != nil } || mayMove(identifier)
    }

    /// Whether an item is being moved, or may have been by a request without a response.
    func mayMove(_ identifier: ItemIdentifier) -> Bool { ledger.moves.mayMove(identifier.rawValue) }

    /// Where an item was moved that the system knows elsewhere.
    func place(of identifier: ItemIdentifier) -> Place? { state.withLock { $0.moves[identifier]?.to } }

    /// Whether something was moved into a directory, and the system does not know that.
    func holdsUnheard(_ directory: ItemIdentifier) -> Bool {
        forgetHeard()
        return state.withLock { $0.moves.values.contains { $0.to.directory == directory } }
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
        state.withLock { state in
            if state.moves.count > Self.mostEntries { state.moves = [:] }
            let from = state.moves[identifier]?.from ?? path
            state.moves[identifier] = Move(from: from, to: place, deadline: isMadeHere ? nil : .now + patience)
        }
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
