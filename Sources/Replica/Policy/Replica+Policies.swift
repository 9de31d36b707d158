import FileProvider
import Foundation
import GRDB

/// Content that has to be fetched although no reader waits for it.
package struct WantedContent: Hashable, Sendable {
    package var number: InodeNumber
    /// A file; else a directory, whose listing is wanted.
    package var isFile: Bool
    /// The version that is wanted of a file.
    package var version: [UInt8]

    package init(number: InodeNumber, isFile: Bool, version: [UInt8]) {
        self.number = number
        self.isFile = isFile
        self.version = version
    }
}

/// Content policies: what users and providers say, and what follows for all below.
extension Replica {
    /// Gives an item a policy of the user's, which counts before the provider's from now on, under all of its names.
    ///
    /// - Parameter policy: nil takes the user's word back: the provider's counts again.
    /// - Returns: whether there is such an item.
    @discardableResult
    package func setPolicy(_ policy: ContentPolicy?, of number: InodeNumber) throws -> Bool {
        try database.write { db in
            try db.setUserPolicy(policy, of: number)
        }
    }

    /// The policy that holds for an item: its own, or the nearest ancestor's.
    package func effectivePolicy(of item: ItemRecord) throws -> ContentPolicy {
        try database.read { db in try db.effectivePolicy(of: item) }
    }
}

extension ReplicaDatabase {
    /// The item whose policy holds for another: itself, or the nearest above it that has one; nil when none has.
    package func sourceOfPolicy(of item: ItemRecord) throws -> ItemRecord? {
        try read { db in try db.sourceOfPolicy(of: item) }
    }

    /// Files and directories that are not here whole and have to be: what is kept downloaded, with all below it as far
    /// as it is listed, what was here before the remote changed it, what was replaced here while it was open, and what
    /// lies in the trash.
    ///
    /// - Parameters:
    ///   - limit: at most so many.
    ///   - top: leaves out those that lie neither at nor below it; nil leaves out none.
    ///   - isWanted: leaves out those for which it says no.
    package func wantedContent(
        limit: Int, below top: InodeNumber? = nil, where isWanted: (WantedContent) -> Bool
    ) throws -> [WantedContent] {
        try read { db in
            let rows = try Row.fetchCursor(try db.cachedStatement(sql: Self.wanted))
            var wanted: [WantedContent] = []
            while wanted.count < limit, let row = try rows.next() {
                let content = WantedContent(
                    number: InodeNumber(rawValue: row[0]), isFile: row[1] == InodeKind.file.rawValue,
                    version: [UInt8](row[2] as Data))
                if let top, try !db.isBelow(content.number, top) { continue }
                if isWanted(content) { wanted.append(content) }
            }
            return wanted
        }
    }

    /// Whether a file or directory is not here whole and has to be.
    package func isWanted(_ number: InodeNumber) throws -> Bool {
        try read { db in
            guard let inode = try db.inode(number), inode.content != .materialized else { return false }
            if inode.linkCount == 0 { return try db.isWaitedFor(nameless: number) }
            if try db.isFetchedAgain(number) || db.isKept(number) { return true }
            return try db.one(
                "SELECT 1 FROM item WHERE inode = ? AND trashedAt IS NOT NULL AND identifier IS NOT NULL",
                [number.rawValue], { _ in true }) ?? false
        }
    }

    /// Whether an inode is kept downloaded under any of its names.
    package func isKept(_ number: InodeNumber) throws -> Bool {
        try read { db in try db.isKept(number) }
    }

    private static let wanted = """
        WITH RECURSIVE kept (inode) AS (
            SELECT inode FROM item INDEXED BY keptItem WHERE COALESCE(userPolicy, policy) = \(policy: .keepDownloaded)
            UNION
            SELECT item.inode FROM kept CROSS JOIN item ON item.parent = kept.inode
            WHERE COALESCE(item.userPolicy, item.policy) IN (\(policy: .inherited), \(policy: .keepDownloaded))
        )
        SELECT inode.number, inode.kind, inode.contentVersion
        FROM kept CROSS JOIN inode ON inode.number = kept.inode
            WHERE inode.kind IN (\(kind: .file), \(kind: .directory)) AND inode.content <> \(content: .materialized)
        UNION ALL
        SELECT number, kind, contentVersion FROM inode INDEXED BY inodeToFetchAgain
        WHERE fetchAgain = 1 AND content <> \(content: .materialized) AND linkCount > 0
        UNION ALL
        SELECT inode.number, inode.kind, inode.contentVersion
        FROM nameless CROSS JOIN inode ON inode.number = nameless.inode
        WHERE inode.content <> \(content: .materialized) AND \(Database.isWaitedFor)
        UNION ALL
        SELECT inode.number, inode.kind, inode.contentVersion
        FROM item INDEXED BY trashedItem JOIN inode ON inode.number = item.inode
        WHERE item.trashedAt IS NOT NULL AND item.identifier IS NOT NULL
            AND inode.kind IN (\(kind: .file), \(kind: .directory)) AND inode.content <> \(content: .materialized)
        """
}

extension Database {
    /// Whether something cannot be sent until a file is here whole that was removed or replaced here while it was open: its
    /// own item has other content now, or its name is another item's.
    fileprivate static let isWaitedFor = """
        nameless.wasOpen AND (
            EXISTS (SELECT 1 FROM item WHERE item.identifier = nameless.identifier)
            OR EXISTS (SELECT 1 FROM deletion JOIN item AS directory ON directory.identifier = deletion.baseParent
                JOIN item AS successor ON successor.parent = directory.inode AND successor.name = deletion.baseName
                WHERE deletion.identifier = nameless.identifier))
        """

    fileprivate func isWaitedFor(nameless number: InodeNumber) throws -> Bool {
        try one("SELECT \(Self.isWaitedFor) FROM nameless WHERE inode = ?", [number.rawValue], { $0[0] as Bool })
            ?? false
    }

    func effectivePolicy(of item: ItemRecord) throws -> ContentPolicy {
        try sourceOfPolicy(of: item)?.policy ?? .lazy
    }

    func sourceOfPolicy(of item: ItemRecord) throws -> ItemRecord? {
        var current = item
        for _ in 0..<4096 {
            if current.policy != .inherited { return current }
            guard let parent = current.parent, let next = try self.item(ofInode: parent) else { break }
            current = next
        }
        return nil
    }

    /// Whether a file is fetched again because the remote changed it while it was here.
    func isFetchedAgain(_ number: InodeNumber) throws -> Bool {
        try one("SELECT fetchAgain FROM inode WHERE number = ?", [number.rawValue], { $0[0] as Bool }) ?? false
    }

    /// Whether an inode is kept downloaded under any of its names.
    func isKept(_ number: InodeNumber) throws -> Bool {
        let ids = try Int64.fetchAll(
            cachedStatement(sql: "SELECT id FROM item WHERE inode = ?"), arguments: [number.rawValue])
        return try ids.contains { id in
            guard let item = try item(id: id) else { return false }
            return try effectivePolicy(of: item) == .keepDownloaded
        }
    }
}
