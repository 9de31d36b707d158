extension FileProviderError {
    /// The kinds of error.
    public enum Code: String, Hashable, Sendable, Codable, CaseIterable, CustomStringConvertible {
        // What a provider throws.
        /// The remote rejects the credentials.
        case notAuthenticated
        /// The remote cannot be reached.
        case serverUnreachable
        /// The remote has no space left.
        case insufficientQuota
        /// The remote cannot store this item.
        case cannotSynchronize
        /// The remote does not accept this item; it stays on this machine.
        case excludedFromSync
        /// The remote has no such item.
        case noSuchItem
        /// The remote has another item with this name.
        case filenameCollision
        /// The remote refuses to delete the item.
        case deletionRejected
        /// The directory has children on the remote.
        case directoryNotEmpty
        /// The provider has no history since the anchor.
        case syncAnchorExpired
        /// The page token is no longer valid; the listing restarts.
        case pageExpired
        /// The requested content version does not exist any more.
        case versionNoLongerAvailable
        /// The change is not based on the current version of the remote.
        case localVersionConflictingWithServer
        /// The remote does not support the call.
        case featureUnsupported
        /// The remote denies reading.
        case fileReadNoPermission
        /// The call was cancelled.
        case userCancelled
        /// The remote answers but makes no progress. (Not one of Apple's codes.)
        case timedOut
        /// The remote's answer is invalid: a wrong length or checksum, or a protocol error. (Not one of Apple's codes.)
        case malformedResponse

        // What the system throws.
        /// The item has pending changes.
        case unsyncedEdits
        /// The item is kept downloaded.
        case nonEvictable
        /// Some descendants could not be evicted.
        case nonEvictableChildren
        /// The destination exists.
        case fileWriteFileExists
        /// The content is not local.
        case ubiquitousFileUnavailable
        /// Removals on the remote are held, and the change waits for what becomes of them. (Not one of Apple's codes.)
        case removalsAreHeld
        /// The domain is not mounted.
        case domainDisabled
        /// No provider serves the source.
        case providerNotFound
        /// The provider was moved.
        case providerTranslocated
        /// The provider uses an older version of the protocol.
        case olderExtensionVersionRunning
        /// The provider uses a newer version of the protocol.
        case newerExtensionVersionFound
        /// The domain does not exist.
        case providerDomainNotFound
        /// The provider is restarting.
        case providerDomainTemporarilyUnavailable
        /// The provider cannot be started.
        case applicationExtensionNotFound

        /// A system call failed with ``FileProviderError/errno``.
        case posix

        public var description: String { rawValue }
    }

    /// What the system does after an error.
    public enum Reaction: Hashable, Sendable {
        /// All calls of the domain wait. The system probes the root at intervals; when it answers, all calls continue.
        case latchDomain
        /// The item waits until it is edited or retried, or the error is signalled as resolved.
        case parkItem
        /// The local state changes; see ``Code/reaction``.
        case changeState
        /// The call was cancelled.
        case stop
        /// The call is not repeated, because it cannot succeed.
        case giveUpAsking
        /// The call is repeated with exponential backoff up to a limit.
        case retry
    }
}

extension FileProviderError.Code {
    /// What the system does after an error of this kind.
    ///
    /// State changes: `noSuchItem` removes the local item once a lookup has confirmed it; `filenameCollision` renames one
    /// of the two items; `deletionRejected` and `directoryNotEmpty` restore the item; an expired anchor or page restarts
    /// from the beginning; `versionNoLongerAvailable` and `localVersionConflictingWithServer` look the item up and continue
    /// with the remote's version.
    public var reaction: FileProviderError.Reaction {
        switch self {
        case .notAuthenticated, .serverUnreachable, .providerNotFound: .latchDomain
        case .insufficientQuota, .cannotSynchronize, .excludedFromSync, .removalsAreHeld: .parkItem
        case .noSuchItem, .filenameCollision, .deletionRejected, .directoryNotEmpty, .syncAnchorExpired, .pageExpired,
            .versionNoLongerAvailable, .localVersionConflictingWithServer:
            .changeState
        case .userCancelled: .stop
        case .featureUnsupported, .providerTranslocated, .olderExtensionVersionRunning,
            .newerExtensionVersionFound, .providerDomainNotFound, .applicationExtensionNotFound, .domainDisabled,
            .unsyncedEdits, .nonEvictable, .nonEvictableChildren, .fileWriteFileExists, .ubiquitousFileUnavailable,
            .fileReadNoPermission:
            .giveUpAsking
        case .timedOut, .malformedResponse, .providerDomainTemporarilyUnavailable, .posix: .retry
        }
    }

    /// The default message.
    var sentence: String {
        switch self {
        case .notAuthenticated: "the remote rejects the credentials"
        case .serverUnreachable: "the remote cannot be reached"
        case .insufficientQuota: "the remote is full"
        case .cannotSynchronize: "the remote cannot store this item"
        case .excludedFromSync: "the item stays on this machine"
        case .noSuchItem: "the remote has no such item"
        case .filenameCollision: "an item of this name exists on the remote"
        case .deletionRejected: "the remote refuses to delete the item"
        case .directoryNotEmpty: "the directory is not empty on the remote"
        case .syncAnchorExpired: "the remote has no history since the anchor"
        case .pageExpired: "the listing must restart"
        case .versionNoLongerAvailable: "the remote has a newer version"
        case .localVersionConflictingWithServer: "the remote has a newer version than the one that was edited"
        case .featureUnsupported: "the remote does not support this"
        case .fileReadNoPermission: "the remote denies reading"
        case .userCancelled: "cancelled"
        case .timedOut: "the remote makes no progress"
        case .malformedResponse: "the remote's answer is invalid"
        case .unsyncedEdits: "local changes are not on the remote yet"
        case .nonEvictable: "the item is kept downloaded"
        case .nonEvictableChildren: "an item in the directory cannot be evicted"
        case .fileWriteFileExists: "the name is taken"
        case .ubiquitousFileUnavailable: "the content is not local"
        case .removalsAreHeld: "removals on the remote are held"
        case .domainDisabled: "the domain is not mounted"
        case .providerNotFound: "no provider serves the source"
        case .providerTranslocated: "the provider was moved"
        case .olderExtensionVersionRunning: "the provider uses an older version of the protocol"
        case .newerExtensionVersionFound: "the provider uses a newer version of the protocol"
        case .providerDomainNotFound: "the domain does not exist"
        case .providerDomainTemporarilyUnavailable: "the provider is being restarted"
        case .applicationExtensionNotFound: "the provider cannot be started"
        case .posix: "a system call failed"
        }
    }
}
