import FileProvider
import GRDB

extension ReplicaDatabase {
    /// What is not as it always has to be, in words: for tests, and for whoever looks for a mistake of this program's.
    package func defects() throws -> [String] {
        try read { db in
            var defects: [String] = []
            let integrity = try String.fetchAll(db, sql: "PRAGMA integrity_check")
            if integrity != ["ok"] { defects += integrity }
            for row in try Row.fetchAll(db, sql: "PRAGMA foreign_key_check") { defects.append("foreign key: \(row)") }
            for (what, sql) in Self.rules {
                for number in try Int64.fetchAll(db, sql: sql) { defects.append("\(what): \(number)") }
            }
            return defects
        }
    }

    private static let rules = [
        (
            "inode with a wrong count of subdirectories",
            """
            SELECT number FROM inode WHERE kind = \(kind: .directory) AND linkCount > 0 AND subdirectories <> (
                SELECT COUNT(*) FROM item JOIN inode AS child ON child.number = item.inode
                WHERE item.parent = inode.number AND child.kind = \(kind: .directory))
            """
        ),
        (
            "inode with a wrong count of links",
            "SELECT number FROM inode WHERE linkCount <> (SELECT COUNT(*) FROM item WHERE item.inode = inode.number)"
        ),
        ("nameless inode with content", "SELECT number FROM inode WHERE linkCount = 0 AND hasContentFile = 1"),
        (
            "directory with several names",
            "SELECT number FROM inode WHERE kind = \(kind: .directory) AND linkCount > 1"
        ),
        (
            "item in what is no directory",
            """
            SELECT item.id FROM item JOIN inode ON inode.number = item.parent
                WHERE inode.kind <> \(kind: .directory) OR linkCount = 0
            """
        ),
        (
            "item without a place",
            "SELECT id FROM item WHERE (parent IS NULL OR substr(name, 1, 1) = '/') AND inode <> \(inode: .root)"
        ),
        (
            "item that the remote knows without a place on it",
            """
            SELECT id FROM item WHERE identifier IS NOT NULL AND inode <> \(inode: .root)
                AND (baseParent IS NULL OR baseName IS NULL)
            """
        ),
        (
            "item that is both here and to be deleted",
            "SELECT item.id FROM item JOIN deletion ON deletion.identifier = item.identifier"
        ),
        (
            "file that was written and whose content is not here",
            """
            SELECT number FROM inode WHERE kind = \(kind: .file) AND content <> \(content: .materialized) AND EXISTS (
                SELECT 1 FROM item WHERE item.inode = inode.number AND (changedFields & \(field: .contents) <> 0
                    OR identifier IS NULL))
            """
        ),
    ]
}
