import FileProvider
import GRDB

/// A listing of a directory that is under way.
package struct ListingBeginning: Sendable {
    package var identifier: ItemIdentifier
    /// The listing's number: rows that it confirms carry it.
    package var number: Int64
    /// Whether entries may be shown before the last page is there: only where none were remembered, because those keep
    /// their old places.
    package var isStreamed: Bool
    /// Whether the directory was materialized before, and is only compared.
    package var isComparison: Bool
    /// Begins with the listing: what was acknowledged or reported since is newer.
    package var observation: Observation
}

/// Directories: listed, page by page.
extension Replica {
    /// Begins to list a directory: it is partial from now on, unless it is materialized and only compared.
    ///
    /// - Parameter isOnlyCompared: whether the directory is listed only to compare it, with no reader waiting.
    /// - Returns: nil when it is only to be compared, and its listing was evicted.
    /// - Throws: `noSuchItem` for what is not a directory of the remote's.
    package func beginListing(
        of number: InodeNumber, isOnlyCompared: Bool = false
    ) async throws -> ListingBeginning? {
        try await database.write { [ordering] db in
            guard let item = try db.item(ofInode: number), item.inode.kind == .directory,
                let identifier = item.identifier
            else { throw FileProviderError(.noSuchItem, "inode \(number) is no directory of the remote's") }
            let listing = try db.beginSeeing()
            let remembered = try db.one(
                "SELECT EXISTS (SELECT 1 FROM item WHERE parent = ?)", [number.rawValue], { $0[0] as Bool })
            let isComparison = item.inode.content == .materialized
            if isOnlyCompared, !isComparison { return nil }
            if !isComparison {
                try db.beginListing(of: number)
            }
            return ListingBeginning(
                identifier: identifier, number: listing, isStreamed: remembered != true && !isComparison,
                isComparison: isComparison, observation: ordering.observe())
        }
    }

    /// Gives up a listing that failed: what was dataless before is dataless again.
    package func abandonListing(of number: InodeNumber) async throws {
        try await database.write { db in
            try db.abandonListing(of: number)
        }
    }

    /// A listing has ended, with success or not: forgets which items it has confirmed.
    package func endListing(_ beginning: ListingBeginning) async throws {
        try await database.write { db in try db.endSeeing(in: beginning.number) }
    }

    /// Whether a listing of a directory has brought an item already.
    package func wasSeen(
        _ identifier: ItemIdentifier, in number: InodeNumber, listing: Int64
    ) async throws -> Bool {
        try await database.write { db in
            guard let item = try db.item(identifier), item.parent == number else { return false }
            return try db.wasSeen(item.id, in: listing)
        }
    }

    /// The items of a directory that a listing has not confirmed, once all its pages are in.
    package func unconfirmed(in number: InodeNumber, listing: Int64) async throws -> [ItemRecord] {
        try await database.write { db in try db.unseenItems(in: number, listing: listing) }
    }
}

extension ReplicaDatabase {
    /// How many of the remote's items are known. It takes time in a large domain.
    package func countKnown() throws -> Int {
        try read { db in
            let known = try db.one("SELECT COUNT(*) FROM item WHERE identifier IS NOT NULL", [], { $0[0] as Int })
            // The root is one.
            return max(0, (known ?? 1) - 1)
        }
    }

    /// How many of the remote's items would go with some of them.
    package func countVanishing(_ identifiers: Set<ItemIdentifier>) throws -> Int {
        try read { db in
            var seen: Set<Int64> = []
            var waiting = try identifiers.compactMap { try db.item($0) }
            while let item = waiting.popLast() {
                guard item.identifier != nil, seen.insert(item.id).inserted else { continue }
                if item.inode.kind == .directory { waiting += try db.items(in: item.inode.number) }
            }
            return seen.count
        }
    }
}
