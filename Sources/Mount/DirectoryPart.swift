import FUSE
import Volume

/// How places in a listing are numbered: `.` and `..` first, then the items by their own numbers.
enum DirectoryOffset {
    static let dot: Int64 = 1
    static let dotDot: Int64 = 2

    static func of(item offset: UInt64) -> Int64 { Int64(clamping: offset) + dotDot }

    /// Where the items go on after a place.
    static func item(after offset: Int64) -> UInt64 { UInt64(max(0, offset - dotDot)) }

    /// What an entry takes of the kernel's buffer, with a short name, in bytes.
    static let usualEntrySize = 168
}

/// A part of a directory's listing, on its way into a reply.
struct DirectoryPart: Sendable {
    private var itself: Attributes?
    private var parent: Attributes?
    private var entries: [VolumeEntry]

    init(of node: UInt64, from offset: Int64, limit: Int, isProvided: Bool, volume: Volume) throws(Obstacle) {
        entries = try volume.entries(
            of: node, after: DirectoryOffset.item(after: offset), limit: limit, isProvided: isProvided)
        if offset < DirectoryOffset.dot { itself = try volume.attributes(of: node) }
        if offset < DirectoryOffset.dotDot { parent = try volume.parent(of: node) }
    }

    /// Adds what fits.
    ///
    /// - Returns: the nodes of the entries that were added, `.` and `..` left out.
    func fill(_ reply: inout DirectoryReply) -> [UInt64] {
        if let itself {
            guard reply.append(".", node: NodeID(rawValue: itself.node), kind: .directory, offset: DirectoryOffset.dot)
            else { return [] }
        }
        if let parent {
            guard
                reply.append(
                    "..", node: NodeID(rawValue: parent.node), kind: .directory, offset: DirectoryOffset.dotDot)
            else { return [] }
        }
        var added: [UInt64] = []
        for entry in entries {
            let isAdded = reply.append(
                FileName(entry.name), entry: Entry(entry.attributes),
                offset: DirectoryOffset.of(item: entry.offset))
            guard isAdded else { break }
            added.append(entry.attributes.node)
        }
        return added
    }
}
