import FileProvider
import Replica

/// One enumeration of a directory, recorded page by page. ``Listings`` has one for a directory at a time.
struct DirectoryReading: SyncPart {
    let context: SyncContext
    let number: InodeNumber
    let beginning: ListingBeginning
    let request: FileProviderRequest
    let urgency: CallUrgency
    /// Called with the highest item of the directory after each page.
    let reached: @Sendable (Int64) async -> Void

    /// The result of reading a directory's pages.
    private enum End {
        /// The listing was evicted while it was compared.
        case unwanted
        /// The end was taken in with the last page.
        case whole
        /// All were read, and what was not among them is still to be seen to.
        case toFinish
    }

    private static let mostRestarts = 5
    private static let lookupsAtOnce = 8

    /// Reads all pages, and records them and the end.
    ///
    /// - Returns: whether the end was recorded with the last page.
    func run() async throws -> Bool {
        var isOdd = false
        var omissions: [String] = []
        let end = try await readPages(&isOdd, &omissions)
        if end != .unwanted { warnings.report(all: omissions, of: .omissions(number)) }
        if end == .toFinish { try await finish() }
        if end != .unwanted, !isOdd { warnings.succeeded(.listing(number)) }
        return end == .whole
    }

    /// - Parameters:
    ///   - isOdd: becomes true if the provider has listed what cannot be.
    ///   - omissions: becomes what the provider has left out.
    private func readPages(_ isOdd: inout Bool, _ omissions: inout [String]) async throws -> End {
        var restarts = 0
        var page = FileProviderPage.initial
        var check = PageValidator(of: beginning.identifier)
        let enumerator = try await calls.make(.enumerator, for: request, urgency: urgency) { provider in
            try provider.enumerator(for: beginning.identifier, request: request)
        }
        defer { enumerator.invalidate() }
        @Sendable func read(_ page: FileProviderPage) async throws -> ItemPage {
            try await calls.make(.enumerateItems, for: request, urgency: urgency) { _ in
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
                if isOddPage(result.items) { isOdd = true }
                omissions += result.omissions.prefix(Warnings.limit - omissions.count)
                // The transaction leaves out what is stale.
                let inFlight = await replica.ordering.settle(result.items, beginning.observation).inFlight
                guard let next = result.nextPage else {
                    let isWhole = !beginning.isComparison
                    guard try await take(result.items, inFlight, isWhole: isWhole) else { return .unwanted }
                    return isWhole ? .whole : .toFinish
                }
                // The provider reads the next page while this one is stored.
                async let following = read(next)
                guard try await take(result.items, inFlight, isWhole: false) else { return .unwanted }
                page = next
                ahead = try await following
            } catch let error as FileProviderError where error.code == .pageExpired {
                restarts += 1
                guard restarts <= Self.mostRestarts else { throw error }
                page = .initial
                omissions = []
                check.restart()
            }
        }
    }

    /// - Parameters:
    ///   - inFlight: items that are left as they are.
    ///   - isWhole: these are the last, and items that no page has shown are removed.
    /// - Returns: false when the listing was evicted while it was compared.
    private func take(
        _ items: [FileProviderItem], _ inFlight: Set<ItemIdentifier>, isWhole: Bool
    ) async throws -> Bool {
        let own = items.filter { $0.parentItemIdentifier == beginning.identifier }
        guard var recorded = try await record(own, inFlight, isWhole: isWhole) else { return false }
        if !recorded.doubtful.isEmpty {
            let present = try await lookUp(recorded.doubtful)
            guard let last = try await record(present, areLookedUp: true, isWhole: isWhole) else { return false }
            recorded = last
        }
        await reached(recorded.highest)
        return true
    }

    /// Looks up doubtful items, several at once. The directory is noted to be compared if the answer about one is malformed: that one
    /// is left out until then, or counts as it was listed if it is known here, and keeps nothing else from being taken in.
    ///
    /// - Returns: those that the remote has in the directory.
    private func lookUp(_ doubtful: [FileProviderItem]) async throws -> [FileProviderItem] {
        var present: [Int: FileProviderItem] = [:]
        var isClear = true
        try await withThrowingTaskGroup(of: (Int, FileProviderItem?, Bool).self) { group in
            var remaining = doubtful.enumerated().makeIterator()
            func addNext() {
                guard let (index, item) = remaining.next() else { return }
                group.addTask {
                    let (found, isClear) = try await lookUp(item)
                    return (index, found, isClear)
                }
            }
            for _ in 0..<Self.lookupsAtOnce { addNext() }
            while let (index, item, isItemClear) = try await group.next() {
                present[index] = item
                if !isItemClear { isClear = false }
                addNext()
            }
        }
        if !isClear {
            try await commits.commit(changingNames: false) { try $0.listings.noteIncomplete(number) }
        }
        return doubtful.indices.compactMap { present[$0] }.filter { $0.parentItemIdentifier == beginning.identifier }
    }

