import FileProvider
import PathAddressing

/// What comes before every change: nobody else makes one there, and nothing of earlier ones is left or on its way.
extension S3Remote {
    /// Makes a change of what is at a path, or moves it to another, when nobody else changes anything there.
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
        let place = reaches(of: path, isTree: isTree)
        let target = newPath.map { reaches(of: $0, isTree: isTree) } ?? []
        do {
            return try await claims.claim(place + target, emptying: isEmptied ? place : []) { gone in
                if gone.contains(where: { MoveJournal.holds($0, key(of: path)) }) { throw Self.missing(path) }
                if let newPath, gone.contains(where: { MoveJournal.holds($0, key(of: newPath)) }) {
                    throw Self.busy(newPath)
                }
                return try await body()
            }
        } catch is ClaimedPlaces.Busy {
            throw Self.busy(path)
        }
    }

    /// Makes a change of what is at a path, when nobody else changes anything there, nothing of an earlier renaming is left
    /// there, and nothing is on its way there any more.
    func changingOne<Value: Sendable>(
        _ path: RemotePath, isTree: Bool, isEmptied: Bool = false, _ body: () async throws -> Value
    ) async throws -> Value {
        try await translating {
            try await changing(path, isTree: isTree, isEmptied: isEmptied) {
                try await settleMoves(over: [key(of: path)])
                try await settleStragglers(over: reaches(of: path, isTree: isTree))
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

    /// Waits for what was sent to some places and may still arrive.
    func settleStragglers(over places: [Stragglers.Reach]) async throws {
        try await client.stragglers.settle(over: places) {
            _ = try await client.list(prefix: rootPrefix, isFlat: true, limit: 1)
        }
    }

    /// The keys of what is at a path, whatever it is.
    func reaches(of path: RemotePath, isTree: Bool) -> [Stragglers.Reach] {
        let (key, prefix) = (key(of: path), prefix(of: path))
        return [.exactly(key), .exactly(key + LinkNames.suffix), isTree ? .below(prefix) : .exactly(prefix)]
    }

    static func busy(_ path: RemotePath) -> FileProviderError {
        FileProviderError(
            .providerDomainTemporarilyUnavailable, "something else is being done with '\(path.name ?? "/")' just now")
    }
}
