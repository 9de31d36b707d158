import FileProvider
import Foundation
import GRDB

/// A request that was sent and never answered, because the daemon or the connection ended. The remote may have applied
/// it: the result is recognized by its size and its time.
package struct UnansweredChange: Hashable, Sendable {
    /// The size of a file. For a symbolic link, a checksum of its target: two targets often have the same length.
    package var size: Int64
    package var modifiedAt: FileTimestamp

    /// Whether an item of the remote's is what was sent. What another machine wrote in the same second, with the same size,
    /// is not: the bytes decide where the time is not the very same.
    package func matches(_ item: FileProviderItem) -> Bool {
        isOfSameSize(item) && (item.kind != .file || item.contentModificationDate == modifiedAt)
    }

    /// Whether an item of the remote's is what was sent of something that was removed here since, and whose bytes are gone:
    /// a time that the remote has cut is enough.
    package func matchesRemoved(_ item: FileProviderItem) -> Bool {
        guard item.kind == .file, let there = item.contentModificationDate else { return matches(item) }
        return isOfSameSize(item) && modifiedAt.isOrWasCut(to: there)
    }

    private func isOfSameSize(_ item: FileProviderItem) -> Bool {
        item.kind == .directory || Self.size(of: item) == size
    }

    static func size(of item: FileProviderItem) -> Int64 {
        guard item.kind == .symbolicLink, let target = item.symlinkTargetPath else { return item.documentSize ?? 0 }
        return Int64(bitPattern: RecordReader.checksum(of: Array(target.utf8)[...]))
    }
}

extension FileTimestamp {
    /// Whether a time is this one, as a remote has it that keeps whole seconds, milliseconds or microseconds.
    fileprivate func isOrWasCut(to other: FileTimestamp) -> Bool {
        if other == self { return true }
        guard other.seconds == seconds else { return false }
        return [1_000_000_000, 1_000_000, 1000].contains { nanoseconds - nanoseconds % $0 == other.nanoseconds }
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
