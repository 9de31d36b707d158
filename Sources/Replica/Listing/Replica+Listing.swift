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
    ///
    /// - Parameter newest: items of higher numbers do not count; nil counts all.
    package func countKnown(upTo newest: Int64? = nil) throws -> Int {
        try read { db in
            let known = try db.one(
                "SELECT COUNT(*) FROM item WHERE identifier IS NOT NULL AND id <= ?", [newest ?? .max], { $0[0] as Int }
            )
            // The root is one.
            return max(0, (known ?? 1) - 1)
        }
    }

    /// How many of the remote's items would go with some of them.
    package func countVanishing(_ identifiers: Set<ItemIdentifier>) throws -> Int {
        try read { db in
            var count = 0
            try db.visit(identifiers) { _ in count += 1 }
            return count
        }
    }

    /// How many of the remote's files that would go with some items have moved: they are elsewhere with the same name, size and time, as
    /// newer items, each of which stands for one. What was made here has not moved there, nor has what came with the listing of a
    /// directory that had none. What is in the same place as another item is not elsewhere: the remote has given up identifiers.
    ///
    /// - Parameters:
    ///   - settled: the highest number of an item when nothing was missing; nil if that is not known.
    ///   - begun: the highest number of an item before they were found missing.
    package func countFoundElsewhere(
        _ identifiers: Set<ItemIdentifier>, settled: Int64?, begun: Int64
    ) throws -> Int {
        try readCommitted { db in
            var places = RemoteDirectoryPaths()
            var vanishing: [Resemblance: [Int: Int]] = [:]
            var seen: Set<Int64> = []
            try db.visit(identifiers) { item in
                seen.insert(item.id)
                guard item.inode.kind == .file, let parent = item.base.parent else { return }
                let path = try places.path(of: parent, in: db)
                vanishing[Resemblance(item.base), default: [:]][path, default: 0] += 1
            }
            // Files that have all come since nothing was missing may be copies that were listed one after the other.
            let newest = settled.flatMap { settled in seen.allSatisfy { $0 <= settled } ? settled : nil } ?? begun
            var listed = ListedPlaces(upTo: newest)
            var new: [Resemblance: [Int: Int]] = [:]
            let rows = try Row.fetchCursor(
                db,
                sql: """
                    SELECT item.id, item.baseName, item.baseSize, item.baseModifiedAt, item.baseParent
                    FROM item JOIN inode ON inode.number = item.inode
                    WHERE item.id > ? AND inode.kind = \(kind: .file) AND item.identifier IS NOT NULL
                        AND item.template = 0 AND item.baseParent IS NOT NULL
                    """, arguments: [newest])
            while let row = try rows.next() {
                let resemblance = Resemblance(name: row[1], size: row[2], modifiedAt: row[3])
                guard vanishing[resemblance] != nil, !seen.contains(row[0]) else { continue }
                let parent = ItemIdentifier(row[4])
                guard try listed.contains(parent, in: db) else { continue }
                new[resemblance, default: [:]][try places.path(of: parent, in: db), default: 0] += 1
            }
            return new.reduce(0) { count, entry in
                let gone = vanishing[entry.key] ?? [:]
                let inPlace = entry.value.reduce(0) { $0 + min($1.value, gone[$1.key] ?? 0) }
                let (here, there) = (gone.values.reduce(0, +), entry.value.values.reduce(0, +))
                return count + min(here - inPlace, there - inPlace)
            }
        }
    }
}

/// What a file has in common with itself elsewhere.
private struct Resemblance: Hashable {
    var name: String?
    var size: Int64
    /// In nanoseconds since 1970.
    var modifiedAt: Int64?

    init(name: String?, size: Int64, modifiedAt: Int64?) {
        (self.name, self.size, self.modifiedAt) = (name, size, modifiedAt)
    }

    init(_ base: ItemBase) {
        self.init(name: base.name, size: base.size, modifiedAt: base.modifiedAt?.nanosecondsSince1970)
    }
}

/// The paths of directories on the remote, each looked up once. Directories of one path have one number: the paths of a deep tree would
/// take too much memory.
private struct RemoteDirectoryPaths {
    private struct Step: Hashable {
        var parent: Int
        var name: [UInt8]
    }

    private static let root = 0
    private var known: [ItemIdentifier: Int] = [.rootContainer: Self.root]
    private var numbers: [Step: Int] = [:]

    mutating func path(of directory: ItemIdentifier, in db: Database) throws -> Int {
        var names: [(directory: ItemIdentifier, name: String)] = []
        var current = directory
        while known[current] == nil {
            // A circle of directories, which no valid remote has, ends here.
            known[current] = Self.root
            guard let base = try db.item(current)?.base, let parent = base.parent else { break }
            names.append((current, base.name ?? ""))
            current = parent
        }
        var path = known[current] ?? Self.root
        for (directory, name) in names.reversed() {
            let step = Step(parent: path, name: Array(name.utf8))
            path = numbers[step] ?? numbers.count + 1
            numbers[step] = path
            known[directory] = path
        }
        return path
    }
}

/// Which directories were listed before newer items came, so that these are new on the remote, too. Each is looked up once.
private struct ListedPlaces {
    private let newest: Int64
    private var known: [ItemIdentifier: Bool] = [:]

    /// - Parameter newest: the highest number of an item that is not newer.
    init(upTo newest: Int64) { self.newest = newest }

    /// Whether a directory was listed and has not been evicted since, or is new and its parent directory was listed.
    mutating func contains(_ directory: ItemIdentifier, in db: Database) throws -> Bool {
        var new: [ItemIdentifier] = []
        var next: ItemIdentifier? = directory
        var isListed = false
        while let current = next {
            next = nil
            if let answer = known[current] {
                isListed = answer
                continue
            }
            // A circle of directories ends here.
            known[current] = false
            guard let item = try db.item(current) else { continue }
            new.append(current)
            if item.id > newest {
                next = item.base.parent
            } else {
                isListed = item.inode.content == .materialized && item.inode.contentGeneration <= newest
            }
        }
        for directory in new { known[directory] = isListed }
        return isListed
    }
}

extension Database {
    /// Visits some of the remote's items and all of its items below them, each once.
    fileprivate func visit(_ identifiers: Set<ItemIdentifier>, _ visitor: (ItemRecord) throws -> Void) throws {
        var seen: Set<Int64> = []
        var waiting = try identifiers.compactMap { try item($0) }
        while let next = waiting.popLast() {
            guard next.identifier != nil, seen.insert(next.id).inserted else { continue }
            try visitor(next)
            if next.inode.kind == .directory { waiting += try items(in: next.inode.number) }
        }
    }
}
