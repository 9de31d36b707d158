import FileProvider
import Foundation
import GRDB
import Syscalls
import SystemPackage

/// Reads what can still be read of a damaged database: rows by their numbers, around the pages that are lost.
struct Salvage {
    private let queue: DatabaseQueue
    /// What is read instead of the database itself: the same with a good header, and as long as it says. Goes when that is
    /// done.
    private let copy: FilePath
    /// A lost page costs a query for each half of a range; more queries than these are not made.
    private static let mostFailures = 20_000
    /// A row with a higher number was not written by us.
    static let highestNumber: Int64 = 1 << 48

    /// Called before a part of a file is read. What it throws counts as an error of the read.
    typealias Reading = (_ path: FilePath, _ part: Range<Int64>) throws -> Void

    /// - Parameter reading: for tests.
    /// - Throws: `DatabaseError` for what is no database at all; what the disk says, but for parts of the files that it cannot read:
    ///   these are lost.
    init(at path: FilePath, reading: Reading = { _, _ in }) throws {
        copy = FilePath(path.string + "-salvaged")
        Self.remove(copy)
        do {
            try Self.copy(path, to: copy, reading)
            var configuration = Configuration()
            configuration.busyMode = .timeout(5)
            // Of a schema that cannot be read to its end, what can be is good enough: the tables come first.
            configuration.prepareDatabase { db in try db.execute(sql: "PRAGMA writable_schema = ON") }
            queue = try DatabaseQueue(path: copy.string, configuration: configuration)
        } catch {
            Self.remove(copy)
            throw error
        }
    }

    /// Copies a database with its log, and restores the copy's header. SQLite reads nothing of a file that is shorter than
    /// its header says: the copy gets holes for what is missing.
    private static func copy(_ path: FilePath, to copy: FilePath, _ reading: Reading) throws {
        for suffix in ["", "-wal"] where FileManager.default.fileExists(atPath: path.string + suffix) {
            try copyReadable(FilePath(path.string + suffix), to: FilePath(copy.string + suffix), reading)
        }
        guard var header = DatabaseHeader(at: copy) else { return }
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: copy.string))
        defer { try? file.close() }
        let size = Int64(try file.seekToEnd())
        let isTruncated = header.defect == nil && header.statedSize > size
        // A stated size beyond this is damage itself.
        let length = isTruncated && header.statedSize < max(size, 1 << 20) * 16 ? header.statedSize : size
        let page = Int64(DatabaseHeader.pageSize)
        let rounded = (length + page - 1) / page * page
        if rounded != size { try file.truncate(atOffset: UInt64(rounded)) }
        guard header.defect != nil || isTruncated else { return }
        header.restore(fileSize: rounded)
        try file.seek(toOffset: 0)
        try file.write(contentsOf: Data(header.bytes))
    }

    /// Copies a file, with holes for what the disk cannot read (EIO).
    private static func copyReadable(_ path: FilePath, to copy: FilePath, _ reading: Reading) throws {
        let source = try FileDescriptor.open(path, .readOnly, options: [.closeOnExec])
        defer { try? source.close() }
        let target = try FileDescriptor.open(
            copy, .writeOnly, options: [.create, .exclusiveCreate, .closeOnExec], permissions: .ownerReadWrite)
        defer { try? target.close() }
        let size = try source.lengths().size
        try target.setLength(size)
        /// - Returns: false if it cannot be read.
        func isCopied(_ part: Range<Int64>) throws -> Bool {
            let bytes: [UInt8]
            do {
                try reading(path, part)
                bytes = try source.readBytes(at: part.lowerBound, count: part.count)
            } catch Errno.ioError {
                return false
            }
            try target.writeAll(bytes.span.bytes, at: part.lowerBound)
            return true
        }
        for block in parts(of: 0..<size, 1 << 20) where try !isCopied(block) {
            for page in parts(of: block, DatabaseHeader.pageSize) { _ = try isCopied(page) }
        }
    }

    private static func parts(of range: Range<Int64>, _ length: Int) -> [Range<Int64>] {
        stride(from: range.lowerBound, to: range.upperBound, by: length).map {
            $0..<min($0 + Int64(length), range.upperBound)
        }
    }

    /// As ``init(at:reading:)``; nil where there is no file, or what is no database at all.
    ///
    /// - Throws: errors of the machine, which say nothing of the rows.
    static func ifDatabase(at path: FilePath, reading: Reading) throws -> Salvage? {
        guard FileManager.default.fileExists(atPath: path.string) else { return nil }
        do {
            return try Salvage(at: path, reading: reading)
        } catch let error as DatabaseError where !error.isOfMachine {
            return nil
        }
    }

    /// Writes a new database with all rows of the damaged one. The new file has new indexes and a new list of free pages.
    ///
    /// - Returns: whether SQLite could read all rows and finds nothing wrong with them: then only the header, an index or the list of
    ///   free pages was damaged.
    /// - Throws: errors of the machine, which say nothing of the rows.
    func writeAnew(to path: FilePath) throws -> Bool {
        do {
            let queue = try DatabaseQueue(path: copy.string)
            defer { try? queue.close() }
            try queue.writeWithoutTransaction { db in try db.execute(sql: "VACUUM INTO ?", arguments: [path.string]) }
            let anew = try DatabaseQueue(path: path.string)
            defer { try? anew.close() }
            return try anew.read { db in
                let isSound = try String.fetchAll(db, sql: "PRAGMA integrity_check(1)") == ["ok"]
                return try isSound && SchemaComparison.differences(in: db).isEmpty
            }
        } catch let error as DatabaseError where error.isOfMachine {
            throw error
        } catch {
            return false
        }
    }

    private static func remove(_ copy: FilePath) {
        for suffix in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: copy.string + suffix) }
    }

    /// Changes the copy that is read.
    func write(_ body: (Database) throws -> Void) throws { try queue.write(body) }

    /// The text that the domain's table holds under a key.
    func text(_ key: DomainKey) -> String? {
        try? queue.read { db in try key.string(in: db) }
    }

    /// All rows of a table that can be read.
    ///
    /// - Parameter number: the column of the row's number.
    func rows(of table: String, by number: String) -> [SalvagedRow] {
        var rows: [SalvagedRow] = []
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
                        let row = SalvagedRow(row)
                        guard let key = row.integer(number) else { continue }
                        last = key
                        rows.append(row)
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
            try db.one("SELECT seq FROM sqlite_sequence WHERE name = ?", [table], { $0[0] as Int64 })
        }
        // The number may be damaged, too.
        return min(max(known ?? 0, 1 << 32), Self.highestNumber)
    }

    func close() {
        try? queue.close()
        Self.remove(copy)
    }
}

