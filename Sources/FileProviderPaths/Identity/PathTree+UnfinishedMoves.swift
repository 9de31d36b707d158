import FileProvider

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
        if manager.domain.isReadOnly { paths.unfinished.noteRefused(move.target, because: "the domain is read only") }
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
