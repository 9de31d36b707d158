extension FileProviderError {
    /// The kinds of error.
    public enum Code: String, Hashable, Sendable, Codable, CaseIterable, CustomStringConvertible {
        // What a provider throws.
        case notAuthenticated
        case serverUnreachable
        case insufficientQuota
        case cannotSynchronize
        case excludedFromSync
        case noSuchItem
        case filenameCollision
        case deletionRejected
        case directoryNotEmpty
        case syncAnchorExpired
        case pageExpired
        case versionNoLongerAvailable
        case localVersionConflictingWithServer
        case featureUnsupported
        case fileReadNoPermission
        case userCancelled
        /// The remote answers but makes no progress. (Not one of Apple's codes.)
        case timedOut
        /// The remote's answer is invalid: a wrong length or checksum, or a protocol error. (Not one of Apple's codes.)
        case malformedResponse

        // What the system throws.
        case unsyncedEdits
        case nonEvictable
        case nonEvictableChildren
        case fileWriteFileExists
        case ubiquitousFileUnavailable
        case domainDisabled
        case providerNotFound
        case providerTranslocated
        case olderExtensionVersionRunning
        case newerExtensionVersionFound
        case providerDomainNotFound
        case providerDomainTemporarilyUnavailable
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
        case .notAuthenticated, .serverUnreachable: .latchDomain
        case .insufficientQuota, .cannotSynchronize, .excludedFromSync: .parkItem
        case .noSuchItem, .filenameCollision, .deletionRejected, .directoryNotEmpty, .syncAnchorExpired, .pageExpired,
            .versionNoLongerAvailable, .localVersionConflictingWithServer:
            .changeState
        case .userCancelled: .stop
        case .featureUnsupported, .providerNotFound, .providerTranslocated, .olderExtensionVersionRunning,
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
        case .cannotSynchronize: "the remote will not take this item"
        case .excludedFromSync: "the item stays on this machine"
        case .noSuchItem: "the remote has no such item"
        case .filenameCollision: "an item of this name exists on the remote"
        case .deletionRejected: "the remote refuses to delete the item"
        case .directoryNotEmpty: "the directory is not empty on the remote"
        case .syncAnchorExpired: "the remote cannot tell what changed since then"
        case .pageExpired: "the listing has to start again"
        case .versionNoLongerAvailable: "the remote has a newer version"
        case .localVersionConflictingWithServer: "the remote has moved on from the version that was edited"
        case .featureUnsupported: "this remote cannot do it"
        case .fileReadNoPermission: "the remote forbids reading"
        case .userCancelled: "cancelled"
        case .timedOut: "the remote makes no progress"
        case .malformedResponse: "the remote answered nonsense"
        case .unsyncedEdits: "local changes are not on the remote yet"
        case .nonEvictable: "the item is kept downloaded"
        case .nonEvictableChildren: "something in the directory cannot be evicted"
        case .fileWriteFileExists: "the place is taken"
        case .ubiquitousFileUnavailable: "the content is not here"
        case .domainDisabled: "the domain is switched off"
        case .providerNotFound: "there is no such provider"
        case .providerTranslocated: "the provider is not where it was installed"
        case .olderExtensionVersionRunning: "the provider speaks an older version of the protocol"
        case .newerExtensionVersionFound: "the provider speaks a newer version of the protocol"
        case .providerDomainNotFound: "there is no such domain"
        case .providerDomainTemporarilyUnavailable: "the provider is being restarted"
        case .applicationExtensionNotFound: "the provider cannot be started"
        case .posix: "a system call failed"
        }
    }
}
