import FileProvider

extension ProgramFailure {
    /// Codes that a program may use. `userCancelled` is none of them: no response to a cancelled call is waited for, and the
    /// uploader repeats a cancelled change without a pause.
    private static let codes: Set<FileProviderError.Code> = [
        .notAuthenticated, .serverUnreachable, .insufficientQuota, .cannotSynchronize, .excludedFromSync, .noSuchItem,
        .pageExpired, .versionNoLongerAvailable, .featureUnsupported, .fileReadNoPermission, .timedOut,
        .malformedResponse, .providerDomainTemporarilyUnavailable, .syncAnchorExpired,
    ]

    func error() -> FileProviderError {
        guard let code, Self.codes.contains(code) else {
            let unknown = data?.code.map { " with '\($0)', which is no code for this call" } ?? ""
            return FileProviderError(.malformedResponse, "the program failed\(unknown): \(text)")
        }
        return FileProviderError(code, text)
    }

    /// The error for the system, of a program that cannot start. An error of an item would count as the answer to the call
    /// that has started the program: a deletion is done after `noSuchItem`.
    func startError(of program: String) -> FileProviderError {
        let error = error()
        if error.code.reaction == .latchDomain { return error }
        return FileProviderError(.serverUnreachable, "'\(program)' cannot start: \(error.message)")
    }

    /// Codes of changes whose condition did not hold.
    private static let conditions: Set<FileProviderError.Code> = [
        .filenameCollision, .localVersionConflictingWithServer, .deletionRejected, .directoryNotEmpty,
    ]

    private var code: FileProviderError.Code? { data?.code.flatMap(FileProviderError.Code.init(rawValue:)) }

    /// Whether the error says that the condition of a change did not hold.
    var isCondition: Bool { code.map(Self.conditions.contains) ?? false }

    /// The error for the system, on the level items.
    ///
    /// - Parameter features: the program's.
    func itemError(_ features: ProgramFeatures?) -> FileProviderError {
        guard let code, Self.conditions.contains(code) else { return error() }
        do {
            guard let item = try data?.item?.item(features) else {
                if code == .directoryNotEmpty { return FileProviderError(code, text) }
                return FileProviderError(.malformedResponse, "the program answers '\(code)' without the item: \(text)")
            }
            return FileProviderError(code, text, item: item)
        } catch {
            return error
        }
    }

    /// The message, as long as one for the user may be.
    private var text: String { String(message.prefix(500)) }
}
