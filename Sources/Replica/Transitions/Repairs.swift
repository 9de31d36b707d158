import FileProvider
import GRDB

/// Corrections of rows that contradict each other. Only a check and the recovery make them.
///
/// Each statement has the number of an inode, or the row of an item, as its only argument.
enum Repair {
    static let deleteItem = "DELETE FROM item WHERE id = ?"

    /// An item that the remote knows has a place on it: its place in the mount, where no other is known.
    static let setBasePlace = """
        UPDATE item SET baseName = COALESCE(baseName, name), baseParent = COALESCE(baseParent,
            (SELECT identifier FROM item AS above WHERE above.inode = item.parent)) WHERE id = ?
        """

    /// An item that is shown is not to be deleted.
    static let forgetDeletion = "DELETE FROM deletion WHERE identifier = (SELECT identifier FROM item WHERE id = ?)"

    static let markDirectory = """
        UPDATE item SET isDirectory = (SELECT kind = \(kind: .directory) FROM inode WHERE number = item.inode) WHERE id = ?
        """

    static let countLinks = """
        UPDATE inode SET linkCount = (SELECT COUNT(*) FROM item WHERE item.inode = inode.number) WHERE number = ?
        """

    static let countSubdirectories = """
        UPDATE inode SET subdirectories = (
            SELECT COUNT(*) FROM item JOIN inode AS child ON child.number = item.inode
            WHERE item.parent = inode.number AND child.kind = \(kind: .directory)) WHERE number = ?
        """

    /// An item that was never sent is pending.
    static let makePending = """
        UPDATE item SET pendingSince = unixepoch() * 1000000000, template = MAX(template, 1),
            changedFields = CASE (SELECT kind FROM inode WHERE number = item.inode)
                WHEN \(kind: .file) THEN \(field: .ofNewItem(.file)) ELSE \(field: .ofNewItem(.directory)) END
        WHERE id = ?
        """

    /// A file that was written here is materialized.
    static let materialize = "UPDATE inode SET content = \(content: .materialized), localBytes = size WHERE number = ?"

    /// A file whose content is not here was not changed.
    static let forgetChangedContent =
        "UPDATE item SET changedFields = changedFields & ~\(field: .contents) WHERE inode = ?"
}

extension Database {
    /// Makes the root's inode and item, or corrects them.
    ///
    /// - Returns: whether they were not as they have to be.
    func repairRoot(at now: FileTimestamp) throws -> Bool {
        let hasInode = try one(
            "SELECT kind = \(kind: .directory) FROM inode WHERE number = \(inode: .root)", [], { $0[0] as Bool })
        let hasItem = try one(
            """
            SELECT COALESCE(identifier = 'yonder.root' AND parent IS NULL, 0) AS isRoot
            FROM item WHERE inode = \(inode: .root) ORDER BY isRoot DESC
            """, [], { $0[0] as Bool })
        if hasInode == true, hasItem == true { return false }
        let time = now.nanosecondsSince1970
        switch hasInode {
        case true?: break
        case false?:
            try run(
                """
                UPDATE inode SET kind = \(kind: .directory), content = \(content: .dataless)
                WHERE number = \(inode: .root)
                """, [])
        case nil:
            try run(
                """
                INSERT INTO inode (number, kind, modifiedAt, changedAt, createdAt)
                VALUES (\(inode: .root), \(kind: .directory), ?, ?, ?)
                """, [time, time, time])
        }
        switch hasItem {
        case true?: break
        case false?:
            try run(
                "UPDATE item SET identifier = 'yonder.root', parent = NULL, name = '/' WHERE inode = \(inode: .root)",
                [])
        case nil:
            try run(
                """
                INSERT INTO item (inode, parent, name, identifier, capabilities)
                VALUES (\(inode: .root), NULL, '/', 'yonder.root', 255)
                """, [])
            try setIsDirectory(of: lastInsertedRowID, to: true)
        }
        return true
    }

    /// Corrects a file that was written here and whose row says that its content is not here.
    func repairWrittenContent(of number: InodeNumber) throws {
        try run(Repair.materialize, [number.rawValue])
        try run("DELETE FROM contentRange WHERE inode = ?", [number.rawValue])
    }

    /// Inserts a row that was read from a damaged database.
    ///
    /// - Parameter table: `inode` or `item`.
    func insertSalvaged(_ values: [String: DatabaseValue], into table: String) throws {
        let names = values.keys.sorted()
        let columns = names.map { "\"\($0)\"" }.joined(separator: ", ")
        let places = names.map { _ in "?" }.joined(separator: ", ")
        try execute(
            sql: "INSERT INTO \(table) (\(columns)) VALUES (\(places))",
            arguments: StatementArguments(names.compactMap { values[$0] }))
    }
}
