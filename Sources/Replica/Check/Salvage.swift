import Foundation
import GRDB
import SystemPackage

/// Reads what can still be read of a damaged database: rows by their numbers, around the pages that are lost.
struct Salvage {
    private let queue: DatabaseQueue
    /// What lies on a lost page costs a try for each half of a range; more than so many are not made.
    private static let mostFailures = 20_000

    /// - Throws: `DatabaseError` when not even the schema can be read.
    init(at path: FilePath) throws {
        var configuration = Configuration()
        configuration.busyMode = .timeout(5)
        queue = try DatabaseQueue(path: path.string, configuration: configuration)
        _ = try queue.read { db in try Int.fetchOne(db, sql: "SELECT COUNT(*) FROM sqlite_master") }
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
    }
}
