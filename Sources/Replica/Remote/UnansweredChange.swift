import FileNames
import FileProvider
import Foundation
import GRDB

/// A request that was sent and never answered, because the daemon or the connection ended. The remote may have applied
/// it: the result is recognized by its size and its time.
package struct UnansweredChange: Hashable, Sendable {
    package var size: Int64
    package var modifiedAt: FileTimestamp

    /// Whether an item of the remote's is what was sent.
    package func matches(_ item: FileProviderItem) -> Bool {
        switch item.kind {
        case .file: item.documentSize == size && item.contentModificationDate == modifiedAt
        case .symbolicLink: item.symlinkTargetPath.map { Int64(FileNameText.byteCount(of: $0)) } == size
        case .directory: true
        }
    }
}

extension Ingestion {
    /// A change is about to be sent: from now on it may be on the remote.
    ///
    /// - Returns: false when the item was removed here, or a new one renamed, and nothing is to be sent.
    package func noteSent(_ sent: SentChange) throws -> Bool {
        if sent.identifier == nil, sent.offer == nil, try !isStillThere(sent) { return false }
        guard try db.noteSent(sent.row) else { return false }
        guard sent.identifier == nil || sent.fields.contains(.contents) else { return true }
        let size = sent.item.documentSize ?? Int64(sent.item.symlinkTargetPath.map(FileNameText.byteCount) ?? 0)
        try db.run(
            "INSERT INTO unanswered (item, size, modifiedAt) VALUES (?, ?, ?)",
            [sent.row, size, (sent.item.contentModificationDate ?? now).nanosecondsSince1970])
        return true
    }

    /// Whether a new item still has the name and the directory that it was prepared with: what went elsewhere without an
    /// answer would be looked for nowhere.
    private func isStillThere(_ sent: SentChange) throws -> Bool {
        guard let item = try db.item(id: sent.row), item.identifier == nil,
            let parent = try item.parent.flatMap({ try db.item(ofInode: $0)?.identifier })
        else { return false }
        return parent == sent.item.parentItemIdentifier && item.placeholder == sent.item.itemIdentifier
            && item.ownName.utf8.elementsEqual(sent.item.filename.utf8)
    }

    /// It was answered, or certainly did not reach the remote.
    package func noteAnswered(_ sent: SentChange) throws {
        try db.noteAnswered(sent.row)
        try db.forgetLeft(sent)
    }

    /// What the remote has under an item's name is what was sent of it before: the item goes on from there, and what was
    /// removed here meanwhile is deleted there.
    package mutating func recognize(_ sent: SentChange, as remote: FileProviderItem) throws {
        guard try db.item(id: sent.row) != nil else { return try acknowledgeRemoved(sent, as: remote) }
        try recognize(sent.row, as: remote)
        try db.forgetLeft(sent)
    }

    mutating func recognize(_ row: Int64, as remote: FileProviderItem) throws {
        guard let item = try db.item(id: row) else { return }
        if let twin = try db.item(remote.itemIdentifier), twin.id != row { try forgetTwin(twin, of: item) }
        try db.acknowledge(
            row, as: remote, capabilities: remote.capabilities, changed: item.changedFields, held: item.heldFields)
        try db.forgetUnanswered(ofItem: row)
        if item.inode.number != .root { try db.noteWhereItIs(row, at: now) }
    }
}

extension ReplicaDatabase {
    /// What of an item may be on the remote without an answer.
    package func unanswered(ofItem row: Int64) throws -> [UnansweredChange] {
        try read { db in try db.unanswered("item", row) }
    }

    /// What of an item that was removed since may be on the remote without an answer.
    package func unanswered(ofDeletion id: Int64) throws -> [UnansweredChange] {
        try read { db in try db.unanswered("deletion", id) }
    }

    /// What of an item that was offered under an identifier, and was removed or renamed since, may be on the remote without
    /// an answer.
    package func unanswered(ofLeft placeholder: ItemIdentifier) throws -> [UnansweredChange] {
        try read { db in
            let id = try Int64.fetchOne(
                db, sql: "SELECT id FROM deletion WHERE identifier = ?", arguments: [placeholder.rawValue])
            return try id.map { try db.unanswered("deletion", $0) } ?? []
        }
    }
}

extension Database {
    func unanswered(_ owner: String, _ id: Int64) throws -> [UnansweredChange] {
        try Row.fetchAll(
            cachedStatement(sql: "SELECT size, modifiedAt FROM unanswered WHERE \(owner) = ?"), arguments: [id]
        ).map { UnansweredChange(size: $0[0], modifiedAt: FileTimestamp(nanosecondsSince1970: $0[1])) }
    }

    /// The answer to a creation has arrived: what was left of earlier attempts is forgotten.
    func forgetLeft(_ sent: SentChange) throws {
        guard sent.identifier == nil else { return }
        try deleteDeletion(sent.item.itemIdentifier)
    }
}
