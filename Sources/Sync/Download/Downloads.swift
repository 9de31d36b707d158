import FileProvider
import Replica
import Synchronization
import SystemPackage

/// All transfers of content to this machine: one per file, however many processes read it.
actor Downloads: ContentEvictor, SyncPart {
    nonisolated let context: SyncContext
    private let budget: CacheBudget
    private let syncer: ContentSyncer
    private let accounting: (any FetchAccounting)?
    private let offers: OfferQueue
    private let absence: AbsenceCheck
    private let onMaterialization: @Sendable (InodeNumber) -> Void
    /// Generations of content that was begun and never arrived, of files that are open.
    private nonisolated let leftBehind = Mutex<[InodeNumber: Int64]>([:])
    /// The effects for files that are open: they are published when the last handle is closed.
    private nonisolated let postponed = Mutex<[InodeNumber: ReplicaEffects]>([:])
    private var active: [InodeNumber: Task<Download, any Error>] = [:]
    private var running: [InodeNumber: Download] = [:]
    /// Transfers that are over and whose end is being recorded: another of the same file begins after that.
    private var closing: [InodeNumber: Task<Void, Never>] = [:]
    private var recording: [InodeNumber: Task<Void, Never>] = [:]
    /// Lookups of items whose content changed on the remote while it was fetched.
    private var refreshes: [InodeNumber: Task<Void, Never>] = [:]
    private var isStopped = false

    /// - Parameters:
    ///   - offers: waits until the provider has recognized an item whose identifier was given up.
    ///   - onMaterialization: called when all of a file has come and is recorded; returns at once.
    init(
        _ context: SyncContext, budget: CacheBudget, syncer: ContentSyncer, offers: OfferQueue, absence: AbsenceCheck,
        accounting: (any FetchAccounting)?, onMaterialization: @escaping @Sendable (InodeNumber) -> Void
    ) {
        self.context = context
        self.absence = absence
        self.budget = budget
        self.syncer = syncer
        self.offers = offers
        self.accounting = accounting
        self.onMaterialization = onMaterialization
    }

    /// Waits until a range of a file is on the local disk, of the version that the reader opened.
    ///
    /// - Parameters:
    ///   - version: nil for whichever version the file shows now.
    ///   - range: nil for the whole file.
    func provide(
        _ number: InodeNumber, version: [UInt8]?, range: Range<Int64>?, request: FileProviderRequest
    ) async throws(FileProviderError) {
        try await provide(number, version: version, range: range, request: request, searchesMissing: true)
    }

    /// - Parameter searchesMissing: whether a file that the provider does not find is searched for.
    private func provide(
        _ number: InodeNumber, version: [UInt8]?, range: Range<Int64>?, request: FileProviderRequest,
        searchesMissing: Bool
    ) async throws(FileProviderError) {
        var latest: Download?
        do {
            try await offers.settle(number)
            while true {
                let download = try await download(of: number, version: version)
                latest = download
                if try stopIfOutdated(download) {
                    await close(download)
                    continue
                }
                if let version, download.version != version {
                    throw FileProviderError(.versionNoLongerAvailable, itemIdentifier: download.identifier)
                }
                if try await download.wait(for: range ?? 0..<download.size, request: request) {
                    return
                }
                await close(download)
            }
        } catch {
            let failure = ProviderCalls.failure(from: error)
            if failure.code == .malformedResponse { warnings.report(failure.message, of: .content(number)) }
            if failure.code == .noSuchItem, await absence.findAgainOrRemove(number, searches: searchesMissing) {
                return try await provide(
                    number, version: version, range: range, request: request, searchesMissing: false)
            }
            if failure.code == .noSuchItem || failure.code == .versionNoLongerAvailable {
                await releaseOnRemote(number)
            }
            if failure.code == .versionNoLongerAvailable {
                // An open file that no process has read from goes on with the new version.
                if let latest { await refresh(latest) }
                if let version, let now = try? replica.database.inode(number), now.contentVersion != version {
                    throw failure
                }
            }
            await commits.recordFailure(failure, of: number)
            throw failure
        }
    }

    /// Records what is here of a file and waits for it, so that the database knows.
    func settle(_ number: InodeNumber) async {
        if let download = running[number] { await record(download) }
        await closing[number]?.value
    }

    /// For which process a file is being fetched, in words; nil for none.
    func cause(of number: InodeNumber) -> String? { running[number]?.cause }

    /// For which processes a file is being fetched and cannot be evicted; nil stands for a call that no process made.
    func waiters(of number: InodeNumber) -> [String?] { running[number]?.foregroundWaiters ?? [] }

    /// Whether a range of a version of a file is on the disk because it has just come.
    func holds(_ number: InodeNumber, version: [UInt8], range: Range<Int64>) -> Bool {
        guard let download = running[number], download.version == version, download.holds(range),
            let inode = try? replica.database.inode(number)
        else { return false }
        // The content may have been begun anew since.
        return inode.contentGeneration == download.generation
    }

    /// Whether bytes of a file are on the disk because they have just come.
    func holdsAny(of number: InodeNumber) -> Bool { running[number]?.holdsAny == true }

    /// Records what idle transfers have fetched.
    func settleIdle() async {
        for download in running.values where !download.isRunning && !download.isWaitedFor { await record(download) }
    }

    /// Stops a file's transfer.
    ///
    /// - Returns: false when a process waits for it.
    func stop(_ number: InodeNumber) -> Bool {
        guard let download = running[number] else { return true }
        guard download.stopUnlessWaitedFor() else { return false }
        forget(download)
        return true
    }

    func evictIfUnused(_ number: InodeNumber) async -> Int64? {
        guard !open.isOpen(number), running[number]?.isRunning != true,
            (try? replica.database.isKept(number)) == false, stop(number),
            let (freed, effects) = try? await replica.evictFile(number, open: open)
        else { return nil }
        commits.publish(effects)
        events.tell(.evicted, of: number, named: name(of: number), bytes: freed)
        return freed
    }

    /// Stops everything, for good, and records what is here.
    func stopAll() async {
        isStopped = true
        for download in running.values {
            download.shutDown()
            await close(download)
        }
        // Those that were over before.
        for end in closing.values { await end.value }
    }

    /// The transfers under way: which inode, how much of how much.
    var transfers: [(number: InodeNumber, done: Int64, total: Int64)] {
        running.values.filter { $0.isRunning }.map { ($0.number, $0.progress.done, $0.progress.total) }
    }

    // MARK: - Private

    private func download(of number: InodeNumber, version: [UInt8]?) async throws -> Download {
        guard !isStopped else { throw FileProviderError(.domainDisabled) }
        while let end = closing[number] {
            await end.value
            if closing[number] == end { closing[number] = nil }
        }
        if let task = active[number] { return try await started(task, of: number) }
        let task = Task {
            let beginning = try await begin(number, version: version)
            return Download(
                beginning, number: number, calls: calls, budget: budget, evictor: self, accounting: accounting,
                observe: { [ordering = replica.ordering] in ordering.observe() },
                onEvent: { download, event in self.handle(event, of: download) })
        }
        active[number] = task
        do {
            return try await started(task, of: number)
        } catch {
            if active[number] == task { active[number] = nil }
            throw error
        }
    }

    private func started(_ task: Task<Download, any Error>, of number: InodeNumber) async throws -> Download {
        let download = try await task.value
        // Another reader may have found it outdated, and have begun the next one.
        if active[number] == task { running[number] = download }
        return download
    }

    /// Stops a transfer that no process waits for if it brings what the file has not any more.
    ///
    /// - Returns: whether the next one has to be begun.
    private func stopIfOutdated(_ download: Download) throws -> Bool {
        guard let inode = try replica.database.inode(download.number) else { return false }
        guard inode.contentGeneration == download.generation else {
            // It was evicted while the transfer began, or has got another version: the bytes go to a content file that is not in its place
            // any more.
            _ = download.stopUnlessWaitedFor()
            return true
        }
        // The remote has made another version of a date that was sent, and the content stays. Two transfers must not write to its file.
        return inode.contentVersion != download.version && download.stopUnlessWaitedFor()
    }

    private nonisolated func handle(_ event: Download.Event, of download: Download) {
        switch event {
        case .begins(let process):
            let name = name(of: download.number)
            events.tell(.downloading, of: download.number, named: name, bytes: download.size, process: process)
        case .attributes(let item, let observation):
            Task {
                do {
                    try await remoteLookup.recordAttributes(of: item, observed: observation)
                } catch {
                    warnings.report("what came with '\(item.itemIdentifier)' cannot be recorded: \(error)")
                }
            }
        case .advanced: Task { await record(download) }
        case .idle:
            Task {
                guard download.endIfIdle() else { return }
                // Not when a reader has been served: the fetch that served it may fail afterwards.
                if !download.hasFailed { warnings.succeeded(.content(download.number)) }
                await close(download)
            }
        case .versionGone: Task { await refresh(download) }
        case .overflow(let error):
            warnings.report(error.message, of: .content(download.number))
            // None of the bytes are kept. The size may be outdated, so the next reader begins anew.
            Task { await close(download) }
        }
    }

    private func begin(_ number: InodeNumber, version: [UInt8]?) async throws -> ContentBeginning {
        // Without a connection nothing is begun: the file stays dataless.
        if let inode = try replica.database.inode(number), inode.content == .dataless, inode.size > 0 {
            try calls.connection.check()
        }
        do {
            return try await replica.beginContent(of: number, version: version)
        } catch {
            let failure = ProviderCalls.failure(from: error)
            guard failure.errno == .noSpace, await budget.makeRoom(1, for: number, evictor: self) else { throw failure }
            return try await replica.beginContent(of: number, version: version)
        }
    }

    private func forget(_ download: Download) {
        guard running[download.number] === download else { return }
        running[download.number] = nil
        active[download.number] = nil
    }

    /// Records what a transfer that is over has brought, once, and forgets it.
    private func close(_ download: Download) async {
        guard running[download.number] === download else { return }
        forget(download)
        let end = Task { await record(download) }
        closing[download.number] = end
        await end.value
        if closing[download.number] == end { closing[download.number] = nil }
    }

    /// Records what a transfer has brought. One after the other: what has nothing left to record takes a file for empty that
    /// another is just recording.
    private func record(_ download: Download) async {
        let previous = recording[download.number]
        let task = Task {
            await previous?.value
            await self.write(download)
        }
        recording[download.number] = task
        await task.value
        if recording[download.number] == task { recording[download.number] = nil }
    }

    private func write(_ download: Download) async {
        do {
            if let ranges = download.takeUnrecorded() {
                guard
                    let effects = try await replica.recordContent(
                        of: download.number, generation: download.generation, ranges: ranges,
                        cause: download.cause)
                else { return budget.wake() }
                publish(effects, of: download.number)
                if ranges.contains(0..<download.size) { onMaterialization(download.number) }
                budget.wake()
                syncer.wake()
                guard !download.isRunning else { return }
                events.tell(
                    .downloaded, of: download.number, named: name(of: download.number), bytes: ranges.count,
                    process: download.cause)
            } else if running[download.number] !== download {
                budget.wake()
                // The next reader may join a transfer that is not over, and needs its file.
                try await abandon(download.number, generation: download.generation)
            }
        } catch {
            warnings.report("what was downloaded of '\(download.identifier)' cannot be recorded: \(error)")
        }
    }

    /// Tells the kernel how much of a file is here, when no process has it open: the kernel drops the answer to a GETATTR that
    /// an invalidation overtakes, and a reader would go on with an old size.
    private func publish(_ effects: ReplicaEffects, of number: InodeNumber) {
        // The same of every recording.
        postponed.withLock { $0[number] = effects }
        if !open.isOpen(number) { publishPostponed(number) }
    }

    private nonisolated func publishPostponed(_ number: InodeNumber) {
        if let effects = postponed.withLock({ $0.removeValue(forKey: number) }) { commits.publish(effects) }
    }

    /// Content that never arrived is given up as soon as no process has the file open.
    private func abandon(_ number: InodeNumber, generation: Int64) async throws {
        leftBehind.withLock { $0[number] = generation }
        repeat {
            guard try await replica.abandonContent(of: number, generation: generation, open: open) else { continue }
            leftBehind.withLock { if $0[number] == generation { $0[number] = nil } }
            return
            // Closed before that could be known.
        } while !open.isOpen(number)
    }

    /// The last handle of a file was closed. Returns at once; from any thread.
    nonisolated func fileWasClosed(_ number: InodeNumber) {
        publishPostponed(number)
        guard let generation = leftBehind.withLock({ $0[number] }) else { return }
        Task { await self.abandonIfIdle(number, generation: generation) }
    }

    private func abandonIfIdle(_ number: InodeNumber, generation: Int64) async {
        // A transfer that is under way sees to it at its end.
        guard active[number] == nil else { return }
        do {
            try await abandon(number, generation: generation)
        } catch {
            warnings.report("what was begun of inode \(number) cannot be given up: \(error)")
        }
    }

    /// Nothing waits any more for content that the remote does not have.
    private func releaseOnRemote(_ number: InodeNumber) async {
        do {
            // In a task of its own: the reader may have been cancelled, and the deletion would wait for ever.
            try await Task { [replica] in try await replica.releaseOnRemote(number) }.value
        } catch {
            let names = (try? replica.database.path(of: number)) ?? nil
            let file = names.map { "'\($0.joined(separator: "/"))'" } ?? "a removed file (inode \(number))"
            warnings.report("that the remote has lost the content of \(file) cannot be recorded: \(error)")
        }
    }

    /// The remote has moved on: what is here may be of two versions and is not trusted. The item is looked up, so that the
    /// next who opens it reads the new version.
    private func refresh(_ download: Download) async {
        if let task = refreshes[download.number] { return await task.value }
        guard running[download.number] === download else { return }
        let task = Task { await lookUp(download) }
        refreshes[download.number] = task
        await task.value
        refreshes[download.number] = nil
    }

    private func lookUp(_ download: Download) async {
        await close(download)
        do {
            try await absence.refresh(download.identifier)
        } catch {
            warnings.report("'\(download.identifier)' changed on the remote and cannot be looked up: \(error)")
        }
    }
}