/// A row of a damaged database. A value may have any type, whatever its column's is: one of another type is missing.
struct SalvagedRow {
    private let values: [String: DatabaseValue]

    init(_ row: Row) {
        var values: [String: DatabaseValue] = [:]
        for (name, value) in row { values[name] = value }
        self.values = values
    }

    func integer(_ column: String) -> Int64? {
        guard case .int64(let value)? = values[column]?.storage else { return nil }
        return value
    }

    func text(_ column: String) -> String? {
        guard case .string(let value)? = values[column]?.storage else { return nil }
        return value
    }

    var kind: InodeKind? { integer("kind").flatMap { InodeKind(rawValue: Int(clamping: $0)) } }
    var content: ContentState? { integer("content").flatMap { ContentState(rawValue: Int(clamping: $0)) } }
    var isExcluded: Bool { integer("isExcluded") ?? 0 != Exclusion.none.rawValue }
    var changedFields: ItemFields { ItemFields(rawValue: UInt32(truncatingIfNeeded: integer("changedFields") ?? 0)) }

    subscript(column: String) -> DatabaseValue { values[column] ?? .null }

    /// The columns that the present schema has, too.
    func values(in columns: Set<String>) -> [String: DatabaseValue] {
        values.filter { columns.contains($0.key) }
    }
}

extension DatabaseError {
    /// Whether the machine is the reason, as a full disk or too many open files, and not what a file contains.
    var isOfMachine: Bool {
        switch resultCode {
        case .SQLITE_FULL, .SQLITE_IOERR, .SQLITE_CANTOPEN, .SQLITE_NOMEM, .SQLITE_PERM, .SQLITE_READONLY, .SQLITE_BUSY:
            true
        default: false
        }
    }
}
