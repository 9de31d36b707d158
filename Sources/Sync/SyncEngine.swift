import FileProvider
import Logging
import Replica
import Synchronization

/// Keeps a domain's replica and its provider together: what is asked for is fetched and listed, what is new on the remote
/// comes in. Everything that needs the provider goes through here.
package final class SyncEngine: Sendable {
    package let connection: Connection
    package let warnings: Warnings
    let isInteractive: Bool
    /// Whether nothing may be changed on the remote.
    package let isReadOnly: Bool
    let open: any OpenInodes
    let replica: Replica
    let calls: ProviderCalls
    let listings: Listings
    let downloads: Downloads
    let feed: ChangeFeed
    private let lookAhead: LookAhead
    private let fileLookAhead: FileLookAhead
    private let eviction: Eviction
    let keeper: Keeper
    let budget: CacheBudget
    let uses: UseTimes
    private let closings: Closings
    let commits: Commits
    private let schedule: Schedule
    /// Where looking for changes follows those who look at the mount.
    private let poller: Poller
    let uploads: Uploads
    /// Nil where the provider cannot take what is not whole yet.
    let early: EarlySending?
    let trashKeeper: TrashKeeper
    private let documents: DocumentObserver
    private let listingRetries: ListingRetries
    /// How much room the remote has.
    package let room: RoomWatch
    let notices: [LocalSetNotices]
    let reimporting: Reimporting
    /// Whether the provider has a trash.
    package let hasTrash: Bool
    private let traffic: UploadTraffic
    private let happenings = SyncEvents()
    private let attached: Attached

    /// - Parameters:
    ///   - open: which inodes somebody has open.
    ///   - kernel: forgets what a commit made untrue.
    ///   - polling: how often to look for changes unasked.
    ///   - domainName: what the user calls the domain.
    ///   - patience: how long a call may make no progress.
    ///   - isReadOnly: nothing is changed on the remote. Changes that were made here before stay pending.
    ///   - isInteractive: nothing is sent or taken in unless it is asked for: for tests of every order.
    ///   - cacheLimits: how much content may be here.
    ///   - accounting: told what is fetched for which process; nil for nobody.
    ///   - conflictLabel: what is added to the names of conflict copies.
    package init(
        provider: any FileProviderReplicatedExtension, replica: Replica, open: any OpenInodes,
        kernel: any KernelCache, polling: Polling,
        domainName: String = "NAME", patience: Duration = Watchdog.usualPatience, isReadOnly: Bool = false,
        isInteractive: Bool = false, cacheLimits: CacheLimits = CacheLimits(),
        accounting: (any FetchAccounting)? = nil,
        conflictLabel: @escaping @Sendable () -> String = { "conflicted copy" }, logger: Logger
    ) {
        let provider = isReadOnly ? ReadOnlyProvider(provider) : provider
        self.isReadOnly = isReadOnly
        self.replica = replica
        traffic = UploadTraffic(answers: replica.answers)
        connection = Connection(logger: logger)
        warnings = Warnings(logger: logger)
        for finding in replica.findings { warnings.report(finding) }
        let schedule = Schedule(polling: polling)
        poller = Poller(replica: replica, isActive: polling == .adaptive)
        self.schedule = schedule
        self.isInteractive = isInteractive
        self.open = open
        let attached = Attached()
        self.attached = attached
        hasTrash = provider.features.trash && provider.features.writing
        do {
            try replica.database.set(.hasTrash, to: hasTrash ? "1" : nil)
        } catch {
            warnings.report("whether there is a trash cannot be recorded: \(error)")
        }
        calls = ProviderCalls(
            provider: provider, connection: connection, patience: patience,
            onLatch: { [happenings, connection] in
                happenings.tell(.offline, of: nil, named: connection.failure?.message ?? "")
                schedule.probe()
            },
            onRecovery: { [happenings] in
                happenings.tell(.online, of: nil, named: "the remote answers again")
                schedule.refresh()
                attached.uploads?.wake()
                attached.keeper?.wake()
                attached.trash?.wake()
                attached.reimporting?.wake()
            })
        room = RoomWatch(calls: calls)
        commits = Commits(
            replica: replica, open: open, kernel: kernel, warnings: warnings,
            onCommit: {
                attached.keeper?.wake()
                attached.budget?.wake()
            },
            onPublish: { attached.notices.forEach { $0.wake() } })
        notices = [
            LocalSetNotices(of: .materialized, replica: replica, warnings: warnings) {
                await provider.materializedItemsDidChange()
            },
            LocalSetNotices(of: .pending, replica: replica, warnings: warnings) {
                await provider.pendingItemsDidChange()
            },
        ]
        uses = UseTimes(replica: replica)
        closings = Closings(replica: replica, commits: commits, warnings: warnings)
        budget = CacheBudget(
            replica: replica, uses: uses, warnings: warnings, limits: cacheLimits,
            evict: { await attached.eviction?.giveUp($0) },
            settle: { await attached.eviction?.downloads.settleIdle() })
        listings = Listings(
            replica: replica, calls: calls, commits: commits, traffic: traffic, warnings: warnings,
            onFailure: { number, error in Task { await attached.listingRetries?.failed(number, error) } },
            recognized: { try await attached.reimporting?.settle($0) })
        listingRetries = ListingRetries(replica: replica) { [listings] number throws(FileProviderError) in
            try await listings.list(number, beyond: nil, request: FileProviderRequest(reason: .synchronization))
        }
        documents = DocumentObserver(
            replica: replica, open: open, calls: calls, listings: listings, commits: commits, traffic: traffic,
            warnings: warnings)
        downloads = Downloads(
            replica: replica, calls: calls, commits: commits, traffic: traffic, warnings: warnings, budget: budget,
            events: happenings, open: open, accounting: accounting ?? NoFetchAccounting(),
            recognized: { try await attached.reimporting?.settle($0) })
        let trashKeeper = TrashKeeper(
            replica: replica, open: open, commits: commits, connection: connection, listings: listings,
            downloads: downloads)
        self.trashKeeper = trashKeeper
        feed = ChangeFeed(
            replica: replica, calls: calls, listings: listings, commits: commits, traffic: traffic, warnings: warnings,
            domainName: domainName)
        // Background calls have three quarters of the places.
        let ahead = max(1, provider.features.concurrentCalls * 3 / 4)
        // While what has come is noted, the next are asked for.
        lookAhead = LookAhead(replica: replica, listings: listings, atOnce: 2 * ahead)
        fileLookAhead = FileLookAhead(
            replica: replica, downloads: downloads, atOnce: ahead, cacheLimit: cacheLimits.bytes,
            accounting: accounting ?? NoFetchAccounting())
        eviction = Eviction(
            replica: replica, open: open, commits: commits, downloads: downloads, listings: listings,
            lookAhead: lookAhead, fileLookAhead: fileLookAhead, listingRetries: listingRetries, events: happenings)
        let early = isInteractive ? nil : EarlySending(replica: replica, calls: calls)
        self.early = early
        uploads = Uploads(
            replica: replica, connection: connection,
            executor: Executor(
                replica: replica, calls: calls, commits: commits, warnings: warnings, events: happenings,
                early: early,
                bringHere: { [replica, listings, downloads, budget] number in
                    try await budget.whileNothingIsTrimmed {
                        try await RecursiveDownload(replica: replica, listings: listings, downloads: downloads)
                            .run(number, request: FileProviderRequest(reason: .synchronization))
                    }
                },
                conflictLabel: conflictLabel),
            traffic: traffic, listings: listings, limit: provider.features.concurrentCalls,
            isReadOnly: isReadOnly, isInteractive: isInteractive,
            onIdle: {
                trashKeeper.wake()
                attached.reimporting?.wake()
                if (try? replica.database.directoriesToCompare().isEmpty) == false { schedule.refresh() }
            })
        keeper = Keeper(
            replica: replica, connection: connection, listings: listings, downloads: downloads, warnings: warnings)
        reimporting = Reimporting(
            replica: replica, calls: calls, uploads: uploads, commits: commits, warnings: warnings,
            events: happenings,
            onFinish: { [feed] in
                Task {
                    await feed.distrust()
                    schedule.refresh()
                }
            })
        attached.attach(
            Attached.Parts(
                uploads: uploads, keeper: keeper, budget: budget, eviction: eviction, trash: trashKeeper,
                listingRetries: isInteractive ? nil : listingRetries, notices: notices, reimporting: reimporting))
    }

    /// Whether the provider tells of changes by itself.
    package var hasChangeFeed: Bool { calls.provider.features.changeFeed }

    /// What the provider says of its remote.
    package var remarks: [String] { calls.provider.remarks }

    /// Begins to look for changes. Returns at once.
    package func start() {
        guard !isInteractive else { return }
        schedule.run(
            refresh: { [feed, trashKeeper, poller, schedule] in
                let start = ContinuousClock.now
                var failure: FileProviderError?
                do throws(FileProviderError) { try await feed.refresh() } catch { failure = error }
                schedule.roundEnded(with: failure)
                poller.roundEnded(after: .now - start)
                trashKeeper.wake()
            }, connection: connection)
        poller.run(
            compare: { [feed, connection] in if connection.failure == nil { await feed.glance(at: $0) } },
            // While it is away somebody else tries whether it is back.
            refresh: { [schedule, connection] in if connection.failure == nil { schedule.refresh() } })
        schedule.refresh()
        room.ask()
        Task {
            await retryWhatWasReadOnly()
            await uploads.start()
            await reimporting.start()
            if hasTrash { await trashKeeper.start() }
            await keeper.start()
            await documents.start()
            if calls.provider.features.followsLocalSets {
                for notice in notices { await notice.start() }
            }
            await budget.start()
        }
    }

    /// Why nothing is sent at present: the domain is read-only, or the remote is not asked.
    package var obstacleToSending: FileProviderError? {
        isReadOnly ? ReadOnlyProvider.refusal : connection.failure
    }

    /// A domain that was read-only when it was mounted last may be written again: what was refused for that is tried now.
    private func retryWhatWasReadOnly() async {
        do {
            let wasReadOnly = try replica.database.value(of: .wasReadOnly) != nil
            guard wasReadOnly != isReadOnly else { return }
            if wasReadOnly { try await commits.commit { try $0.retryNow(nil) } }
            try replica.database.set(.wasReadOnly, to: isReadOnly ? "1" : nil)
        } catch {
            warnings.report("whether the domain is read-only cannot be recorded: \(error)")
        }
    }

    /// Other limits hold from now on.
    package func keep(to limits: CacheLimits) async {
        await fileLookAhead.keep(to: limits.bytes)
        await budget.keep(to: limits)
    }

    /// Looks for changes in another way from now on.
    package func poll(_ polling: Polling) {
        schedule.change(to: polling)
        poller.activate(polling == .adaptive)
        signal()
    }

    /// Ends everything that is under way and keeps what is here. Waits for the provider only as long as `patience`.
    package func stop(patience: Duration = .seconds(2)) async {
        schedule.stop()
        poller.stop()
        happenings.finish()
        early?.stop()
        await uploads.stop(patience: patience)
        await reimporting.stop()
        await trashKeeper.stop()
        await keeper.stop()
        await budget.stop()
        for notice in notices { await notice.stop() }
        await documents.stop()
        room.stop()
        await listingRetries.stop()
        await lookAhead.stop()
        await fileLookAhead.stop()
        await feed.stop()
        await listings.stop()
        await downloads.stopAll()
        await uses.write()
        await withTaskGroup(of: Void.self) { group in
            group.addTask { [provider = calls.provider] in await provider.invalidate() }
            group.addTask { try? await Task.sleep(for: patience) }
            await group.next()
            group.cancelAll()
        }
        attached.detach()
    }

    /// A process has had as much fetched as it may, and wanted more of a file.
    package func tellOverBudget(_ number: InodeNumber, process: String, fetched: Int64) {
        let name = (try? replica.database.item(ofInode: number))?.name ?? ""
        happenings.tell(.overBudget, of: number, named: name, bytes: fetched, process: process)
    }

    /// What happens between this machine and the remote, from now on.
    package var events: AsyncStream<SyncEvent> { happenings.stream }

    // MARK: - What processes wait for

    /// Lists a directory; with `beyond`, until there is an entry after that item.
    ///
    /// - Throws: ``FileProviderError``; `userCancelled` when the task was cancelled.
    package func list(
        _ number: InodeNumber, beyond: Int64? = nil, request: FileProviderRequest
    ) async throws(FileProviderError) {
        try await listings.list(number, beyond: beyond, request: request)
        await lookAhead.listed(number)
        poller.directoryWasOpened(number)
    }

    /// A process asked for a name that a listed directory does not have. Returns at once.
    package func nameWasMissed(in directory: InodeNumber) {
        poller.nameWasMissed(in: directory)
    }

    /// A process opened a directory whose listing is here: it may be walking.
    package func directoryWasOpened(_ number: InodeNumber) {
        poller.directoryWasOpened(number)
        Task { await lookAhead.listed(number) }
    }

    /// Brings a range of a file here, of the content version that was opened.
    package func provide(
        _ number: InodeNumber, version: [UInt8], range: Range<Int64>, request: FileProviderRequest
    ) async throws(FileProviderError) {
        if request.reason == .reading { fileLookAhead.fileIsMissed(number, by: request.processIdentifier) }
        try await downloads.provide(number, version: version, range: range, request: request)
    }

    /// The last handle of an inode was closed: news that waited for that come in.
    package func inodeWasClosed(_ number: InodeNumber) {
        budget.wasClosed()
        downloads.fileWasClosed(number)
        closings.note(number)
    }

    /// A file was opened: it is of use. Returns at once; from any thread.
    package func inodeWasOpened(_ number: InodeNumber) {
        uses.note(number)
        documents.opened(number)
        poller.fileWasOpened(number)
        fileLookAhead.fileWasOpened(number)
    }

    // MARK: - What users ask for

    /// Materializes an item, a directory with all below it.
    ///
    /// - Parameter progress: called after each file and directory with the bytes that came.
    /// - Returns: what could not be had, each with its reason.
    package func download(
        _ number: InodeNumber, request: FileProviderRequest, progress: @escaping @Sendable (InodeNumber, Int64) -> Void
    ) async throws -> [(number: InodeNumber, error: FileProviderError)] {
        try await RecursiveDownload(replica: replica, listings: listings, downloads: downloads, progress: progress)
            .run(number, request: request)
    }

    /// Makes an item dataless, a directory with all below it.
    package func evict(
        _ number: InodeNumber, isStrict: Bool, progress: @Sendable (EvictionReport) -> Void = { _ in }
    ) async throws -> EvictionReport {
        try await eviction.evict(number, isStrict: isStrict, progress: progress)
    }

    /// Takes in the remote's changes up to now.
    package func refresh() async throws(FileProviderError) {
        connection.reset()
        uploads.wake()
        try await feed.refresh(isThorough: true)
        trashKeeper.wake()
    }

    /// The provider says that there are changes. Returns at once.
    package func signal() {
        schedule.refresh()
    }

    /// What made calls fail was put right.
    package func errorWasResolved() {
        connection.reset()
        schedule.refresh()
        uploads.wake()
        reimporting.wake()
        Task { await keeper.retryNow() }
    }

    /// The downloads under way: which inode, how much of how much.
    package var transfers: [(number: InodeNumber, done: Int64, total: Int64)] {
        get async { await downloads.transfers }
    }
}

