import FileProvider
import GRDB

/// The two sets of items that the system keeps and a provider may follow.
package enum LocalSet: String, Sendable, CaseIterable {
    /// Files whose content is here whole, and directories whose listing is.
    case materialized
    /// Items with changes that the provider has not acknowledged, and items to be deleted.
    case pending

    fileprivate var table: String { "\(rawValue)Change" }
}

package struct MemberPage: Sendable {
    package var items: [FileProviderItem]
    /// The start of the next page; nil after the last one.
    package var next: Int64?
}

/// The changes of a set since a moment of its history.
package struct MemberChanges: Sendable {
    /// Members that are new, moved or changed.
    package var updated: [FileProviderItem]
    /// Items that are no members any more, or have another identifier.
    package var gone: [ItemIdentifier]
    /// The moment up to which this goes.
    package var sequence: Int64
    package var hasMore: Bool
}

extension ReplicaDatabase {
    package var localSets: LocalSets { LocalSets(database: self) }
}

/// The sets of materialized and of pending items, and their histories.
package struct LocalSets: Sendable {
    fileprivate let database: ReplicaDatabase

    /// The length of a set's history. A follower whose anchor is older has to enumerate the set again.
    package static let longestHistory: Int64 = 100_000

    /// A provider follows the sets from now on.
    package func followSets() throws { try database.make(.setsAreFollowed) }

    /// The newest moment of a set's history; 0 while nothing has happened.
    package func lastChange(of set: LocalSet) throws -> Int64 {
        try database.one("SELECT MAX(sequence) FROM \(set.table)", [], { $0[0] as Int64? ?? 0 }) ?? 0
    }

    /// The changes of a set after a moment.
    ///
    /// - Parameter history: how far back it goes.
    /// - Returns: nil when the history does not go back so far.
    package func changes(
        of set: LocalSet, after moment: Int64, limit: Int, history: Int64 = longestHistory
    ) throws -> MemberChanges? {
        try database.read { db in
            let last = try db.one("SELECT MAX(sequence) FROM \(set.table)", [], { $0[0] as Int64? ?? 0 }) ?? 0
            guard moment <= last, moment >= last - history else { return nil }
            var changes = MemberChanges(updated: [], gone: [], sequence: moment, hasMore: false)
            let rows = try db.all(
                "SELECT sequence, identifier FROM \(set.table) WHERE sequence > ? ORDER BY sequence LIMIT ?",
                [moment, limit + 1], { (sequence: $0[0] as Int64, identifier: $0[1] as String) })
            for row in rows.prefix(limit) {
                let identifier = ItemIdentifier(rawValue: row.identifier)
                if let item = try db.member(of: set, identifier) {
                    changes.updated.append(item)
                } else {
                    changes.gone.append(identifier)
                }
                changes.sequence = row.sequence
            }
            changes.hasMore = rows.count > limit
            return changes
        }
    }

    /// Drops the part of the histories that is too old to be asked for.
    package func shortenHistories(to history: Int64 = longestHistory) throws {
        for set in LocalSet.allCases {
            let outdated = try lastChange(of: set) - history
            guard outdated > 0 else { continue }
            let hasOutdated = try database.one(
                "SELECT EXISTS (SELECT 1 FROM \(set.table) WHERE sequence < ?)", [outdated], { $0[0] as Bool })
            if hasOutdated == true {
                try database.write { db in try db.run("DELETE FROM \(set.table) WHERE sequence < ?", [outdated]) }
            }
        }
    }

    /// Members of a set in an order that stays, from a place in it on.
    ///
    /// - Parameter place: 0 for the first page, else what the page before gave.
    package func members(of set: LocalSet, from place: Int64, limit: Int) throws -> MemberPage {
        try database.read { db in
            switch set {
            case .materialized: try db.materializedMembers(from: place, limit: limit)
            case .pending: try db.pendingMembers(from: place, limit: limit)
            }
        }
    }
}

