import FileProvider
import GRDB

/// An invariant of the rows: the query for its violations, and their repair.
struct TreeRule {
    enum Mending {
        /// A statement with the row's number as its only argument.
        case statement(String)
        /// The item's row goes; its content is set aside, and its directory is compared with the remote.
        case dropItem
        /// The inode's content is set aside and is dataless again.
        case forgetContent
    }

    var what: String
    /// Gives the numbers of inodes, or the row numbers of items.
    var query: String
    /// Gives a row for the number of one that violates the rule, where ``query`` would read the whole tree for it.
    var queryOfOne: String?
    var isAboutItems = false
    var mending: Mending

    /// Whether a row still violates the rule.
    func isViolated(by number: Int64, in db: Database) throws -> Bool {
        let query = queryOfOne ?? "SELECT 1 FROM (\(query)) WHERE \(isAboutItems ? "id" : "number") = ?1"
        return try db.one(query, [number], { _ in true }) ?? false
    }

    /// What has moved on the remote into a directory that is not known here: each round looks up where it is by now.
    private static let waitsForDirectory = """
        (item.parent IS NULL AND item.identifier IS NOT NULL AND item.baseName IS NOT NULL AND item.trashedAt IS NULL
            AND item.changedFields & \(field: .parentItemIdentifier) = 0)
        """

    /// An item that made room for another. The end of the listing or of the round names or removes it, and the answer to its offer where
    /// it waits to be offered. If the daemon is killed before, the next one does that.
    private static let waitsForName = """
        (item.parent IS NOT NULL AND NOT \(Displacement.isNotDisplaced) AND item.baseName IS NOT NULL
            AND item.trashedAt IS NULL AND (item.identifier IS NOT NULL OR item.reimport > 0)
            AND EXISTS (SELECT 1 FROM item AS above WHERE above.inode = item.parent
                AND (above.identifier IS NOT NULL OR above.reimport > 0)))
        """

    /// What has something in it and hangs on the root, or on a directory that waits for its own: the query keeps their numbers in
    /// memory.
    private static let reached = """
        WITH RECURSIVE reached (inode) AS (
            SELECT 1 UNION SELECT inode FROM item WHERE \(waitsForDirectory)
            UNION SELECT item.inode FROM item JOIN reached ON item.parent = reached.inode
                WHERE item.inode IN (SELECT parent FROM item))
        """

    /// Items that no directory shows, also for a moment.
    static let hasNoPlace = """
        SELECT id FROM item WHERE (parent IS NULL OR NOT \(Displacement.isNotDisplaced)) AND inode <> \(inode: .root)
        """

