/// A page token: where a listing continues. Opaque bytes of the provider, empty for the first page.
public struct FileProviderPage: Hashable, Sendable {
    /// At most ``maximumLength`` bytes.
    public var rawValue: [UInt8]

    /// A token of these bytes.
    public init(rawValue: [UInt8]) {
        self.rawValue = rawValue
    }

    /// The first page.
    public static let initial = FileProviderPage(rawValue: [])
    /// The maximum length in bytes. A listing with a longer token is aborted and reported.
    public static let maximumLength = 500
}

/// A point in a provider's history of changes: opaque bytes of the provider.
public struct SyncAnchor: Hashable, Sendable, Codable {
    /// At most ``maximumLength`` bytes.
    public var rawValue: [UInt8]

    /// A token of these bytes.
    public init(rawValue: [UInt8]) {
        self.rawValue = rawValue
    }

    /// An anchor of the UTF-8 bytes of a text.
    public init(_ text: String) {
        rawValue = Array(text.utf8)
    }

    /// The maximum length in bytes. A longer anchor counts as expired.
    public static let maximumLength = 500
}

/// One page of a listing.
public struct ItemPage: Hashable, Sendable {
    /// The items of the page.
    public var items: [FileProviderItem]
    /// The token of the next page; nil on the last page.
    public var nextPage: FileProviderPage?
    /// What the remote has and the provider cannot list, one text for each entry that it leaves out. The texts are written to the
    /// log and shown by `yonder status`, until a whole listing of the directory does not have them or the directory is removed.
    public var omissions: [String]

    /// A page; the last one by default, and without omissions.
    public init(items: [FileProviderItem], nextPage: FileProviderPage? = nil, omissions: [String] = []) {
        self.items = items
        self.nextPage = nextPage
        self.omissions = omissions
    }

    /// A page of items that were read at once. The token of a page is the number of items before it.
    package init(of all: [FileProviderItem], startingAt page: FileProviderPage, size: Int) throws {
        let start = Int(String(decoding: page.rawValue, as: UTF8.self)) ?? 0
        guard start >= 0, start <= all.count else { throw FileProviderError(.pageExpired) }
        let end = start + min(all.count - start, max(1, size))
        self.init(
            items: Array(all[start..<end]),
            nextPage: end < all.count ? FileProviderPage(rawValue: Array(String(end).utf8)) : nil)
    }
}

/// One batch of changes. The system commits it in one transaction with its anchor.
public struct ChangeBatch: Hashable, Sendable {
    /// New and changed items, complete.
    public var updated: [FileProviderItem]
    /// The identifiers of deleted items. Unknown ones are ignored.
    public var deleted: [ItemIdentifier]
    /// The point after this batch.
    public var anchor: SyncAnchor
    /// Whether more changes follow after `anchor`. True with an anchor that came before, or in more than 1000 batches without
    /// changes, is an error of the provider: the system reports it, stops, and asks again after a pause.
    public var moreComing: Bool

    /// A batch of changes with the anchor after it.
    public init(
        updated: [FileProviderItem] = [], deleted: [ItemIdentifier] = [], anchor: SyncAnchor, moreComing: Bool = false
    ) {
        self.updated = updated
        self.deleted = deleted
        self.anchor = anchor
        self.moreComing = moreComing
    }
}

/// Lists one container page by page, or reports changes since an anchor.
///
/// The system asks the enumerator of a directory for items and that of the working set for changes. It never runs two
/// enumerations of the working set at once. Only ``enumerateItems(startingAt:suggestedPageSize:)`` has no default
/// implementation.
public protocol FileProviderEnumerator: Sendable {
    /// Returns one page of the container's items. Return the available items rather than wait for more. Every item that
    /// exists during the whole listing must appear exactly once over all pages.
    ///
    ///     let answer = try await api.list(container, token: page.rawValue, limit: suggestedPageSize)
    ///     return ItemPage(items: answer.items, nextPage: answer.token.map { FileProviderPage(rawValue: $0) })
    ///
    /// - Parameters:
    ///   - page: ``FileProviderPage/initial``, or the token of the previous page.
    ///   - suggestedPageSize: the preferred number of items. A page of more than 100 times as many is rejected.
    /// - Throws: ``FileProviderError``: `pageExpired` restarts the listing; `noSuchItem` if the container does not exist.
    func enumerateItems(startingAt page: FileProviderPage, suggestedPageSize: Int) async throws -> ItemPage

    /// Returns the changes after an anchor, of the working set or of one file. May include items that the system does not
    /// know and changes that the system itself has made.
    ///
    ///     let answer = try await api.changes(since: anchor.rawValue, limit: suggestedBatchSize)
    ///     return ChangeBatch(
    ///         updated: answer.items, deleted: answer.deleted, anchor: SyncAnchor(rawValue: answer.cursor),
    ///         moreComing: answer.hasMore)
    ///
    /// - Throws: ``FileProviderError``: `syncAnchorExpired` if the provider does not have the history since `anchor`. The
    ///   system then compares all listed directories. `featureUnsupported` by default.
    func enumerateChanges(from anchor: SyncAnchor, suggestedBatchSize: Int) async throws -> ChangeBatch

    /// Returns the current point in the history: at or before the state that pages requested from now on will show. Nil
    /// (the default) if the provider has no history.
    ///
    ///     func currentSyncAnchor() async throws -> SyncAnchor? { SyncAnchor(try await api.latestCursor()) }
    ///
    /// - Throws: ``FileProviderError``.
    func currentSyncAnchor() async throws -> SyncAnchor?

    /// Ends this enumerator. Does nothing by default.
    ///
    ///     func invalidate() { stream.close() }
    func invalidate()
}

extension FileProviderEnumerator {
    public func enumerateChanges(from anchor: SyncAnchor, suggestedBatchSize: Int) async throws -> ChangeBatch {
        throw FileProviderError(.featureUnsupported, "this container reports no changes")
    }

    public func currentSyncAnchor() async throws -> SyncAnchor? { nil }

    public func invalidate() {}
}
