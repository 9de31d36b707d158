import FileProvider
import Replica

/// Takes in the remote's changes: on the provider's signal, on a timer, or by command; one round at a time.
actor ChangeFeed: SyncPart {
    let context: SyncContext
    private let listings: Listings
    private let root: RootCheck
    private let request = FileProviderRequest(reason: .synchronization)
    private let missing: MissingItems
    private let askForRound: @Sendable () -> Void
    private var running: Task<Void, any Error>?
    private var isAskedAgain = false
    private var isStopped = false
    private var lastRound: (end: ContinuousClock.Instant, took: Duration)?
    /// When the last round began that has decided about all that is missing; nil before the first.
    private(set) var lastGoodRoundBegan: ContinuousClock.Instant?
    /// After a round nothing but a command asks for another for so many times as long.
    private static let pauseInRounds = 10

    private var trust = ComparisonTrust()
    /// The row number of the item in no directory that was looked up last; 0 before the first.
    private var lastUnplaced: Int64 = 0
    /// After this time a round ends although the feed says that more changes are coming, and the next one goes on from there.
    var longestReport = Duration.seconds(600)
    /// What is wrong with a feed that says that more changes are coming and makes no progress.
    private var stall: FileProviderError?
    /// Whether the present round has decided about all that is missing, although a directory could not be compared.
    private var areMissingDecided = false

    /// A command wants the directories that could not be compared tried again in the next round.
    private var retriesFailuresNext = false
    /// The round that runs tries them again, and fails itself where the answer is malformed.
    private var retriesFailures = false
    /// The failure of a directory that the present round has left to be compared again alone.
    private var malformed: FileProviderError?
    /// The directories that could not be compared in the present round.
    private var left: Set<InodeNumber> = []

    /// - Parameter askForRound: has a round made as soon as the rounds before it allow, and repeated after a failure.
    init(
        _ context: SyncContext, listings: Listings, root: RootCheck, askForRound: @escaping @Sendable () -> Void
    ) {
        self.context = context
        self.root = root
        self.askForRound = askForRound
        self.listings = listings
        missing = MissingItems(context, listings: listings, request: request)
    }

    /// Takes in all changes up to now. Calls during a round share one more round after it.
    ///
    /// - Parameter isThorough: nothing is believed that may leave something out, and what has failed is tried again.
    func refresh(isThorough: Bool = false) async throws(FileProviderError) {
        if isThorough {
            trust.ask()
            retriesFailuresNext = true
        }
        do {
            if let current = running {
                isAskedAgain = true
                _ = try? await current.value
                if let next = running {
                    try await next.value
                    return
                }
            }
            try await startRound().value
        } catch {
            throw ProviderCalls.failure(from: error)
        }
    }

    /// Takes in what a provider with a change feed has to report since the last anchor, and nothing where it cannot. This is no round for
    /// ``DeletionGuard``: the count of items that were removed one by one stays.
    func takeNewsOnly() async throws {
        while let running { _ = try? await running.value }
        try Task.checkCancellation()
        let task = Task {
            defer { self.finishRound() }
            var isAsked = false
            do {
                try missing.begin()
                try await refreshRoot()
                let isAll = try await withEnumerator { enumerator in
                    isAsked = true
                    return try await self.takeReported(by: enumerator)
                }
                // Only a round compares all directories, or those that the news leave in doubt.
                if try !isAll || !replica.database.comparisons().due.isEmpty { askForRound() }
            } catch {
                // The provider need not signal again what it has told already.
                if isAsked { askForRound() }
                throw error
            }
        }
        running = task
        // A round that comes meanwhile waits for this task. The reader cancels it when it waits no longer.
        try await withTaskCancellationHandler {
            try await task.value
        } onCancel: {
            task.cancel()
        }
    }

    /// The next look is at everything, whatever the remote says has changed.
    func compareAllNext() {
        trust.expire()
    }

    /// Compares a few directories and nothing else: where the provider can tell what changed, it is asked for that. While
    /// a round is under way nothing is done, for that compares all.
    func compareOnly(_ directories: [InodeNumber]) async {
        guard running == nil else { return }
        let task = Task {
            defer { self.finishRound() }
            if calls.provider.features.changeFeed { return try await round() }
            switch try await reports.kind() {
            case .ofAll: try await round()
            case .ofDirectories(areComplete: true): try await compareNow(directories, areReported: true)
            case .ofDirectories, .none: try await compareNow(directories)
            }
        }
        running = task
        _ = try? await task.value
    }

    private func compareNow(_ directories: [InodeNumber], areReported: Bool = false) async throws {
        guard try await few.compare(directories, areReported: areReported) == nil else { return }
        if let last = lastRound, .now - last.end < last.took * Self.pauseInRounds { return }
        isAskedAgain = true
    }

    /// Compares the directories that were noted to be compared, and nothing else.
    ///
    /// - Returns: how long it took.
    func compareNoted() async -> Duration {
        while let running { _ = try? await running.value }
        guard !isStopped, let due = try? replica.database.comparisons().due, !due.isEmpty else { return .zero }
        let start = ContinuousClock.now
        let task: Task<Void, any Error> = Task {
            defer { self.finishRound() }
            if (try? await few.compareNoted(due)) != true { askForRound() }
        }
        running = task
        _ = try? await task.value
        return .now - start
    }

    func stop() {
        isStopped = true
        running?.cancel()
    }

    // MARK: - Private

    private func startRound() -> Task<Void, any Error> {
        if let running { return running }
        guard !isStopped else { return Task { throw FileProviderError(.domainDisabled) } }
        isAskedAgain = false
        (retriesFailures, retriesFailuresNext) = (retriesFailuresNext, false)
        let task = Task {
            defer { self.finishRound() }
            try await self.round()
        }
        running = task
        return task
    }

    private func finishRound() {
        running = nil
        retriesFailures = false
        if isAskedAgain { _ = startRound() }
    }

    private var trash: TrashListing { TrashListing(context: context) }
    private var news: AnchoredChanges { AnchoredChanges(context: context, request: request, missing: missing) }

    private func round() async throws {
        let start = ContinuousClock.now
        defer { lastRound = (.now, .now - start) }
        do {
            try await takeInAll()
            warnings.succeeded(.changes)
        } catch {
            let failure = ProviderCalls.failure(from: error)
            if failure.code.reaction != .latchDomain || calls.connection.failure == nil, !Task.isCancelled {
                warnings.report("changes on the remote cannot be taken in: \(failure)", of: .changes)
            }
            throw error
        }
    }

    private func takeInAll() async throws {
        let start = ContinuousClock.now
        guardian.beginRound()
        try missing.beginRound()
        try await refreshRoot()
        await root.lookAgain()
        (malformed, left) = (nil, [])
        areMissingDecided = false
        do {
            try await takeNews()
            try await compareIncomplete()
            lastUnplaced = try await remoteLookup.refreshUnplaced(after: lastUnplaced, for: request)
        } catch {
            if areMissingDecided { guardian.endRound() }
            throw error
        }
        guardian.endRound()
        lastGoodRoundBegan = start
        if guardian.warning == nil { try missing.noteSettled() }
        if let stall { throw stall }
        if retriesFailures, let malformed { throw malformed }
    }

    /// Compares directories again from which an item was left out because a local item had its name, or that could not be compared.
    /// A failure of one does not stop the others.
    private func compareIncomplete() async throws {
        var comparison = comparison
        let database = replica.database
        let due = try retriesFailures ? database.directoriesToCompare() : database.comparisons().due
        var compared: [InodeNumber] = []
        // The comparison of everything has just asked for those that it has left.
        for number in due where !left.contains(number) {
            try await commits.commit { try $0.listings.beginComparing(number) }
            switch try await comparison.compare(number) {
            case .compared, .gone: compared.append(number)
            case .left(let failure): comparison.note(failure)
            }
        }
        if !compared.isEmpty, try await missing.remove(isWhole: comparison.passing == nil) {
            let finished = compared
            try await commits.commit { ingestion in
                for number in finished { try ingestion.listings.finishComparing(number) }
            }
        }
        try settle(comparison)
    }

    /// - Throws: a failure that may pass by itself: the round is repeated.
    private func settle(_ comparison: DirectoryComparison) throws {
        malformed = malformed ?? comparison.malformed
        left.formUnion(comparison.left)
        if let passing = comparison.passing {
            areMissingDecided = true
            throw passing
        }
    }

    /// Takes in what has changed; where the provider cannot tell, all directories are compared.
    private func takeNews() async throws {
        guard calls.provider.features.changeFeed else {
            _ = try await compareEverything()
            return
        }
        try await withEnumerator { enumerator in
            guard try await !self.takeReported(by: enumerator) else { return }
            try await self.startAnew(enumerator)
        }
    }

    private func withEnumerator<Value>(_ body: (any FileProviderEnumerator) async throws -> Value) async throws -> Value
    {
        let enumerator = try await calls.make(.enumerator, for: request) { [request] in
            try $0.enumerator(for: .workingSet, request: request)
        }
        defer { enumerator.invalidate() }
        return try await body(enumerator)
    }

    /// - Returns: false if the provider cannot tell what has changed since the last anchor.
    private func takeReported(by enumerator: any FileProviderEnumerator) async throws -> Bool {
        stall = nil
        switch try await news.takeIn(by: enumerator, for: longestReport) {
        case .unknown: return false
        case .all: break
        case .unfinished: isAskedAgain = true
        case .setAside: askForRound()
        case .stalled(let failure): stall = failure
        }
        return true
    }

    /// Lets a round that was held because of what it would remove do so, and has the next one try again what has failed.
    func applyHeldRound() {
        guardian.release()
        retriesFailuresNext = true
    }

    private func refreshRoot() async throws {
        let root = try await calls.make(.item, for: request) { [request] in
            try await $0.item(for: .rootContainer, request: request)
        }
        try await commits.commit { ingestion in try ingestion.placement.placeRoot(root) }
    }

    /// The provider cannot tell what changed since the last anchor: compares all listed directories, and then uses a
    /// new anchor. A missing item is looked up before it is removed.
    private func startAnew(_ enumerator: any FileProviderEnumerator) async throws {
        let anchor = try await calls.make(.currentSyncAnchor, for: request) { _ in
            try await enumerator.currentSyncAnchor()
        }
        // What was changed before it and after such a directory was read is in neither.
        try await commits.commit(changingNames: false) { try $0.listings.noteListingsUnderWay() }
        guard try await compareEverything() else { return }
        // Without one the next round compares again.
        let next = anchor.flatMap { news.isShortEnough($0) ? $0 : nil }
        try await commits.commit(changingNames: false) { try $0.changes.noteAnchor(next) }
    }

    /// Compares all listed directories. A failure of one does not stop the others.
    ///
    /// - Returns: whether all of it was taken in.
    /// - Throws: what concerns the whole domain, at once; what may pass by itself, once all others are done.
    private func compareEverything() async throws -> Bool {
        let trashed = try await trash.takeIn(request: request)
        let isComplete = try await compareDirectories()
        guard let trashed else { return isComplete }
        try await trash.settle(trashed.listed, request: request)
        if !trashed.isWhole { askForRound() }
        return isComplete && trashed.isWhole
    }

    private func compareDirectories() async throws -> Bool {
        let covers = calls.provider.features.directoryVersionsCoverTrees
        let directories = try replica.database.listedDirectories()
        let unsettled = replica.ordering.unsettledCount
        var comparison = comparison
        if covers {
            try await compareChanged(directories, &comparison)
        } else if let isComplete = try await compareReported(directories) {
            return isComplete
        } else {
            try await comparison.compare(directories)
        }
        let isComplete = try await missing.remove(isWhole: comparison.passing == nil)
        if isComplete { try await comparison.finish() }
        try settle(comparison)
        // A directory that was left out may have a new version, and what is below it was not compared.
        guard covers, isComplete, replica.ordering.unsettledCount == unsettled else { return isComplete }
        let compared = comparison.compared
        try await commits.commit { ingestion in
            for (number, version) in compared { try ingestion.listings.noteCompared(number, at: version) }
        }
        return true
    }

    private var comparison: DirectoryComparison { DirectoryComparison(context, listings: listings, request: request) }
    private var few: FewDirectories { FewDirectories(context: context, comparison: comparison, reports: reports) }

    /// From the root on downwards: what is below a directory that is as it was is as it was.
    private func compareChanged(
        _ directories: [ListedDirectory], _ comparison: inout DirectoryComparison
    ) async throws {
        let isForAll = trust.hasExpired
        let below = Dictionary(grouping: directories) { $0.parent }
        var level = below[nil] ?? []
        while !level.isEmpty {
            let changed = try level.filter { directory in
                let versions = try replica.database.versions(ofDirectory: directory.number)
                return isForAll || versions.compared != versions.present || versions.present.isEmpty
            }
            try await comparison.compare(changed)
            level = changed.flatMap { below[$0.number] ?? [] }
        }
        if isForAll, comparison.passing == nil { trust.noteComparisonOfAll() }
    }

    // MARK: - What the remote reports

    private var reports: ReportedChanges { ReportedChanges(context: context, request: request) }

    /// Lists again what the remote says has changed.
    ///
    /// - Returns: whether all of it was taken in; nil where the remote says nothing of changes.
    private func compareReported(_ directories: [ListedDirectory]) async throws -> Bool? {
        let kind = try await reports.kind()
        guard kind != .none else { return nil }
        let start = ContinuousClock.now
        let isForAll = trust.hasExpired(for: kind)
        let (complete, comparison) = try await compareReported(directories, of: kind, isForAll: isForAll)
        try settle(comparison)
        guard isForAll, complete else { return complete }
        trust.noteComparisonOfAllReported(begun: start)
        return true
    }

    private func compareReported(
        _ directories: [ListedDirectory], of kind: ChangeReports, isForAll: Bool
    ) async throws -> (isComplete: Bool, comparison: DirectoryComparison) {
        var comparison = comparison
        var marks = ReportedChanges.Marks()
        if kind == .ofAll {
            let changed = try await reports.changed(directories, isForAll: isForAll, marks: &marks)
            // The report says nothing of directories that were being listed, and these may have been read before its mark.
            try await commits.commit(changingNames: false) { try $0.listings.noteListingsUnderWay() }
            let asked = Set(directories.map(\.number))
            let listed = try replica.database.listedDirectories().filter { !asked.contains($0.number) }
            try await comparison.compare(changed + listed)
        } else {
            let found = FoundMarks()
            try await comparison.compare(directories) { [reports] directory in
                try await reports.isUnchanged(directory, isForAll: isForAll, found)
            }
            marks.ofDirectories = found.marks
        }
        guard try await missing.remove(isWhole: comparison.passing == nil) else { return (false, comparison) }
        try await comparison.finish()
        try await reports.keep(marks, except: comparison.left, isWhole: !comparison.isPartial)
        return (true, comparison)
    }
}
