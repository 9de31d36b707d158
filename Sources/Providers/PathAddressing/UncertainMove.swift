import FileProvider

/// A renaming whose answer was lost: it may have been made.
struct UncertainMove: Sendable, Codable {
    var identifier: ItemIdentifier
    /// What it held, or nothing for a directory.
    var tag: [UInt8]
    var to: PlaceBook.Place
    /// Until when it may yet be made, once it was seen that it has not been.
    var deadline: ContinuousClock.Instant?

    /// What outlives the process.
    private enum CodingKeys: String, CodingKey { case identifier, tag, to }
}

extension PathAddressedProvider {
    /// Finds out what became of the renamings near a path that had no answer, before anything is said or done there: who
    /// believed in the old places would take what was moved for gone.
    func settleMoves(near path: RemotePath) async throws {
        for (move, from, target) in book.uncertainMoves(near: path) {
            if let there = try await entry(at: from), mayBe(there, move.identifier) {
                book.noteNotMade(move)
                continue
            }
            if let moved = try await entry(at: target), mayBe(moved, move.identifier),
                moved.kind != .file || moved.tag == move.tag || !moved.isTagStrong,
                let known = manager.remotePath(of: move.identifier).map(RemotePath.init)
            {
                book.noteSeen(move.identifier, from: known, at: move.to)
            }
            book.forget(move)
        }
    }
}
