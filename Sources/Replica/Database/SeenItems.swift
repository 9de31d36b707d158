import GRDB

/// Which items a listing under way has confirmed: rows of a temporary table, so that comparing a directory that has not
/// changed writes nothing to the disk. Only the writer's connection sees them.
extension Database {
    /// - Returns: the number of a new listing.
    func beginSeeing() throws -> Int64 {
        try run(
            """
            CREATE TEMPORARY TABLE IF NOT EXISTS seenItem (
                listing INTEGER NOT NULL, item INTEGER NOT NULL, PRIMARY KEY (listing, item)
            ) STRICT, WITHOUT ROWID
            """, [])
        try run("CREATE TEMPORARY TABLE IF NOT EXISTS seenListing (number INTEGER PRIMARY KEY AUTOINCREMENT)", [])
        try run("INSERT INTO temp.seenListing DEFAULT VALUES", [])
        let number = lastInsertedRowID
        try run("DELETE FROM temp.seenListing WHERE number < ?", [number])
        return number
    }

    func noteSeen(_ item: Int64, in listing: Int64) throws {
        try run("INSERT OR IGNORE INTO temp.seenItem (listing, item) VALUES (?, ?)", [listing, item])
    }

    func wasSeen(_ item: Int64, in listing: Int64) throws -> Bool {
        try one(
            "SELECT EXISTS (SELECT 1 FROM temp.seenItem WHERE listing = ? AND item = ?)", [listing, item],
            { $0[0] as Bool }) ?? false
    }

    /// The provider's items in a directory that a listing has not brought.
    func unseenItems(in directory: InodeNumber, listing: Int64) throws -> [ItemRecord] {
        try all(
            """
            SELECT id FROM item WHERE parent = ? AND identifier IS NOT NULL
                AND NOT EXISTS (SELECT 1 FROM temp.seenItem WHERE listing = ? AND item = item.id)
            """, [directory.rawValue, listing], { $0[0] as Int64 }
        ).compactMap { try item(id: $0) }
    }

    func endSeeing(in listing: Int64) throws {
        try run("DELETE FROM temp.seenItem WHERE listing = ?", [listing])
    }
}
