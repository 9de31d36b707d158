import FileProvider
import PathAddressing

/// Before every change: earlier changes of the same keys have ended, and no request of theirs may still be applied.
extension S3Remote {
    /// Changes what is at a path, or moves it to another, once earlier changes there have ended.
    ///
    /// - Parameters:
    ///   - isTree: whether it is about all that lies below, too.
    ///   - isEmptied: whether nothing is at the path any more when it is done.
    /// - Throws: `noSuchItem` when it was moved away meanwhile; `providerDomainTemporarilyUnavailable` when others take long,
    ///   or the directory that it was to come to was moved away.
    func changing<Value>(
        _ path: RemotePath, isTree: Bool, isEmptied: Bool, to newPath: RemotePath? = nil,
        _ body: () async throws -> Value
    ) async throws -> Value {
        let place = extents(of: path, isTree: isTree)
        let target = newPath.map { extents(of: $0, isTree: isTree) } ?? []
        do {
            return try await client.ledger.perform(claiming: place + target, emptying: isEmptied ? place : []) {
                renamed in
                if renamed.contains(where: { MoveJournal.holds($0, key(of: path)) }) { throw Self.missing(path) }
                if let newPath, renamed.contains(where: { MoveJournal.holds($0, key(of: newPath)) }) {
                    throw Self.busy(newPath)
                }
                return try await body()
            }
        } catch is OperationLedger.Busy {
            throw Self.busy(path)
        }
    }

    /// Changes what is at a path, once earlier changes there have ended, nothing of an earlier rename is left there, and no
    /// request without a response may still be applied there.
    func changingOne<Value: Sendable>(
        _ path: RemotePath, isTree: Bool, isEmptied: Bool = false, _ body: () async throws -> Value
    ) async throws -> Value {
        try await translating {
            try await changing(path, isTree: isTree, isEmptied: isEmptied) {
                try await settleMoves(over: [key(of: path)])
                try await settleDoubts(over: extents(of: path, isTree: isTree))
                return try await body()
            }
        }
    }

    /// Takes back what nobody carries on, before something is made, written or deleted in its old or new place: a copy of
    /// what is gone by then would come to light in the end. Who carries one on has claimed the places: where somebody is
    /// about one, he is taking it back. What the server does not let us end keeps nobody from the rest; a change in its old
    /// place gives it up, because what is made there must be shown.
    ///
    /// - Parameter wanted: is to be carried on.
    func settleMoves(over keys: [String], but wanted: MoveRecord? = nil) async throws {
        for record in moves.records where moves.isStuck(record) && !moves.isRunning(record) {
            let isOver = keys.contains { MoveJournal.holds(record.from, $0) || MoveJournal.holds($0, record.from) }
            if isOver, !record.hasPlaces(of: wanted) { moves.remove(record) }
        }
        while let record = keys.lazy.flatMap({ self.moves.records(over: $0) }).first(where: {
            !$0.hasPlaces(of: wanted) && !moves.isStuck($0) || moves.isRunning($0)
        }) {
            if try await !takeBack(record) { try await Task.sleep(for: .milliseconds(20)) }
        }
    }

    /// Waits until no request without a response may still be applied to some keys.
    func settleDoubts(over extents: [PathExtent]) async throws {
        try await client.ledger.settle(over: extents) {
            _ = try await client.list(prefix: rootPrefix, isFlat: true, limit: 1)
        }
    }

    /// The keys of what is at a path, whatever it is.
    func extents(of path: RemotePath, isTree: Bool) -> [PathExtent] {
        let (key, prefix) = (key(of: path), prefix(of: path))
        return [.exactly(key), .exactly(key + LinkNames.suffix), isTree ? .below(prefix) : .exactly(prefix)]
    }

    static func busy(_ path: RemotePath) -> FileProviderError {
        FileProviderError(
            .providerDomainTemporarilyUnavailable, "something else is being done with '\(path.name ?? "/")' just now")
    }
}
