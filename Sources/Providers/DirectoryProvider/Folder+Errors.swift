import FileProvider
import SystemPackage

extension Folder {
    /// Runs a body on a Dispatch thread, and converts the errors of its system calls.
    func reading<Value: Sendable>(
        _ identifier: ItemIdentifier,
        _ body: @escaping @Sendable (Folder, BlockingCalls.Cancellation) throws -> Value
    ) async throws -> Value {
        try await calls.run { [self] cancellation in
            do {
                return try body(self, cancellation)
            } catch let error as Errno {
                throw failure(error, of: identifier)
            }
        }
    }

    static func isDenied(_ error: any Error) -> Bool {
        error as? Errno == .permissionDenied || (error as? FileProviderError)?.code == .fileReadNoPermission
    }

    /// The provider error for a failed system call.
    func failure(_ error: Errno, of identifier: ItemIdentifier) -> FileProviderError {
        switch error {
        case .permissionDenied, .notPermitted:
            FileProviderError(.fileReadNoPermission, itemIdentifier: identifier)
        case .noSuchFileOrDirectory, .notDirectory: FileProviderError.noSuchItem(identifier)
        case .socketNotConnected, .staleNFSFileHandle, .noRouteToHost, .hostIsDown, .operationNotSupportedByDevice:
            FolderItems.isOnMount(identifier)
                ? FileProviderError(
                    .ubiquitousFileUnavailable, "a file system in the source '\(path)' does not answer: \(error)",
                    itemIdentifier: identifier, errno: .operationNotSupportedByDevice)
                : FileProviderError(.serverUnreachable, "the source '\(path)' does not answer: \(error)")
        case .timedOut: FileProviderError(.timedOut, "the source '\(path)' does not answer")
        default: FileProviderError(.posix, "the source: \(error)", itemIdentifier: identifier, errno: error)
        }
    }

    /// The provider error for a failed system call of a change.
    func writeFailure(_ error: Errno, of identifier: ItemIdentifier, named name: String?) -> FileProviderError {
        let what = name.map { "'\($0)'" } ?? "the item"
        func cannot(_ why: String) -> FileProviderError {
            FileProviderError(
                .cannotSynchronize, "the source cannot store \(what): \(why)", itemIdentifier: identifier)
        }
        return switch error {
        case .noSpace, .diskQuotaExceeded:
            FileProviderError(.insufficientQuota, "the source has no space for \(what)", itemIdentifier: identifier)
        case .readOnlyFileSystem: cannot("it is mounted read-only")
        case .permissionDenied: cannot("this user may not change its directory")
        case .notPermitted: cannot("writing is not permitted there")
        case .fileNameTooLong: cannot("the name is too long for its file system")
        case .invalidArgument, .illegalByteSequence: cannot("its file system does not allow the name")
        case .fileTooLarge: cannot("the file is too large for its file system")
        case .improperLink: cannot("the move would cross file systems")
        case .tooManyLinks: cannot("its directory is full")
        case .directoryNotEmpty: FileProviderError(.directoryNotEmpty, itemIdentifier: identifier)
        case .tooManySymbolicLinkLevels: FileProviderError.noSuchItem(identifier)
        default: failure(error, of: identifier)
        }
    }
}
