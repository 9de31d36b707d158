/// Why an item stays on this machine: the values of `item.isExcluded`.
package enum Exclusion: Int, Hashable, Sendable {
    /// It does not: it is sent.
    case none = 0
    /// The remote has no such items, or does not want this one.
    case unwanted = 1
    /// Its name, or that of a directory above it, is never sent.
    case name = 2
}

enum NamelessReason: Int64, Sendable {
    /// Its name was removed here, or given to another inode, while it was in use and its content was not all here.
    case removed = 1
    /// The remote has replaced the version that a process has open.
    case superseded = 2
    /// It was made without one. (`O_TMPFILE`)
    case unnamed = 3
}

/// Whether a directory has to be compared with the remote: the values of `inode.isIncomplete`.
enum ComparisonState: Int, Sendable {
    case none = 0
    /// Something of the remote's was left out.
    case needed = 1
    /// The comparison is running; what is left out from here on sets ``needed`` again.
    case running = 2
}

/// Identifies a state of a content file: its change time in nanoseconds.
enum ContentStamp {
    /// The stamp of a file that may be written again without its change time moving.
    static let unknown: Int64 = 0
}
