import FileProvider
import Replica

/// Waiting for a part of a domain.
extension SyncEngine {
    /// Waits until all that was changed up to now at or below an item is on the remote. What is parked is waited for.
    ///
    /// - Returns: false when the time was over before.
    package func waitUntilSynced(below top: InodeNumber, within time: Duration?) async throws -> Bool {
        try await settle(below: top, within: time, isFailing: false)
    }

    /// Sends all that was changed up to now at or below an item, what is parked as well, and waits until it is on the
    /// remote. What stays on this machine is not waited for.
    ///
    /// - Throws: what keeps the first of it from being sent: that of the item, of a directory above it that the remote
    ///   does not have, or of the whole remote; `userCancelled`.
    package func send(_ top: InodeNumber) async throws(FileProviderError) {
        do {
            _ = try await settle(below: top, within: nil, isFailing: true)
        } catch {
            throw ProviderCalls.failure(from: error)
        }
    }

    private func settle(below top: InodeNumber, within time: Duration?, isFailing: Bool) async throws -> Bool {
        try noteWrittenFiles()
        let start = Replica.now
        let deadline = time.map { ContinuousClock.now + $0 }
        await uploads.hurry(true)
        defer { Task { await uploads.hurry(false) } }
        var last: PendingMark?
        while true {
            guard let mark = try replica.database.firstPending(below: top, since: start, after: last) else {
                // What was passed by may have come back while others were waited for.
                if last == nil { return true }
                last = nil
                continue
            }
            if isFailing { try await lift(mark) }
            while try replica.database.isPending(mark, since: start) {
                if isFailing {
                    if isReadOnly { throw ReadOnlyProvider.refusal }
                    try connection.check()
                    if let failure = try replica.database.obstacle(toSending: mark) { throw failure }
                }
                if let deadline, ContinuousClock.now >= deadline { return false }
                try await Task.sleep(for: .milliseconds(20))
            }
            last = mark
        }
    }

    /// Has something that failed before tried again now.
    private func lift(_ mark: PendingMark) async throws {
        guard case .item(let row) = mark, try replica.database.obstacle(toSending: mark) != nil else { return }
        var current = try replica.database.item(row: row)
        while let item = current {
            let number = item.inode.number
            try await commits.commit { try $0.retryNow(number) }
            guard item.identifier == nil, let parent = item.parent else { break }
            current = try replica.database.item(ofInode: parent)
        }
        uploads.wake()
    }
}
