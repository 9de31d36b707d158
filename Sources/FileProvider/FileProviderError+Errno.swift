import SystemPackage

extension FileProviderError {
    /// The errno of a system call that waited for the failed call.
    public var readerErrno: Errno {
        switch code {
        case .notAuthenticated: .keyRejected
        case .serverUnreachable: .noRouteToHost
        case .timedOut: .timedOut
        case .insufficientQuota: .diskQuotaExceeded
        case .noSuchItem, .versionNoLongerAvailable, .localVersionConflictingWithServer: .staleNFSFileHandle
        case .directoryNotEmpty: .directoryNotEmpty
        case .deletionRejected: .notPermitted
        case .filenameCollision, .fileWriteFileExists: .fileExists
        case .featureUnsupported, .excludedFromSync: .notSupportedOnSocket
        case .fileReadNoPermission: errno ?? .permissionDenied
        case .userCancelled: .interrupted
        case .domainDisabled: .shutDown
        case .posix, .ubiquitousFileUnavailable: errno ?? .ioError
        case .providerNotFound, .applicationExtensionNotFound, .providerDomainNotFound: .socketNotConnected
        case .cannotSynchronize, .removalsAreHeld, .malformedResponse, .syncAnchorExpired, .pageExpired,
            .unsyncedEdits, .nonEvictable, .nonEvictableChildren, .providerTranslocated, .olderExtensionVersionRunning,
            .newerExtensionVersionFound, .providerDomainTemporarilyUnavailable:
            .ioError
        }
    }

    /// The errno of an eviction or download that was requested by attribute.
    public var controlErrno: Errno {
        switch code {
        case .unsyncedEdits: .nowInProgress
        case .nonEvictable: .notPermitted
        case .nonEvictableChildren: .directoryNotEmpty
        case .noSuchItem: .noSuchFileOrDirectory
        default: readerErrno
        }
    }
}

extension Errno {
    /// EKEYREJECTED, "Key was rejected by service".
    public static var keyRejected: Errno { Errno(rawValue: 129) }
    /// EREMOTE, "Object is remote".
    public static var remote: Errno { Errno(rawValue: 66) }
    /// ESHUTDOWN, "Cannot send after transport endpoint shutdown".
    static var shutDown: Errno { Errno(rawValue: 108) }
}
