import FileProvider
import Logging
import Replica

/// Synchronizes a domain's replica with its provider: lists and downloads on request, takes in remote changes,
/// uploads local ones. It constructs all parts of this target.
package final class SyncEngine: SyncPart {
    let isInteractive: Bool
    /// Whether nothing may be changed on the remote.
    package let isReadOnly: Bool
    let context: SyncContext
    let warningStore: WarningStore
    let listings: Listings
    let downloads: Downloads
    let feed: ChangeFeed
    let root: RootCheck
    let directoryPrefetcher: DirectoryPrefetcher
    let filePrefetcher: FilePrefetcher
    private let eviction: Eviction
    let materializer: BackgroundMaterializer
    let doubts: ContentDoubts
    let budget: CacheBudget
    let accessTimes: AccessTimes
    let contentSyncer: ContentSyncer
    let closedFiles: ClosedFileChanges
    let schedule: RefreshSchedule
    let uploads: Uploads
    /// Nil where the provider cannot take what is not whole yet.
    let early: EarlyUploads?
    let trashTidier: TrashTidier
    let documents: DocumentObserver
    let listingRetries: ListingRetries
    package let quota: QuotaMonitor
    let notifiers: [LocalSetNotifier]
    let reimports: ReimportWorker
    package let hasTrash: Bool

    /// - Parameters:
    ///   - open: which inodes processes have open.
    ///   - kernel: forgets what a commit made untrue.
    ///   - polling: how often to look for changes unasked.
    ///   - domainName: what the user calls the domain.
    ///   - patience: how long a call may make no progress.
    ///   - isReadOnly: nothing is changed on the remote. Changes that were made here before stay pending.
    ///   - isInteractive: nothing is sent or taken in unless it is asked for: for tests of every order.
    ///   - cacheLimits: how much content may be here.
    ///   - accounting: told how much is fetched for each process; nil for none.
    ///   - uploadDelays: how long changes are held back.
    ///   - conflictLabel: what is added to the names of conflict copies.
    package init(
        provider: any FileProviderReplicatedExtension, replica: Replica, open: any OpenInodes,
        kernel: any KernelCache, polling: Polling,
        domainName: String = "NAME", patience: Duration = Watchdog.usualPatience, isReadOnly: Bool = false,
        isInteractive: Bool = false, cacheLimits: CacheLimits = CacheLimits(),
        accounting: (any FetchAccounting)? = nil, uploadDelays: UploadDelays = UploadDelays(),
        conflictLabel: @escaping @Sendable () -> String = { "conflicted copy" }, logger: Logger
    ) {
        self.isReadOnly = isReadOnly
        self.isInteractive = isInteractive
        hasTrash = provider.features.trash && provider.features.writing
        let (warnings, syncEvents) = (Warnings(logger: logger), SyncEvents(domain: domainName))
        warningStore = WarningStore(warnings, in: replica)
        for finding in replica.findings { warnings.report(finding) }
        do {
            try replica.database.set(.hasTrash, to: hasTrash ? "1" : nil)
        } catch {
            warnings.report("whether there is a trash cannot be recorded: \(error)")
        }

        // What wakes a worker is made before the worker, so each part below needs only those above it.
        let (uploadsSignal, materializerSignal, reimportSignal) = (WakeSignal(), WakeSignal(), WakeSignal())
        let doubtful = ContentDoubts.Queue()
        let connection = Connection(logger: logger, changes: replica.database.changes)
        let schedule = RefreshSchedule(replica: replica, connection: connection, polling: polling)
        self.schedule = schedule
        let calls = ProviderCalls(
            provider: provider, isReadOnly: isReadOnly, connection: connection, patience: patience,
            metrics: CallMetrics(domain: domainName),
            onLatch: {
                syncEvents.tell(.offline, of: nil, named: connection.failure?.message ?? "")
                schedule.probe()
            },
            onRecovery: {
                syncEvents.tell(.online, of: nil, named: "the remote answers again")
                schedule.refresh()
                for signal in [uploadsSignal, materializerSignal, reimportSignal, doubtful.signal] { signal.wake() }
            })
        quota = QuotaMonitor(calls: calls)
        let notifiers = [
            LocalSetNotifier(of: .materialized, replica: replica, warnings: warnings) {
                await provider.materializedItemsDidChange()
            },
            LocalSetNotifier(of: .pending, replica: replica, warnings: warnings) {
                await provider.pendingItemsDidChange()
            },
        ]
        self.notifiers = notifiers
        accessTimes = AccessTimes(replica: replica)
        let budget = CacheBudget(replica: replica, accessTimes: accessTimes, warnings: warnings, limits: cacheLimits)
        self.budget = budget
        contentSyncer = ContentSyncer(replica: replica)
        let commits = Commits(
            replica: replica, open: open, kernel: kernel, warnings: warnings,
            versionsMayRepeat: provider.features.contentVersionsMayRepeat,
            onCommit: {
                materializerSignal.wake()
                budget.wake()
            },
            onConflict: { number in
                let name = (try? replica.database.item(ofInode: number)).flatMap(\.self)?.name
                syncEvents.tell(.conflict, of: number, named: name ?? "")
            },
            onSomethingToSend: { uploadsSignal.wake() },
            onDoubt: { files in doubtful.add(files, isOpen: { open.isOpen($0) }) },
            onPublish: { for notifier in notifiers { notifier.wake() } })
        let guardian = DeletionGuard(
            domainName: domainName, warnings: warnings,
            hold: (try? replica.database.bytes(of: .changesAreHeld)).flatMap(\.self)
                .flatMap { DeletionGuard.Hold(String(decoding: $0, as: UTF8.self)) },
            onChange: { hold in
                do {
                    try replica.database.set(.changesAreHeld, to: hold?.text)
                } catch {
                    warnings.report("what is held cannot be recorded: \(error)")
                }
                if hold?.isOfNearlyAll != true {
                    // What has waited for that: less may be held now. Once nothing is, it is tried also if this cannot be recorded.
                    Task {
                        try? await commits.commit(changingNames: false) {
                            try $0.answers.retryNow(after: [.removalsAreHeld])
                        }
                        uploadsSignal.wake()
                    }
                }
                // A read may have found it: a round has to see whether it is so still.
                if hold != nil { schedule.refresh() }
            })
        let context = SyncContext(
            replica: replica, open: open, calls: calls, commits: commits, guardian: guardian, warnings: warnings,
            events: syncEvents)
        self.context = context
        closedFiles = ClosedFileChanges(context)
        let offers = OfferQueue(context, uploads: uploadsSignal)

        listingRetries = ListingRetries(replica: replica)
        let listings = Listings(
            context, retries: isInteractive ? nil : listingRetries, offers: offers,
            onIncomplete: { schedule.compareNoted() })
        self.listings = listings
        root = RootCheck(context)
        let feed = ChangeFeed(
            context, listings: listings, root: root, askForRound: { schedule.refreshInTime() })
        self.feed = feed
        let absence = AbsenceCheck(context, feed: feed)
        let downloads = Downloads(
            context, budget: budget, syncer: contentSyncer, offers: offers, absence: absence, accounting: accounting,
            onMaterialization: { doubtful.useMayHaveEnded(of: $0) })
        self.downloads = downloads
        // Background calls have three quarters of the places.
        let ahead = max(1, provider.features.concurrentCalls * 3 / 4)
        // Twice as many listings: while one is recorded, the next is requested.
        directoryPrefetcher = DirectoryPrefetcher(replica: replica, listings: listings, atOnce: 2 * ahead)
        filePrefetcher = FilePrefetcher(
            replica: replica, downloads: downloads, atOnce: ahead, cacheLimit: cacheLimits.bytes,
            accounting: accounting)
        eviction = Eviction(
            context: context, downloads: downloads, listings: listings, directoryPrefetcher: directoryPrefetcher,
            filePrefetcher: filePrefetcher, listingRetries: listingRetries)
        documents = DocumentObserver(context, absence: absence)

        early = isInteractive ? nil : EarlyUploads(context)
        uploads = Uploads(
            executor: Executor(
                context: context, delays: uploadDelays, early: early,
                root: root, feed: feed, syncer: contentSyncer,
                compareAll: { schedule.refresh() },
                bringHere: { number in
                    try await budget.whileNothingIsTrimmed {
                        try await RecursiveDownload(context: context, listings: listings, downloads: downloads)
                            .run(number, request: FileProviderRequest(reason: .synchronization))
                    }
                },
                conflictLabel: conflictLabel),
            offers: offers, signal: uploadsSignal, isInteractive: isInteractive,
            onIdle: {
                reimportSignal.wake()
                schedule.compareNoted()
            },
            onLateAnswer: { schedule.compareNoted() })
        materializer = BackgroundMaterializer(
            context, listings: listings, downloads: downloads, signal: materializerSignal)
        doubts = ContentDoubts(context, queue: doubtful)
        trashTidier = TrashTidier(context)
        reimports = ReimportWorker(
            context, signal: reimportSignal, uploads: uploadsSignal,
            onFinish: {
                Task {
                    await feed.compareAllNext()
                    schedule.refresh()
                }
            })
    }

    /// Whether the remote answers.
    package var connection: Connection { calls.connection }

    /// The content bytes received and sent since the domain was mounted.
    package var traffic: ContentTraffic { calls.traffic }

    /// Whether the provider tells of changes by itself.
    package var hasChangeFeed: Bool { calls.provider.features.changeFeed }

    package var remarks: [String] { calls.provider.remarks }

    /// A process has had as much fetched as it may, and wanted more of a file.
    package func tellOverBudget(_ number: InodeNumber, process: String, fetched: Int64) {
        context.events.tell(.overBudget, of: number, named: name(of: number), bytes: fetched, process: process)
    }

    package var events: AsyncStream<SyncEvent> { context.events.stream }

    // MARK: - What processes wait for

    /// Lists a directory; with `beyond`, until there is an entry after that item.
    ///
    /// - Throws: ``FileProviderError``; `userCancelled` when the task was cancelled.
    package func list(
        _ number: InodeNumber, beyond: Int64? = nil, request: FileProviderRequest
    ) async throws(FileProviderError) {
        try await sendingPermissions(of: number) { () throws(FileProviderError) in
            try await listings.list(number, beyond: beyond, request: request)
        }
        await directoryPrefetcher.listed(number)
        schedule.directoryWasOpened(number)
    }

    /// Lists a directory and all directories below it that are not listed yet.
    package func listAll(below number: InodeNumber, request: FileProviderRequest) async throws(FileProviderError) {
        let listing = RecursiveListing(replica: replica) { [self] directory async throws(FileProviderError) in
            try await sendingPermissions(of: directory) { () throws(FileProviderError) in
                try await listings.list(directory, beyond: nil, request: request)
            }
        }
        do {
            try await listing.run(number)
        } catch {
            throw ProviderCalls.failure(from: error)
        }
    }

    /// A process asked for a name that a listed directory does not have. Returns at once.
    package func nameWasMissed(in directory: InodeNumber) {
        schedule.nameWasMissed(in: directory)
    }

    /// A process opened a directory whose listing is here: it may be walking.
    package func directoryWasOpened(_ number: InodeNumber) {
        schedule.directoryWasOpened(number)
        Task { await directoryPrefetcher.listed(number) }
    }

    /// Brings a range of a file here, of the content version that was opened.
    package func provide(
        _ number: InodeNumber, version: [UInt8], range: Range<Int64>, request: FileProviderRequest
    ) async throws(FileProviderError) {
        if request.reason == .reading { filePrefetcher.fileIsMissed(number, by: request.processIdentifier) }
        try await sendingPermissions(of: number) { () throws(FileProviderError) in
            try await downloads.provide(number, version: version, range: range, request: request)
        }
    }

    /// The last handle of an inode was closed: remote changes that waited for that are taken in.
    package func inodeWasClosed(_ number: InodeNumber) {
        budget.wasClosed()
        downloads.fileWasClosed(number)
        closedFiles.note(number)
        doubts.useMayHaveEnded(of: number)
    }

    /// The last process that could write a file has closed it, and others read it. Returns at once; from any thread.
    package func writingHasEnded(_ number: InodeNumber) { doubts.useMayHaveEnded(of: number) }

    /// All content files were compared with their rows: content is synced again. Returns at once; from any thread.
    package func contentFilesWereCompared() { contentSyncer.wake() }

    /// A file was opened: it is of use. Returns at once; from any thread.
    package func inodeWasOpened(_ number: InodeNumber) {
        accessTimes.note(number)
        documents.opened(number)
        schedule.fileWasOpened(number)
        filePrefetcher.fileWasOpened(number)
        doubts.fileWasOpened(number)
    }

    // MARK: - What users ask for

    /// Materializes an item, a directory with all below it.
    ///
    /// - Parameter progress: called after each file and directory with the bytes that came.
    /// - Returns: what could not be had, each with its reason.
    package func download(
        _ number: InodeNumber, request: FileProviderRequest, progress: @escaping @Sendable (InodeNumber, Int64) -> Void
    ) async throws -> [(number: InodeNumber, error: FileProviderError)] {
        try await RecursiveDownload(context: context, listings: listings, downloads: downloads, progress: progress)
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
        defer { schedule.compareLater() }
        try await feed.refresh(isThorough: true)
        schedule.roundSucceeded()
        trashTidier.wake()
    }

    /// Asks the remote for its root. A remote that does not answer latches the domain, as after any other call.
    ///
    /// - Throws: why the remote is not asked, or what it has answered instead.
    package func probe() async throws(FileProviderError) {
        let request = FileProviderRequest(reason: .synchronization)
        // The user waits for it, beside what is done in the background.
        _ = try await context.calls.make(.item, for: request, urgency: CallUrgency(true)) {
            try await $0.item(for: .rootContainer, request: request)
        }
    }

    /// The provider says that there are changes. Returns at once.
    package func signal() {
        schedule.refresh()
    }

    /// The provider says that what waits because of an error can be done.
    package func errorWasResolved(_ code: FileProviderError.Code) async {
        do {
            // An error of one item alone is stored with another code.
            let codes: Set = [code, FileProviderError(code).ofItemAlone.code]
            try await commits.commit(changingNames: false) { try $0.answers.retryNow(after: codes) }
        } catch {
            warnings.report("what waits because of an error that is resolved cannot be tried now: \(error)")
        }
        errorWasResolved()
    }

    /// The user has resolved what made calls fail.
    package func errorWasResolved() {
        connection.reset()
        schedule.refresh()
        uploads.wake()
        reimports.wake()
        doubts.wake()
        Task { await materializer.retryNow() }
    }

    /// The downloads under way: which inode, how much of how much.
    package var transfers: [(number: InodeNumber, done: Int64, total: Int64)] {
        get async { await downloads.transfers }
    }
}
