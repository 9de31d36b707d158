import FileProvider
import Replica

/// News from the remote: asked for when the provider signals, on a timer, or by command; never twice at once.
actor ChangeFeed {
    private let replica: Replica
    private let calls: ProviderCalls
    private let listings: Listings
    private let commits: Commits
    private let traffic: UploadTraffic
    private let warnings: Warnings
    private let request = FileProviderRequest(reason: .synchronization)
    private var running: Task<Void, any Error>?
    private var isAskedAgain = false

    static let batchSize = 1000
    private static let atOnce = 8

    init(
        replica: Replica, calls: ProviderCalls, listings: Listings, commits: Commits, traffic: UploadTraffic,
        warnings: Warnings
    ) {
        self.replica = replica
        self.calls = calls
        self.listings = listings
        self.commits = commits
        self.traffic = traffic
        self.warnings = warnings
    }

    /// Takes in all changes up to now. Who asks while a round runs gets a round of their own, shared by all who do.
    func refresh() async throws(FileProviderError) {
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

    /// As ``refresh()``, without waiting; a failure is kept by the connection and tried again with it.
    func signal() {
        if running != nil {
            isAskedAgain = true
        } else {
            _ = startRound()
        }
    }

    func stop() {
        running?.cancel()
    }

    // MARK: - Private

    private func startRound() -> Task<Void, any Error> {
        if let running { return running }
        isAskedAgain = false
        let task = Task {
            defer { self.finishRound() }
            try await self.round()
        }
        running = task
        return task
    }

    private func finishRound() {
        running = nil
        if isAskedAgain { _ = startRound() }
    }

    private var trash: TrashListing {
        TrashListing(
            replica: replica, calls: calls, listings: listings, commits: commits, traffic: traffic, warnings: warnings)
    }

    private func round() async throws {
        try await refreshRoot()
        try await takeNews()
        try await compareIncomplete()
    }

    /// Directories of which something was left out, because a local item had its name, are compared again.
    private func compareIncomplete() async throws {
        for number in try replica.database.directoriesToCompare() {
            try await commits.commit { try $0.noteIncomplete(number, false) }
            do throws(FileProviderError) {
                try await listings.compare(number, request: request)
            } catch {
                if error.code == .noSuchItem { continue }
                try await commits.commit { try $0.noteIncomplete(number, true) }
                throw error
            }
        }
    }

    private func takeNews() async throws {
        guard calls.provider.features.changeFeed else { return try await compareEverything() }
        let enumerator = try await calls.make(for: request) { [request] in
            try $0.enumerator(for: .workingSet, request: request)
        }
        defer { enumerator.invalidate() }
        guard var anchor = try replica.database.bytes(of: .syncAnchor).map(SyncAnchor.init(rawValue:)) else {
            return try await startAnew(enumerator)
        }
        while true {
            let start = anchor
            let askedAt = ContinuousClock.now
            var batch: ChangeBatch
            do {
                batch = try await calls.make(for: request) { _ in
                    try await enumerator.enumerateChanges(from: start, suggestedBatchSize: Self.batchSize)
                }
            } catch {
                guard error.code == .syncAnchorExpired else { throw error }
                return try await startAnew(enumerator)
            }
            if batch.anchor.rawValue.count > SyncAnchor.maximumLength {
                warnings.report("the provider gave a sync anchor of \(batch.anchor.rawValue.count) bytes")
                return try await startAnew(enumerator)
            }
            if !batch.updated.isEmpty || !batch.deleted.isEmpty || batch.anchor != anchor {
                let newer = await traffic.settle(batch.updated, deleted: batch.deleted, askedAt: askedAt)
                batch.updated.removeAll { newer.contains($0.itemIdentifier) }
                await listings.willChange(batch.updated.map(\.itemIdentifier) + batch.deleted)
                let news = batch
                try await commits.commit { ingestion in try ingestion.changes(news) }
            }
            guard batch.moreComing else { return }
            if batch.anchor == anchor {
                warnings.report("the provider says that more changes are coming and gives the same sync anchor again")
                return
            }
            anchor = batch.anchor
        }
    }

    private func refreshRoot() async throws {
        let root = try await calls.make(for: request) { [request] in
            try await $0.item(for: .rootContainer, request: request)
        }
        try await commits.commit { ingestion in try ingestion.placeRoot(root) }
    }

    /// The provider cannot tell what changed since the last anchor: from a new one on everything that is listed is listed
    /// again. What does not come up is looked up before it is believed gone.
    private func startAnew(_ enumerator: any FileProviderEnumerator) async throws {
        let anchor = try await calls.make(for: request) { _ in try await enumerator.currentSyncAnchor() }
        try await compareEverything()
        try replica.database.set(.syncAnchor, to: anchor?.rawValue)
    }

    /// Lists again all that is listed. One directory that cannot be listed does not keep the others from their news.
    ///
    /// - Throws: what concerns the whole domain, at once; what may pass by itself, once all others are done.
    private func compareEverything() async throws {
        let trashed = try await trash.takeIn(request: request)
        try await compareDirectories()
        if let trashed { try await trash.settle(trashed, request: request) }
    }

    private func compareDirectories() async throws {
        let directories = try replica.database.materializedDirectories()
        let passing = try await withThrowingTaskGroup(of: FileProviderError?.self) { group in
            var passing: FileProviderError?
            var remaining = directories.makeIterator()
            func addNext() {
                guard let directory = remaining.next() else { return }
                group.addTask { try await self.compare(directory.number, directory.identifier) }
            }
            for _ in 0..<Self.atOnce { addNext() }
            while let failure = try await group.next() {
                passing = passing ?? failure
                addNext()
            }
            return passing
        }
        if let passing { throw passing }
    }

    /// - Returns: what kept the directory from being compared and may pass by itself.
    private func compare(
        _ number: InodeNumber, _ identifier: ItemIdentifier
    ) async throws(FileProviderError) -> FileProviderError? {
        do throws(FileProviderError) {
            try await listings.compare(number, request: request)
            return nil
        } catch {
            // One that is gone went with a directory above it, or just now.
            if error.code == .noSuchItem { return nil }
            switch error.code.reaction {
            case .latchDomain, .stop: throw error
            case .parkItem, .changeState, .giveUpAsking, .retry: break
            }
            warnings.report("the directory '\(identifier)' cannot be compared with the remote: \(error)")
            await commits.recordFailure(error, of: number)
            return error.code.reaction == .retry ? error : nil
        }
    }
}
