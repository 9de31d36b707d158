import SystemPackage

/// The system's side of a domain, as its provider sees it.
public protocol FileProviderManager: Sendable {
    var domain: FileProviderDomain { get }

    /// What the provider must remember across calls and restarts; goes with the domain.
    var store: any ProviderStore { get }

    /// A folder of the provider's own for content that it stages; goes with the domain. Records belong into ``store``.
    var stateDirectory: FilePath { get }

    /// There are changes: the system asks the working set's enumerator soon. Returns at once.
    func signalEnumerator()

    /// What made calls fail with this code has been put right: everything that waits for it is tried now.
    func signalErrorResolved(_ code: FileProviderError.Code)

    /// The names from the root down to an item, as the remote last had them; `[]` for the root, `nil` for an item that
    /// is not known. A database read: cheap, and right for as long as the remote did not rename since.
    ///
    /// It lets a provider whose remote knows only paths give its items stable identifiers.
    func remotePath(of identifier: ItemIdentifier) -> [String]?

    /// The names from the trash down to an item that is trashed on the remote, or lies below one that is, as the remote
    /// last had them; `nil` for any other.
    func remoteTrashPath(of identifier: ItemIdentifier) -> [String]?

    /// The identifier of the item that has this name in a directory on the remote, as last known.
    func identifier(ofChildNamed name: String, in directory: ItemIdentifier) -> ItemIdentifier?

    /// Likewise for the names of one page of a listing, in their order; nil for each that is not known.
    func identifiers(ofChildrenNamed names: [String], in directory: ItemIdentifier) -> [ItemIdentifier?]

    /// What is known to be in a directory on the remote, also what was removed here and is still to be deleted there.
    func knownItems(in directory: ItemIdentifier) -> [KnownItem]

    /// Calls a closure with each item of ``knownItems(in:)``, in no order and without holding all of them in memory, until
    /// it returns false. The closure must not call the manager.
    func visitKnownItems(in directory: ItemIdentifier, _ visit: (KnownItem) -> Bool)

    /// The items that last had one of these content versions on the remote. With ``knownItems(in:)`` it lets a provider
    /// recognise what was renamed behind its back.
    func knownItems(withContentVersions versions: [[UInt8]]) -> [KnownItem]

    /// Which of these identifiers are known, wherever their items are.
    func knownIdentifiers(among identifiers: [ItemIdentifier]) -> Set<ItemIdentifier>

    /// The directories whose listing is here: the provider reports changes to what they contain.
    func materializedDirectories() -> [ItemIdentifier]

    /// Lists the items whose content is here, and tells from an anchor on which came and went: files that are here whole
    /// and directories whose listing is, as they are here. Anchors hold across restarts of the daemon;
    /// ``FileProviderReplicatedExtension/materializedItemsDidChange()`` says when it is worth asking.
    func enumeratorForMaterializedItems() -> any FileProviderEnumerator

    /// Likewise the items with changes that the provider has not acknowledged, new and deleted ones among them: a new
    /// one has the identifier of the template that ``FileProviderReplicatedExtension/createItem(basedOn:fields:contents:options:request:)``
    /// is called with.
    func enumeratorForPendingItems() -> any FileProviderEnumerator

    /// Identifiers below an item, and its own, are not to be trusted any more: the provider has lost what it knew. Returns
    /// when that is recorded. Then everything there is offered to the provider with `createItem` and `mayAlreadyExist`,
    /// parents first, and gets the identifiers of its answers, with its content and with what was changed here kept; in
    /// the end ``FileProviderReplicatedExtension/importDidFinish()`` is called. It may be asked for before the first call.
    ///
    /// A provider that can still vouch for its identifiers lets its changes fail with `syncAnchorExpired` instead.
    ///
    /// - Throws: `noSuchItem` for what is not known here, or waits to be offered already.
    func reimportItems(below identifier: ItemIdentifier) async throws

    /// Makes an item dataless: a file loses its local content, a directory that of all below it and then its own listing.
    /// Returns when all is done, or when the first item refuses.
    ///
    /// - Throws: `noSuchItem`, `unsyncedEdits`, `nonEvictable`, `nonEvictableChildren`; `posix` with EBUSY for what a process
    ///   uses, with EMLINK for a file with several hard links.
    func evictItem(identifier: ItemIdentifier) async throws

    /// Brings a file's content here, or a range of it; of a directory its listing. Returns when it is here.
    ///
    /// - Parameter requestedRange: in bytes from the beginning; nil for the whole file.
    /// - Throws: `noSuchItem`, what the provider says.
    func requestDownloadForItem(withIdentifier identifier: ItemIdentifier, requestedRange: Range<Int64>?) async throws

    /// Has fields of an item sent to the provider, changed or not. Returns when that is queued.
    ///
    /// - Throws: `noSuchItem`; `ubiquitousFileUnavailable` for the contents of what is not here, or is no file.
    func requestModification(of fields: ItemFields, forItemWithIdentifier identifier: ItemIdentifier) async throws

    /// Something is wrong that the user should know: shown in the log and in `status`.
    func report(_ warning: String)
}

extension FileProviderManager {
    public func identifiers(ofChildrenNamed names: [String], in directory: ItemIdentifier) -> [ItemIdentifier?] {
        names.map { identifier(ofChildNamed: $0, in: directory) }
    }

    public func visitKnownItems(in directory: ItemIdentifier, _ visit: (KnownItem) -> Bool) {
        for item in knownItems(in: directory) where !visit(item) { return }
    }

    public func remoteTrashPath(of identifier: ItemIdentifier) -> [String]? { nil }
    public func enumeratorForMaterializedItems() -> any FileProviderEnumerator { UntoldSet() }
    public func enumeratorForPendingItems() -> any FileProviderEnumerator { UntoldSet() }

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

/// A set that a system does not tell of.
private struct UntoldSet: FileProviderEnumerator {
    func enumerateItems(startingAt page: FileProviderPage, suggestedPageSize: Int) async throws -> ItemPage {
        throw FileProviderError(.featureUnsupported, "this system keeps no such set")
    }
}
