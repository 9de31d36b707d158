import FileProvider
import GRDB
import SystemPackage

/// Queries, answered on the calling thread.
extension ReplicaDatabase {
    package func inode(_ number: InodeNumber) throws -> InodeRecord? {
        if let directory = newFiles.directory(number) { return directory }
        if let file = newFiles.inode(number) { return file }
        // Asked before: what is written meanwhile is in the row.
        let lastMade = newFiles.lastMade(in: number)
        guard var inode = try queryWithoutNewFiles({ db in try db.inode(number) }) else { return nil }
        if let lastMade, lastMade > inode.modifiedAt {
            inode.modifiedAt = lastMade
            inode.changedAt = lastMade
        }
        return inode
    }

    /// Whether an inode has a set-ID bit. Each write by an ordinary user asks for it, and for nothing else of the row.
    ///
    /// - Throws: ESTALE for one that is not there.
    package func hasSetID(_ number: InodeNumber) throws -> Bool {
        if let file = newFiles.inode(number) { return (file.permissions ?? 0) & 0o6000 != 0 }
        let answer = try queryWithoutNewFiles { db in try db.one(Self.setID, [number.rawValue], { $0[0] as Bool }) }
        guard let answer else { throw Errno.staleNFSFileHandle }
        return answer
    }

    private static let setID = "SELECT COALESCE(permissions, 0) & \(0o6000) FROM inode WHERE number = ?"

    /// Whether what the remote allows includes reading an inode: for a directory, listing it. The remote has never heard of a file that
    /// waits to be written into the database.
    package func allowsReading(_ number: InodeNumber) throws -> Bool {
        try queryWithoutNewFiles { db in
            try db.one(Self.readingAllowed, [number.rawValue], { $0[0] as Bool }) ?? true
        }
    }

    /// An inode that is to be opened, and whether what the remote allows includes reading it.
    package func inodeToRead(_ number: InodeNumber) throws -> (inode: InodeRecord, isAllowed: Bool)? {
        if let file = newFiles.inode(number) { return (file, true) }
        return try queryWithoutNewFiles { db in
            try db.one(Self.inodeToRead, [number.rawValue]) { row in
                (inode: try Rows.inode(row), isAllowed: row[Rows.inodeColumnCount] as Bool)
            }
        }
    }

    private static let inodeToRead = """
        SELECT \(Rows.inodeColumns), COALESCE((
            SELECT item.capabilities & \(capability: .allowsReading) FROM item WHERE item.inode = inode.number LIMIT 1), 1)
        FROM inode WHERE inode.number = ?
        """

    /// Runs a single query that has nothing to do with new files, unless the inode is one.
    private func query<Value>(about number: InodeNumber, _ body: (Database) throws -> Value) throws -> Value {
        try newFiles.inode(number) == nil ? queryWithoutNewFiles(body) : query(body)
    }

    private static let readingAllowed =
        "SELECT capabilities & \(capability: .allowsReading) FROM item WHERE inode = ? LIMIT 1"

    /// The entries of a directory that come after a cookie, in the order of their cookies. The limit counts no displaced items: a page
    /// without entries is the end for its reader.
    package func entries(of directory: InodeNumber, after cookie: Int64, limit: Int) throws -> [DirectoryEntry] {
        try query { db in
            var entries: [DirectoryEntry] = []
            try db.query(Self.entries, [directory.rawValue, cookie, limit]) { row in
                entries.append(
                    DirectoryEntry(
                        cookie: row[Rows.inodeColumnCount], name: row[Rows.inodeColumnCount + 1],
                        inode: try Rows.inode(row)))
                return true
            }
            return entries
        }
    }

    private static let entries = """
        SELECT \(Rows.inodeColumns), item.id, item.name
        FROM item INDEXED BY itemInParent JOIN inode ON inode.number = item.inode
        WHERE item.parent = ? AND item.id > ? AND \(Displacement.isNotDisplaced) ORDER BY item.id LIMIT ?
        """

    /// Those of some inodes for whose last close something waits: they have no name left, or the remote has another
    /// version.
    package func withNewsForClosing(_ numbers: [InodeNumber]) throws -> [InodeNumber] {
        try read { db in
            try numbers.filter { try db.one(Self.newsForClosing, [$0.rawValue], { $0[0] as Bool }) ?? false }
        }
    }

    private static let newsForClosing = """
        SELECT linkCount = 0 OR linkCount = 1 AND kind = \(kind: .file) AND EXISTS (SELECT 1 FROM item
            WHERE item.inode = inode.number AND identifier IS NOT NULL AND changedFields & \(field: .contents) = 0
                AND baseContentVersion <> inode.contentVersion)
        FROM inode WHERE number = ?
        """

