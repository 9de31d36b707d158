import FUSE
import Volume

/// The numbering of READDIR offsets: `.` and `..` first, then the items by their own offsets.
enum DirectoryOffset {
    static let dot: Int64 = 1
    static let dotDot: Int64 = 2

    static func of(item offset: UInt64) -> Int64 { Int64(clamping: offset) + dotDot }

    /// The offset of an item in the volume for a READDIR offset.
    static func item(after offset: Int64) -> UInt64 { UInt64(max(0, offset - dotDot)) }

    /// The size of an entry with a short name in the kernel's buffer, in bytes.
    static let typicalEntrySize = 168
}

/// One page of a directory listing, read from the volume for a READDIR reply.
struct DirectoryPage: Sendable {
    /// The nodes of `.` and `..`, where the page begins with them.
    private var itself: UInt64?
    private var parent: UInt64?
    private var entries: [VolumeEntry]

    init(of node: UInt64, from offset: Int64, limit: Int, isProvided: Bool, volume: Volume) throws(VolumeError) {
        entries = try volume.entries(
            of: node, after: DirectoryOffset.item(after: offset), limit: limit, isProvided: isProvided)
        if offset < DirectoryOffset.dot { itself = node }
        if offset < DirectoryOffset.dotDot { parent = try volume.parent(of: node) }
    }

    /// Appends entries until the reply is full.
    ///
    /// - Returns: the nodes of the appended entries, without `.` and `..`.
    func fill(_ reply: inout DirectoryReply) -> [UInt64] {
        if let itself {
            guard reply.append(".", node: NodeID(rawValue: itself), kind: .directory, offset: DirectoryOffset.dot)
            else { return [] }
        }
        if let parent {
            guard reply.append("..", node: NodeID(rawValue: parent), kind: .directory, offset: DirectoryOffset.dotDot)
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
