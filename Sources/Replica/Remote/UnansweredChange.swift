import FileProvider
import Foundation
import GRDB

/// A request that was sent and never answered, because the daemon or the connection ended. The remote may have applied
/// it: the result is recognized by its size and its time.
package struct UnansweredChange: Hashable, Sendable {
    /// The size of a file. For a symbolic link, a checksum of its target: two targets often have the same length.
    package var size: Int64
    package var modifiedAt: FileTimestamp

    /// Whether an item of the remote's is what was sent. A time that the remote has cut does not match, for another machine may
    /// have written as many bytes in the same second: then both versions are kept, and what was removed here may come back.
    package func matches(_ item: FileProviderItem) -> Bool {
        switch item.kind {
        case .file: item.documentSize == size && item.contentModificationDate == modifiedAt
        case .symbolicLink: Self.size(of: item) == size
        case .directory: true
        }
    }

    static func size(of item: FileProviderItem) -> Int64 {
        guard item.kind == .symbolicLink, let target = item.symlinkTargetPath else { return item.documentSize ?? 0 }
        return Int64(bitPattern: RecordReader.checksum(of: Array(target.utf8)[...]))
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
