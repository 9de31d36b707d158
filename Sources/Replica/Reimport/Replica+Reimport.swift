import FileProvider
import GRDB

/// Giving up identifiers: batch by batch, down from the items that were named, and on from there after a crash.
///
/// An item that is given up keeps its row, its inode and what was changed here. Without an identifier nothing can be asked
/// about it, and under its template it is offered to the provider, parents before children.
extension Replica {
    /// Accepts a reimport. The identifiers below the item are given up, bit by bit, from now on.
    ///
    /// - Parameter isAsked: it is one that was asked for (``askForReimport(below:)``): it begins once.
    /// - Throws: `noSuchItem` for what is not shown here, for what waits to be offered already, and for what is asked for no more.
    package func beginReimport(below number: InodeNumber, isAsked: Bool = false) async throws {
        try await database.write { db in
            let asked = try db.askedReimports()
            if isAsked, !asked.contains(number) {
                throw FileProviderError(.noSuchItem, "the reimport of inode \(number) has begun already")
            }
            guard let item = try db.item(ofInode: number), try db.isRepresented(item), !item.isToBeOffered
            else { throw FileProviderError(.noSuchItem, "inode \(number) is not shown, or is being reimported") }
            try db.setAskedReimports(asked.filter { $0 != number })
            try db.run(
                "INSERT INTO reimport (inode, requestedAt) VALUES (?, ?)",
                [number.rawValue, FileTimestamp.now.nanosecondsSince1970])
            var marking = ReimportMarking(db: db, round: db.lastInsertedRowID)
            if number != .root { try marking.take(item) }
            // Changes there since the last comparison are not known.
            try db.noteIncompleteIfListed(number)
            if item.inode.kind == .directory { try marking.enter(number) }
            try marking.noteTotal()
            // The direct children are given up at once, so that no listing takes them for deleted.
            try marking.go(on: Self.reimportBatch)
        }
    }

    /// Notes that a reimport is asked for, before it is known whether the remote can be written. No identifier is given up.
    package func askForReimport(below number: InodeNumber) async throws {
        try await database.write { db in
            let asked = try db.askedReimports()
            if !asked.contains(number) { try db.setAskedReimports(asked + [number]) }
        }
    }

    /// Reimports that were asked for cannot be made.
    package func forgetAskedReimports(_ numbers: [InodeNumber]) async throws {
        try await database.write { db in
            try db.setAskedReimports(db.askedReimports().filter { !numbers.contains($0) })
        }
    }

    /// Gives up the identifiers of some more items.
    ///
    /// - Returns: whether there are more.
    package func continueReimport() async throws -> Bool {
        try await database.write { db in
            guard let round = try db.reimportRound() else { return false }
            var marking = ReimportMarking(db: db, round: round)
            try marking.go(on: Self.reimportBatch)
            return try db.isMarkingReimport()
        }
    }

    /// Notes that the reimports under way are complete, when everything has been offered: what is left is to tell the
    /// provider, once for all of them.
    ///
    /// - Returns: whether there is anything to tell.
    package func completeReimports() async throws -> Bool {
        try await database.write { db in
            if try db.hasOfferedEverything() { try db.run("UPDATE reimport SET isComplete = 1", []) }
            return try db.one("SELECT EXISTS (SELECT 1 FROM reimport WHERE isComplete = 1)", [], { $0[0] as Bool })
                ?? false
        }
    }

    /// The provider was told of the reimports that were complete.
    package func forgetCompleteReimports() async throws {
        try await database.write { db in try db.run("DELETE FROM reimport WHERE isComplete = 1", []) }
    }

    private static let reimportBatch = 2000
}

extension Database {
    fileprivate func setAskedReimports(_ numbers: [InodeNumber]) throws {
        let text = numbers.map(\.description).joined(separator: " ")
        try DomainKey.askedReimports.set(text.isEmpty ? nil : text, in: self)
    }

    func askedReimports() throws -> [InodeNumber] {
        let text = try DomainKey.askedReimports.string(in: self) ?? ""
        return text.split(separator: " ").compactMap { Int64($0) }.map(InodeNumber.init(rawValue:))
    }
}

/// Gives up identifiers inside a transaction.
struct ReimportMarking {
    let db: Database
    /// The reimport that the items are marked with.
    let round: Int64
    private var count = 0

    init(db: Database, round: Int64) {
        self.db = db
        self.round = round
    }

    /// The items of a directory are to follow.
    mutating func enter(_ directory: InodeNumber) throws {
        try db.run("INSERT OR IGNORE INTO reimportDirectory (inode) VALUES (?)", [directory.rawValue])
        guard let identifier = try db.item(ofInode: directory)?.identifier else { return }
        try takeAbsent(from: identifier, as: identifier)
    }