extension Database {
    /// An item under an identifier, when it is in a set under that.
    fileprivate func member(of set: LocalSet, _ identifier: ItemIdentifier) throws -> FileProviderItem? {
        if let item = try known(identifier), (item.identifier ?? item.placeholder) == identifier, !item.isExcluded {
            switch set {
            case .materialized: if try isMaterialized(item) { return try describe(item) }
            case .pending: if !item.changedFields.isEmpty { return try describe(item) }
            }
        }
        guard set == .pending else { return nil }
        return try one(
            "SELECT \(PendingDeletion.columns) FROM deletion WHERE identifier = ?", [identifier.rawValue],
            PendingDeletion.init
        ).map(\.item)
    }

    private func isMaterialized(_ item: ItemRecord) throws -> Bool {
        guard item.inode.content == .materialized else { return false }
        return try item.inode.kind == .directory || item.inode.kind == .file && hasContentFile(item.inode.number)
    }

    /// In the order of inodes: each with all its names, so that a page may be a little longer.
    fileprivate func materializedMembers(from place: Int64, limit: Int) throws -> MemberPage {
        let numbers = try all(
            """
            SELECT number FROM (
                SELECT * FROM (SELECT number FROM inode INDEXED BY inodeWithContentFile
                    WHERE hasContentFile = 1 AND content = \(content: .materialized) AND kind = \(kind: .file)
                        AND number > ?1 ORDER BY number LIMIT ?2)
                UNION ALL
                SELECT * FROM (SELECT number FROM inode INDEXED BY materializedDirectory
                    WHERE kind = \(kind: .directory) AND content = \(content: .materialized)
                        AND number > ?1 ORDER BY number LIMIT ?2)
            ) ORDER BY number LIMIT ?2
            """, [place, limit], { $0[0] as Int64 })
        var items: [FileProviderItem] = []
        for number in numbers {
            let ids = try all(
                "SELECT id FROM item WHERE inode = ? AND isExcluded = \(exclusion: .none) ORDER BY id", [number],
                { $0[0] as Int64 })
            for id in ids { if let item = try item(id: id).flatMap({ try describe($0) }) { items.append(item) } }
        }
        return MemberPage(items: items, next: numbers.count < limit ? nil : numbers.last)
    }

    /// Items in the order in which they were made, and then deletions, whose places are negative.
    fileprivate func pendingMembers(from place: Int64, limit: Int) throws -> MemberPage {
        if place >= 0 {
            let ids = try all(
                """
                SELECT id FROM item WHERE changedFields <> 0 AND isExcluded = \(exclusion: .none)
                    AND id > ? ORDER BY id LIMIT ?
                """,
                [place, limit], { $0[0] as Int64 })
            let items = try ids.compactMap { try item(id: $0).flatMap { try describe($0) } }
            if ids.count == limit { return MemberPage(items: items, next: ids.last) }
            let hasDeletions = try one("SELECT EXISTS (SELECT 1 FROM deletion)", [], { $0[0] as Bool }) ?? false
            return MemberPage(items: items, next: hasDeletions ? -1 : nil)
        }
        let deletions = try all(
            "SELECT \(PendingDeletion.columns) FROM deletion WHERE id > ? ORDER BY id LIMIT ?", [-1 - place, limit],
            PendingDeletion.init)
        return MemberPage(
            items: deletions.map(\.item), next: deletions.count < limit ? nil : deletions.last.map { -1 - $0.id })
    }
}

extension PendingDeletion {
    /// The item to be deleted, as far as it is still known: it has no capabilities.
    fileprivate var item: FileProviderItem {
        FileProviderItem(
            itemIdentifier: identifier, parentItemIdentifier: parent, filename: name, kind: kind.itemKind ?? .file,
            itemVersion: version, capabilities: [], documentSize: kind == .file ? 0 : nil)
    }
}
