import FileProvider
import Synchronization

/// The interrupted moves of directories that are being finished.
final class UnfinishedMoves: Sendable {
    /// A directory, and where it is moved.
    struct Target: Hashable, Sendable {
        var item: ItemIdentifier
        var directory: ItemIdentifier
        var name: String
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
            if let task = state.running[move.item] { return task }
            let task = Task { [self] in
                defer { self.state.withLock { $0.running[move.item] = nil } }
                try await notingRefusal(of: move, body)
            }
            state.running[move.item] = task
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

extension LedgerState.Move {
    var target: UnfinishedMoves.Target {
        UnfinishedMoves.Target(item: ItemIdentifier(item), directory: ItemIdentifier(directory), name: name)
    }
}
