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
        /// The remote is there and makes no progress. (Ours: Apple's system has no such code.)
        case timedOut
        /// The remote answered nonsense: a wrong length, a wrong checksum, something that is not its protocol. (Ours.)
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

        /// A system call failed; ``FileProviderError/errno`` says how.
        case posix

        public var description: String { rawValue }
    }

    /// What the system does about an error.
    public enum Reaction: Hashable, Sendable {
        /// The whole domain waits: no call but a probe now and then, everything at once when it lifts.
        case latchDomain
        /// The item waits, with its reason, until it is edited, retried or the error is signalled as resolved.
        case parkItem
        /// The state here changes: see ``Code/reaction``.
        case changeState
        /// The call was not wanted any more.
        case stop
        /// The same call will never work: it is not made again.
        case giveUpAsking
        /// The call is made again by itself, with capped backoff.
        case retry
    }
}

extension FileProviderError.Code {
    /// What the system does about an error of this kind.
    ///
    /// State changes: `noSuchItem` removes the item here once a lookup has confirmed it; `filenameCollision` renames one
    /// of the two; `deletionRejected` and `directoryNotEmpty` bring the item back; an expired anchor or page starts
    /// again from the beginning; `versionNoLongerAvailable` and `localVersionConflictingWithServer` look the item up
    /// and go on from what the remote has now.
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

    /// The sentence that stands in for a message.
    var sentence: String {
        switch self {
        case .notAuthenticated: "the remote wants other credentials"
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
