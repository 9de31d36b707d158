import FileProvider
import Replica

/// Waiting for a part of a domain.
extension SyncEngine {
    /// Waits until all changes up to now are on the remote.
    ///
    /// - Returns: false when the time was over before.
    package func waitUntilSynced(within time: Duration?) async throws -> Bool {
        try noteWrittenFiles()
        let start = try await replica.database.timeAfterAllPending()
        return try await hurried(within: time) { try !replica.database.hasPending(since: start) }
    }

    /// Waits until all content is here that is fetched without a reader, as ``ReplicaDatabase/wantedContent(limit:below:where:)``
    /// says, and no file is being downloaded.
    ///
    /// - Parameter top: an item: only what lies at or below it is waited for; nil for the whole domain.
    /// - Returns: what could not be fetched and is tried again later, with the reasons; nil when the time was over before.
    package func waitUntilDownloaded(
        below top: InodeNumber?, within time: Duration?
    ) async throws -> [InodeNumber: FileProviderError]? {
        // The end of a transfer and a failure are no changes of the database.
        let looks = Task {
            while true {
                replica.database.changes.notify()
                try await Task.sleep(for: Self.pauseOfLooks)
            }
        }
        defer { looks.cancel() }
        // What a query has found, which takes long in a large tree.
        var missing: [WantedContent] = []
        // Also of what is being tried again: of many items that fail, one always is.
        var failures: [WantedContent: FileProviderError] = [:]
        var failed: [InodeNumber: FileProviderError] = [:]
        let isDone = try await hurried(within: time) {
            let present = await materializer.failures
            failures.merge(present) { $1 }
            while let content = missing.last {
                if failures[content] == nil, try replica.database.isWanted(content.number) { return false }
                missing.removeLast()
            }
            failed = [:]
            missing = try replica.database.wantedContent(limit: Self.mostMissing, below: top) { content in
                failed[content.number] = failures[content]
                return failures[content] == nil
            }
            guard missing.isEmpty else { return false }
            return try await transfers.allSatisfy { transfer in
                try top.map { try !replica.database.isBelow(transfer.number, $0) } ?? false
            }
        }
        return isDone ? failed : nil
    }

    private static let pauseOfLooks = Duration.milliseconds(200)
    private static let mostMissing = 64

    /// Waits until all changes up to now at or below an item are on the remote, also those that wait after a failure.
    ///
    /// - Returns: false when the time was over before.
    package func waitUntilSynced(below top: InodeNumber, within time: Duration?) async throws -> Bool {
        try await settle(below: top, within: time, isFailing: false)
    }

    /// Sends all that was changed up to now at or below an item, what is parked as well, and waits until it is on the
    /// remote. What stays on this machine is not waited for.
    ///
    /// - Throws: what keeps the first of it from being sent: that of the item, of a directory above it that the remote
    ///   does not have, or of the whole remote; `userCancelled`. A failure that may pass within seconds is thrown only when it has not.
    package func send(_ top: InodeNumber) async throws(FileProviderError) {
        do {
            _ = try await settle(below: top, within: nil, isFailing: true)
        } catch {
            throw ProviderCalls.failure(from: error)
        }
    }

    /// Runs a request that the remote may deny by permissions that were changed here and are not there yet: these are sent,
    /// and the request is repeated.
    func sendingPermissions(
        of number: InodeNumber, _ request: () async throws(FileProviderError) -> Void
    ) async throws(FileProviderError) {
        do throws(FileProviderError) {
            try await request()
        } catch {
            guard error.code == .fileReadNoPermission,
                let changed = try? replica.database.changedPermissions(above: number), !changed.isEmpty
            else { throw error }
            // What cannot be sent denies the repeated request as well.
            for inode in changed { try? await send(inode) }
            try await request()
        }
    }

    private func settle(below top: InodeNumber, within time: Duration?, isFailing: Bool) async throws -> Bool {
        try noteWrittenFiles()
        let start = try await replica.database.timeAfterAllPending()
        var current: PendingMark?
        var last: PendingMark?
        var failingSince: ContinuousClock.Instant?
        return try await hurried(within: time) {
            while true {
                if let mark = current {
                    guard try !replica.database.isPending(mark, since: start) else { break }
                    (current, last, failingSince) = (nil, mark, nil)
                }
                current = try replica.database.firstPending(below: top, since: start, after: last)
                if let mark = current {
                    if isFailing { try await lift(mark) }
                } else if last == nil {
                    return true
                } else {
                    // An item before the last one may be pending again.
                    last = nil
                }
            }
            if isFailing, let mark = current {
                if isReadOnly { throw ProviderCalls.readOnlyRefusal }
                try connection.check()
                if let refusal = refusalWhileHeld { throw refusal }
                if let obstacle = try replica.database.obstacle(toSending: mark) {
                    let since = failingSince ?? .now
                    failingSince = since
                    guard mayPass(obstacle, failingSince: since) else { throw obstacle.error }
                }
            }
            // Again each time, because what has to be sent before it changes.
            if let mark = current { try await uploads.prefer(mark) }
            return false
        }
    }

    /// How long a caller waits for the end of a failure that is temporary.
    private static let patience = Duration.seconds(10)

    /// Whether a failure is temporary, and what has failed is being sent again, or will be soon. A timeout is not waited for: the caller
    /// has waited for the remote's answer already.
    private func mayPass(_ obstacle: SendingObstacle, failingSince start: ContinuousClock.Instant) -> Bool {
        guard Backoff.isTransient(obstacle.error), obstacle.error.code != .timedOut else { return false }
        let (now, isPatient) = (FileTimestamp.now, ContinuousClock.now - start < Self.patience)
        if let next = obstacle.nextTry, next > now { return isPatient && next <= now.advanced(by: Self.patience) }
        return isPatient || obstacle.row.map { uploads.isRunning(row: $0) } ?? false
    }

    private static let pauseWhileHeld = Duration.seconds(10)

    /// Waits until something is complete, while nothing is held back from the remote.
    ///
    /// - Returns: false when the time was over before.
    private func hurried(within time: Duration?, until isComplete: () async throws -> Bool) async throws -> Bool {
        let deadline = time.map { ContinuousClock.now + $0 }
        await uploads.setHurried(true)
        defer { Task { await uploads.setHurried(false) } }
        // The remote may be back: a round finds out, and the caller need not wait for the next poll.
        let rounds = Task {
            while true {
                if context.holdsChanges { signal() }
                try await Task.sleep(for: Self.pauseWhileHeld)
            }
        }
        defer { rounds.cancel() }
        return try await replica.database.changes.wait(
            until: deadline, interval: .milliseconds(10), for: isComplete)
    }

    /// Has something that failed before tried again now.
    private func lift(_ mark: PendingMark) async throws {
        guard case .item(let row) = mark, try replica.database.obstacle(toSending: mark) != nil else { return }
        for item in try replica.database.itemAndNewDirectories(above: row) {
            let number = item.inode.number
            try await commits.commit { try $0.answers.retryNow(number) }
        }
        uploads.wake()
    }
}
