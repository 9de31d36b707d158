import FileProvider
import Replica

/// Lists directories: one enumeration of a directory at a time, shared by all its waiters.
actor Listings: SyncPart {
    private final class Active {
        var waiters: [Int: Waiter] = [:]
        var task: Task<Void, Never>?
        /// It is being cancelled because its last waiter left: a new caller needs another listing.
        var isEnding = false
        let ticket: CallLanes.Ticket
        var isStreamed = false
        /// Whether the listing is here, and is only compared.
        var isComparison = false
        /// Whether all waiters want it compared, and not listed.
        var isOnlyCompared: Bool { waiters.values.allSatisfy(\.isComparing) }
        var highestItem: Int64 = 0
        /// Whether the provider has listed what cannot be.
        var isOdd = false

        init(ticket: CallLanes.Ticket) {
            self.ticket = ticket
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

    private static let mostRestarts = 5

    /// - Parameters:
    ///   - retries: lists directories again whose listing failed; nil for never.
    ///   - offers: waits until the provider has recognized an item whose identifier was given up.
    ///   - onIncomplete: called when a directory is listed that has to be compared already.
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

    // MARK: - Private

    private func wait(
        for number: InodeNumber, beyond: Int64?, isComparing: Bool = false, request: FileProviderRequest
    ) async throws {
        try Task.checkCancellation()
        await ending(of: number)
        guard !isStopped else { throw FileProviderError(.domainDisabled) }
        nextWaiter += 1
        let id = nextWaiter
        let listing = active[number] ?? start(number, request: request)
        let lane = ProviderCalls.lane(of: request)
        if lane == .foreground, listing.ticket.lane == .background { calls.promote(listing.ticket) }
        if let beyond, listing.isStreamed, listing.highestItem > beyond { return }
        let end = OneShot<Void>()
        listing.waiters[id] = Waiter(
            beyond: beyond, isComparing: isComparing, isBackground: lane == .background, end: end)
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
        let listing = Active(ticket: CallLanes.Ticket(ProviderCalls.lane(of: request)))
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
        // While it was listed, no round could compare it.
        if !listing.isComparison, (try? replica.database.isToBeCompared(number)) == true { onIncomplete() }
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
        do {
            let isOnlyCompared = active[number]?.isOnlyCompared ?? true
            guard let beginning = try await replica.beginListing(of: number, isOnlyCompared: isOnlyCompared) else {
                return nil
            }
            isComparison = beginning.isComparison
            active[number]?.isStreamed = beginning.isStreamed
            active[number]?.isComparison = isComparison
            do {
                let reading = try await readPages(of: number, beginning, request: request)
                if reading == .toFinish { try await finishListing(of: number, beginning, request: request) }
                if reading != .unwanted, active[number]?.isOdd == false { warnings.succeeded(.listing(number)) }
                if reading == .whole { return nil }
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

    /// The result of reading a directory's pages.
    private enum Reading {
        /// The listing was evicted while it was compared.
        case unwanted
        /// The end was taken in with the last page.
        case whole
        /// All were read, and what was not among them is still to be seen to.
        case toFinish
    }

    private func readPages(
        of number: InodeNumber, _ beginning: ListingBeginning, request: FileProviderRequest
    ) async throws -> Reading {
        var restarts = 0
        var page = FileProviderPage.initial
        var check = PageValidator(of: beginning.identifier)
        let ticket = active[number]?.ticket
        let enumerator = try await calls.make(.enumerator, for: request, ticket: ticket) { provider in
            try provider.enumerator(for: beginning.identifier, request: request)
        }
        defer { enumerator.invalidate() }
        @Sendable func read(_ page: FileProviderPage) async throws -> ItemPage {
            try await calls.make(.enumerateItems, for: request, ticket: ticket) { _ in
                try await enumerator.enumerateItems(startingAt: page, suggestedPageSize: PageValidator.pageSize)
            }
        }
        var ahead: ItemPage?
        while true {
            try Task.checkCancellation()
            do {
                let result = if let ahead { ahead } else { try await read(page) }
                ahead = nil
                var isFirstSeen = false
                // Before the first page nothing was seen.
                if restarts > 0 || page != .initial, let first = result.items.first?.itemIdentifier {
                    isFirstSeen = try await replica.wasSeen(first, in: number, listing: beginning.number)
                }
                do {
                    let wasSeen = isFirstSeen
                    try check.take(result) { _ in wasSeen }
                } catch let error as FileProviderError {
                    warnings.report(error.message, of: .listing(number))
                    throw error
                }
                // The transaction leaves out what is stale.
                _ = await replica.ordering.settle(result.items, beginning.observation)
                guard let next = result.nextPage else {
                    let isWhole = !beginning.isComparison
                    guard try await take(result.items, in: number, beginning, isWhole: isWhole, request: request)
                    else { return .unwanted }
                    return isWhole ? .whole : .toFinish
                }
                // The provider reads the next page while this one is stored.
                async let following = read(next)
                guard try await take(result.items, in: number, beginning, isWhole: false, request: request) else {
                    return .unwanted
                }
                page = next
                ahead = try await following
            } catch let error as FileProviderError where error.code == .pageExpired {
                restarts += 1
                guard restarts <= Self.mostRestarts else { throw error }
                page = .initial
                check.restart()
            }
        }
    }

    /// - Parameter isWhole: these are the last, and items that no page has shown are removed.
    /// - Returns: false when the listing was evicted while it was compared.
    private func take(
        _ items: [FileProviderItem], in number: InodeNumber, _ beginning: ListingBeginning, isWhole: Bool,
        request: FileProviderRequest
    ) async throws -> Bool {
        guard let listing = active[number] else { throw CancellationError() }
        let hasTwins = reportTwins(among: items, in: beginning.identifier, number)
        let strays = items.filter { $0.parentItemIdentifier != beginning.identifier }
        for stray in strays.prefix(3) {
            warnings.report(
                "the provider listed '\(stray.itemIdentifier)' in '\(beginning.identifier)' and says its parent is "
                    + "'\(stray.parentItemIdentifier)'", of: .listing(number))
        }
        if hasTwins || !strays.isEmpty { listing.isOdd = true }
        let own = strays.isEmpty ? items : items.filter { $0.parentItemIdentifier == beginning.identifier }
        guard var recorded = try await record(own, in: number, beginning, isWhole: isWhole) else { return false }
        if !recorded.doubtful.isEmpty {
            var present: [FileProviderItem] = []
            for item in recorded.doubtful {
                if let item = try await remoteLookup.lookUp(item.itemIdentifier, for: request, ticket: listing.ticket),
                    item.parentItemIdentifier == beginning.identifier
                {
                    present.append(item)
                }
            }
            let last = try await record(present, areLookedUp: true, in: number, beginning, isWhole: isWhole)
            guard let last else { return false }
            recorded = last
        }
        listing.highestItem = recorded.highest
        guard listing.isStreamed else { return true }
        for (id, waiter) in listing.waiters {
            guard let beyond = waiter.beyond, recorded.highest > beyond else { continue }
            listing.waiters[id] = nil
            waiter.end.give(.success(()))
        }
        return true
    }

    /// - Parameter isWhole: that is the end, unless some of the items are doubtful.
    /// - Returns: the items that are doubtful, and the highest item of the directory; nil when the listing was evicted while it was
    ///   compared.
    private func record(
        _ items: [FileProviderItem], areLookedUp: Bool = false, in number: InodeNumber, _ beginning: ListingBeginning,
        isWhole: Bool
    ) async throws -> (doubtful: [FileProviderItem], highest: Int64)? {
        let isKnownBetter = isStale(beginning)
        let recorded = try await commits.commit { ingestion -> (doubtful: [FileProviderItem], highest: Int64)? in
            let doubtful = try ingestion.listings.page(
                of: number, listing: beginning.number, items: items, areLookedUp: areLookedUp,
                isKnownBetter: isKnownBetter)
            guard let doubtful else { return nil }
            if isWhole, doubtful.isEmpty {
                try ingestion.listings.finishListing(
                    of: number, listing: beginning.number, isKnownBetter: isKnownBetter)
            }
            return (doubtful, try ingestion.listings.highestItem(in: number))
        }
        guard let recorded else { return nil }
        // An item that was missing elsewhere has moved here.
        let doubtful = Set(recorded.doubtful.map(\.itemIdentifier))
        replica.ordering.found(items.lazy.map(\.itemIdentifier).filter { !doubtful.contains($0) })
        return recorded
    }

    /// One item has one name: of several with an identifier only the last is shown. Those that cannot be shown are reported as such.
    ///
    /// - Returns: whether there are several.
    private func reportTwins(
        among items: [FileProviderItem], in directory: ItemIdentifier, _ number: InodeNumber
    ) -> Bool {
        var names: [ItemIdentifier: String] = [:]
        var isAny = false
        for item in items where item.defect == nil {
            guard let other = names.updateValue(item.filename, forKey: item.itemIdentifier), other != item.filename
            else { continue }
            isAny = true
            warnings.report(
                "the provider listed '\(other)' and '\(item.filename)' in '\(directory)' as one item, "
                    + "'\(item.itemIdentifier)': only one of them is shown", of: .listing(number))
        }
        return isAny
    }

    /// Whether something newer than the listing is known of an item.
    private func isStale(_ beginning: ListingBeginning) -> @Sendable (ItemIdentifier) -> Bool {
        { [ordering = replica.ordering] in ordering.isStale($0, beginning.observation, isListing: true) }
    }

    private func finishListing(
        of number: InodeNumber, _ beginning: ListingBeginning, request: FileProviderRequest
    ) async throws {
        let unconfirmed = try await replica.unconfirmed(in: number, listing: beginning.number)
        let (ordering, isStale) = (replica.ordering, isStale(beginning))
        let observation = replica.ordering.observe()
        var gone: [ItemRecord] = []
        var missing: [ItemIdentifier] = []
        var found: [(item: FileProviderItem, ancestors: [FileProviderItem])] = []
        var unclear: FileProviderError?
        for item in unconfirmed {
            guard let identifier = item.identifier, !isStale(identifier) else { continue }
            guard beginning.isComparison else {
                gone.append(item)
                continue
            }
            ordering.beginLookup(of: identifier)
            let present: FileProviderItem?
            do throws(FileProviderError) {
                present = try await remoteLookup.lookUp(identifier, for: request, ticket: active[number]?.ticket)
            } catch {
                guard error.code == .malformedResponse else { throw error }
                // It stays as it is, and keeps nothing else from being taken in.
                ordering.found([identifier])
                unclear = error
                continue
            }
            if let item = present {
                ordering.found([identifier])
                found.append((item, try await remoteLookup.unknown(above: item, for: request)))
            } else if ordering.lookupFailed(of: identifier) {
                missing.append(identifier)
            }
        }
        // An operation that was answered since the lookup is newer: it may have moved the item.
        let newer = await ordering.settle(found.map(\.item), deleted: missing, observation)
        ordering.found(newer)
        let isClear = unclear == nil
        let (lost, moved) = (gone, found.filter { !newer.contains($0.item.itemIdentifier) })
        try await commits.commit { ingestion in
            for (item, ancestors) in moved { try ingestion.changes.move(item, below: ancestors, observed: observation) }
            try ingestion.listings.finishListing(of: number, gone: lost, isClear: isClear)
        }
        if let unclear { throw unclear }
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
