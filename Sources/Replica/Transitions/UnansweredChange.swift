import FileProvider
import Foundation
import GRDB

/// A request that was sent and never answered, because the daemon or the connection ended. The remote may have applied
/// it: the result is recognized by its size and its time, or its content.
package struct UnansweredChange: Hashable, Sendable {
    /// The size of a file. For a symbolic link, a checksum of its target: two targets often have the same length.
    package var size: Int64
    package var modifiedAt: FileTimestamp
    /// SHA-256 of the content; nil for large content, and when none was sent.
    package var digest: [UInt8]?

    /// For how long a request without an answer may still arrive after its result was looked for, or its item removed. Another
    /// machine's file that looks the same is taken for it: no longer than a server takes to end what it has begun.
    static let lateness = Duration.seconds(15)

    /// Whether an item of the remote's is what was sent. A time that the remote has cut does not match, for another machine may
    /// have written as many bytes in the same second: the contents have to be compared (``hasComparableContent(_:)``).
    package func matches(_ item: FileProviderItem) -> Bool {
        switch item.kind {
        case .file: item.documentSize == size && item.contentModificationDate == modifiedAt
        case .symbolicLink: Self.size(of: item) == size
        case .directory: true
        }
    }

    /// Whether the digest shows if an item of the remote's is what was sent, whatever its date.
    package func hasComparableContent(_ item: FileProviderItem) -> Bool {
        digest != nil && item.kind == .file && item.documentSize == size
    }

    /// Whether the dates are the same where they are cut: another file of the same content is not taken for the one that was
    /// sent.
    package func matchesTruncatedDate(of item: FileProviderItem) -> Bool {
        guard let date = item.contentModificationDate else { return false }
        return date.isTruncation(of: modifiedAt)
    }

    /// Whether the item came to the remote after this was written here, and before it can have arrived no more, as far as the two
    /// clocks agree. For a remote whose dates are those of the arrival.
    ///
    /// - Parameter removal: when the item of the change was removed or renamed here.
    package func canHaveArrived(as item: FileProviderItem, before removal: FileTimestamp) -> Bool {
        guard let date = item.contentModificationDate else { return false }
        return modifiedAt <= date.advanced(by: FileTimestamp.coarsest) && date <= removal.advanced(by: Self.lateness)
    }

    /// Whether an item of the remote's can be what was sent, as far as can be told without its content.
    func mayBe(_ item: FileProviderItem) -> Bool {
        matches(item) || hasComparableContent(item) && matchesTruncatedDate(of: item)
    }

    /// - Parameter column: the one with the size; the date and the digest come after it.
    init(_ row: Columns, from column: Int) {
        size = row[column]
        modifiedAt = FileTimestamp(nanosecondsSince1970: row[column + 1])
        digest = (row[column + 2] as Data?).map { Array($0) }
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

    /// The row of the new item that was renamed, and is to be deleted where it was sent to; nil when it was removed.
    package func renamedItem(ofDeletion id: Int64) throws -> Int64? {
        try one(
            "SELECT renamed FROM unanswered WHERE deletion = ? AND renamed IS NOT NULL", [id], { $0[0] as Int64 })
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
        try all("SELECT size, modifiedAt, digest FROM unanswered WHERE \(owner) = ?", [id]) {
            UnansweredChange($0, from: 0)
        }
    }

    /// The answer to a creation has arrived: what was left of earlier attempts is forgotten.
    func forgetLeft(_ sent: SentChange) throws {
        guard sent.identifier == nil else { return }
        try deleteDeletion(sent.item.itemIdentifier)
        // What has the name now keeps what was sent before from arriving.
        try run(
            "DELETE FROM unanswered WHERE parent = ? AND name = ? AND deletion IS NULL",
            [sent.item.parentItemIdentifier.rawValue, sent.item.filename])
    }
}
