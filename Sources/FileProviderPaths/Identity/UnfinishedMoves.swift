import FileProvider
import Synchronization

/// The interrupted moves of directories that are being finished.
final class UnfinishedMoves: Sendable {
    /// A directory, and where it is moved.
    struct Target: Hashable, Sendable {
        var directory: ItemIdentifier
        var place: PathMap.Place
    }

    private struct State {
        var running: [ItemIdentifier: Task<Void, any Error>] = [:]
        /// Those of which the remote refuses to move the rest.
        var refused: Set<Target> = []
    }

    private let state = Mutex(State())
    /// For how long a caller waits.
    private static let patience = Duration.seconds(5)

    func isRefused(_ move: Target) -> Bool { state.withLock { $0.refused.contains(move) } }

    func noteRefused(_ move: Target) { state.withLock { _ = $0.refused.insert(move) } }

    /// A move that was refused is tried once more, or is over.
    func allow(_ move: Target) { state.withLock { _ = $0.refused.remove(move) } }

    /// Finishes a move for all callers that ask for it meanwhile. Goes on when they are cancelled.
    ///
    /// - Throws: `providerDomainTemporarilyUnavailable` while it goes on, or if it was refused; what `body` throws.
    func finish(_ move: Target, _ body: @escaping @Sendable () async throws -> Void) async throws {
        let task = state.withLock { state in
            if let task = state.running[move.directory] { return task }
            let task = Task { [self] in
                defer { self.state.withLock { $0.running[move.directory] = nil } }
                try await notingRefusal(of: move, body)
            }
            state.running[move.directory] = task
            return task
        }
        guard let result = await task.result(within: Self.patience) else {
            try Task.checkCancellation()
            throw FileProviderError(
                .providerDomainTemporarilyUnavailable, "the interrupted renaming of a directory is being finished")
        }
        try result.get()
    }

    private func notingRefusal(of move: Target, _ body: () async throws -> Void) async throws {
        do {
            try await body()
        } catch let error as FileProviderError {
            if [.serverUnreachable, .notAuthenticated, .timedOut, .userCancelled].contains(error.code) { throw error }
            noteRefused(move)
            throw FileProviderError(
                .providerDomainTemporarilyUnavailable,
                "the interrupted renaming of a directory cannot be finished: \(error.message)")
        }
    }
}

extension PathTree {
    /// Moves the rest of a directory of which some is in either place: the rest would look like the directory, and what was
    /// moved like a new one.
    ///
    /// - Returns: whether there is nothing else to be found out about the move.
    func finish(
        _ move: LedgerState.Move, of parts: DirectoryParts, from: RemotePath, to target: RemotePath
    ) async throws -> Bool {
        guard let remote = remote as? any PartwiseRemote, let name = from.name,
            try await entry(at: from)?.kind == .directory, try await entry(at: target)?.kind == .directory
        else {
            paths.unfinished.allow(move.target)
            return false
        }
        if manager.domain.isReadOnly { paths.unfinished.noteRefused(move.target) }
        if paths.unfinished.isRefused(move.target) { return true }
        let directory = move.identifier
        let old = PathMap.Place(directory: try parent(of: directory, at: from), name: name)
        try await paths.unfinished.finish(move.target) { [self] in
            guard paths.isUnknown(move) else { return }
            // Listings that were requested before show both.
            try await paths.changing([old, move.place]) {
                try await remote.finishMove(of: parts, from: from, to: target)
            }
            let moved = try await entry(at: target)
            paths.settle(move, isMade: moved.map { mayBe($0, directory) } ?? false)
        }
        return true
    }
}

extension PathMap {
    /// Ends the refused moves of a directory to other places than the wanted one: what was moved stays there as another
    /// directory, and a later start does not move the rest after it.
    func giveUpMoves(of directory: ItemIdentifier, unlessTo wanted: Place) {
        for move in unknownMoves(of: directory) where move.place != wanted && unfinished.isRefused(move.target) {
            giveUp(move)
            unfinished.allow(move.target)
        }
    }
}

extension LedgerState.Move {
    var target: UnfinishedMoves.Target { UnfinishedMoves.Target(directory: identifier, place: place) }
}
