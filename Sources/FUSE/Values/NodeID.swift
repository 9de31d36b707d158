/// The kernel's name for a file of the mount. The same number is the file's inode number there.
package struct NodeID: RawRepresentable, Hashable, Sendable {
    package var rawValue: UInt64

    package init(rawValue: UInt64) { self.rawValue = rawValue }

    package init(_ rawValue: UInt64) { self.rawValue = rawValue }

    /// The root of the mount.
    package static var root: NodeID { NodeID(1) }

    /// No node: an entry with it says that a name does not exist.
    package static var none: NodeID { NodeID(0) }
}

extension NodeID: CustomStringConvertible {
    package var description: String { String(rawValue) }
}
