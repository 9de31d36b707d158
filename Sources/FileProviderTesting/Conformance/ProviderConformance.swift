import FileProvider

/// The provider contract, as checks of any provider. Each check takes a remote of its own.
///
///     @Test(arguments: ProviderConformance.Check.allCases)
///     func conforms(to check: ProviderConformance.Check) async throws {
///         try await ProviderConformance { try MyRemote() }.run(check)
///     }
public struct ProviderConformance: Sendable {
    /// The checks.
    public enum Check: String, Hashable, Sendable, CaseIterable, CustomStringConvertible {
        /// The root exists, and an empty remote lists nothing.
        case rootExists
        /// A listing has every item of a directory, with its kind and size.
        case listingsAreComplete
        /// The pages of a listing have every item exactly once, whatever page size the system suggests.
        case pagesCoverTheListing
        /// Two Unicode forms of one text are two names.
        case unicodeFormsAreDistinct
        /// An item keeps its identifier when it, or a directory above it, is renamed or moved.
        case identifiersSurviveRenames
        /// An item keeps its identifier and its versions in another instance of the provider.
        case identifiersSurviveRestarts
        /// A lookup gives the same item as a listing.
        case lookupsEqualListings
        /// Calls with the identifier of a missing item throw `noSuchItem`.
        case missingItemsAreNoSuchItem
        /// A fetch delivers each byte of a file, of the listed version.
        case contentIsExact
        /// A fetch of a range delivers each byte of it.
        case rangesAreExact
        /// A fetch of a version that was replaced throws `versionNoLongerAvailable`.
        case oldVersionsAreRefused
        /// The content version changes with the content, and not with the name.
        case versionsFollowContent
        /// The working set reports new, changed, renamed, moved and deleted items.
        case changesAreReported
        /// An anchor without a history throws `syncAnchorExpired`.
        case unknownAnchorsExpire
        /// The enumerator of a file returns the file, and reports its changes.
        case documentsReportChanges
        /// A cancelled fetch returns within a second and changes nothing.
        case cancelledCallsReturnSoon
        /// Concurrent calls do not mix their results.
        case callsMayBeConcurrent
        /// A created item is stored with its content.
        case newItemsAreStored
        /// Every name that Linux allows is stored unchanged, and every other one is refused.
        case namesAreKept
        /// A creation that is repeated with `mayAlreadyExist` returns the same item.
        case repeatedCreationsAreOneItem
        /// An item that is offered in a reimport is recognized, and left unchanged.
        case offeredItemsAreRecognized
        /// A taken name throws `filenameCollision` with the existing item, which stays unchanged.
        case takenNamesCollide
        /// An upload replaces the content, and nothing else.
        case uploadsReplaceContent
        /// An upload with an old base version throws `localVersionConflictingWithServer`.
        case staleUploadsConflict
        /// An upload whose content was written during the call leaves nothing behind.
        case failedUploadsLeaveNothing
        /// Items are renamed and moved, also together with new content.
        case itemsAreRenamedAndMoved
        /// Two items can exchange their names in three renames.
        case namesCanBeSwapped
        /// Every other field is stored, or returned as still pending.
        case metadataIsStored
        /// A deletion with an old base version throws `deletionRejected`; one of a missing item succeeds.
        case staleDeletionsAreRejected
        /// A directory with children is deleted only recursively.
        case nonEmptyDirectoriesAreKept
        /// A remote without a trash throws `featureUnsupported` for it, and no item allows trashing.
        case missingTrashIsUnsupported
        /// A trashed item keeps identifier, content and children.
        case trashedItemsAreUnchanged
        /// A trashed item can be moved back, also to another directory and with new content.
        case trashedItemsCanBeRestored
        /// A trashed item can be deleted, and an item can be created in the trash.
        case trashedItemsCanBeDeleted
        /// Trashing ends the shares of an item and its descendants.
        case trashingEndsShares

        public var description: String { rawValue }
    }

    private let makeRemote: @Sendable () async throws -> any RemoteUnderTest

