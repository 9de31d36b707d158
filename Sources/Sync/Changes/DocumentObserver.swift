import FileProvider
import Replica
import Synchronization

/// Observes the files that processes have open, each with an enumerator of its own, from a second after the open
/// until the close. Remote changes of open files therefore appear sooner than others.
actor DocumentObserver: SyncPart {
    let context: SyncContext
    private let absence: AbsenceCheck
    private let request = FileProviderRequest(reason: .synchronization)
    private var observed: [InodeNumber: Task<Void, Never>] = [:]
    private var seen: Set<InodeNumber> = []
    private var isUseless: Bool
    private nonisolated let signal = WakeSignal()
    private nonisolated let candidates = Mutex<Set<InodeNumber>>([])

    /// Files that are closed again at once are not worth a call.
    private static let interval = Duration.seconds(1)
    /// How often a file is asked about.
    private static let pause = Duration.seconds(2)
    private static let mostCandidates = 1024
    private static let mostObserved = 64
    /// More changes of one file at once are asked for the next time.
    private static let mostBatches = 16

    init(_ context: SyncContext, absence: AbsenceCheck) {
        self.context = context
        self.absence = absence
        isUseless = !context.calls.provider.features.documentEnumeration
    }

    /// A file was opened. Returns at once; from any thread.
    nonisolated func opened(_ number: InodeNumber) {
        guard calls.provider.features.documentEnumeration else { return }
        let isNew = candidates.withLock { candidates in
            candidates.count < Self.mostCandidates && candidates.insert(number).inserted
        }
        if isNew { signal.wake() }
    }

    func start() {
        guard !isUseless else { return }
        signal.run { [signal] in
            guard await self.look() else { return .zero }
            signal.wake()
            return Self.interval
        }
    }

    func stop() {
        isUseless = true
        signal.stop()
        for task in observed.values { task.cancel() }
        observed = [:]
    }

    /// Starts and ends observations.
    ///
    /// - Returns: whether any file is still open.
    private func look() -> Bool {
        guard !isUseless else { return false }
        let open = open
        let present = candidates.withLock { candidates in
            candidates = candidates.filter { open.isOpen($0) }
            return candidates
        }
        for (number, task) in observed where !present.contains(number) {
            task.cancel()
            observed[number] = nil
        }
        for number in present where seen.contains(number) && observed[number] == nil {
            guard observed.count < Self.mostObserved else { break }
            observed[number] = Task { await self.observe(number) }
        }
        seen = present
        return !present.isEmpty
    }

    private func observe(_ number: InodeNumber) async {
        while !Task.isCancelled, !isUseless, let identifier = identifier(of: number) {
            do {
                try await follow(identifier)
            } catch let error as FileProviderError {
                switch error.code {
                case .featureUnsupported: isUseless = true
                // If the lookup fails, the next changes report the removal.
                case .noSuchItem: try? await absence.refresh(identifier)
                case .malformedResponse: warnings.report(error.message)
                default: break
                }
            } catch {
                // Other failures are retried after the pause.
            }
            try? await Task.sleep(for: Self.pause)
        }
    }

    private func identifier(of number: InodeNumber) -> ItemIdentifier? {
        try? replica.database.documentIdentifier(of: number)
    }

    /// Takes in what changes of a document, for as long as it is open.
    ///
    /// - Throws: what the provider says.
    private func follow(_ identifier: ItemIdentifier) async throws {
        let enumerator = try await calls.make(.enumerator, for: request) { [request] in
            try $0.enumerator(for: identifier, request: request)
        }
        defer { enumerator.invalidate() }
        var anchor = try await calls.make(.currentSyncAnchor, for: request) { _ in
            try await enumerator.currentSyncAnchor()
        }
        try await takePage(of: identifier, from: enumerator)
        while !Task.isCancelled {
            try await Task.sleep(for: Self.pause)
            if let start = anchor {
                anchor = try await takeChanges(of: identifier, from: enumerator, since: start)
            } else {
                try await takePage(of: identifier, from: enumerator)
            }
        }
    }

    /// Takes in the present state of the document, the only item of its enumerator.
    private func takePage(of identifier: ItemIdentifier, from enumerator: any FileProviderEnumerator) async throws {
        let observation = replica.ordering.observe()
        let page = try await calls.make(.enumerateItems, for: request) { _ in
            try await enumerator.enumerateItems(startingAt: .initial, suggestedPageSize: 1)
        }
        if page.nextPage != nil || page.items.count > 1 { try refuse("more than the one item", of: identifier) }
        for item in page.items { try await take(item, of: identifier, observed: observation) }
    }

    private func takeChanges(
        of identifier: ItemIdentifier, from enumerator: any FileProviderEnumerator, since start: SyncAnchor
    ) async throws -> SyncAnchor {
        var anchor = start
        for _ in 0..<Self.mostBatches {
            let (observation, position) = (replica.ordering.observe(), anchor)
            let batch = try await calls.make(.enumerateChanges, for: request) { _ in
                try await enumerator.enumerateChanges(from: position, suggestedBatchSize: 1)
            }
            if batch.anchor.rawValue.count > SyncAnchor.maximumLength {
                try refuse("a sync anchor of \(batch.anchor.rawValue.count) bytes", of: identifier)
            }
            for item in batch.updated { try await take(item, of: identifier, observed: observation) }
            if batch.deleted.contains(identifier) { throw FileProviderError.noSuchItem(identifier) }
            if batch.moreComing, batch.anchor == anchor { try refuse("the same sync anchor again", of: identifier) }
            anchor = batch.anchor
            guard batch.moreComing else { break }
        }
        return anchor
    }

    private func take(
        _ item: FileProviderItem, of identifier: ItemIdentifier, observed observation: Observation
    ) async throws {
        guard item.itemIdentifier == identifier else {
            return try refuse("the item '\(item.itemIdentifier)'", of: identifier)
        }
        guard let known = try replica.database.item(identifier),
            known.base.version != item.itemVersion || known.base.parent != item.parentItemIdentifier
                || known.base.name?.utf8.elementsEqual(item.filename.utf8) != true
        else { return }
        try await remoteLookup.record(item, of: identifier, observed: observation, for: request)
    }

    private func refuse(_ what: String, of identifier: ItemIdentifier) throws {
        throw FileProviderError(
            .malformedResponse, "the provider gave \(what) for the document '\(identifier)'",
            itemIdentifier: identifier)
    }
}
