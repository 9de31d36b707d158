import SystemPackage

/// The system as seen by a domain's provider. A provider receives its manager when it is constructed.
///
/// All functions may be called from any thread and at any time, also before the domain is mounted. Functions that read the
/// database block briefly and return nil or an empty result if it cannot be read.
public protocol FileProviderManager: Sendable {
    /// The provider's domain.
    var domain: FileProviderDomain { get }

    /// Transactional storage for the provider's records. It survives restarts and is removed with the domain.
    var store: any ProviderStore { get }

    /// A directory for content that the provider stages. It exists, and is removed with the domain. Records belong in
    /// ``store``.
    var stateDirectory: FilePath { get }

    /// Tells the system that the remote has changes: it calls the working set's enumerator soon. Returns at once.
    ///
    ///     for await _ in api.notifications { manager.signalEnumerator() }
    func signalEnumerator()

    /// Tells the system that the cause of an error has been removed: calls that wait because of this code are repeated
    /// now. Returns at once.
    ///
    ///     manager.signalErrorResolved(.notAuthenticated)
    func signalErrorResolved(_ code: FileProviderError.Code)

    /// Returns the path of an item on the remote as last known, also of an item whose deletion is pending.
    ///
    /// With it, a provider whose remote knows only paths can give its items stable identifiers.
    ///
    ///     guard let names = manager.remotePath(of: identifier) else { throw FileProviderError.noSuchItem(identifier) }
    ///     let path = "/" + names.joined(separator: "/")
    ///
    /// - Returns: the names from the root down to the item; `[]` for the root; nil for an unknown item.
    func remotePath(of identifier: ItemIdentifier) -> [String]?

    /// Returns the path below the trash of an item that is trashed on the remote, or of a descendant of one.
    ///
    /// - Returns: the names from the trash down to the item; nil for any other item.
    func remoteTrashPath(of identifier: ItemIdentifier) -> [String]?

    /// Returns the identifier of the item with a name in a directory on the remote, as last known.
    func identifier(ofChildNamed name: String, in directory: ItemIdentifier) -> ItemIdentifier?

    /// Returns the identifiers of several children of a directory, in the order of `names`; nil for each unknown name.
    /// One query for a page of a listing.
    func identifiers(ofChildrenNamed names: [String], in directory: ItemIdentifier) -> [ItemIdentifier?]

    /// Returns the known children of a directory on the remote, including children whose deletion is pending.
    func knownItems(in directory: ItemIdentifier) -> [KnownItem]

    /// Calls a closure for each item of ``knownItems(in:)``, in no particular order and without loading all of them,
    /// until the closure returns false. The closure must not call the manager.
    func visitKnownItems(in directory: ItemIdentifier, _ visit: (KnownItem) -> Bool)

    /// Returns the items that last had one of these content versions on the remote, of each version at most
    /// ``KnownItem/mostOfOneVersion``. With ``knownItems(in:)``, a provider can detect renames by others.
    func knownItems(withContentVersions versions: [[UInt8]]) -> [KnownItem]

    /// Returns those of the content versions that items last had on the remote that were deleted here and are still to be
    /// deleted there.
    func contentVersionsToBeDeleted(among versions: [[UInt8]]) -> Set<[UInt8]>

    /// Returns those of the identifiers that are known. If the database cannot be read, returns all of them.
    func knownIdentifiers(among identifiers: [ItemIdentifier]) -> Set<ItemIdentifier>

    /// Returns the version that an item last had on the remote, also that of an item whose deletion is pending; nil for an
    /// unknown item.
    func knownVersion(of identifier: ItemIdentifier) -> ItemVersion?

    /// Returns the directories whose listing is materialized. The provider reports the changes in these directories.
    func materializedDirectories() -> [ItemIdentifier]

    /// Returns an enumerator of the materialized items: files whose content is complete and directories whose listing is,
    /// with their local properties. Its anchors stay valid across restarts of the daemon.
    ///
    ///     let page = try await manager.enumeratorForMaterializedItems()
    ///         .enumerateItems(startingAt: .initial, suggestedPageSize: 1000)
    func enumeratorForMaterializedItems() -> any FileProviderEnumerator

    /// Returns an enumerator of the items with changes that the provider has not acknowledged, including new and deleted
    /// items. A new item has the identifier of the template in
    /// ``FileProviderReplicatedExtension/createItem(basedOn:fields:contents:options:request:)``.
    func enumeratorForPendingItems() -> any FileProviderEnumerator

