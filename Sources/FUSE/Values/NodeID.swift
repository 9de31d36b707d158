/// The kernel's number for a node of the mount; also its inode number (`st_ino`).
package struct NodeID: RawRepresentable, Hashable, Sendable {
    package var rawValue: UInt64

    package init(rawValue: UInt64) { self.rawValue = rawValue }

    package init(_ rawValue: UInt64) { self.rawValue = rawValue }

    package static var root: NodeID { NodeID(1) }

    /// No node; the node of a negative entry.
    package static var none: NodeID { NodeID(0) }
}

extension NodeID: CustomStringConvertible {
    package var description: String { String(rawValue) }
}
