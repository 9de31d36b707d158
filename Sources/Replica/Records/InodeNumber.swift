/// The number of an inode: the primary key of its row, its `st_ino` and its FUSE node ID, never used for two files.
package struct InodeNumber: RawRepresentable, Hashable, Comparable, Sendable, CustomStringConvertible {
    package let rawValue: Int64

    package init(rawValue: Int64) {
        self.rawValue = rawValue
    }

    /// The directory that the mount shows as its root.
    package static let root = InodeNumber(rawValue: 1)

    package static func < (one: InodeNumber, other: InodeNumber) -> Bool { one.rawValue < other.rawValue }

    package var description: String { String(rawValue) }
}
