import FileProvider
import Replica
import SystemPackage

extension SyncEngine {
    /// Something was changed on the mount, with these effects. Returns at once; from any thread.
    package func localChange(_ effects: ReplicaEffects) {
        commits.publish(effects)
        localChange()
    }

    /// Something was changed on the mount. Returns at once; from any thread.
    package func localChange() {
        uploads.noteLocalChange()
        early?.noteLocalChange()
        materializer.wake()
        budget.noteLocalChange()
        for notifier in notifiers { notifier.wake() }
        if hasTrash { trashTidier.wake() }
    }

    /// When an item that is kept downloaded and could not be had is tried again; nil for all others.
    package func nextDownload(of number: InodeNumber) async -> Duration? {
        await materializer.nextTry(of: number)
    }

    /// For which process a file is being fetched, in words; nil for none.
    package func causeOfDownload(of number: InodeNumber) async -> String? {
        await downloads.cause(of: number)
    }

    /// For which processes a file is being fetched right now, in words; nil stands for a call that no process made. While
    /// there are any it cannot be evicted.
    package func waitersForDownload(of number: InodeNumber) async -> [String?] {
        await downloads.waiters(of: number)
    }

    /// Whether a range of a file is on the disk though the replica does not know yet.
    package func holds(_ number: InodeNumber, version: [UInt8], range: Range<Int64>) async -> Bool {
        await downloads.holds(number, version: version, range: range)
    }

    /// Whether some of a file's content is local, also if it has arrived only now.
    package func hasContent(_ number: InodeNumber) async throws -> Bool {
        // Bytes that are not trusted yet are not recorded, but readers get them.
        if await downloads.holdsAny(of: number) { return true }
        await downloads.settle(number)
        return try replica.database.inode(number).map { $0.shownContent != .dataless } ?? true
    }

    /// Brings all of a file here, and returns once the replica knows.
    package func materialize(_ number: InodeNumber, request: FileProviderRequest) async throws(FileProviderError) {
        try await downloads.provide(number, version: nil, range: nil, request: request)
        await downloads.settle(number)
    }

    /// Records what has arrived of files of which nothing is being fetched, so that the replica knows.
    package func settleIdleDownloads() async { await downloads.settleIdle() }

    /// Makes room on a full disk for something new: removes what has lost its last name, and evicts content.
    ///
    /// - Throws: `posix` with ENOSPC when there is none then.
    package func makeRoom() async throws {
        await closedFiles.settle()
        guard !replica.hasRoom else { return }
        // What was removed before the disk was full may have its blocks still.
        try? await BlockingWork.run { [replica] in try replica.database.deleteWithdrawnFiles() }
        guard !replica.hasRoom else { return }
        let hasEvicted = await budget.makeRoom(Self.roomForNew, evictor: downloads)
        let hasNameless = try replica.database.hasNamelessInodes()
        if hasNameless || hasEvicted {
            // The kernel reports what was removed a moment later.
            try await Task.sleep(for: .milliseconds(20))
            await closedFiles.settle()
        }
        guard replica.hasRoom else { throw FileProviderError.posix(.noSpace) }
    }

    private static let roomForNew: Int64 = 1 << 20

    /// Returns when no transaction relies on an inode being closed.
    package func waitForClaims(of number: InodeNumber) async {
        await withCheckedContinuation { continuation in open.whenUnclaimed(number) { continuation.resume() } }
    }

    /// Records writes to open files, which the kernel makes without a request to the daemon.
    package func noteWrittenFiles() throws {
        try commits.noteWrittenFiles()
    }

    /// Lifts every latch and every wait, or one inode's. Without one, what was held because it would remove much is let
    /// through, too.
    package func retry(_ number: InodeNumber? = nil) async throws {
        // Before the calls that this lets through.
        await (calls.provider as? any RetryingProvider)?.retryNow()
        try await commits.commit { try $0.answers.retryNow(number) }
        if number == nil { await feed.applyHeldRound() }
        errorWasResolved()
    }

    /// Begins no calls of the provider from now on, for a reason, and goes on for nil. Local work goes on. Returns at once; from any
    /// thread.
    package func pause(_ pause: Connection.Pause?) {
        connection.pause(pause)
        guard pause == nil else {
            early?.giveUp()
            return
        }
        uploads.wake()
        signal()
        materializer.wake()
        reimports.wake()
        doubts.wake()
    }

    /// The uploads under way: which inode, how much of how much.
    package var uploadsUnderWay: [(number: InodeNumber, done: Int64, total: Int64)] {
        get async { await uploads.transfers }
    }

    /// Whether an item is being uploaded. From any thread; never waits.
    package func isUploading(_ item: ItemRecord) -> Bool { uploads.isRunning(row: item.id) }

    /// The changes that are being sent. From any thread; never waits.
    package var changesUnderWay: Set<PendingMark> { uploads.changesUnderWay }

    /// The state of an item between this machine and the remote.
    package func syncState(of item: ItemRecord) throws -> SyncState {
        let state = try replica.database.syncState(of: item)
        return state != .synced && isUploading(item) ? .uploading : state
    }

    // MARK: - Interactive mode

    /// The operations that are possible now. Ingestion always is.
    package func possibleOperations() async throws -> [SyncOperation] {
        try await uploads.possibleOperations() + [.ingestion]
    }

    /// Does one of them, to its end.
    package func run(_ operation: SyncOperation) async throws {
        if operation == .ingestion {
            try await feed.refresh()
        } else {
            await uploads.run(operation)
        }
    }
}
