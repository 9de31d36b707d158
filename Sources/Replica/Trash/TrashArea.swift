import GRDB

/// The place of a directory in relation to the trash.
enum TrashArea: Hashable, Sendable {
    case outside
    /// Among the trash's own files, which stay on this machine.
    case local
    /// It holds the trashed items itself.
    case files
    /// It is a trashed item or below one, this one.
    case trashed(Int64)
}

/// The directories outside the trash, as far as they were asked for: those of a deep tree have the way up in common. What is known holds
/// until a directory is moved.
struct DirectoriesOutsideTrash {
    private var known: Set<InodeNumber> = []

    /// As ``Database/isTrashed(_:)``.
    mutating func isTrashed(_ directory: InodeNumber?, in db: Database) throws -> Bool {
        var way: [InodeNumber] = []
        let area = try db.trashArea(of: directory) { number in
            if known.contains(number) { return true }
            way.append(number)
            return false
        }
        if area == .outside { known.formUnion(way) }
        if case .trashed = area { return true }
        return false
    }

    mutating func forget() { known = [] }
}

extension Database {
    /// Whether the domain's provider can trash.
    func hasTrash() throws -> Bool { try DomainKey.hasTrash.string(in: self) == "1" }

    /// Whether the trash was ever used.
    func hasTrashDirectories() throws -> Bool { try one(Self.anyTrashDirectory, [], { $0[0] as Bool }) ?? false }

    func trashRole(of directory: InodeNumber?) throws -> TrashRole {
        guard let directory else { return .none }
        let role = try one(Self.roleOfDirectory, [directory.rawValue], { $0[0] as Int })
        return role.flatMap(TrashRole.init(rawValue:)) ?? .none
    }

    private static let anyTrashDirectory = "SELECT EXISTS (SELECT 1 FROM item WHERE trashRole <> \(trash: .none))"
    private static let roleOfDirectory = "SELECT trashRole FROM item WHERE inode = ? AND trashRole <> \(trash: .none)"

    /// - Parameter isOutside: whether a directory on the way up is known to be outside.
    func trashArea(
        of directory: InodeNumber?, isOutside: (InodeNumber) -> Bool = { _ in false }
    ) throws -> TrashArea {
        guard let directory, directory != .root, try hasTrashDirectories() else { return .outside }
        var current = directory
        var last: Int64?
        for _ in 0..<4096 where current != .root {
            if isOutside(current) { return .outside }
            let row = try one(
                "SELECT id, parent, trashRole FROM item WHERE inode = ? ORDER BY id LIMIT 1", [current.rawValue],
                { ($0[0] as Int64, $0[1] as Int64?, $0[2] as Int) })
            guard let (id, parent, role) = row else { return .outside }
            switch TrashRole(rawValue: role) ?? .none {
            case .none: break
            case .files: return last.map(TrashArea.trashed) ?? .files
            case .top, .information: return .local
            }
            last = id
            guard let parent else { return .outside }
            current = InodeNumber(rawValue: parent)
        }
        return .outside
    }

    /// Whether a directory is a trashed item or below one.
    func isTrashed(_ directory: InodeNumber?) throws -> Bool {
        if case .trashed = try trashArea(of: directory) { true } else { false }
    }

    /// All that is trashed or lies below something trashed.
    func inodesInTrash() throws -> Set<Int64> {
        guard try hasTrashDirectories() else { return [] }
        return Set(
            try Int64.fetchAll(
                self,
                sql: """
                    WITH RECURSIVE below (number) AS (
                        SELECT inode FROM item WHERE trashedAt IS NOT NULL
                        UNION SELECT item.inode FROM item JOIN below ON item.parent = below.number)
                    SELECT number FROM below
                    """))
    }

    /// A directory and those that hold it, up to the root.
    func ancestors(from directory: InodeNumber?) throws -> [InodeNumber] {
        var found: [InodeNumber] = []
        var current = directory
        while let number = current, found.count < 4096 {
            found.append(number)
            guard number != .root else { break }
            current =
                try one(
                    "SELECT parent FROM item WHERE inode = ? ORDER BY id LIMIT 1", [number.rawValue],
                    { ($0[0] as Int64?).map(InodeNumber.init(rawValue:)) }) ?? nil
        }
        return found
    }
}

extension ReplicaDatabase {
    /// The trashed items, in the order in which they were trashed.
    ///
    /// - Parameter name: their name in the trash; nil for all.
    package func trashedItems(named name: String? = nil) throws -> [ItemRecord] {
        try read { db in
            try db.all(
                """
                SELECT id FROM item INDEXED BY trashedItem WHERE trashedAt IS NOT NULL AND (?1 IS NULL OR name = ?1)
                ORDER BY trashedAt, id
                """, [name], { $0[0] as Int64 }
            ).compactMap { try db.item(id: $0) }
        }
    }

    /// Whether an inode is, or lies below, something trashed: then no news are taken of what it holds.
    package func isInTrash(_ number: InodeNumber) throws -> Bool {
        try read { db in try db.isTrashed(number) }
    }
}
