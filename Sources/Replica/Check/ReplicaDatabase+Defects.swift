import GRDB

extension ReplicaDatabase {
    /// Violated invariants of the rows, in words. The tests ask for them.
    package func defects() throws -> [String] {
        try readCommitted { db in
            var defects: [String] = []
            let integrity = try String.fetchAll(db, sql: "PRAGMA integrity_check")
            if integrity != ["ok"] { defects += integrity }
            for row in try Row.fetchAll(db, sql: "PRAGMA foreign_key_check") { defects.append("foreign key: \(row)") }
            for rule in TreeRule.all {
                for number in try Int64.fetchAll(db, sql: rule.query) { defects.append("\(rule.what): \(number)") }
            }
            for (what, sql) in Self.rulesAtRest {
                for number in try Int64.fetchAll(db, sql: sql) { defects.append("\(what): \(number)") }
            }
            return defects
        }
    }

    /// Invariants that a check does not verify, because they may be violated while a file is in use.
    private static let rulesAtRest = [
        ("nameless inode with content", "SELECT number FROM inode WHERE linkCount = 0 AND hasContentFile = 1"),
        (
            "item in a directory that was removed",
            "SELECT item.id FROM item JOIN inode ON inode.number = item.parent WHERE linkCount = 0"
        ),
    ]
}
