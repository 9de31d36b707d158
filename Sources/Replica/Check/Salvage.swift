import Foundation
import GRDB
import SystemPackage

/// Reads what can still be read of a damaged database: rows by their numbers, around the pages that are lost.
struct Salvage {
    private let queue: DatabaseQueue
    /// What was read instead of the database itself; goes when that is done.
    private let copy: FilePath?
    /// What lies on a lost page costs a try for each half of a range; more than so many are not made.
    private static let mostFailures = 20_000

    /// - Throws: `DatabaseError` for what is no database at all.
    init(at path: FilePath) throws {
        copy = try? Self.completed(path)
        do {
            var configuration = Configuration()
            configuration.busyMode = .timeout(5)
            // Of a schema that cannot be read to its end, what can be is good enough: the tables come first.
            configuration.prepareDatabase { db in try db.execute(sql: "PRAGMA writable_schema = ON") }
            queue = try DatabaseQueue(path: (copy ?? path).string, configuration: configuration)
        } catch {
            Self.remove(copy)
            throw error
        }
    }

    /// SQLite reads nothing of a file that is shorter than it should be: a copy with holes for what is missing it reads, as
    /// far as it goes.
    ///
    /// - Returns: nil for a file that is as long as it says.
    private static func completed(_ path: FilePath) throws -> FilePath? {
        let file = try FileHandle(forReadingFrom: URL(fileURLWithPath: path.string))
        defer { try? file.close() }
        guard let header = try file.read(upToCount: 100), header.count == 100,
            header.prefix(16).elementsEqual("SQLite format 3\0".utf8)
        else { return nil }
        func number(_ range: Range<Int>) -> UInt64 { header[range].reduce(0) { $0 << 8 | UInt64($1) } }
        let pageSize = number(16..<18) == 1 ? 65536 : number(16..<18)
        let length = pageSize * number(28..<32)
        guard try file.seekToEnd() < length else { return nil }
        let copy = FilePath(path.string + "-completed")
        for suffix in ["", "-wal"] where FileManager.default.fileExists(atPath: path.string + suffix) {
            try FileManager.default.copyItem(atPath: path.string + suffix, toPath: copy.string + suffix)
        }
        let longer = try FileHandle(forWritingTo: URL(fileURLWithPath: copy.string))
        defer { try? longer.close() }
        try longer.truncate(atOffset: length)
        return copy
    }

    private static func remove(_ copy: FilePath?) {
        guard let copy else { return }
        for suffix in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: copy.string + suffix) }
    }

    /// The text that the domain's table holds under a key.
    func text(_ key: DomainKey) -> String? {
        try? queue.read { db in try key.string(in: db) }
    }

    /// All rows of a table that can be read.
    ///
    /// - Parameter number: the column of the row's number.
    func rows(of table: String, by number: String) -> [Row] {
        var rows: [Row] = []
        var failures = 0
        func read(_ range: ClosedRange<Int64>) {
            guard failures < Self.mostFailures else { return }
            var last: Int64?
            do {
                try queue.read { db in
                    let cursor = try Row.fetchCursor(
                        db,
                        sql: "SELECT * FROM \(table) NOT INDEXED WHERE \(number) BETWEEN ? AND ? ORDER BY \(number)",
                        arguments: [range.lowerBound, range.upperBound])
                    while let row = try cursor.next() {
                        last = row[number]
                        rows.append(row.copy())
                    }
                }
            } catch {
                failures += 1
                let first = last.map { $0 + 1 } ?? range.lowerBound
                guard first < range.upperBound else { return }
                let middle = first + (range.upperBound - first) / 2
                read(first...middle)
                if middle < range.upperBound { read((middle + 1)...range.upperBound) }
            }
        }
        read(1...highest(of: table))
        return rows
    }

    /// The highest number that a row may have.
    private func highest(of table: String) -> Int64 {
        let known = try? queue.read { db in
            try Int64.fetchOne(db, sql: "SELECT seq FROM sqlite_sequence WHERE name = ?", arguments: [table])
        }
        return known ?? 1 << 32
    }

    func close() {
        try? queue.close()
        Self.remove(copy)
    }
}
