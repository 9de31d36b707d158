import FileProvider
import GRDB

/// Queries that reading and writing transactions share.
extension Database {
    func inode(_ number: InodeNumber) throws -> InodeRecord? {
        try one(Self.inodeByNumber, [number.rawValue], { try Rows.inode($0) })
    }

    func item(_ identifier: ItemIdentifier) throws -> ItemRecord? {
        try one(Self.itemByIdentifier, [identifier.rawValue], Rows.item)
    }

    func item(id: Int64) throws -> ItemRecord? {
        try one(Self.itemByID, [id], Rows.item)
    }

    func item(ofInode number: InodeNumber) throws -> ItemRecord? {
        try one(Self.itemByInode, [number.rawValue], Rows.item)
    }

    /// The identifier of the first item that is an inode.
    func identifier(ofInode number: InodeNumber) throws -> ItemIdentifier? {
        let identifier = try one(Self.identifierByInode, [number.rawValue], { $0[0] as String? })
        return (identifier ?? nil).map { ItemIdentifier(rawValue: $0) }
    }

    /// The item of an inode, which may be no directory, as a directory's names need it.
    func directory(_ number: InodeNumber) throws -> DirectoryRecord? {
        try one(Self.directoryByInode, [number.rawValue], Rows.directory)
    }

    func item(named name: String, in directory: InodeNumber) throws -> ItemRecord? {
        try one(Self.itemByName, [directory.rawValue, name], Rows.item)
    }

    /// Another item that the remote has at a place.
    func item(
        named name: String, inRemote directory: ItemIdentifier, except other: ItemRecord
    ) throws -> ItemRecord? {
        try one(
            Self.items + "WHERE item.baseParent = ? AND item.baseName = ? AND item.id <> ?",
            [directory.rawValue, name, other.id], Rows.item)
    }

    func hasItem(named name: String, in directory: InodeNumber) throws -> Bool {
        try one(
            "SELECT 1 FROM item WHERE parent = ? AND name = ?", [directory.rawValue, name], { _ in true }) ?? false
    }

    func items(in directory: InodeNumber) throws -> [ItemRecord] {
        try all(Self.items + "WHERE item.parent = ? ORDER BY item.id", [directory.rawValue], Rows.item)
    }

    /// A directory's items whose names come after one, by the bytes of their names.
    func items(in directory: InodeNumber, after name: String, limit: Int) throws -> [ItemRecord] {
        try all(
            Self.items.replacing("FROM item", with: "FROM item INDEXED BY itemByName")
                + "WHERE item.parent = ? AND item.name > ? ORDER BY item.name LIMIT ?",
            [directory.rawValue, name, limit], Rows.item)
    }

    func presentRanges(of number: InodeNumber) throws -> ByteRanges {
        var ranges = ByteRanges()
        try query("SELECT start, \"end\" FROM contentRange WHERE inode = ? ORDER BY start", [number.rawValue]) {
            columns in
            let (start, end) = (columns[0] as Int64, columns[1] as Int64)
            // A damaged row holds nothing.
            if start >= 0, start < end { ranges.insert(start..<end) }
            return true
        }
        return ranges
    }

    /// A name that an item can get, with a number where need be.
    func freeName(for name: String, in parent: InodeNumber, held id: Int64? = nil) throws -> String {
        for number in 1... {
            let candidate = number == 1 ? name : Displacement.decorated(name, number: number)
            if try isFree(candidate, in: parent, held: id) { return candidate }
        }
        return name
    }

    /// Whether an item can get a name: no other item shows it, and it is not that of the trash for all users.
    ///
    /// - Parameter id: the item itself, which may have the name already.
    func isFree(_ name: String, in parent: InodeNumber, held id: Int64? = nil) throws -> Bool {
        if TrashRole.isShared(name, in: parent) { return false }
        guard let other = try item(named: name, in: parent) else { return true }
        return other.id == id
    }

