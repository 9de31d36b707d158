import FileProvider
import GRDB
import Syscalls
import SystemPackage

/// Content that a power cut does not take, without a close.
extension Replica {
    /// A content file before a sync.
    private struct Unsynced {
        var number: InodeNumber
        var generation: Int64
        var stamp: Int64
        /// When it was written; nil where its time is that of the row, which a program or the remote may have set.
        var writtenAt: FileTimestamp?
    }

    private static let rowsInBatch = 512

    /// Puts all content files on the disk, where some were not synced, and notes which were whole by then and are still the same.
    /// Blocks.
    ///
    /// - Returns: false if it is to be done again later: a file was written to just now. While the comparison after a power cut has not
    ///   ended, nothing is done, because it relies on the time of the sync before; its end is the time for another call.
    package func syncContents() throws -> Bool {
        guard try database.value(of: .mayMissBytes) == nil else { return true }
        let all = try unsyncedContents()
        let files = all.filter { $0.stamp != ContentStamp.unknown }
        guard !files.isEmpty else { return all.isEmpty }
        let time = Self.timeOfSync(of: files)
        try contents.directory.syncFileSystem()
        for start in stride(from: 0, to: files.count, by: Self.rowsInBatch) {
            let batch = files[start..<min(start + Self.rowsInBatch, files.count)]
            try database.write { db in
                // Not later than the first row: its file may have been written to since the sync before.
                if start == 0 { try db.setContentsSynced(at: time) }
                for file in batch where (try? contents.status(of: file.number).stamp) == file.stamp {
                    try db.noteDurableContent(of: file.number, generation: file.generation)
                }
            }
        }
        return files.count == all.count
    }

    /// When a sync counts as begun that begins now and puts all content files on the disk.
    func timeOfSync() throws -> FileTimestamp { Self.timeOfSync(of: try unsyncedContents()) }

    /// Not before the last write to any of the files: after the clock was set back, what was downloaded before would look as if it was
    /// written after the sync.
    private static func timeOfSync(of files: [Unsynced]) -> FileTimestamp {
        files.compactMap(\.writtenAt).reduce(FileTimestamp.now) { max($0, $1) }
    }

    private func unsyncedContents() throws -> [Unsynced] {
        let rows = try database.readCommitted { db in
            try db.all(
                """
                SELECT number, contentGeneration, modifiedAt FROM inode WHERE hasContentFile = 1 AND isDurable = 0
                    AND content = \(content: .materialized) AND contentStamp IS NULL
                """, [],
                {
                    (
                        number: InodeNumber(rawValue: $0[0]), generation: $0[1] as Int64,
                        modifiedAt: FileTimestamp(nanosecondsSince1970: $0[2])
                    )
                })
        }
        return rows.compactMap { row -> Unsynced? in
            guard let status = try? contents.status(of: row.number) else { return nil }
            let isWritten = ContentVerification.isWrittenWithoutRow(
                modifiedAt: status.modifiedAt, row: row.modifiedAt, after: FileTimestamp(nanosecondsSince1970: .min))
            return Unsynced(
                number: row.number, generation: row.generation, stamp: status.stamp,
                writtenAt: isWritten ? status.modifiedAt : nil)
        }
    }
}