    /// Checks of a provider.
    ///
    /// - Parameter makeRemote: creates a new, empty remote for each check.
    public init(_ makeRemote: @escaping @Sendable () async throws -> any RemoteUnderTest) {
        self.makeRemote = makeRemote
    }

    /// Runs one check. A check of a feature that the provider does not declare succeeds.
    ///
    /// - Throws: ``ConformanceFailure``; the errors of the remote.
    public func run(_ check: Check) async throws {
        let remote = try await makeRemote()
        let result: Result<Void, any Error>
        do {
            let manager = TestManager(domain: remote.domain, stateDirectory: remote.stateDirectory)
            let provider = try await remote.makeProvider(for: manager)
            let session = ProviderSession(provider: provider, manager: manager)
            do {
                try await Subject(remote: remote, session: session).run(check)
                result = .success(())
            } catch {
                result = .failure(error)
            }
            await provider.invalidate()
        } catch {
            result = .failure(error)
        }
        await remote.dispose()
        try result.get()
    }

    /// The remote and the session of a check.
    struct Subject: Sendable {
        let remote: any RemoteUnderTest
        let session: ProviderSession

        var features: ProviderFeatures { session.provider.features }

        func run(_ check: Check) async throws {
            let (feature, body) = Self.plan(of: check)
            if let feature, !features[keyPath: feature] { return }
            try await body(self)()
        }

        /// The feature that a check needs, and its body.
        private static func plan(
            of check: Check
        ) -> (feature: KeyPath<ProviderFeatures, Bool>?, body: (Subject) -> () async throws -> Void) {
            switch check {
            case .rootExists: (nil, checkRoot)
            case .listingsAreComplete: (nil, checkListings)
            case .pagesCoverTheListing: (nil, checkPages)
            case .unicodeFormsAreDistinct: (nil, checkUnicodeForms)
            case .identifiersSurviveRenames: (nil, checkRenames)
            case .identifiersSurviveRestarts: (nil, checkRestart)
            case .lookupsEqualListings: (nil, checkLookups)
            case .missingItemsAreNoSuchItem: (nil, checkMissingItems)
            case .contentIsExact: (nil, checkContent)
            case .rangesAreExact: (\.partialContentFetching, checkRanges)
            case .oldVersionsAreRefused: (nil, checkOldVersion)
            case .versionsFollowContent: (nil, checkVersions)
            case .changesAreReported: (\.changeFeed, checkChanges)
            case .unknownAnchorsExpire: (\.changeFeed, checkUnknownAnchor)
            case .documentsReportChanges: (\.documentEnumeration, checkDocuments)
            case .cancelledCallsReturnSoon: (nil, checkCancellation)
            case .callsMayBeConcurrent: (nil, checkConcurrency)
            case .newItemsAreStored: (\.writing, checkNewItems)
            case .namesAreKept: (\.writing, checkNames)
            case .repeatedCreationsAreOneItem: (\.writing, checkRepeatedCreation)
            case .offeredItemsAreRecognized: (\.writing, checkOfferedItems)
            case .takenNamesCollide: (\.writing, checkCollisions)
            case .uploadsReplaceContent: (\.writing, checkUploads)
            case .staleUploadsConflict: (\.conditionalWrites, checkConflicts)
            case .failedUploadsLeaveNothing: (\.writing, checkFailedUploads)
            case .itemsAreRenamedAndMoved: (\.writing, checkMoves)
            case .namesCanBeSwapped: (\.writing, checkSwap)
            case .metadataIsStored: (\.writing, checkMetadata)
            case .staleDeletionsAreRejected: (\.writing, checkDeletions)
            case .nonEmptyDirectoriesAreKept: (\.writing, checkFullDirectories)
            case .missingTrashIsUnsupported: (\.writing, checkMissingTrash)
            case .trashedItemsAreUnchanged: (\.trash, checkTrashing)
            case .trashedItemsCanBeRestored: (\.trash, checkRestoring)
            case .trashedItemsCanBeDeleted: (\.trash, checkDeletingTrash)
            case .trashingEndsShares: (\.trash, checkShares)
            }
        }
    }
}