    /// Goes on with so many items.
    mutating func go(on limit: Int) throws {
        var left = limit
        while left > 0 {
            let next = try db.one(
                "SELECT inode, after FROM reimportDirectory ORDER BY inode DESC LIMIT 1", [],
                { ($0[0] as Int64, $0[1] as Int64) })
            guard let (directory, after) = next else { break }
            let items = try db.all(
                """
                SELECT item.id, inode.kind FROM item INDEXED BY itemInParent JOIN inode ON inode.number = item.inode
                WHERE item.parent = ? AND item.id > ? ORDER BY item.id LIMIT ?
                """, [directory, after, left], { (id: $0[0] as Int64, kind: $0[1] as Int) })
            if items.count < left {
                try db.run("DELETE FROM reimportDirectory WHERE inode = ?", [directory])
            } else {
                try db.run("UPDATE reimportDirectory SET after = ? WHERE inode = ?", [items.last?.id, directory])
            }
            for (id, _) in items {
                guard let item = try db.item(id: id) else { continue }
                try take(item)
            }
            left -= max(1, items.count)
        }
        try noteTotal()
    }

    /// Gives up one item's identifier. A directory's children follow.
    mutating func take(_ item: ItemRecord) throws {
        if let (identifier, template) = try giveUp(item) { try takeAbsent(from: identifier, as: template) }
    }

    /// - Returns: of a directory that was given up, its identifier and its template.
    private mutating func giveUp(_ item: ItemRecord) throws -> (ItemIdentifier, ItemIdentifier)? {
        guard item.inode.number != .root else { return nil }
        let isOurs = item.trashRole != .none || item.isExcluded
        if item.inode.kind == .directory, item.reimport != round || isOurs {
            try db.run(
                "INSERT OR IGNORE INTO reimportDirectory (inode) VALUES (?)", [item.inode.number.rawValue])
        }
        guard let identifier = item.identifier, !isOurs, item.reimport != round else { return nil }
        try db.giveUpIdentifier(of: item.id, in: round)
        count += 1
        guard item.inode.kind == .directory, let given = try db.item(id: item.id) else { return nil }
        return (identifier, given.placeholder)
    }

    /// Gives up what was removed here in a directory, or moved out of it, and is there on the remote still, with what was removed in
    /// that or moved out of it. A loop, because a tree may be deeper than the stack of a thread.
    private mutating func takeAbsent(from directory: ItemIdentifier, as parent: ItemIdentifier) throws {
        var waiting = [(directory, parent)]
        while let (directory, parent) = waiting.popLast() {
            waiting += try takeDeletions(in: directory, as: parent)
            for row in try rowsMoved(outOf: directory) {
                try db.setBaseParent(of: row, to: parent)
                if let item = try db.item(id: row), let next = try giveUp(item) { waiting.append(next) }
            }
        }
    }

    /// What was removed here in a directory has to be found on the remote by its name before it can be deleted there.
    /// One that an earlier reimport gave up follows its directory, too.
    ///
    /// - Returns: of each removed directory, its identifier and the token in its place.
    private func takeDeletions(
        in directory: ItemIdentifier, as parent: ItemIdentifier
    ) throws -> [(ItemIdentifier, ItemIdentifier)] {
        let deletions = try db.all(
            "SELECT id, identifier, kind FROM deletion WHERE baseParent = ?", [directory.rawValue],
            { (id: $0[0] as Int64, identifier: ItemIdentifier($0[1] as String), kind: $0[2] as Int) })
        var directories: [(ItemIdentifier, ItemIdentifier)] = []
        for deletion in deletions {
            let token = PendingDeletion.token(ofDeletion: deletion.id)
            try db.giveUpIdentifier(ofDeletion: deletion.id, token: token, in: parent)
            // What a removed directory contained names the token already, if the directory has not been found since.
            guard deletion.kind == InodeKind.directory.rawValue, deletion.identifier != token else { continue }
            directories.append((deletion.identifier, token))
        }
        return directories
    }

    private func rowsMoved(outOf directory: ItemIdentifier) throws -> [Int64] {
        try db.all(
            """
            SELECT id FROM item WHERE baseParent = ? AND changedFields & \(field: .parentItemIdentifier) <> 0
                AND baseParent IS NOT NULL
            """, [directory.rawValue], { $0[0] as Int64 })
    }

    /// Counts what was given up.
    mutating func noteTotal() throws {
        guard count > 0 else { return }
        try db.run("UPDATE reimport SET total = total + ? WHERE id = ?", [count, round])
        count = 0
    }
}

extension Database {
    func reimportRound() throws -> Int64? {
        try one("SELECT MAX(id) FROM reimport WHERE isComplete = 0", [], { $0[0] as Int64? }) ?? nil
    }

    /// An item is about to leave its directory. When that is one whose items are being given up, so is this one, now: the
    /// walk will not find it there.
    func keepInReimport(_ item: ItemRecord) throws {
        guard try isMarkingReimport(), let round = try reimportRound() else { return }
        var current = item.parent
        for _ in 0..<4096 {
            guard let directory = current else { return }
            let isNext = try one(
                "SELECT 1 FROM reimportDirectory WHERE inode = ?", [directory.rawValue], { _ in true })
            if isNext == true {
                var marking = ReimportMarking(db: self, round: round)
                try marking.take(item)
                return try marking.noteTotal()
            }
            if directory == .root { return }
            current = try self.item(ofInode: directory)?.parent
        }
    }

    /// A directory's identifier, or the template under which it is offered.
    func providerName(of directory: InodeNumber) throws -> ItemIdentifier? {
        try item(ofInode: directory).map { $0.identifier ?? $0.placeholder }
    }
}
