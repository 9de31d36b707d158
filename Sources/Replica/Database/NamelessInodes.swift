import FileProvider
import Foundation
import GRDB
import Syscalls

/// Why an inode has no name.
enum NamelessReason: Int64, Sendable {
    /// Its name was removed here, or given to another inode, while it was in use and its content was not all here.
    case removed = 1
    /// The remote has replaced the version that a process has open.
    case superseded = 2
    /// It was made without one. (`O_TMPFILE`)
    case unnamed = 3
}

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

    /// Notes where the version was shown that a process has open and the remote has replaced.
    func noteSuperseded(_ item: ItemRecord) throws {
        try run(
            "INSERT OR REPLACE INTO nameless (inode, reason, item, parent, name) VALUES (?, ?, ?, ?, ?)",
            [
                item.inode.number.rawValue, NamelessReason.superseded.rawValue, item.id, item.parent?.rawValue,
                item.name,
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

    /// Where the version was shown that the remote has replaced: where its item is now, or was then.
    func place(ofSuperseded number: InodeNumber) throws -> (parent: InodeNumber, name: String)? {
        try one(
            """
            SELECT COALESCE(item.parent, nameless.parent, 1),
                CASE WHEN item.name IS NULL OR substr(item.name, 1, 1) = '/' THEN nameless.name ELSE item.name END
            FROM nameless LEFT JOIN item ON item.id = nameless.item
            WHERE nameless.inode = ? AND nameless.reason = \(NamelessReason.superseded.rawValue)
            """, [number.rawValue], { (InodeNumber(rawValue: $0[0]), $0[1] as String) })
    }

    func forgetNameless(_ number: InodeNumber) throws {
        try run("DELETE FROM nameless WHERE inode = ?", [number.rawValue])
    }

    /// Deletes an inode that has neither a name nor content here, nor items that are in it.
    func deleteNameless(_ number: InodeNumber) throws {
        try run(
            """
            DELETE FROM inode WHERE number = ?1 AND linkCount = 0
                AND NOT EXISTS (SELECT 1 FROM item WHERE parent = ?1 OR inode = ?1)
            """, [number.rawValue])
    }

    /// `name (label).ext`, with a number where that is taken; never longer than Linux allows.
    func freeName(for name: String, label: String, in parent: InodeNumber) throws -> String {
        for number in 1... {
            let suffix = number == 1 ? " (\(label))" : " (\(label) \(number))"
            let candidate = Displacement.name(name, with: suffix)
            if try !hasItem(named: candidate, in: parent) { return candidate }
        }
        return name
    }

    /// Makes an inode's content a new item beside the one that it was the content of.
    func insertConflictCopy(
        of number: InodeNumber, original: String, named name: String, in parent: InodeNumber, at now: FileTimestamp
    ) throws {
        try run(
            """
            INSERT INTO item (inode, parent, name, capabilities, changedFields, template, pendingSince, conflictOf)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?)
            """,
            [
                number.rawValue, parent.rawValue, name, Int64(ItemCapabilities.ordinary.rawValue),
                Int64(ItemFields.ofNewItem(.file).rawValue), ItemRecord.newTemplate(), now.nanosecondsSince1970,
                original,
            ])
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

    /// Whether the remote has to keep an item's content as it is for a file that is in use here and was removed or replaced.
    package func isKeptOnRemote(_ identifier: ItemIdentifier) throws -> Bool {
        try read { db in try db.isKeptOnRemote(identifier) }
    }
}

extension Database {
    func isKeptOnRemote(_ identifier: ItemIdentifier) throws -> Bool {
        try one(
            """
            SELECT EXISTS (SELECT 1 FROM nameless JOIN inode ON inode.number = nameless.inode
                WHERE nameless.identifier = ? AND inode.content <> 2)
            """, [identifier.rawValue], { $0[0] as Bool }) ?? false
    }
}

extension Replica {
    /// The remote does not have the content any more that was to be kept there for a file without a name: nothing waits for
    /// it any longer.
    package func releaseOnRemote(_ number: InodeNumber) async throws {
        try await database.write { db in
            try db.run(
                "DELETE FROM nameless WHERE inode = ? AND reason = \(NamelessReason.removed.rawValue)",
                [number.rawValue])
        }
    }

    /// What a conflict copy's name has in brackets: `conflicted copy of HOST, DATE`.
    @Sendable package static func conflictLabel() -> String {
        "conflicted copy of \(Machine.hostName), \(Date.now.formatted(.iso8601.year().month().day()))"
    }
}

/// A transaction that was to change no names has to make one: it is made again as one that may.
struct NamesNeeded: Error {}

extension LocalChanges {
    /// What was written to a version that the remote has replaced becomes a conflict copy beside the present one: a process
    /// had the old version open, and wrote after the news.
    mutating func keepIfSuperseded(_ number: InodeNumber) throws {
        guard try inode(number).linkCount == 0, let place = try db.place(ofSuperseded: number) else { return }
        guard mayChangeNames else { throw NamesNeeded() }
        var parent = place.parent
        if try db.item(ofInode: parent)?.inode.kind != .directory { parent = .root }
        let name = try db.freeName(for: place.name, label: Replica.conflictLabel(), in: parent)
        try db.insertConflictCopy(of: number, original: place.name, named: name, in: parent, at: now)
        try db.run(
            "UPDATE inode SET linkCount = 1, changedAt = ? WHERE number = ?",
            [now.nanosecondsSince1970, number.rawValue])
        try db.forgetNameless(number)
        try touch(parent)
        tellKernelOfName(name, in: parent)
        tellKernel(.attributes(number))
        effects.defects.append(
            "'\(place.name)' was changed here and on the remote: what was written here is '\(name)'")
    }
}
