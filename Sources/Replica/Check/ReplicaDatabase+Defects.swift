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

    /// New files whose content is lost, in the order of their numbers.
    func lostNewFiles() throws -> [(number: InodeNumber, name: String?)] {
        try all(
            """
            SELECT inode.number, \(Displacement.nameForUser) FROM item JOIN inode ON inode.number = item.inode
            WHERE identifier IS NULL AND isExcluded = \(exclusion: .none) AND reimport <= 0 AND inode.kind = \(kind: .file)
                AND inode.content = \(content: .dataless) AND inode.size > 0 AND inode.contentStamp IS NULL
            ORDER BY inode.number
            """, [], { (number: InodeNumber(rawValue: $0[0]), name: $0[1] as String?) })
    }

    /// Invariants that a check does not verify, because they may be violated while a file is in use or news is
    /// taken in.
    private static let rulesAtRest = [
        ("item without a place", TreeRule.hasNoPlace),
        ("nameless inode with content", "SELECT number FROM inode WHERE linkCount = 0 AND hasContentFile = 1"),
        (
            "item in a directory that was removed",
            "SELECT item.id FROM item JOIN inode ON inode.number = item.parent WHERE linkCount = 0"
        ),
    ]
}