    /// The names from the mount's root down to an inode; nil for one that no directory shows.
    ///
    /// - Parameter isForUser: an item that has no name for now has the one that it is to get.
    func path(of number: InodeNumber, isForUser: Bool = false) throws -> [String]? {
        let shown = isForUser ? Displacement.nameForUser : "name"
        var names: [String] = []
        var current = number
        while current != .root {
            let place = try one(
                "SELECT \(shown), parent FROM item WHERE inode = ? ORDER BY id LIMIT 1", [current.rawValue],
                { ($0[0] as String?, $0[1] as Int64?) })
            // No path on Linux has more components; a longer one is a cycle.
            guard let found = place, let name = found.0, let parent = found.1, names.count < 4096 else { return nil }
            names.append(name)
            current = InodeNumber(rawValue: parent)
        }
        return names.reversed()
    }

    /// The path from the mount's root of a name in a directory, for a message.
    func shownPath(_ name: String, in directory: InodeNumber) throws -> String {
        ((try path(of: directory) ?? []) + [name]).joined(separator: "/")
    }

    func linkTarget(of number: InodeNumber) throws -> String? {
        try one("SELECT linkTarget FROM inode WHERE number = ?", [number.rawValue], { $0[0] as String? }) ?? nil
    }

    func hasContentFile(_ number: InodeNumber) throws -> Bool {
        try one("SELECT hasContentFile FROM inode WHERE number = ?", [number.rawValue], { $0[0] as Bool }) ?? false
    }

    /// Whether something of an item is on this machine: an entry of a listed directory, content, a listing, or what was made, changed
    /// or opened for writing here. Of the items of an evicted directory only rows are left, with what the remote said of them. News
    /// brings no new items into a directory without a listing: a link and an empty file that are newer than its last one were made here.
    func isRepresented(_ item: ItemRecord) throws -> Bool {
        if item.inode.number == .root { return true }
        guard let parent = item.parent, let directory = try inode(parent) else { return false }
        if directory.content != .dataless || item.base.name == nil || !item.changedFields.isEmpty { return true }
        let isNewer = item.id > directory.contentGeneration && item.inode.content == .materialized
        return switch item.inode.kind {
        case .directory: item.inode.content != .dataless
        // A process that has kept an O_PATH descriptor of an empty file may be writing it.
        case .file: isNewer || item.inode.localBytes > 0 || item.inode.contentStamp != nil
        default: isNewer
        }
    }

    /// Whether a directory is another one or lies below it.
    func isBelow(_ directory: InodeNumber, _ ancestor: InodeNumber) throws -> Bool {
        var current = directory
        for _ in 0..<4096 {
            if current == ancestor { return true }
            if current == .root { return false }
            let parent = try one(
                "SELECT parent FROM item WHERE inode = ? ORDER BY id LIMIT 1", [current.rawValue], { $0[0] as Int64? })
            guard let parent, let next = parent else { return false }
            current = InodeNumber(rawValue: next)
        }
        return true
    }

    // Spelled once: they are asked for thousands of times a second.
    private static let inodeByNumber = "SELECT \(Rows.inodeColumns) FROM inode WHERE number = ?"
    private static let itemByID = items + "WHERE item.id = ?"
    private static let itemByIdentifier = items + "WHERE item.identifier = ?"
    private static let itemByInode = items + "WHERE item.inode = ? ORDER BY item.id LIMIT 1"
    private static let identifierByInode = "SELECT \(Rows.identifier) FROM item WHERE inode = ? ORDER BY id LIMIT 1"
    private static let directoryByInode = """
        SELECT \(Rows.directoryColumns) FROM item JOIN inode ON inode.number = item.inode WHERE item.inode = ?
        ORDER BY item.id LIMIT 1
        """
    private static let itemByName = items + "WHERE item.parent = ? AND item.name = ?"
    private static let items = """
        SELECT \(Rows.inodeColumns), \(Rows.itemColumns) FROM item JOIN inode ON inode.number = item.inode
        """ + " "
}
