import FileProvider
import Replica
import Synchronization

/// Sees a reimport through: has the identifiers given up, lets `Uploads` offer the items, and tells the provider when
/// all have been. All of it is in the database, so after a crash it goes on where it was.
actor Reimporting {
    private let replica: Replica
    private let calls: ProviderCalls
    private let uploads: Uploads
    private let commits: Commits
    private let warnings: Warnings
    private let events: SyncEvents
    private let onFinish: @Sendable () -> Void
    private var task: Task<Void, Never>?
    private var retry: Task<Void, Never>?
    private var failures = 0
    private let wakes: AsyncStream<Void>
    private nonisolated let wakeUp: AsyncStream<Void>.Continuation

    /// - Parameter onFinish: called when a reimport is complete.
    init(
        replica: Replica, calls: ProviderCalls, uploads: Uploads, commits: Commits, warnings: Warnings,
        events: SyncEvents, onFinish: @escaping @Sendable () -> Void
    ) {
        self.replica = replica
        self.calls = calls
        self.uploads = uploads
        self.commits = commits
        self.warnings = warnings
        self.events = events
        self.onFinish = onFinish
        (wakes, wakeUp) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// There is something to do, or may be. Returns at once; from any thread.
    nonisolated func wake() { wakeUp.yield() }

    func start() {
        guard task == nil else { return }
        task = Task { [wakes] in
            for await _ in wakes { await self.goOn() }
        }
        wake()
    }

    func stop() async {
        wakeUp.finish()
        task?.cancel()
        retry?.cancel()
        await task?.value
    }

    /// Accepts a reimport. Returns when that is recorded.
    ///
    /// - Throws: `noSuchItem`; `featureUnsupported` where the remote cannot be written, or may not be.
    func begin(below number: InodeNumber) async throws {
        guard calls.provider.features.writing else {
            throw FileProviderError(
                .featureUnsupported, "this remote cannot be written, so nothing can be offered to it again")
        }
        guard !calls.isReadOnly else {
            throw FileProviderError(
                .featureUnsupported,
                "the domain is read-only, so nothing can be offered to its remote: mount it with --no-read-only first")
        }
        try await replica.beginReimport(below: number)
        wake()
    }

    /// Does what can be done now, in a test that picks for itself.
    func goOn() async {
        do {
            guard try !replica.database.reimports().isEmpty else { return }
            while try await replica.continueReimport() { try Task.checkCancellation() }
            uploads.wake()
            guard try await replica.completeReimports() else { return }
            try await tellTheEnd()
            failures = 0
            events.tell(.importFinished, of: .root, named: "")
            onFinish()
        } catch is CancellationError {
        } catch let error as FileProviderError where error.code.reaction == .latchDomain {
            // The remote's return wakes us.
        } catch {
            warnings.report("the reimport cannot go on: \(error)")
            if let error = error as? FileProviderError, ListingRetries.passes(error) { retryLater() }
        }
    }

    private func retryLater() {
        let pause = ListingRetries.pause(after: failures)
        failures += 1
        retry?.cancel()
        retry = Task {
            try? await Task.sleep(for: pause)
            if !Task.isCancelled { self.wake() }
        }
    }

    /// Tells the provider that everything has been offered to it: once, but for a crash before that could be noted.
    private func tellTheEnd() async throws {
        let hasBegun = Mutex(false)
        do {
            try await calls.make(for: FileProviderRequest(reason: .synchronization)) { provider in
                hasBegun.withLock { $0 = true }
                await provider.importDidFinish()
            }
        } catch {
            // Who was told and does not come back was told all the same.
            guard hasBegun.withLock({ $0 }) else { throw error }
            warnings.report("the provider was told that the import is complete, and did not return: \(error)")
        }
        // Also when this task was cancelled, in which the database would do nothing.
        try await Task { [replica] in try await replica.forgetCompleteReimports() }.value
    }

    /// Waits until the provider knows an item that somebody wants something of, and has it offered before all others.
    ///
    /// - Throws: what keeps it from being offered.
    func settle(_ number: InodeNumber) async throws {
        var preferred: [Int64] = []
        while try replica.database.isToBeOffered(number) {
            try Task.checkCancellation()
            try calls.connection.check()
            if try await replica.continueReimport() { continue }
            let rows = try replica.database.rowsToOffer(downTo: number)
            if let failure = try failure(ofRow: rows.first) { throw failure }
            // One after the other: a directory comes before what it holds.
            if let first = rows.first.map({ [$0] }), first != preferred {
                preferred = first
                await uploads.prefer(first)
            }
            try await Task.sleep(for: .milliseconds(5))
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
