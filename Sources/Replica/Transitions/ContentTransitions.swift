import FileProvider
import Foundation
import GRDB

/// The content of files: dataless, partial, materialized, written.
extension Database {
    /// Begins a new generation of a dataless file's content, of which nothing has arrived. The caller creates its content
    /// file after the commit.
    func beginContent(of number: InodeNumber) throws {
        try run(
            """
            UPDATE inode SET content = \(content: .partial), hasContentFile = 1,
                contentGeneration = contentGeneration + 1, isDurable = 0 WHERE number = ?
            """, [number.rawValue])
    }

    /// Replaces the ranges of a partial file that are in its content file, which was written to since it was synced. All of its bytes
    /// make it materialized, and it is no longer to be fetched again.
    ///
    /// - Parameters:
    ///   - isComplete: whether the ranges are all of the file.
    ///   - cause: the process for which they were fetched: counts as a use of the file.
    func recordContent(
        of number: InodeNumber, ranges: ByteRanges, isComplete: Bool, hasUnusualAllocation: Bool, cause: String?,
        at now: FileTimestamp
    ) throws {
        try run("DELETE FROM contentRange WHERE inode = ?", [number.rawValue])
        if !isComplete {
            for range in ranges.ranges {
                try run(
                    "INSERT INTO contentRange (inode, start, \"end\") VALUES (?, ?, ?)",
                    [number.rawValue, range.lowerBound, range.upperBound])
            }
        }
        try run(
            """
            UPDATE inode SET content = ?, localBytes = ?, isDurable = 0, fetchedFor = COALESCE(?, fetchedFor),
                readAt = CASE WHEN ? IS NULL THEN COALESCE(readAt, ?) ELSE ? END,
                fetchAgain = CASE WHEN ? THEN 0 ELSE fetchAgain END, hasUnusualAllocation = ? WHERE number = ?
            """,
            [
                (isComplete ? ContentState.materialized : .partial).rawValue, ranges.count, cause, cause,
                now.nanosecondsSince1970, now.nanosecondsSince1970, isComplete, hasUnusualAllocation, number.rawValue,
            ])
    }

    /// Makes a file dataless: a new, empty generation of its content. The row keeps its content file.
    func forgetContent(of number: InodeNumber) throws {
        try run(ContentStatement.forget, [number.rawValue])
        try run("DELETE FROM contentRange WHERE inode = ?", [number.rawValue])
    }

    /// Makes a file dataless whose content file is gone, or is withdrawn in this transaction.
    func dropContent(of number: InodeNumber) throws {
        try forgetContent(of: number)
        try run("UPDATE inode SET hasContentFile = 0, contentStamp = NULL WHERE number = ?", [number.rawValue])
    }

    /// Makes a file empty and materialized. Precondition: the caller has created its empty content file.
    func beginEmptyContent(of number: InodeNumber) throws {
        try forgetContent(of: number)
        try run(
            "UPDATE inode SET size = 0, content = \(content: .materialized), hasContentFile = 1 WHERE number = ?",
            [number.rawValue])
    }

    /// Records what a content file says of itself after a write. The caller marks the content as changed.
    ///
    /// - Parameter stamp: with which the file is compared next, as of ``setContentStamp(of:to:)``.
    func recordWriting(
        of number: InodeNumber, _ status: ContentStatus, modifiedAt: FileTimestamp, changedAt: FileTimestamp,
        stamp: Int64?
    ) throws {
        try run(
            """
            UPDATE inode SET size = ?, localBytes = ?, modifiedAt = ?, changedAt = ?, isDurable = 0,
                contentStamp = ?, hasUnusualAllocation = ? WHERE number = ?
            """,
            [
                status.size, status.size, modifiedAt.nanosecondsSince1970, changedAt.nanosecondsSince1970, stamp,
                status.hasUnusualAllocation, number.rawValue,
            ])
    }

    /// Marks a file as open for writing, with its content file's stamp; nil takes the mark away.
    func setContentStamp(of number: InodeNumber, to stamp: Int64?) throws {
        try run("UPDATE inode SET contentStamp = ? WHERE number = ?", [stamp, number.rawValue])
    }

    /// The local content is the remote's content of this version.
    func setContentVersion(of number: InodeNumber, to version: [UInt8]) throws {
        try run("UPDATE inode SET contentVersion = ? WHERE number = ?", [Data(version), number.rawValue])
    }

    /// Shows another content version. Precondition: the content was forgotten and the new size written.
    ///
    /// - Parameter isFetchedAgain: whether it is fetched without a reader, because the old version was materialized.
    func showContentVersion(_ version: [UInt8], of number: InodeNumber, isFetchedAgain: Bool) throws {
        try run(
            """
            UPDATE inode SET contentVersion = ?, fetchAgain = ?,
                content = CASE WHEN size = 0 THEN \(content: .materialized) ELSE \(content: .dataless) END
            WHERE number = ?
            """, [Data(version), isFetchedAgain, number.rawValue])
    }

    /// Sets whether a file is fetched without a reader.
    func setFetchedAgain(_ isFetchedAgain: Bool, _ number: InodeNumber) throws {
        try run(
            "UPDATE inode SET fetchAgain = ?1 WHERE number = ?2 AND fetchAgain <> ?1",
            [isFetchedAgain, number.rawValue])
    }

    func noteUnusualAllocation(of number: InodeNumber) throws {
        try run("UPDATE inode SET hasUnusualAllocation = 1 WHERE number = ?", [number.rawValue])
    }

    /// All content files are on the disk. Precondition: their file system was synced.
    ///
    /// - Parameter time: when the sync began.
    func noteDurableContents(at time: FileTimestamp) throws {
        try run("UPDATE inode SET isDurable = 1 WHERE hasContentFile = 1 AND isDurable = 0", [])
        try setContentsSynced(at: time)
    }

    /// Records when a sync of all content files began, with all rows that were committed by then. The time does not fall when the clock
    /// is set back: content files that were synced before would look as if they were written since. A time that is more than a day ahead
    /// was no small correction of the clock, and would hide all later writes.
    func setContentsSynced(at time: FileTimestamp) throws {
        let latest = FileTimestamp(seconds: FileTimestamp.now.seconds + 86_400).nanosecondsSince1970
        let previous = try DomainKey.contentsSyncedAt.string(in: self).flatMap { Int64($0) } ?? .min
        let kept = previous <= latest ? previous : .min
        try DomainKey.contentsSyncedAt.set(String(max(min(time.nanosecondsSince1970, latest), kept)), in: self)
    }

    /// The content file of a generation is on the disk. Precondition: nothing was written to it since the sync began.
    func noteDurableContent(of number: InodeNumber, generation: Int64) throws {
        try run(
            """
            UPDATE inode SET isDurable = 1 WHERE number = ? AND contentGeneration = ? AND hasContentFile = 1
                AND content = \(content: .materialized) AND contentStamp IS NULL
            """, [number.rawValue, generation])
    }

    /// Records when a file was opened, at most once a minute.
    func recordUse(of number: InodeNumber, at time: FileTimestamp) throws {
        let now = time.nanosecondsSince1970
        try run(
            "UPDATE inode SET readAt = ? WHERE number = ? AND kind = \(kind: .file) AND COALESCE(readAt, 0) < ?",
            [now, number.rawValue, now - 60_000_000_000])
    }
}

private enum ContentStatement {
    static let forget = """
        UPDATE inode SET content = \(content: .dataless), localBytes = 0, contentGeneration = contentGeneration + 1,
            isDurable = 0, fetchAgain = 0, hasUnusualAllocation = 0 WHERE number = ?
        """
}
