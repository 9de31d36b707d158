import FileProvider
import Replica

/// Lists directories: one enumeration of a directory at a time, shared by all its waiters.
actor Listings: SyncPart {
    private final class Active {
        var waiters: [Int: Waiter] = [:]
        var task: Task<Void, Never>?
        /// It is being cancelled because its last waiter left: a new caller needs another listing.
        var isEnding = false
        let urgency: CallUrgency
        var isStreamed = false
        /// Whether the listing is here, and is only compared.
        var isComparison = false
        /// Whether all waiters want it compared, and not listed.
        var isOnlyCompared: Bool { waiters.values.allSatisfy(\.isComparing) }
        var highestItem: Int64 = 0

        init(urgency: CallUrgency) {
            self.urgency = urgency
        }
    }

    private struct Waiter {
        /// Content with the first entry after this item; nil waits for the end.
        var beyond: Int64?
        /// Content with nothing when the listing is not here.
        var isComparing: Bool
        /// Whether no process waits.
        var isBackground: Bool
        let end: OneShot<Void>
    }

    nonisolated let context: SyncContext
    /// Nil in interactive mode, in which nothing is retried.
    private let retries: ListingRetries?
    private let offers: OfferQueue
    private let onIncomplete: @Sendable () -> Void
    private var active: [InodeNumber: Active] = [:]
    private var nextWaiter = 0
    private var isStopped = false

    /// - Parameters:
    ///   - retries: lists directories again whose listing failed; nil for never.
    ///   - offers: waits until the provider has recognized an item whose identifier was given up.
    ///   - onIncomplete: called when a directory is listed that has to be compared already, and can be.
    init(
        _ context: SyncContext, retries: ListingRetries?, offers: OfferQueue,
        onIncomplete: @escaping @Sendable () -> Void
    ) {
        self.context = context
        self.retries = retries
        self.offers = offers
        self.onIncomplete = onIncomplete
    }

    /// Waits until a directory is listed, or, with `beyond`, until there is an entry after that item or it is listed.
    func list(_ number: InodeNumber, beyond: Int64?, request: FileProviderRequest) async throws(FileProviderError) {
        do {
            await ending(of: number)
            if active[number] == nil, try replica.database.inode(number)?.content == .materialized { return }
            try await offers.settle(number)
            repeat {
                try await wait(for: number, beyond: beyond, request: request)
                // The directory may have been evicted during the comparison.
            } while try replica.database.inode(number)?.content == .dataless
        } catch {
            let failure = ProviderCalls.failure(from: error)
            await commits.recordFailure(failure, of: number)
            await retries?.failed(number, failure) { number throws(FileProviderError) in
                try await self.list(number, beyond: nil, request: FileProviderRequest(reason: .synchronization))
            }
            throw failure
        }
    }

    /// Lists a materialized directory again and makes it what the remote has. What is gone is looked up, and stays until
    /// the caller has asked for it (``RemoteOrdering/takeMissing()``). One that is dataless by then is left alone.
    func compare(_ number: InodeNumber, request: FileProviderRequest) async throws(FileProviderError) {
        do {
            // A listing that is under way may have been read before what is to be seen.
            if active[number] != nil {
                try? await wait(for: number, beyond: nil, isComparing: true, request: request)
            }
            try await wait(for: number, beyond: nil, isComparing: true, request: request)
        } catch {
            throw ProviderCalls.failure(from: error)
        }
    }

    /// Ends a listing that no process waits for, because it is to be evicted. Returns when it has ended. A comparison ends
    /// by itself.
    ///
    /// - Returns: false when a process waits for it.
    func stop(_ number: InodeNumber) async -> Bool {
        await ending(of: number)
        guard let listing = active[number], !listing.isComparison else { return true }
        guard listing.waiters.values.allSatisfy(\.isBackground) else { return false }
        for waiter in listing.waiters.values {
            waiter.end.give(waiter.isComparing ? .success(()) : .failure(CancellationError()))
        }
        listing.waiters = [:]
        stopIfAlone(number)
        await ending(of: number)
        return true
    }

    /// Ends all that is under way and refuses what comes later. Waits for none.
    func stop() {
        isStopped = true
        for listing in active.values { listing.task?.cancel() }
    }

    private func wait(
        for number: InodeNumber, beyond: Int64?, isComparing: Bool = false, request: FileProviderRequest
    ) async throws {
        try Task.checkCancellation()
        await ending(of: number)
        guard !isStopped else { throw FileProviderError(.domainDisabled) }
        nextWaiter += 1
        let id = nextWaiter
        let listing = active[number] ?? start(number, request: request)
        let isUrgent = ProviderCalls.isUrgent(request)
        if isUrgent { listing.urgency.raise() }
        if let beyond, listing.isStreamed, listing.highestItem > beyond { return }
        let end = OneShot<Void>()
        listing.waiters[id] = Waiter(
            beyond: beyond, isComparing: isComparing, isBackground: !isUrgent, end: end)
        try await end.value { Task { await self.leave(number, id) } }
    }

    private func leave(_ number: InodeNumber, _ id: Int) {
        guard let waiter = active[number]?.waiters.removeValue(forKey: id) else { return }
        waiter.end.give(.failure(CancellationError()))
        stopIfAlone(number)
    }

    /// Cancels a listing whose last waiter left.
    private func stopIfAlone(_ number: InodeNumber) {
        guard let listing = active[number], listing.waiters.isEmpty else { return }
        listing.isEnding = true
        listing.task?.cancel()
    }

    /// Waits until no cancelled listing of a directory is ending.
    private func ending(of number: InodeNumber) async {
        while let listing = active[number], listing.isEnding, let task = listing.task { await task.value }
    }

    private func start(_ number: InodeNumber, request: FileProviderRequest) -> Active {
        let listing = Active(urgency: CallUrgency(ProviderCalls.isUrgent(request)))
        active[number] = listing
        listing.task = Task {
            let result: Result<Void, FileProviderError>
            do throws(FileProviderError) {
                try await self.enumerate(number, request: request)
                result = .success(())
            } catch {
                result = .failure(error)
            }
            self.finish(number, result)
        }
        return listing
    }

    private func finish(_ number: InodeNumber, _ result: Result<Void, FileProviderError>) {
        guard let listing = active.removeValue(forKey: number) else { return }
        for waiter in listing.waiters.values { waiter.end.give(result.mapError { $0 as any Error }) }
        // While it was listed, no round could compare it. Something else may still keep it from being compared.
        guard !listing.isComparison, (try? replica.database.isToBeCompared(number)) == true else { return }
        if (try? replica.database.comparisons().due.contains(number)) == true { onIncomplete() }
    }

    /// While another client moves a directory, the provider does not find it. If a lookup then finds it, it is listed again.
    private func enumerate(_ number: InodeNumber, request: FileProviderRequest) async throws(FileProviderError) {
        for pause in Self.pausesWhileMoved {
            guard let moved = try await enumerateOnce(number, request: request) else { return }
            guard let pause else { throw moved }
            do {
                try await Task.sleep(for: pause)
            } catch {
                throw ProviderCalls.failure(from: error)
            }
        }
    }

    private static let pausesWhileMoved: [Duration?] = [.milliseconds(50), .milliseconds(200), .milliseconds(800), nil]

    /// - Returns: the failure if the provider did not find the directory and a lookup did; nil when it is listed.
    private func enumerateOnce(
        _ number: InodeNumber, request: FileProviderRequest
    ) async throws(FileProviderError) -> FileProviderError? {
        var isComparison = false
        guard let listing = active[number] else { return nil }
        do {
            let isOnlyCompared = listing.isOnlyCompared
            guard let beginning = try await replica.beginListing(of: number, isOnlyCompared: isOnlyCompared) else {
                return nil
            }
            isComparison = beginning.isComparison
            (listing.isStreamed, listing.isComparison) = (beginning.isStreamed, isComparison)
            let reading = DirectoryReading(
                context: context, number: number, beginning: beginning, request: request, urgency: listing.urgency,
                reached: { await self.reached($0, in: number) })
            do {
                if try await reading.run() { return nil }
                try await replica.endListing(beginning)
                return nil
            } catch {
                // Also when this task was cancelled, in which the database would do nothing.
                try await Task { [replica] in
                    if !beginning.isComparison { try await replica.abandonListing(of: number) }
                    try await replica.endListing(beginning)
                }.value
                throw error
            }
        } catch {
            let failure = ProviderCalls.failure(from: error)
            guard failure.code == .noSuchItem else { throw failure }
            let end = try await directoryIsGone(number, failure, isComparison: isComparison, request: request)
            guard end.code == .cannotSynchronize else { throw end }
            return end
        }
    }

    /// The items up to this row number are recorded.
    private func reached(_ highest: Int64, in number: InodeNumber) {
        guard let listing = active[number] else { return }
        listing.highestItem = highest
        guard listing.isStreamed else { return }
        for (id, waiter) in listing.waiters {
            guard let beyond = waiter.beyond, highest > beyond else { continue }
            listing.waiters[id] = nil
            waiter.end.give(.success(()))
        }
    }

    /// The provider does not know a directory that is shown here. A lookup confirms that before the directory is
    /// removed. The root is never removed.
    private func directoryIsGone(
        _ number: InodeNumber, _ failure: FileProviderError, isComparison: Bool, request: FileProviderRequest
    ) async throws(FileProviderError) -> FileProviderError {
        guard number != .root else {
            return FileProviderError(.serverUnreachable, "the remote's own root is not there")
        }
        do {
            guard let item = try replica.database.item(ofInode: number), let identifier = item.identifier else {
                return failure
            }
            if isComparison { replica.ordering.beginLookup(of: identifier) }
            guard try await remoteLookup.lookUp(identifier, for: request) == nil else {
                replica.ordering.found([identifier])
                return FileProviderError(.cannotSynchronize, "the remote has the directory and will not list it")
            }
            if isComparison {
                // False where it has moved, and another listing has shown it meanwhile.
                _ = replica.ordering.lookupFailed(of: identifier)
            } else {
                try await remoteLookup.remove(missing: identifier)
            }
            return failure
        } catch {
            return ProviderCalls.failure(from: error)
        }
    }
}
