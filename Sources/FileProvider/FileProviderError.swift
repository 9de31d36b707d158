import SystemPackage

/// An error between the system and a provider.
///
/// The codes have Apple's names. ``Code/reaction`` says what the system does; ``readerErrno`` and ``controlErrno`` are what
/// a process sees.
///
///     throw FileProviderError(.insufficientQuota, "the account has 0 of 5 GB left")
public struct FileProviderError: Error, Sendable, CustomStringConvertible {
    /// The kind of error.
    public var code: Code
    /// One sentence for the user: what is wrong, and what can be done.
    public var message: String
    /// The item concerned.
    public var itemIdentifier: ItemIdentifier?
    /// The item on the remote: the existing one for `filenameCollision`, the kept one for `deletionRejected`, the newer one
    /// for `localVersionConflictingWithServer`.
    public var item: FileProviderItem?
    /// The system's error, for ``Code/posix``, ``Code/fileReadNoPermission`` and ``Code/ubiquitousFileUnavailable``; nil for the
    /// default.
    public var errno: Errno?
    /// The causes; for `nonEvictableChildren` one error per child.
    public var underlyingErrors: [any Error]

    /// An error with a code.
    ///
    /// - Parameters:
    ///   - code: the kind of error.
    ///   - message: one sentence for the user; nil for a default sentence.
    ///   - itemIdentifier: the item concerned; nil for that of `item`.
    ///   - item: the item on the remote, where the code asks for one.
    ///   - errno: the system's error, for ``Code/posix`` and ``Code/fileReadNoPermission``.
    ///   - underlyingErrors: the causes.
    public init(
        _ code: Code, _ message: String? = nil, itemIdentifier: ItemIdentifier? = nil, item: FileProviderItem? = nil,
        errno: Errno? = nil, underlyingErrors: [any Error] = []
    ) {
        self.code = code
        self.message = message ?? code.sentence
        self.itemIdentifier = itemIdentifier ?? item?.itemIdentifier
        self.item = item
        self.errno = errno
        self.underlyingErrors = underlyingErrors
    }

    /// The remote has no such item.
    public static func noSuchItem(_ identifier: ItemIdentifier) -> FileProviderError {
        FileProviderError(.noSuchItem, "no item '\(identifier)' on the remote", itemIdentifier: identifier)
    }

    /// The remote has another item with this name.
    public static func filenameCollision(with item: FileProviderItem) -> FileProviderError {
        FileProviderError(.filenameCollision, "'\(item.filename)' exists on the remote", item: item)
    }

    /// The remote refuses to delete an item.
    public static func deletionRejected(of item: FileProviderItem) -> FileProviderError {
        FileProviderError(.deletionRejected, "the remote refuses to delete '\(item.filename)'", item: item)
    }

    /// The item was to be deleted from the trash, and is not there any more.
    package static func wasRestored(_ identifier: ItemIdentifier, item: FileProviderItem?) -> FileProviderError {
        let name = item.map { "'\($0.filename)'" } ?? "the item"
        return FileProviderError(
            .deletionRejected, "\(name) was restored from the trash", itemIdentifier: identifier, item: item)
    }

    /// A system call failed.
    public static func posix(_ errno: Errno, _ message: String? = nil) -> FileProviderError {
        FileProviderError(.posix, message ?? errno.description, errno: errno)
    }

    public var description: String { "\(code): \(message)" }
}
