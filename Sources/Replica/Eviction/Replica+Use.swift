import FileProvider
import GRDB

/// Content that may be given up when room is needed.
package struct EvictionCandidate: Hashable, Sendable {
    package var number: InodeNumber
    /// When it was used last; with the number, its place in the order in which content is given up.
    package var usedAt: Int64
    package var localBytes: Int64
}

/// When content was used, and how much room it takes.
extension Replica {
    /// Records when files were opened, at most once a minute for each.
    package func recordUse(_ times: [InodeNumber: FileTimestamp]) async throws {
        guard !times.isEmpty else { return }
        try await database.write { db in
            for (number, time) in times {
                try db.recordUse(of: number, at: time)
            }
        }
    }
}

extension ReplicaDatabase {
    package func localBytes() throws -> Int64 {
        try readCommitted { db in
            try db.one(
                "SELECT TOTAL(localBytes) FROM inode INDEXED BY contentByUse WHERE hasContentFile = 1", [],
                { Int64(saturating: $0[0] as Double) }) ?? 0
        }
    }

    /// The bytes of content by the time of its last use.
    ///
    /// - Parameter bounds: ascending.
    /// - Returns: one number more than there are bounds: what was used before the first, before each next one, and since the last.
    package func localBytes(byUse bounds: [FileTimestamp]) throws -> [Int64] {
        let times = bounds.map(\.nanosecondsSince1970)
        return try readCommitted { db in
            try zip([Int64.min] + times, times + [Int64.max]).map { start, end in
                try db.one(
                    """
                    SELECT TOTAL(localBytes) FROM inode INDEXED BY contentByUse
                    WHERE hasContentFile = 1 AND COALESCE(readAt, changedAt) >= ? AND COALESCE(readAt, changedAt) < ?
                    """, [start, end], { Int64(saturating: $0[0] as Double) }) ?? 0
            }
        }
    }

    /// For which process a file's content was fetched last, in words; nil when no process had it fetched.
    package func causeOfContent(of number: InodeNumber) throws -> String? {
        try one("SELECT fetchedFor FROM inode WHERE number = ?", [number.rawValue], { $0[0] as String? }) ?? nil
    }

    /// Files whose content is here and on the remote, those that were not used for longest first; whether they are open
    /// or kept downloaded is still to be asked.
    ///
    /// - Parameter last: the one after which to go on; nil for the first.
    package func evictionCandidates(after last: EvictionCandidate?, limit: Int) throws -> [EvictionCandidate] {
        try readCommitted { db in
            try Row.fetchAll(
                db.cachedStatement(
                    sql: """
                        SELECT inode.number, COALESCE(readAt, changedAt), localBytes
                        FROM inode INDEXED BY contentByUse CROSS JOIN item ON item.inode = inode.number
                        WHERE hasContentFile = 1 AND (COALESCE(readAt, changedAt), inode.number) > (?, ?)
                            AND inode.content <> \(content: .dataless) AND localBytes > 0 AND linkCount = 1
                                AND contentStamp IS NULL
                            AND item.changedFields = 0 AND item.identifier IS NOT NULL
                        ORDER BY COALESCE(readAt, changedAt), inode.number LIMIT ?
                        """), arguments: [last?.usedAt ?? Int64.min, last?.number.rawValue ?? 0, limit]
            ).map {
                EvictionCandidate(number: InodeNumber(rawValue: $0[0]), usedAt: $0[1], localBytes: $0[2])
            }
        }
    }
}