/// What has to be told of recovery and commits, and is made after those who tell.
private final class Attached: Sendable {
    struct Parts: Sendable {
        var uploads: Uploads
        var keeper: Keeper
        var budget: CacheBudget
        var eviction: Eviction
        var trash: TrashKeeper
        /// None in interactive mode, in which nothing is asked for by itself.
        var listingRetries: ListingRetries?
        var notices: [LocalSetNotices]
        var reimporting: Reimporting
    }

    private let state = Mutex<Parts?>(nil)

    func attach(_ parts: Parts) {
        state.withLock { $0 = parts }
    }

    /// Breaks the cycles: the parts hold this, and through each other the provider with its descriptors.
    func detach() {
        state.withLock { $0 = nil }
    }

    var uploads: Uploads? { state.withLock { $0?.uploads } }
    var keeper: Keeper? { state.withLock { $0?.keeper } }
    var budget: CacheBudget? { state.withLock { $0?.budget } }
    var eviction: Eviction? { state.withLock { $0?.eviction } }
    var trash: TrashKeeper? { state.withLock { $0?.trash } }
    var listingRetries: ListingRetries? { state.withLock { $0?.listingRetries } }
    var notices: [LocalSetNotices] { state.withLock { $0?.notices ?? [] } }
    var reimporting: Reimporting? { state.withLock { $0?.reimporting } }
}
