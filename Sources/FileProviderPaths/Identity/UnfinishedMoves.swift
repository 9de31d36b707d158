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
        /// Those of which the remote refuses to move the rest, with what it says.
        var refused: [Target: String] = [:]
        /// Those that went on when the call for their renaming ended: its next call fails with a refusal.
        var asked: Set<Target> = []
    }

    private let state = Mutex(State())

    func isRefused(_ move: Target) -> Bool { state.withLock { $0.refused[move] != nil } }

    func noteRefused(_ move: Target, because reason: String) { state.withLock { $0.refused[move] = reason } }

    /// A move that was refused is over.
    func allow(_ move: Target) { state.withLock { _ = $0.refused.removeValue(forKey: move) } }

    /// Does what a renaming asks for. A move that was refused is tried once more.
    ///
    /// - Throws: `cannotSynchronize` if the move was refused, in this call or after the last one had ended: a transient error
    ///   would have the whole directory tried again every minute; what `body` throws.
    func renaming<Value: Sendable>(to move: Target, _ body: () async throws -> Value) async throws -> Value {
        let reason = state.withLock { state -> String? in
            if state.asked.remove(move) != nil, let reason = state.refused[move] { return reason }
            state.refused[move] = nil
            return nil
        }
        if let reason { throw FileProviderError(.cannotSynchronize, reason) }
        do {
            return try await body()
        } catch let error as FileProviderError where error.code == .providerDomainTemporarilyUnavailable {
            let reason = state.withLock { state in
                if state.refused[move] == nil, state.running[move.item] != nil { state.asked.insert(move) }
                return state.refused[move]
            }
            if let reason { throw FileProviderError(.cannotSynchronize, reason) }
            throw error
        }
    }

    /// Finishes a move for all callers that ask for it meanwhile. Goes on when they are cancelled.
    ///
    /// - Parameter patience: for how long a caller waits.
    /// - Throws: `providerDomainTemporarilyUnavailable` while it goes on, or if it was refused; what `body` throws.
    func finish(
        _ move: Target, within patience: Duration = .seconds(5), _ body: @escaping @Sendable () async throws -> Void
    ) async throws {
        let task = state.withLock { state in
            if let task = state.running[move.item] { return task }
            let task = Task { try await notingRefusal(of: move, body) }
            state.running[move.item] = task
            return task
        }
        guard let result = await task.result(within: patience) else {
            try Task.checkCancellation()
            throw FileProviderError(
                .providerDomainTemporarilyUnavailable, "the interrupted renaming of a directory is being finished")
        }
        try result.get()
    }

    private func notingRefusal(of move: Target, _ body: () async throws -> Void) async throws {
        var reason: String?
        defer {
            state.withLock { state in
                state.running[move.item] = nil
                if let reason { state.refused[move] = reason }
            }
        }
        do {
            try await body()
        } catch let error as FileProviderError {
            if [.serverUnreachable, .notAuthenticated, .timedOut, .userCancelled].contains(error.code) { throw error }
            let message = "the interrupted renaming of a directory cannot be finished: \(error.message)"
            reason = message
            throw FileProviderError(.providerDomainTemporarilyUnavailable, message)
        }
    }
}

extension LedgerState.Move {
    var target: UnfinishedMoves.Target {
        UnfinishedMoves.Target(item: ItemIdentifier(item), directory: ItemIdentifier(directory), name: name)
    }
}