    /// Whether there is an inode without a name, which is removed when it is closed.
    package func hasNamelessInodes() throws -> Bool {
        try one("SELECT EXISTS (SELECT 1 FROM inode WHERE linkCount = 0)", [], { $0[0] as Bool }) ?? false
    }

    /// The directory that holds an inode; the root's is the root.
    package func parent(of number: InodeNumber) throws -> InodeNumber? {
        if number == .root { return .root }
        return try query(about: number) { db in
            try db.one(
                "SELECT parent FROM item WHERE inode = ? ORDER BY id LIMIT 1", [number.rawValue],
                { ($0[0] as Int64?).map(InodeNumber.init(rawValue:)) }) ?? nil
        }
    }

    /// Whether an inode is a directory, or lies below it under the oldest of its names.
    package func isBelow(_ number: InodeNumber, _ directory: InodeNumber) throws -> Bool {
        var current = number
        for _ in 0..<4096 where current != directory && current != .root {
            guard let parent = try parent(of: current) else { return false }
            current = parent
        }
        return current == directory
    }

    /// Whether an item was in a directory that was evicted since, and nothing of it is on this machine but its row.
    package func isOnlyRemembered(_ item: ItemRecord) throws -> Bool {
        try read { db in try item.parent != nil && !db.isRepresented(item) }
    }

    package func linkTarget(of number: InodeNumber) throws -> String? {
        try query(about: number) { db in try db.linkTarget(of: number) }
    }

    package func item(_ identifier: ItemIdentifier) throws -> ItemRecord? {
        try query { db in try db.item(identifier) }
    }

    /// The first item that is this inode, or nil for one without a name.
    package func item(ofInode number: InodeNumber) throws -> ItemRecord? {
        try query { db in try db.item(ofInode: number) }
    }

    package func item(named name: String, in directory: InodeNumber) throws -> ItemRecord? {
        try query { db in try db.item(named: name, in: directory) }
    }

    package func items(in directory: InodeNumber) throws -> [ItemRecord] {
        try query { db in try db.items(in: directory) }
    }

    /// A directory's items whose names come after one, by the bytes of their names.
    ///
    /// - Parameter name: empty for the first items.
    package func items(in directory: InodeNumber, after name: String, limit: Int) throws -> [ItemRecord] {
        try query { db in try db.items(in: directory, after: name, limit: limit) }
    }

    /// Which bytes of a file are here, of its present content generation.
    package func presentRanges(of number: InodeNumber) throws -> ByteRanges {
        try query(about: number) { db in try db.presentRanges(of: number) }
    }

    /// The keys of an inode's extended attributes. A file that waits to be written into the database has none.
    package func extendedAttributeNames(of number: InodeNumber) throws -> [String] {
        try queryWithoutNewFiles { db in try db.extendedAttributeNames(of: number) }
    }

    /// The value of an extended attribute, or nil. A file that waits to be written into the database has none: the kernel
    /// asks for `security.capability` before the first write to each new file.
    ///
    /// - Parameter name: its key (``ExtendedAttributeName``).
    package func extendedAttribute(_ name: String, of number: InodeNumber) throws -> [UInt8]? {
        if newFiles.inode(number) != nil { return nil }
        return try queryWithoutNewFiles { db in try db.extendedAttribute(name, of: number) }
    }

    /// The names from the mount's root down to an inode; nil for one that no directory shows.
    ///
    /// - Parameter isForUser: an item that has no name for now has the one that it is to get.
    package func path(of number: InodeNumber, isForUser: Bool = false) throws -> [String]? {
        try read { db in try db.path(of: number, isForUser: isForUser) }
    }

    /// Counts for `status`. What was removed and may still be open somewhere is none of them, but for its bytes.
    package func counts() throws -> ReplicaCounts {
        try read { db in
            let row = try Row.fetchOne(
                db,
                sql: """
                    SELECT (SELECT COUNT(*) FROM item) - 1,
                        (SELECT COUNT(*) FROM inode WHERE hasContentFile = 1 AND content = \(content: .materialized))
                            - (SELECT COUNT(*) FROM inode WHERE linkCount = 0 AND hasContentFile = 1
                                AND content = \(content: .materialized)),
                        (SELECT COUNT(*) FROM inode WHERE kind = \(kind: .directory)
                            AND content = \(content: .materialized))
                            - (SELECT COUNT(*) FROM inode WHERE linkCount = 0 AND kind = \(kind: .directory)
                                AND content = \(content: .materialized)),
                        (SELECT TOTAL(localBytes) FROM inode WHERE hasContentFile = 1)
                    """)
            return ReplicaCounts(
                knownItems: row?[0] ?? 0, materializedFiles: row?[1] ?? 0, materializedDirectories: row?[2] ?? 0,
                localBytes: Int64(saturating: (row?[3] as Double?) ?? 0))
        }
    }
}

