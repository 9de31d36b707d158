import FileProvider
import GRDB

/// Inodes without a name. (Docs/decisions/0006-open-versions.md)
extension Database {
    /// Notes that the remote has to keep an item as it is, because an inode that has just lost its last name is in use and
    /// its content is not all here.
    func keepOnRemote(_ item: ItemRecord, isOpen: Bool) throws {
        guard item.inode.kind == .file, item.inode.content != .materialized, let identifier = item.identifier else {
            return
        }
        try run(
            "INSERT OR REPLACE INTO nameless (inode, reason, identifier, wasOpen) VALUES (?, ?, ?, ?)",
            [item.inode.number.rawValue, NamelessReason.removed.rawValue, identifier.rawValue, isOpen])
    }

    /// Notes where the version was shown that a process has open and the remote has replaced or removed.
    ///
    /// - Parameter successor: the row of the item that shows the remote's version; nil when the remote has only removed the item.
    func noteSuperseded(_ item: ItemRecord, by successor: Int64?) throws {
        try run(
            "INSERT OR REPLACE INTO nameless (inode, reason, item, parent, name) VALUES (?, ?, ?, ?, ?)",
            [
                item.inode.number.rawValue, NamelessReason.superseded.rawValue, successor, item.parent?.rawValue,
                item.nameForUser,
            ])
    }

    func noteUnnamed(_ number: InodeNumber) throws {
        try run(
            "INSERT OR REPLACE INTO nameless (inode, reason) VALUES (?, ?)",
            [number.rawValue, NamelessReason.unnamed.rawValue])
    }

    func isUnnamed(_ number: InodeNumber) throws -> Bool { try namelessReason(of: number) == .unnamed }

    func namelessReason(of number: InodeNumber) throws -> NamelessReason? {
        try one("SELECT reason FROM nameless WHERE inode = ?", [number.rawValue]) { NamelessReason(rawValue: $0[0]) }
            ?? nil
    }

    /// The item of the remote's that the content of an inode without a name is a version of.
    func source(ofNameless number: InodeNumber) throws -> ItemIdentifier? {
        let identifier = try one(
            """
            SELECT COALESCE(nameless.identifier, item.identifier)
            FROM nameless LEFT JOIN item ON item.id = nameless.item WHERE nameless.inode = ?
            """, [number.rawValue], { $0[0] as String? })
        return (identifier ?? nil).map { ItemIdentifier(rawValue: $0) }
    }

    /// The place of a version that the remote has replaced or removed: where its item is now, or was then. The remote may have removed
    /// the item that replaced it as well: then nothing has its name.
    func place(
        ofSuperseded number: InodeNumber
    ) throws -> (parent: InodeNumber, name: String, isReplaced: Bool)? {
        try one(
            """
            SELECT COALESCE(item.parent, nameless.parent, 1),
                CASE WHEN item.name IS NULL OR substr(item.name, 1, 1) = '/' THEN nameless.name ELSE item.name END,
                item.id IS NOT NULL
            FROM nameless LEFT JOIN item ON item.id = nameless.item
            WHERE nameless.inode = ? AND nameless.reason = \(nameless: .superseded)
            """, [number.rawValue], { (InodeNumber(rawValue: $0[0]), $0[1] as String, $0[2] as Bool) })
    }

    func forgetNameless(_ number: InodeNumber) throws {
        try run("DELETE FROM nameless WHERE inode = ?", [number.rawValue])
    }

    /// `name (label).ext`, with a number where that is taken; never longer than Linux allows.
    ///
    /// - Parameter first: the first number that is tried; 1 is no number.
    func freeName(for name: String, label: String, from first: Int = 1, in parent: InodeNumber) throws -> String {
        for number in first... {
            let suffix = number == 1 ? " (\(label))" : " (\(label) \(number))"
            let candidate = Displacement.name(name, with: suffix)
            if try !hasItem(named: candidate, in: parent) { return candidate }
        }
        return name
    }
}

extension ReplicaDatabase {
    /// The item whose content a file is, or was before the remote replaced the version that is open; nil for anything else.
    package func documentIdentifier(of number: InodeNumber) throws -> ItemIdentifier? {
        try read { db in
            if let item = try db.item(ofInode: number) { return item.inode.kind == .file ? item.identifier : nil }
            let identifier = try db.one(
                "SELECT item.identifier FROM nameless JOIN item ON item.id = nameless.item WHERE nameless.inode = ?",
                [number.rawValue], { $0[0] as String? })
            return (identifier ?? nil).map { ItemIdentifier(rawValue: $0) }
        }
    }

    /// Whether a file is a version that the remote has replaced or removed, and not all of it is here.
    package func isPartOfOldVersion(_ number: InodeNumber) throws -> Bool {
        // New files have no versions.
        try queryWithoutNewFiles { db in
            try db.one(
                """
                SELECT EXISTS (SELECT 1 FROM nameless JOIN inode ON inode.number = nameless.inode
                    WHERE nameless.inode = ? AND nameless.reason = \(nameless: .superseded)
                        AND inode.content <> \(content: .materialized))
                """, [number.rawValue], { $0[0] as Bool }) ?? false
        }
    }

    /// Whether the remote has to keep an item's content as it is for a file that is in use here and was removed or replaced.
    package func isKeptOnRemote(_ identifier: ItemIdentifier, at now: FileTimestamp = .now) throws -> Bool {
        try read { db in try db.isKeptOnRemote(identifier, at: now) }
    }
}

extension Database {
    /// A removed file that was open counts until its last close. One that only the kernel knew, for `O_PATH` or a working
    /// directory, counts for a while: the kernel's dentry cache may hold such an inode for days.
    func isKeptOnRemote(_ identifier: ItemIdentifier, at now: FileTimestamp) throws -> Bool {
        let removed = now.nanosecondsSince1970 - Self.longestUnopenedUse
        return try one(
            """
            SELECT EXISTS (SELECT 1 FROM nameless JOIN inode ON inode.number = nameless.inode
                WHERE nameless.identifier = ? AND inode.content <> \(content: .materialized)
                    AND (nameless.wasOpen OR inode.changedAt > ?))
            """, [identifier.rawValue, removed], { $0[0] as Bool }) ?? false
    }

    /// In nanoseconds, from the removal.
    private static let longestUnopenedUse: Int64 = 10_000_000_000
}
