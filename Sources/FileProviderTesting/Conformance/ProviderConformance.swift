import FileProvider

/// What every provider promises, as checks that any provider can be put to. Each takes a remote of its own.
///
///     @Test(arguments: ProviderConformance.Check.allCases)
///     func conforms(to check: ProviderConformance.Check) async throws {
///         try await ProviderConformance { try MyRemote() }.run(check)
///     }
public struct ProviderConformance: Sendable {
    /// The checks.
    public enum Check: String, Hashable, Sendable, CaseIterable, CustomStringConvertible {
        case rootIsThere
        case listingsAreComplete
        case pagesFollowEachOther
        case unicodeFormsAreKeptApart
        case identifiersSurviveRenames
        case identifiersSurviveARestart
        case lookupsEqualListings
        case whatIsNotThereIsNoSuchItem
        case contentIsExact
        case rangesAreExact
        case anOldVersionIsRefused
        case versionsFollowTheContent
        case changesAreTold
        case anUnknownAnchorHasExpired
        case documentsAreFollowed
        case cancelledCallsReturnSoon
        case callsMayBeConcurrent
        // For providers that can be written.
        case newItemsAreThere
        case anyNameIsKept
        case aCreationMadeAgainIsTheSameItem
        case whatIsOfferedAgainIsRecognized
        case aTakenNameIsACollision
        case uploadsReplaceContent
        case anUploadOnAnOldVersionIsAConflict
        case brokenUploadsLeaveNothing
        case itemsAreRenamedAndMoved
        case namesCanBeSwapped
        case metadataIsStored
        case deletionsFollowTheVersion
        case fullDirectoriesAreKept
        case whoHasNoTrashSaysSo
        case trashedItemsAreWhatTheyWere
        case trashedItemsComeBack
        case trashedItemsCanBeDeleted
        case trashingEndsShares

        public var description: String { rawValue }

        var isAboutWriting: Bool {
            switch self {
            case .newItemsAreThere, .anyNameIsKept, .aCreationMadeAgainIsTheSameItem,
                .whatIsOfferedAgainIsRecognized, .aTakenNameIsACollision,
                .uploadsReplaceContent, .anUploadOnAnOldVersionIsAConflict, .brokenUploadsLeaveNothing,
                .itemsAreRenamedAndMoved, .namesCanBeSwapped, .metadataIsStored, .deletionsFollowTheVersion,
                .fullDirectoriesAreKept, .whoHasNoTrashSaysSo, .trashedItemsAreWhatTheyWere, .trashedItemsComeBack,
                .trashedItemsCanBeDeleted, .trashingEndsShares:
                true
            default: false
            }
        }
    }

    private let makeRemote: @Sendable () async throws -> any RemoteUnderTest

    /// - Parameter makeRemote: creates a new, empty remote for each check.
    public init(_ makeRemote: @escaping @Sendable () async throws -> any RemoteUnderTest) {
        self.makeRemote = makeRemote
    }

    /// Runs one check. A check for a feature that the provider does not declare succeeds.
    ///
    /// - Throws: ``ConformanceFailure``; the errors of the remote.
    public func run(_ check: Check) async throws {
        let remote = try await makeRemote()
        do {
            let manager = TestManager(domain: remote.domain, stateDirectory: remote.stateDirectory)
            let provider = try await remote.makeProvider(for: manager)
            let session = ProviderSession(provider: provider, manager: manager)
            do {
                try await run(check, Subject(remote: remote, session: session))
            } catch {
                await provider.invalidate()
                throw error
            }
            await provider.invalidate()
        } catch {
            await remote.dispose()
            throw error
        }
        await remote.dispose()
    }

    /// The remote and the session of a check.
    struct Subject: Sendable {
        let remote: any RemoteUnderTest
        let session: ProviderSession

        var features: ProviderFeatures { session.provider.features }
    }

    private func run(_ check: Check, _ subject: Subject) async throws {
        if check.isAboutWriting, !subject.features.writing { return }
        switch check {
        case .rootIsThere: try await subject.checkRoot()
        case .listingsAreComplete: try await subject.checkListings()
        case .pagesFollowEachOther: try await subject.checkPages()
        case .unicodeFormsAreKeptApart: try await subject.checkUnicodeForms()
        case .identifiersSurviveRenames: try await subject.checkRenames()
        case .identifiersSurviveARestart: try await subject.checkRestart()
        case .lookupsEqualListings: try await subject.checkLookups()
        case .whatIsNotThereIsNoSuchItem: try await subject.checkMissingItems()
        case .contentIsExact: try await subject.checkContent()
        case .rangesAreExact: try await subject.checkRanges()
        case .anOldVersionIsRefused: try await subject.checkOldVersion()
        case .versionsFollowTheContent: try await subject.checkVersions()
        case .changesAreTold: try await subject.checkChanges()
        case .anUnknownAnchorHasExpired: try await subject.checkUnknownAnchor()
        case .documentsAreFollowed: try await subject.checkDocuments()
        case .cancelledCallsReturnSoon: try await subject.checkCancellation()
        case .callsMayBeConcurrent: try await subject.checkConcurrency()
        case .newItemsAreThere: try await subject.checkNewItems()
        case .anyNameIsKept: try await subject.checkNames()
        case .aCreationMadeAgainIsTheSameItem: try await subject.checkRepeatedCreation()
        case .whatIsOfferedAgainIsRecognized: try await subject.checkOfferedItems()
        case .aTakenNameIsACollision: try await subject.checkCollisions()
        case .uploadsReplaceContent: try await subject.checkUploads()
        case .anUploadOnAnOldVersionIsAConflict: try await subject.checkConflicts()
        case .brokenUploadsLeaveNothing: try await subject.checkBrokenUploads()
        case .itemsAreRenamedAndMoved: try await subject.checkMoves()
        case .namesCanBeSwapped: try await subject.checkSwap()
        case .metadataIsStored: try await subject.checkMetadata()
        case .deletionsFollowTheVersion: try await subject.checkDeletions()
        case .fullDirectoriesAreKept: try await subject.checkFullDirectories()
        case .whoHasNoTrashSaysSo: try await subject.checkMissingTrash()
        case .trashedItemsAreWhatTheyWere: try await subject.checkTrashing()
        case .trashedItemsComeBack: try await subject.checkRestoring()
        case .trashedItemsCanBeDeleted: try await subject.checkDeletingTrash()
        case .trashingEndsShares: try await subject.checkShares()
        }
    }
}
