import FileProvider
import GRDB

/// A reimport that was asked for and is not complete.
package struct ReimportRequest: Hashable, Sendable {
    package var id: Int64
    /// The item below which identifiers are not trusted.
    package var top: InodeNumber
    package var requestedAt: FileTimestamp
}

package struct ReimportProgress: Hashable, Sendable {
    /// How many items the provider has taken, or given up.
    package var done: Int
    /// How many items there are, as far as they have been counted.
    package var total: Int
    /// Whether items are still being found.
    package var isCounting: Bool
}

extension ReplicaDatabase {
    package var reimports: Reimports { Reimports(database: self) }
}

/// The reimports under way, and the items that wait to be offered.
package struct Reimports: Sendable {
    fileprivate let database: ReplicaDatabase

    /// The reimports that are not complete, the oldest first.
    package func requests() throws -> [ReimportRequest] {
        try database.all(
            "SELECT id, inode, requestedAt FROM reimport ORDER BY id", [],
            {
                ReimportRequest(
                    id: $0[0], top: InodeNumber(rawValue: $0[1]),
                    requestedAt: FileTimestamp(nanosecondsSince1970: $0[2]))
            })
    }

    /// The items below which a reimport is asked for that has not begun.
    package func asked() throws -> [InodeNumber] {
        try database.read { db in try db.askedReimports() }
    }

    /// Whether the items of a reimport are still being found.
    package var isMarking: Bool { get throws { try database.query { try $0.isMarkingReimport() } } }

    /// How far the reimports are; nil when none is under way.
    package func progress() throws -> ReimportProgress? {
        try database.read { db in
            guard let total = try db.one("SELECT SUM(total) FROM reimport", [], { $0[0] as Int? }) ?? nil else {
                return nil
            }
            let waiting = try db.one("SELECT COUNT(*) FROM item WHERE reimport > 0", [], { $0[0] as Int }) ?? 0
            return ReimportProgress(done: max(0, total - waiting), total: total, isCounting: try db.isMarkingReimport())
        }
    }

    /// Items of a reimport that the provider could not take, with the reasons: at most so many.
    package func failures(limit: Int) throws -> [(number: InodeNumber, failure: ItemFailure?)] {
        let numbers = try database.all(
            "SELECT inode FROM item WHERE reimport > 0 AND attempts > 0 ORDER BY id LIMIT ?", [limit],
            { InodeNumber(rawValue: $0[0]) })
        return try numbers.map { ($0, try database.failure(of: $0)) }
    }

    /// Whether an item, or a directory above it, waits to be offered again: nothing can be asked of the provider about it
    /// before that.
    package func isToBeOffered(_ number: InodeNumber) throws -> Bool {
        try database.one("SELECT reimport > 0 FROM item WHERE inode = ? LIMIT 1", [number.rawValue], { $0[0] as Bool })
            ?? false
    }

    /// Whether something in a directory waits to be offered, and has not been yet.
    package func hasItemsToOffer(in directory: InodeNumber) throws -> Bool {
        try database.one(
            "SELECT 1 FROM item WHERE parent = ? AND reimport > 0 AND attempts = 0", [directory.rawValue],
            { _ in true }) ?? false
    }

    /// The items on the way from the root to an item that wait to be offered, the uppermost first.
    package func rowsToOffer(downTo number: InodeNumber) throws -> [Int64] {
        try database.read { db in
            var rows: [Int64] = []
            var current = number
            for _ in 0..<4096 where current != .root {
                guard let item = try db.item(ofInode: current), let parent = item.parent else { break }
                if item.isToBeOffered { rows.append(item.id) }
                current = parent
            }
            return rows.reversed()
        }
    }

    /// Whether an item is to be offered, and can be now.
    package func offering(of row: Int64) throws -> Offering {
        try database.read { db in
            guard let item = try db.item(id: row), item.isToBeOffered else { return .none }
            guard let ready = try db.readyOffer(of: row), try !db.isMarkingReimport() else { return .waits }
            return .ready(ready, item.inode.number)
        }
    }

    /// The offer of an item; nil if it is not to be offered, or has to wait for others.
    package func readyOffer(of row: Int64) throws -> ReadyOffer? {
        try database.read { db in try db.readyOffer(of: row) }
    }
}

extension Database {
    /// Whether every item of the reimports under way has been offered. Items that the provider could not take wait then as
    /// any change does.
    func hasOfferedEverything() throws -> Bool {
        let isWaiting = try one(
            """
            SELECT EXISTS (SELECT 1 FROM reimportDirectory)
                OR EXISTS (SELECT 1 FROM item WHERE reimport > 0 AND attempts = 0
                    AND isExcluded = \(exclusion: .none))
            """, [], { $0[0] as Bool })
        return isWaiting == false
    }

    /// Whether the items of a reimport are still being found: nothing is offered before all are.
    func isMarkingReimport() throws -> Bool {
        try one("SELECT EXISTS (SELECT 1 FROM reimportDirectory)", [], { $0[0] as Bool }) ?? false
    }
}
