/// Where a listing goes on: opaque bytes, at most ``maximumLength`` of them, empty for the first page.
public struct FileProviderPage: Hashable, Sendable {
    public var rawValue: [UInt8]

    public init(rawValue: [UInt8]) {
        self.rawValue = rawValue
    }

    public static let initial = FileProviderPage(rawValue: [])
    public static let maximumLength = 500
}

/// A point in a provider's history of changes: opaque bytes, at most ``maximumLength`` of them.
public struct SyncAnchor: Hashable, Sendable, Codable {
    public var rawValue: [UInt8]

    public init(rawValue: [UInt8]) {
        self.rawValue = rawValue
    }

    public init(_ text: String) {
        rawValue = Array(text.utf8)
    }

    /// A longer anchor is treated as an expired one.
    public static let maximumLength = 500
}

/// One page of a listing.
public struct ItemPage: Hashable, Sendable {
    public var items: [FileProviderItem]
    /// Where the next page starts; `nil` when this was the last.
    public var nextPage: FileProviderPage?

    public init(items: [FileProviderItem], nextPage: FileProviderPage? = nil) {
        self.items = items
        self.nextPage = nextPage
    }
}

/// One batch of changes, committed by the system together with its anchor.
public struct ChangeBatch: Hashable, Sendable {
    /// New and changed items, whole.
    public var updated: [FileProviderItem]
    /// Items that are gone; unknown ones are passed over.
    public var deleted: [ItemIdentifier]
    /// The point after this batch.
    public var anchor: SyncAnchor
    /// Whether there is more, from `anchor` on. With an unchanged anchor that is a mistake, and reported.
    public var moreComing: Bool

    public init(
        updated: [FileProviderItem] = [], deleted: [ItemIdentifier] = [], anchor: SyncAnchor, moreComing: Bool = false
    ) {
        self.updated = updated
        self.deleted = deleted
        self.anchor = anchor
        self.moreComing = moreComing
    }
}

/// Lists one container, page by page, and reports changes since an anchor.
///
/// The system asks a container's enumerator for items, the working set's for changes. It never runs two enumerations of
/// the working set at once.
public protocol FileProviderEnumerator: Sendable {
    /// One page of the container's items. Return what is ready rather than wait for more.
    ///
    /// - Parameters:
    ///   - page: ``FileProviderPage/initial``, or what the page before gave.
    ///   - suggestedPageSize: how many items suit the system; a page of more than 100 times as many is refused.
    /// - Throws: ``FileProviderError``: `pageExpired` restarts the listing, `noSuchItem` says that the container is gone.
    func enumerateItems(startingAt page: FileProviderPage, suggestedPageSize: Int) async throws -> ItemPage

    /// What changed after `anchor`. Only the working set's enumerator is asked.
    ///
    /// - Throws: ``FileProviderError``: `syncAnchorExpired` when the provider cannot tell any more, and then the system
    ///   lists again all that it has listed.
    func enumerateChanges(from anchor: SyncAnchor, suggestedBatchSize: Int) async throws -> ChangeBatch

    /// The present point in the history: at or before the state that pages asked for from now on will show.
    /// `nil` when the provider has no history.
    func currentSyncAnchor() async throws -> SyncAnchor?

    /// The system is done with this enumerator.
    func invalidate()
}

extension FileProviderEnumerator {
    public func enumerateChanges(from anchor: SyncAnchor, suggestedBatchSize: Int) async throws -> ChangeBatch {
        throw FileProviderError(.featureUnsupported, "this container reports no changes")
    }

    public func currentSyncAnchor() async throws -> SyncAnchor? { nil }

    public func invalidate() {}
}
