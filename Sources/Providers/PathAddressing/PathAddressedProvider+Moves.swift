import FileProvider

extension PathAddressedProvider {
    /// Finds out what became of the unknown moves near a path, before anything is reported or changed there: at the old path
    /// a moved item looks removed.
    func settleMoves(near path: RemotePath) async throws {
        for (move, from, target) in paths.unknownMoves(near: path) {
            if let there = try await entry(at: from), mayBe(there, move.identifier) {
                paths.noteNotMade(move)
                continue
            }
            if let moved = try await entry(at: target), mayBe(moved, move.identifier),
                moved.kind != .file || moved.tag == move.tag || !moved.isTagStrong,
                let known = manager.remotePath(of: move.identifier).map(RemotePath.init)
            {
                paths.noteSeen(move.identifier, from: known, at: move.to)
            }
            paths.forget(move)
        }
    }
}