    private func lookUp(_ item: FileProviderItem) async throws -> (found: FileProviderItem?, isClear: Bool) {
        do throws(FileProviderError) {
            return (try await remoteLookup.lookUp(item.itemIdentifier, for: request, urgency: urgency), true)
        } catch {
            guard error.code == .malformedResponse else { throw error }
            return (try replica.database.item(item.itemIdentifier) == nil ? nil : item, false)
        }
    }

    /// - Parameter isWhole: that is the end, unless some of the items are doubtful.
    /// - Returns: the items that are doubtful, and the highest item of the directory; nil when the listing was evicted while it was
    ///   compared.
    private func record(
        _ items: [FileProviderItem], _ inFlight: Set<ItemIdentifier> = [], areLookedUp: Bool = false, isWhole: Bool
    ) async throws -> (doubtful: [FileProviderItem], highest: Int64)? {
        let recorded = try await commits.commit { ingestion -> (doubtful: [FileProviderItem], highest: Int64)? in
            let doubtful = try ingestion.listings.page(
                of: number, listing: beginning.number, items: items, inFlight: inFlight, areLookedUp: areLookedUp,
                observed: beginning.observation)
            guard let doubtful else { return nil }
            if isWhole, doubtful.isEmpty {
                try ingestion.listings.finishListing(
                    of: number, listing: beginning.number, observed: beginning.observation)
            }
            return (doubtful, try ingestion.listings.highestItem(in: number))
        }
        guard let recorded else { return nil }
        // An item that was missing elsewhere has moved here.
        let doubtful = Set(recorded.doubtful.map(\.itemIdentifier))
        replica.ordering.found(items.lazy.map(\.itemIdentifier).filter { !doubtful.contains($0) })
        return recorded
    }

    /// Reports items that say they are elsewhere, which are left out, and one item under several names, of which only the last is shown.
    /// Items that cannot be shown are reported as such.
    ///
    /// - Returns: whether there are any.
    private func isOddPage(_ items: [FileProviderItem]) -> Bool {
        let directory = beginning.identifier
        let strays = items.filter { $0.parentItemIdentifier != directory }
        for stray in strays.prefix(3) {
            warnings.report(
                "the provider listed '\(stray.itemIdentifier)' in '\(directory)' and says its parent is "
                    + "'\(stray.parentItemIdentifier)'", of: .listing(number))
        }
        var names: [ItemIdentifier: String] = [:]
        var hasTwins = false
        for item in items where item.defect == nil {
            guard let other = names.updateValue(item.filename, forKey: item.itemIdentifier), other != item.filename
            else { continue }
            hasTwins = true
            warnings.report(
                "the provider listed '\(other)' and '\(item.filename)' in '\(directory)' as one item, "
                    + "'\(item.itemIdentifier)': only one of them is shown", of: .listing(number))
        }
        return hasTwins || !strays.isEmpty
    }

    /// Looks up what no page has shown, and records the end.
    private func finish() async throws {
        let unconfirmed = try await replica.unconfirmed(in: number, listing: beginning.number)
        let ordering = replica.ordering
        let observation = replica.ordering.observe()
        var gone: [ItemRecord] = []
        var missing: [ItemIdentifier] = []
        var found: [(item: FileProviderItem, ancestors: [FileProviderItem])] = []
        var unclear: FileProviderError?
        for item in unconfirmed {
            guard let identifier = item.identifier,
                !ordering.isStale(identifier, beginning.observation, isListing: true)
            else { continue }
            guard beginning.isComparison else {
                gone.append(item)
                continue
            }
            ordering.beginLookup(of: identifier)
            let present: FileProviderItem?
            do throws(FileProviderError) {
                present = try await remoteLookup.lookUp(identifier, for: request, urgency: urgency)
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
        // An operation that was answered since the lookup is newer: it may have moved the item. So is one that is in flight.
        let unsettled = await ordering.settle(found.map(\.item), deleted: missing, observation)
        let newer = unsettled.all
        ordering.found(newer)
        let isClear = unclear == nil
        let (lost, moved) = (gone, found.filter { !newer.contains($0.item.itemIdentifier) })
        try await commits.commit { ingestion in
            if !unsettled.inFlight.isEmpty { try ingestion.listings.noteIncomplete(number) }
            for (item, ancestors) in moved { try ingestion.changes.move(item, below: ancestors, observed: observation) }
            try ingestion.listings.finishListing(of: number, gone: lost, isClear: isClear)
        }
        if let unclear { throw unclear }
    }
}