    /// In the order in which they are mended: what one leaves behind the next finds.
    static let all = [
        TreeRule(
            what: "is a name of nothing",
            query: "SELECT id FROM item WHERE NOT EXISTS (SELECT 1 FROM inode WHERE number = item.inode)",
            isAboutItems: true, mending: .statement(Repair.deleteItem)),
        TreeRule(
            what: "lies in no directory, or in a circle of directories",
            query:
                """
                \(reached) SELECT id FROM item WHERE inode <> \(inode: .root) AND NOT \(waitsForDirectory)
                    AND (parent IS NULL OR parent NOT IN (SELECT inode FROM reached))
                """,
            queryOfOne: """
                WITH RECURSIVE above (inode) AS (
                    SELECT parent FROM item WHERE id = ?1
                    UNION SELECT item.parent FROM item JOIN above ON item.inode = above.inode)
                SELECT 1 FROM item WHERE id = ?1 AND inode <> \(inode: .root) AND NOT \(waitsForDirectory)
                    AND NOT EXISTS (SELECT 1 FROM above WHERE inode = \(inode: .root))
                    AND NOT EXISTS (SELECT 1 FROM above JOIN item ON item.inode = above.inode
                        WHERE \(waitsForDirectory))
                """,
            isAboutItems: true, mending: .dropItem),
        TreeRule(
            what: "lies in what is no directory",
            query:
                """
                SELECT item.id FROM item JOIN inode ON inode.number = item.parent
                    WHERE inode.kind <> \(kind: .directory)
                """,
            isAboutItems: true, mending: .dropItem),
        TreeRule(
            what: "has no place",
            query: "\(hasNoPlace) AND NOT \(waitsForDirectory) AND NOT \(waitsForName)",
            isAboutItems: true, mending: .dropItem),
        TreeRule(
            what: "has a name that no file can have",
            query: """
                SELECT id FROM item WHERE inode <> \(inode: .root) AND (name IN ('', '.', '..')
                    OR instr(name, '/') > 1
                    OR instr(name, char(0)) > 0)
                """, isAboutItems: true, mending: .dropItem),
        TreeRule(
            what: "is a directory with several names",
            query: """
                SELECT item.id FROM item JOIN inode ON inode.number = item.inode
                    WHERE inode.kind = \(kind: .directory) AND EXISTS (
                    SELECT 1 FROM item AS other WHERE other.inode = item.inode AND other.id < item.id)
                """, isAboutItems: true, mending: .dropItem),
        TreeRule(
            what: "is known to the remote, and where it is there is not known",
            query: """
                SELECT id FROM item WHERE identifier IS NOT NULL AND inode <> \(inode: .root) AND (baseParent IS NULL
                    OR baseName IS NULL)
                """, isAboutItems: true,
            mending: .statement(Repair.setBasePlace)),
        TreeRule(
            what: "is here, and is to be deleted on the remote",
            query: "SELECT item.id FROM item JOIN deletion ON deletion.identifier = item.identifier",
            isAboutItems: true,
            mending: .statement(Repair.forgetDeletion)),
        TreeRule(
            what: "has content, and no name",
            query: """
                SELECT number FROM inode WHERE hasContentFile = 1 AND linkCount > 0
                    AND NOT EXISTS (SELECT 1 FROM item WHERE item.inode = inode.number)
                """, mending: .forgetContent),
        TreeRule(
            what: "has a wrong count of links",
            query: """
                SELECT number FROM inode WHERE linkCount <> (SELECT COUNT(*) FROM item WHERE item.inode = inode.number)
                """,
            mending: .statement(Repair.countLinks)),
        TreeRule(
            what: "is not marked as what it is, a directory or none",
            query: """
                SELECT item.id FROM item JOIN inode ON inode.number = item.inode
                WHERE item.isDirectory <> (inode.kind = \(kind: .directory))
                """, isAboutItems: true, mending: .statement(Repair.markDirectory)),
        TreeRule(
            what: "has a wrong count of subdirectories",
            query: """
                SELECT number FROM inode WHERE kind = \(kind: .directory) AND linkCount > 0 AND subdirectories <> (
                    SELECT COUNT(*) FROM item JOIN inode AS child ON child.number = item.inode
                    WHERE item.parent = inode.number AND child.kind = \(kind: .directory))
                """,
            mending: .statement(Repair.countSubdirectories)),
        TreeRule(
            what: "was never sent, and is not waiting to be sent",
            query: """
                SELECT item.id FROM item JOIN inode ON inode.number = item.inode
                WHERE identifier IS NULL AND changedFields = 0 AND isExcluded = \(exclusion: .none)
                    AND trashRole = \(trash: .none) AND reimport = 0
                    AND inode <> \(inode: .root)
                        AND kind IN (\(kind: .file), \(kind: .directory), \(kind: .symbolicLink))
                """, isAboutItems: true,
            mending: .statement(Repair.makePending)),
        TreeRule(
            what: "has content, and is no file",
            query:
                "SELECT number FROM inode WHERE hasContentFile = 1 AND kind <> \(kind: .file)", mending: .forgetContent),
        TreeRule(
            what: "was written here, and its row says that its content is not here",
            query: """
                SELECT number FROM inode WHERE hasContentFile = 1 AND kind = \(kind: .file)
                    AND content <> \(content: .materialized)
                    AND \(Recovery.isUnsent)
                """,
            mending: .statement(Repair.materialize)),
        TreeRule(
            what: "was written here, and its content is not here",
            query: """
                SELECT number FROM inode WHERE kind = \(kind: .file) AND content <> \(content: .materialized)
                    AND EXISTS (
                    SELECT 1 FROM item WHERE item.inode = inode.number AND changedFields & \(field: .contents) <> 0
                        AND identifier IS NOT NULL)
                """,
            mending: .statement(Repair.forgetChangedContent)),
        TreeRule(
            what: "is to be here whole, and has no content file",
            query:
                """
                SELECT number FROM inode WHERE kind = \(kind: .file) AND content = \(content: .materialized)
                    AND size > 0 AND hasContentFile = 0
                """,
            mending: .forgetContent),
        TreeRule(
            what: "holds ranges that are not in it, or that overlap",
            query: """
                SELECT number FROM inode WHERE kind = \(kind: .file) AND EXISTS (SELECT 1 FROM contentRange AS range
                    WHERE range.inode = inode.number AND (range.start < 0 OR range."end" > inode.size OR EXISTS (
                        SELECT 1 FROM contentRange AS next WHERE next.inode = range.inode
                            AND next.start > range.start AND next.start < range."end")))
                """, mending: .forgetContent),
        TreeRule(
            what: "holds other ranges than its row says",
            query: """
                SELECT number FROM inode WHERE kind = \(kind: .file) AND content = \(content: .partial)
                    AND localBytes <> (
                    SELECT TOTAL("end" - start) FROM contentRange WHERE contentRange.inode = inode.number)
                """, mending: .forgetContent),
    ]
}