    /// Calls a closure for each item of ``enumeratorForPendingItems()``, in no particular order, until the closure returns false. For a
    /// provider that blocks; the closure must not call the manager.
    ///
    /// - Throws: an error if the database cannot be read.
    func visitPendingItems(_ visit: (FileProviderItem) -> Bool) throws

    /// Declares the identifiers of an item and all its descendants invalid, because the provider has lost its own state.
    /// Returns when the request is stored; may be called before the first call of the provider.
    ///
    /// The system then offers every item again with `createItem` and ``CreateItemOptions/mayAlreadyExist``, parents first,
    /// and stores the identifiers of the answers. Local content and local changes are kept. At the end it calls
    /// ``FileProviderReplicatedExtension/importDidFinish()``. A provider that has lost only its history of changes throws
    /// `syncAnchorExpired` instead.
    ///
    ///     if !database.isIntact { try await manager.reimportItems(below: .rootContainer) }
    ///
    /// - Throws: `noSuchItem` for an unknown item, or one that already waits to be offered.
    func reimportItems(below identifier: ItemIdentifier) async throws

    /// Evicts an item: a file loses its local content; a directory loses that of all descendants and then its listing.
    /// Returns when this is done, or when the first item refuses; items evicted before that stay evicted.
    ///
    /// - Throws: `noSuchItem`; `unsyncedEdits` for pending changes; `nonEvictable`; `nonEvictableChildren` with the errors
    ///   of the children; `posix` with EBUSY for an item in use and with EMLINK for a file with several hard links.
    func evictItem(identifier: ItemIdentifier) async throws

    /// Downloads a file, a range of it, or the listing of a directory. Returns when it is here.
    ///
    ///     try await manager.requestDownloadForItem(withIdentifier: file, requestedRange: 0..<4096)
    ///
    /// - Parameters:
    ///   - identifier: a file or directory.
    ///   - requestedRange: in bytes from the start of the file; nil for the whole file.
    /// - Throws: `noSuchItem`; the errors of the provider's calls.
    func requestDownloadForItem(withIdentifier identifier: ItemIdentifier, requestedRange: Range<Int64>?) async throws

    /// Queues an upload of fields of an item, changed or not. Returns when the request is stored.
    ///
    /// - Throws: `noSuchItem`; `ubiquitousFileUnavailable` for the contents of a dataless item or of a directory.
    func requestModification(of fields: ItemFields, forItemWithIdentifier identifier: ItemIdentifier) async throws

    /// Reports a problem that the user should know: it is written to the log and shown by `yonder status`. Returns at once.
    ///
    ///     manager.report("the server's clock is 3 hours ahead")
    func report(_ warning: String)
}

extension FileProviderManager {
    public func identifiers(ofChildrenNamed names: [String], in directory: ItemIdentifier) -> [ItemIdentifier?] {
        names.map { identifier(ofChildNamed: $0, in: directory) }
    }

    public func contentVersionsToBeDeleted(among versions: [[UInt8]]) -> Set<[UInt8]> { [] }

    public func visitKnownItems(in directory: ItemIdentifier, _ visit: (KnownItem) -> Bool) {
        for item in knownItems(in: directory) where !visit(item) { return }
    }

    public func visitPendingItems(_ visit: (FileProviderItem) -> Bool) throws {}
    public func remoteTrashPath(of identifier: ItemIdentifier) -> [String]? { nil }
    public func knownVersion(of identifier: ItemIdentifier) -> ItemVersion? { nil }
    public func enumeratorForMaterializedItems() -> any FileProviderEnumerator { UnsupportedSet() }
    public func enumeratorForPendingItems() -> any FileProviderEnumerator { UnsupportedSet() }

    public func reimportItems(below identifier: ItemIdentifier) async throws {
        throw FileProviderError(.featureUnsupported, "this system cannot reimport")
    }
}

extension FileProviderManager {
    public func evictItem(identifier: ItemIdentifier) async throws {
        throw FileProviderError(.featureUnsupported, "this system keeps no content")
    }

    public func requestDownloadForItem(
        withIdentifier identifier: ItemIdentifier, requestedRange: Range<Int64>? = nil
    ) async throws {
        throw FileProviderError(.featureUnsupported, "this system keeps no content")
    }

    public func requestModification(
        of fields: ItemFields, forItemWithIdentifier identifier: ItemIdentifier
    ) async throws {
        throw FileProviderError(.featureUnsupported, "this system sends no changes by itself")
    }
}

/// The enumerator of a manager that does not report the set.
private struct UnsupportedSet: FileProviderEnumerator {
    func enumerateItems(startingAt page: FileProviderPage, suggestedPageSize: Int) async throws -> ItemPage {
        throw FileProviderError(.featureUnsupported, "this system keeps no such set")
    }
}