/// How much a replica holds.
package struct ReplicaCounts: Hashable, Sendable {
    package var knownItems: Int
    package var materializedFiles: Int
    package var materializedDirectories: Int
    package var localBytes: Int64
}

extension ReplicaDatabase {
    /// The inode that a directory shows under a name, and how much of its listing is here; nil if it is no directory. While the listing is
    /// not here, only what was made here is found, as long as the remote has never heard of it: remembered items may be old news.
    package func lookup(
        _ name: String, in directory: InodeNumber
    ) throws -> (directory: ContentState?, inode: InodeRecord?) {
        if newFiles.lacks(name, in: directory) { return (.materialized, nil) }
        if newFiles.holds(name, in: directory) { try commitAll() }
        let point = newFiles.beginQuery()
        // Of a directory that gets files the row does not know yet how late it is.
        let mayLag = !newFiles.isEmpty
        let answer = try queryWithoutNewFiles { db in
            try db.one(Self.lookup, [directory.rawValue, name]) { row -> (ContentState?, InodeRecord?) in
                let state = ContentState(rawValue: row[Rows.inodeColumnCount])
                let isKnown = state == .materialized || row[Rows.inodeColumnCount + 1] as Bool
                guard isKnown, row[0] as Int64? != nil else { return (state, nil) }
                return (state, try Rows.inode(row))
            }
        }
        if let point, let answer, answer.0 == .materialized, answer.1 == nil {
            newFiles.noteAbsence(of: name, in: directory, point)
            try lookForNames(in: directory)
        }
        if mayLag, let found = answer?.1, found.kind == .directory {
            return (answer?.0, try inode(found.number) ?? found)
        }
        return answer ?? (nil, nil)
    }

    /// Reads all names of a directory in which files are being created: each creation looks up a name that is not there.
    private func lookForNames(in directory: InodeNumber) throws {
        guard let point = newFiles.beginQuery(at: directory) else { return }
        let names = try queryWithoutNewFiles { db in
            try db.all(
                "SELECT name FROM item WHERE parent = ? LIMIT ?", [directory.rawValue, Int64(KnownNames.most + 1)],
                { Array(($0[0] as String).utf8) })
        }
        newFiles.endQuery(point, at: directory, names: names)
    }

    private static let lookup = """
        SELECT \(Rows.inodeColumns), directory.content, \(Rows.identifier) IS NULL AND item.reimport <= 0
        FROM inode AS directory
            LEFT JOIN item ON item.parent = directory.number AND item.name = ?2
            LEFT JOIN inode ON inode.number = item.inode
        WHERE directory.number = ?1 AND directory.kind = \(kind: .directory)
        """
}

extension ReplicaDatabase {
    /// The subdirectories of a directory whose listing is not here, in the order of its entries. Reads no row of a file.
    ///
    /// - Parameter limit: at most so many.
    package func datalessDirectories(in directory: InodeNumber, limit: Int) throws -> [InodeNumber] {
        try all(Self.datalessDirectories, [directory.rawValue, limit], { InodeNumber(rawValue: $0[0]) })
    }

    static let datalessDirectories = """
        SELECT inode.number FROM item INDEXED BY subdirectory CROSS JOIN inode ON inode.number = item.inode
        WHERE item.parent = ? AND item.isDirectory = 1 AND inode.content = \(content: .dataless)
        ORDER BY item.id LIMIT ?
        """

    /// The files of a directory that are not here whole.
    package func incompleteFiles(in directory: InodeNumber) throws -> [InodeNumber] {
        try inodes(in: directory, "inode.kind = \(kind: .file) AND inode.content <> \(content: .materialized)")
    }

    /// The subdirectories of a directory, in the order of its entries.
    package func directories(in directory: InodeNumber) throws -> [InodeNumber] {
        try inodes(in: directory, "inode.kind = \(kind: .directory)")
    }

    private func inodes(in directory: InodeNumber, _ condition: String) throws -> [InodeNumber] {
        try all(
            """
            SELECT inode.number FROM item INDEXED BY itemInParent JOIN inode ON inode.number = item.inode
            WHERE item.parent = ? AND \(condition) ORDER BY item.id
            """, [directory.rawValue], { InodeNumber(rawValue: $0[0]) })
    }
}
