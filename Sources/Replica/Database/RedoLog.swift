import Foundation
import GRDB
import SystemPackage

/// A statement that has changed the database, with its arguments.
struct RecordedStatement: Hashable {
    var sql: String
    var arguments: [DatabaseValue]
}

/// A local change, as the statements that have made it.
struct RedoRecord: Hashable {
    /// In the order in which changes were made, one after the other, never used again.
    var sequence: Int64
    var statements: [RecordedStatement]
    /// Of the first change after a commit: the row numbers that were given by then (``Database/givenRowNumbers()``).
    var givenBefore: Int64?
}

/// The local changes that are answered and not committed yet, on the disk: what is in it survives the daemon's death.
///
/// A header that says of which database it is, then a record for each change. After a commit the next records are written
/// over those that are committed: what is left of them has other sequences than are expected there.
struct RedoLog: Sendable {
    private var log: LogFile

    var size: Int64 { log.size }

    /// Disk space that is kept from one commit to the next.
    private static let usualSize: Int64 = 4 << 20

    /// Opens the log beside a database, and empties it if it is another database's.
    ///
    /// - Parameter identity: tells databases apart.
    /// - Returns: the log, and the changes in it.
    static func open(at path: FilePath, of identity: String) throws -> (log: RedoLog, records: [RedoRecord]) {
        let (log, bytes) = try LogFile.open(at: path, title: title, of: identity)
        return (RedoLog(log: log), changes(in: bytes))
    }

    /// The changes in a log, without changing it; nil without a log.
    static func read(at path: FilePath) throws -> (identity: String, records: [RedoRecord])? {
        try LogFile.read(at: path, title: title).map { ($0.identity, changes(in: $0.records)) }
    }

    private static let title = "yonder changes 1"

    private static func changes(in bytes: ArraySlice<UInt8>) -> [RedoRecord] {
        var records: [RedoRecord] = []
        var reader = RecordReader(bytes)
        while let payload = reader.nextRecord(), let record = RedoRecord(payload: payload) {
            if let last = records.last, record.sequence != last.sequence + 1 { break }
            records.append(record)
        }
        return records
    }

    mutating func append(_ record: RedoRecord) throws(Errno) { try log.append(record.bytes) }

    /// Takes back what was appended last.
    ///
    /// - Parameter size: the size before that.
    mutating func takeBack(to size: Int64) throws(Errno) {
        guard log.size > size else { return }
        log.use(log.recordSize - (log.size - size))
        try log.trim()
    }

    /// Everything in it is in the database.
    mutating func clear() {
        let isLarge = log.size > Self.usualSize
        log.use(0)
        // A log that stays as long as it is does no harm.
        if isLarge { try? log.trim() }
    }

    mutating func removeAll() throws(Errno) { try log.replace() }

    func close() { log.close() }
}

extension RedoRecord {
    private enum Tag: UInt8 {
        case null, integer, real, text, blob
    }

    fileprivate var bytes: [UInt8] {
        var writer = RecordWriter(capacity: 64 + statements.reduce(0) { $0 + $1.sql.utf8.count + 96 })
        writer.beginRecord()
        writer.put(sequence)
        writer.put(UInt32(statements.count))
        for statement in statements {
            writer.put(UInt32(statement.sql.utf8.count))
            writer.put(statement.sql.utf8)
            writer.put(UInt16(statement.arguments.count))
            for argument in statement.arguments { Self.put(argument, into: &writer) }
        }
        if let givenBefore { writer.put(givenBefore) }
        writer.endRecord()
        return writer.bytes
    }

    private static func put(_ value: DatabaseValue, into writer: inout RecordWriter) {
        func put(_ tag: Tag, _ bytes: some Collection<UInt8>) {
            writer.put(tag.rawValue)
            writer.put(UInt32(bytes.count))
            writer.put(bytes)
        }
        switch value.storage {
        case .null: writer.put(Tag.null.rawValue)
        case .int64(let number):
            writer.put(Tag.integer.rawValue)
            writer.put(number)
        case .double(let number):
            writer.put(Tag.real.rawValue)
            writer.put(number.bitPattern)
        case .string(let text): put(.text, text.utf8)
        case .blob(let data): put(.blob, data)
        }
    }

    fileprivate init?(payload: ArraySlice<UInt8>) {
        var reader = RecordReader(payload)
        guard let sequence: Int64 = reader.next(), let count: UInt32 = reader.next() else { return nil }
        self.init(sequence: sequence, statements: [])
        for _ in 0..<count {
            guard let length: UInt32 = reader.next(), let sql = reader.next(Int(length)),
                let argumentCount: UInt16 = reader.next()
            else { return nil }
            var arguments: [DatabaseValue] = []
            for _ in 0..<argumentCount {
                guard let value = Self.value(from: &reader) else { return nil }
                arguments.append(value)
            }
            statements.append(RecordedStatement(sql: String(decoding: sql, as: UTF8.self), arguments: arguments))
        }
        givenBefore = reader.next()
    }

    private static func value(from reader: inout RecordReader) -> DatabaseValue? {
        guard let tag = (reader.next() as UInt8?).flatMap(Tag.init) else { return nil }
        switch tag {
        case .null: return .null
        case .integer: return (reader.next() as Int64?)?.databaseValue
        case .real: return (reader.next() as UInt64?).map { Double(bitPattern: $0).databaseValue }
        case .text, .blob:
            guard let length: UInt32 = reader.next(), let bytes = reader.next(Int(length)) else { return nil }
            return tag == .text ? String(decoding: bytes, as: UTF8.self).databaseValue : Data(bytes).databaseValue
        }
    }
}
