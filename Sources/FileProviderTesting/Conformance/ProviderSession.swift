import FileProvider

/// Uses a provider as the system does: lists page by page, follows changes, fetches content; and records the results
/// in a ``TestManager``.
public struct ProviderSession: Sendable {
    /// The provider under test.
    public let provider: any FileProviderReplicatedExtension
    /// The manager that the provider was created with.
    public let manager: TestManager
    /// The request of every call.
    public let request = FileProviderRequest(reason: .reading)

    /// A session with a provider and its manager.
    public init(provider: any FileProviderReplicatedExtension, manager: TestManager) {
        self.provider = provider
        self.manager = manager
    }

    /// Looks an item up.
    ///
    /// - Throws: the provider's errors.
    public func item(_ identifier: ItemIdentifier) async throws -> FileProviderItem {
        try await provider.item(for: identifier, request: request)
    }

    /// Repeats a call that fails temporarily, as the system does. Some servers answer 500 to a listing while a file is
    /// being deleted.
    private func repeatingTemporaryFailures<Value>(_ body: () async throws -> Value) async throws -> Value {
        for _ in 0..<2 {
            do {
                return try await body()
            } catch let error as FileProviderError where error.code == .providerDomainTemporarilyUnavailable {
                try await Task.sleep(for: .milliseconds(200))
            }
        }
        return try await body()
    }

    /// What the pages of a listing say that is left out, as texts for the user.
    ///
    /// - Throws: the provider's errors.
    public func omissions(in directory: ItemIdentifier = .rootContainer) async throws -> [String] {
        let enumerator = try provider.enumerator(for: directory, request: request)
        defer { enumerator.invalidate() }
        var omissions: [String] = []
        var next: FileProviderPage? = .initial
        while let page = next {
            let answer = try await enumerator.enumerateItems(startingAt: page, suggestedPageSize: 1000)
            omissions += answer.omissions
            next = answer.nextPage
        }
        return omissions
    }

    /// Lists a directory completely.
    ///
    /// - Throws: ``ConformanceFailure`` for an invalid page; the provider's errors.
    @discardableResult
    public func list(
        _ directory: ItemIdentifier = .rootContainer, pageSize: Int = 1000
    ) async throws -> [FileProviderItem] {
        let enumerator = try provider.enumerator(for: directory, request: request)
        defer { enumerator.invalidate() }
        var items: [FileProviderItem] = []
        var seen: Set<ItemIdentifier> = []
        var visited: Set<FileProviderPage> = [.initial]
        var page = FileProviderPage.initial
        while true {
            let answer = try await repeatingTemporaryFailures { [page] in
                try await enumerator.enumerateItems(startingAt: page, suggestedPageSize: pageSize)
            }
            try expect(answer.items.count <= 100 * pageSize, "a page of \(answer.items.count) items")
            for item in answer.items {
                try expect(item.defect == nil, "'\(item.filename)' cannot be shown: \(item.defect?.description ?? "")")
                try expect(
                    item.parentItemIdentifier == directory,
                    "'\(item.filename)' is listed in '\(directory)' and has the parent '\(item.parentItemIdentifier)'")
                try expect(
                    seen.insert(item.itemIdentifier).inserted, "'\(item.filename)' is listed twice in '\(directory)'")
            }
            items += answer.items
            guard let next = answer.nextPage else { break }
            try expect(next.rawValue.count <= FileProviderPage.maximumLength, "a page token is too long")
            try expect(visited.insert(next).inserted, "a page token comes a second time")
            page = next
        }
        manager.learn(listingOf: directory, items)
        return items
    }

    /// Returns the item at a path. Lists the directories on the path.
    ///
    /// - Throws: ``ConformanceFailure`` if a name is not listed; the provider's errors.
    public func find(_ path: String) async throws -> FileProviderItem {
        var item = try await item(.rootContainer)
        for name in path.split(separator: "/") {
            let children = try await list(item.itemIdentifier)
            guard let child = children.first(where: { $0.filename.utf8.elementsEqual(name.utf8) }) else {
                throw ConformanceFailure("'\(name)' of '\(path)' is not listed")
            }
            item = child
        }
        return item
    }

    /// Fetches a file's content or a range of it.
    ///
    /// - Throws: ``ConformanceFailure`` if a byte is missing; the provider's errors.
    public func fetch(
        _ identifier: ItemIdentifier, version: [UInt8]? = nil, range: Range<Int64>? = nil
    ) async throws -> (bytes: [UInt8], item: FileProviderItem) {
        let sink = CollectingSink()
        let item = try await provider.fetchContents(
            for: identifier, version: version, range: range, request: request, into: sink)
        return (try sink.bytes(in: range ?? 0..<(item.documentSize ?? 0)), item)
    }

    /// Returns the current sync anchor.
    ///
    /// - Throws: ``ConformanceFailure`` if there is none; the provider's errors.
    public func anchor() async throws -> SyncAnchor {
        let enumerator = try provider.enumerator(for: .workingSet, request: request)
        defer { enumerator.invalidate() }
        guard let anchor = try await enumerator.currentSyncAnchor() else {
            throw ConformanceFailure("the provider declares a change feed and has no anchor")
        }
        try expect(anchor.rawValue.count <= SyncAnchor.maximumLength, "the anchor is too long")
        return anchor
    }

    /// Returns all changes since an anchor, as one batch.
    ///
    /// - Throws: ``ConformanceFailure`` for an invalid batch; the provider's errors.
    public func changes(from anchor: SyncAnchor, batchSize: Int = 1000) async throws -> ChangeBatch {
        let enumerator = try provider.enumerator(for: .workingSet, request: request)
        defer { enumerator.invalidate() }
        var all = ChangeBatch(anchor: anchor)
        while true {
            let batch = try await enumerator.enumerateChanges(from: all.anchor, suggestedBatchSize: batchSize)
            manager.learn(batch)
            let isStuck = batch.moreComing && batch.anchor == all.anchor
            all.append(batch)
            if !batch.moreComing { return all }
            try expect(!isStuck, "more changes are coming, from the same anchor on")
        }
    }

    /// Collects changes since an anchor until they satisfy a condition, because a provider may report them with a
    /// delay.
    ///
    /// - Throws: ``ConformanceFailure`` after a timeout.
    public func changes(
        from anchor: SyncAnchor, until what: String, within deadline: Duration = .seconds(10),
        _ isMet: (ChangeBatch) -> Bool
    ) async throws -> ChangeBatch {
        let end = ContinuousClock.now + deadline
        var all = ChangeBatch(anchor: anchor)
        while true {
            all.append(try await changes(from: all.anchor))
            if isMet(all) { return all }
            try expect(ContinuousClock.now < end, "the changes do not report \(what)")
            try await Task.sleep(for: .milliseconds(10))
        }
    }
}

extension FileProviderItem {
    package func renamed(_ name: String) -> FileProviderItem {
        var item = self
        item.filename = name
        return item
    }

    package func moved(to directory: ItemIdentifier) -> FileProviderItem {
        var item = self
        item.parentItemIdentifier = directory
        return item
    }
}

extension ChangeBatch {
    mutating func append(_ next: ChangeBatch) {
        updated += next.updated
        deleted += next.deleted
        anchor = next.anchor
    }
}
