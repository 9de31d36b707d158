import FileProvider
import SystemPackage
import Testing

/// The table of errors: what the system does about each, and what a process sees.
@Suite struct ErrorTests {
    private typealias Code = FileProviderError.Code

    @Test func everyCodeHasItsReaction() {
        let table: [FileProviderError.Reaction: [Code]] = [
            .latchDomain: [.notAuthenticated, .serverUnreachable, .providerNotFound],
            .parkItem: [.insufficientQuota, .cannotSynchronize, .excludedFromSync, .removalsAreHeld],
            .changeState: [
                .noSuchItem, .filenameCollision, .deletionRejected, .directoryNotEmpty, .syncAnchorExpired,
                .pageExpired, .versionNoLongerAvailable, .localVersionConflictingWithServer,
            ],
            .stop: [.userCancelled],
            .giveUpAsking: [
                .featureUnsupported, .fileReadNoPermission, .unsyncedEdits, .nonEvictable, .nonEvictableChildren,
                .fileWriteFileExists, .ubiquitousFileUnavailable, .domainDisabled,
                .providerTranslocated, .olderExtensionVersionRunning, .newerExtensionVersionFound,
                .providerDomainNotFound, .applicationExtensionNotFound,
            ],
            .retry: [.timedOut, .malformedResponse, .providerDomainTemporarilyUnavailable, .posix],
        ]
        for (reaction, codes) in table {
            for code in codes { #expect(code.reaction == reaction, "\(code)") }
        }
        #expect(Set(table.values.joined()) == Set(Code.allCases))
    }

    /// The numbers are Linux's, so that a wrong name for one is found too.
    @Test(
        arguments: [
            (FileProviderError.Code.serverUnreachable, 113), (.timedOut, 110), (.notAuthenticated, 129),
            (.versionNoLongerAvailable, 116), (.malformedResponse, 5), (.fileReadNoPermission, 13),
            (.insufficientQuota, 122), (.userCancelled, 4), (.featureUnsupported, 95), (.noSuchItem, 116),
            (.cannotSynchronize, 5), (.domainDisabled, 108), (.directoryNotEmpty, 39), (.deletionRejected, 1),
            (.filenameCollision, 17), (.removalsAreHeld, 5),
        ] as [(FileProviderError.Code, CInt)])
    func readersSeeTheErrnoOfTheInterface(code: FileProviderError.Code, errno: CInt) {
        #expect(FileProviderError(code).readerErrno.rawValue == errno)
    }

    @Test(
        arguments: [
            (FileProviderError.Code.unsyncedEdits, 115), (.nonEvictable, 1), (.nonEvictableChildren, 39),
            (.noSuchItem, 2),
            (.serverUnreachable, 113),
        ] as [(FileProviderError.Code, CInt)])
    func commandsSeeTheErrnoOfTheInterface(code: FileProviderError.Code, errno: CInt) {
        #expect(FileProviderError(code).controlErrno.rawValue == errno)
    }

    @Test func aProcessThatMayNotMaterializeSeesObjectIsRemote() {
        #expect(Errno.remote.rawValue == 66)
    }

    @Test func aFailedSystemCallKeepsItsErrno() {
        #expect(FileProviderError.posix(.noSpace).readerErrno == .noSpace)
        #expect(FileProviderError(.posix).readerErrno == .ioError)
    }

    @Test func everyCodeHasASentence() {
        for code in Code.allCases {
            let error = FileProviderError(code)
            #expect(!error.message.isEmpty)
            #expect(error.description.hasPrefix("\(code.rawValue): "))
            #expect(error.readerErrno.rawValue != 0)
        }
        #expect(FileProviderError.noSuchItem("x").itemIdentifier == "x")
    }
}
