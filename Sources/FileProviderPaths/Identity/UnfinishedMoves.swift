import FileProvider
import Synchronization

/// The interrupted moves of directories that are being finished.
final class UnfinishedMoves: Sendable {
    private struct State {
        var running: [ItemIdentifier: Task<Void, any Error>] = [:]
        /// The directories of which the remote refuses to move the rest.
        var refused: Set<ItemIdentifier> = []
    }

    private let state = Mutex(State())
    /// For how long a caller waits.
    private static let patience = Duration.seconds(5)

    func isRefused(_ directory: ItemIdentifier) -> Bool { state.withLock { $0.refused.contains(directory) } }

    /// A move that was refused is tried once more.
    func allow(_ directory: ItemIdentifier) { state.withLock { _ = $0.refused.remove(directory) } }

    /// Finishes a move for all callers that ask for it meanwhile. Goes on when they are cancelled.
    ///
    /// - Throws: `providerDomainTemporarilyUnavailable` while it goes on, or if it was refused; what `body` throws.
    func finish(_ directory: ItemIdentifier, _ body: @escaping @Sendable () async throws -> Void) async throws {
        let task = state.withLock { state in
            if let task = state.running[directory] { return task }
            let task = Task { [self] in
                defer { self.state.withLock { $0.running[directory] = nil } }
                try await notingRefusal(of: directory, body)
            }
            state.running[directory] = task
            return task
        }
        guard let result = await task.result(within: Self.patience) else {
            try Task.checkCancellation()
            throw FileProviderError(
                .providerDomainTemporarilyUnavailable, "the interrupted renaming of a directory is being finished")
        }
        try result.get()
    }

    private func notingRefusal(of directory: ItemIdentifier, _ body: () async throws -> Void) async throws {
        do {
            try await body()
        } catch let error as FileProviderError {
            if [.serverUnreachable, .notAuthenticated, .timedOut, .userCancelled].contains(error.code) { throw error }
            state.withLock { _ = $0.refused.insert(directory) }
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
        _ move: LedgerState.Move, of parts: [UInt64], from: RemotePath, to target: RemotePath
    ) async throws -> Bool {
        guard let remote = remote as? any PartwiseRemote, let name = from.name,
            try await entry(at: from)?.kind == .directory, try await entry(at: target)?.kind == .directory
        else { return false }
        let directory = move.identifier
        if manager.domain.isReadOnly || unfinished.isRefused(directory) { return true }
        let old = PathMap.Place(directory: try parent(of: directory, at: from), name: name)
        try await unfinished.finish(directory) { [self] in
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
