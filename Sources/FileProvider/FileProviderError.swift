import SystemPackage

/// What went wrong between the system and a provider, and with it what the system does about it.
///
/// The codes are Apple's by name. ``Code/reaction`` sorts them, ``readerErrno`` and ``controlErrno`` say what a process
/// sees.
public struct FileProviderError: Error, Sendable, CustomStringConvertible {
    public var code: Code
    /// One sentence that says what is wrong, and what to do where something can be done.
    public var message: String
    /// The item that it is about.
    public var itemIdentifier: ItemIdentifier?
    /// The item as the remote has it: the one in the way for `filenameCollision`, the one that stays for
    /// `deletionRejected`.
    public var item: FileProviderItem?
    /// For ``Code/posix`` and ``Code/fileReadNoPermission``: which error, where it is another than the usual one.
    public var errno: Errno?
    /// What lies behind it; for `nonEvictableChildren` one error for each child that refused.
    public var underlyingErrors: [any Error]

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

    /// An item that the remote does not have.
    public static func noSuchItem(_ identifier: ItemIdentifier) -> FileProviderError {
        FileProviderError(.noSuchItem, "no item '\(identifier)' on the remote", itemIdentifier: identifier)
    }

    /// An item of this name is there already.
    public static func filenameCollision(with item: FileProviderItem) -> FileProviderError {
        FileProviderError(.filenameCollision, "'\(item.filename)' exists on the remote", item: item)
    }

    /// The remote keeps the item.
    public static func deletionRejected(of item: FileProviderItem) -> FileProviderError {
        FileProviderError(.deletionRejected, "the remote refuses to delete '\(item.filename)'", item: item)
    }

    /// A system call failed.
    public static func posix(_ errno: Errno, _ message: String? = nil) -> FileProviderError {
        FileProviderError(.posix, message ?? errno.description, errno: errno)
    }

    public var description: String { "\(code): \(message)" }
}
