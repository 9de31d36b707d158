import CFUSEShim
import Glibc

/// How a file is opened: the flags of `open(2)`.
package struct OpenFlags: OptionSet, Hashable, Sendable {
    package var rawValue: Int32

    package init(rawValue: Int32) { self.rawValue = rawValue }

    package static var append: OpenFlags { OpenFlags(rawValue: O_APPEND) }
    package static var direct: OpenFlags { OpenFlags(rawValue: fuseshim_open_direct) }
    package static var exclusive: OpenFlags { OpenFlags(rawValue: O_EXCL) }
    package static var truncate: OpenFlags { OpenFlags(rawValue: O_TRUNC) }

    package var canRead: Bool { rawValue & O_ACCMODE != O_WRONLY }
    package var canWrite: Bool { rawValue & O_ACCMODE != O_RDONLY }

    /// Whether each write is on the disk when it returns: `O_SYNC` or `O_DSYNC`, which is one of the bits of `O_SYNC`.
    package var isSynchronous: Bool { rawValue & O_SYNC != 0 }

    /// Whether the kernel may read and write the content file itself. It opens the content file with these flags and keeps it:
    /// `fcntl(F_SETFL)` does not reach it, and a shared writable mapping, which needs both accesses, holds it, so that the file
    /// counts as closed while it is still written.
    package var allowsPassthrough: Bool { !(canRead && canWrite) && isDisjoint(with: [.append, .direct]) }
}
