import FileProvider
import Synchronization

/// The tree of a remote that knows its items by path alone, with the items that the system knows in it.
final class PathTree: Sendable {
    let remote: any PathRemote
    let manager: any FileProviderManager
    let paths: PathMap
    let identities: PathIdentities
    let items: PathItems
    let renamed = RenamedItems()
    private let rootCheck = SharedRequest<Void>()
    private static let mostTries = 3
    private let areTagsKeptElsewhere = Atomic(false)

    /// Whether a file has kept its tag in a move to another directory: no such move is a copy then.
    var keepsTagsElsewhere: Bool { areTagsKeptElsewhere.load(ordering: .relaxed) }

    func noteTagKeptElsewhere() { areTagsKeptElsewhere.store(true, ordering: .relaxed) }

    /// - Parameter patience: how long a call waits for a move in flight.
    init(
        remote: any PathRemote, manager: any FileProviderManager, ledger: OperationLedger,
        patience: Duration = .seconds(120)
    ) {
        self.remote = remote
        self.manager = manager
        paths = PathMap(manager: manager, ledger: ledger, patience: patience)
        identities = PathIdentities(remote: remote, manager: manager, paths: paths)
        items = PathItems(paths: paths, traits: { remote.traits })
    }

    // MARK: - Paths

    /// Does something with the path of an item, once more where that turns out to have changed meanwhile.
    ///
    /// - Parameters:
    ///   - isSearched: whether an item that is not at its path is looked for under other names.
    ///   - isTree: whether all that is below the item is concerned as well.
    /// - Throws: `noSuchItem` for the item; `serverUnreachable` when the root itself is not there: then nothing is known of
    ///   what should be in it.
    func locate<Value: Sendable>(
        _ identifier: ItemIdentifier, isSearched: Bool = true, isTree: Bool = false,
        _ body: (RemotePath) async throws -> Value
    ) async throws -> Value {
        guard var path = paths.path(of: identifier) else { throw FileProviderError.noSuchItem(identifier) }
        try await settleMoves(near: path, isTree: isTree)
        path = paths.path(of: identifier) ?? path
        var tries = 1
        while true {
            do {
                return try await body(path)
            } catch let error as FileProviderError where error.code == .noSuchItem {
                if identifier == .rootContainer {
                    try await checkRoot()
                    throw error
                }
                guard try await paths.waitForMoves(over: path) else {
                    throw FileProviderError(
                        .providerDomainTemporarilyUnavailable, "'\(path.name ?? "/")' is being moved")
                }
                // A move that has ended meanwhile without a response may have been made.
                try await settleMoves(near: path, isTree: isTree) { [path] in $0 == path || path.isBelow($0) }
                if isSearched, tries == 1, paths.path(of: identifier) == path {
                    try await searchRenamed(identifier, at: path)
                }
                guard tries < Self.mostTries, let now = paths.path(of: identifier), now != path else {
                    try await checkRoot()
                    throw FileProviderError.noSuchItem(identifier)
                }
                path = now
                tries += 1
            }
        }
    }

    /// Asks whether the root is there before anything in it is reported as removed: a collection may have been moved away, or
    /// a bucket removed.
    ///
    /// - Throws: `serverUnreachable` when it is not there; what the remote throws.
    private func checkRoot() async throws {
        try await rootCheck { [self] in
            guard let root = try await entry(at: .root) else {
                throw FileProviderError(.serverUnreachable, "'\(manager.domain.source)' is not there on the remote")
            }
            guard root.kind == .directory else { throw Self.noDirectory(manager.domain.source) }
        }
    }

    private static func noDirectory(_ source: String) -> FileProviderError {
        FileProviderError(.serverUnreachable, "'\(source)' is no directory on the remote")
    }

