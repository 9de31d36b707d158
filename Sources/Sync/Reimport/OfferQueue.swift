import FileProvider
import Replica
import Synchronization

/// The items waiting to be offered to the provider again that a caller needs now: `Uploads` offers them before all others.
final class OfferQueue: SyncPart {
    let context: SyncContext
    private let uploads: WakeSignal
    private let preferred = Mutex<[Int64]>([])
    private static let pause = Duration.milliseconds(5)

    /// - Parameter uploads: wakes `Uploads`.
    init(_ context: SyncContext, uploads: WakeSignal) {
        self.context = context
        self.uploads = uploads
    }

    /// The rows to offer before all others, each returned once.
    func takePreferred() -> [Int64] {
        preferred.withLock { exchange(&$0, with: []) }
    }

    /// Waits until the provider has recognized an item whose identifier was given up. Returns at once for any other.
    ///
    /// - Throws: what keeps the item from being offered.
    func settle(_ number: InodeNumber) async throws {
        var last: Int64?
        guard try replica.database.reimports.isToBeOffered(number) else { return }
        _ = try await replica.database.changes.wait(interval: Self.pause) {
            guard try replica.database.reimports.isToBeOffered(number) else { return true }
            try connection.check()
            // A commit each, and so done only when there is something to do: a commit wakes this.
            while try replica.database.reimports.isMarking, try await replica.continueReimport() {
                try Task.checkCancellation()
            }
            // A directory comes before what it holds.
            let row = try replica.database.reimports.rowsToOffer(downTo: number).first
            if let failure = try failure(ofRow: row) { throw failure }
            if let row, row != last {
                last = row
                preferred.withLock { if !$0.contains(row) { $0.append(row) } }
                uploads.wake()
            }
            return false
        }
    }

    private func failure(ofRow row: Int64?) throws -> FileProviderError? {
        guard let row, try replica.database.attempts(ofItem: row) > 0,
            let number = try replica.database.item(row: row)?.inode.number,
            let failure = try replica.database.failure(of: number)
        else { return nil }
        return FileProviderError(.init(rawValue: failure.code) ?? .cannotSynchronize, failure.message)
    }
}