    /// Finds out what became of the unknown moves near a path, before anything is reported or changed there: at the old path
    /// a moved item looks removed.
    ///
    /// - Parameters:
    ///   - isTree: whether all that is below the path is concerned as well.
    ///   - isMissing: whether a path was found to be missing.
    /// - Throws: what the remote throws; `providerDomainTemporarilyUnavailable` while the rest of a directory is being moved.
    func settleMoves(
        near path: RemotePath, isTree: Bool = false, isMissing: (RemotePath) -> Bool = { _ in false }
    ) async throws {
        for (move, from, target) in paths.unknownMoves(near: path, isTree: isTree, isMissing: isMissing) {
            // A later move of the item may have been found meanwhile.
            guard paths.isUnknown(move) else { continue }
            // A move that was acknowledged needs no proof by the tag: the content that was written in the new place since may
            // have had no response.
            if move.isMade == true, !paths.isOfAnother(move), let moved = try await entry(at: target),
                mayBe(moved, move.identifier)
            {
                paths.settle(move, isMade: true)
                continue
            }
            if let parts = move.parts, try await finish(move, of: parts, from: from, to: target) { continue }
            if let there = try await entry(at: from), mayBe(there, move.identifier) {
                paths.noteNotMade(move)
                continue
            }
            let moved = try await entry(at: target)
            paths.settle(move, isMade: moved.map { isResult($0, of: move) } ?? false)
        }
    }

    private func isResult(_ entry: RemoteEntry, of move: LedgerState.Move) -> Bool {
        mayBe(entry, move.identifier) && (entry.kind != .file || entry.tag == move.tag || !entry.isTagStrong)
    }

    /// Whether an entry may be there by a move of which it is not known whether it was made.
    func mayHaveBrought(_ entry: RemoteEntry, to place: PathMap.Place) -> Bool {
        paths.unknownMoves(to: place).contains { isResult(entry, of: $0) }
    }

    // MARK: - Entries

    /// - Returns: nil when nothing is there.
    func entry(at path: RemotePath) async throws -> RemoteEntry? {
        try await ifExists { try await remote.entry(at: path) }
    }

    /// An entry as the item that is known to be there.
    ///
    /// - Throws: `noSuchItem` when it is another item.
    func item(
        _ entry: RemoteEntry, as identifier: ItemIdentifier, at path: RemotePath
    ) throws -> FileProviderItem {
        if identifier == .rootContainer {
            guard entry.kind == .directory else { throw Self.noDirectory(manager.domain.source) }
            return items.item(entry, as: identifier, in: .rootContainer)
        }
        guard mayBe(entry, identifier) else { throw FileProviderError.noSuchItem(identifier) }
        return items.item(entry, as: identifier, in: try parent(of: identifier, at: path))
    }

    /// Whether an entry where an item should be can be that item.
    func mayBe(_ entry: RemoteEntry, _ identifier: ItemIdentifier) -> Bool {
        if MintedIdentifier.isRemote(identifier) { return entry.remoteIdentifier == identifier }
        return MintedIdentifier.kind(of: identifier) == entry.kind && entry.stableIdentifier == nil
    }

    /// The identifier of the directory that holds an item, which lies at a path.
    func parent(of identifier: ItemIdentifier, at path: RemotePath) throws -> ItemIdentifier {
        if let place = paths.place(of: identifier) { return place.directory }
        var directory = ItemIdentifier.rootContainer
        let known = manager.remotePath(of: identifier) ?? path.names
        for name in known.dropLast() {
            guard let next = manager.identifier(ofChildNamed: name, in: directory) else {
                throw FileProviderError.noSuchItem(identifier)
            }
            directory = next
        }
        return directory
    }

    /// Whether no other item is what listings show in the place of this one: of two that came to be known there, one was
    /// removed.
    func isOwner(_ identifier: ItemIdentifier, of item: FileProviderItem) -> Bool {
        if identifier == .rootContainer || MintedIdentifier.isRemote(identifier) { return true }
        let place = PathMap.Place(directory: item.parentItemIdentifier, name: item.filename)
        let owner =
            paths.identifier(at: place) ?? manager.identifier(ofChildNamed: place.name, in: place.directory)
        return owner.map { $0 == identifier || MintedIdentifier.kind(of: $0) != item.kind } ?? true
    }
}
