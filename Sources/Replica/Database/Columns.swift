import Foundation
import GRDB
import GRDBSQLite

/// The columns of the row that a statement stands on, by position; good only until the statement goes on.
///
/// GRDB's rows look up names, and for that spell all names anew for each query: more work than most of our queries are.
struct Columns {
    fileprivate let statement: SQLiteStatement

    subscript(column: Int) -> Int64 { sqlite3_column_int64(statement, CInt(column)) }
    subscript(column: Int) -> Int { Int(sqlite3_column_int64(statement, CInt(column))) }
    subscript(column: Int) -> Bool { sqlite3_column_int64(statement, CInt(column)) != 0 }
    subscript(column: Int) -> Double { sqlite3_column_double(statement, CInt(column)) }
    subscript(column: Int) -> Int64? { isNull(column) ? nil : self[column] as Int64 }
    subscript(column: Int) -> Int? { isNull(column) ? nil : self[column] as Int }
    subscript(column: Int) -> String { self[column] as String? ?? "" }
    subscript(column: Int) -> String? { sqlite3_column_text(statement, CInt(column)).map { String(cString: $0) } }
    subscript(column: Int) -> Data { self[column] as Data? ?? Data() }
    subscript(column: Int) -> Data? {
        if isNull(column) { return nil }
        guard let bytes = sqlite3_column_blob(statement, CInt(column)) else { return Data() }
        return Data(bytes: bytes, count: Int(sqlite3_column_bytes(statement, CInt(column))))
    }

    /// The bytes of a blob, none where it is null.
    func bytes(_ column: Int) -> [UInt8] {
        let count = Int(sqlite3_column_bytes(statement, CInt(column)))
        guard count > 0, let bytes = sqlite3_column_blob(statement, CInt(column)) else { return [] }
        return [UInt8](Data(bytes: bytes, count: count))
    }

    private func isNull(_ column: Int) -> Bool { sqlite3_column_type(statement, CInt(column)) == SQLITE_NULL }
}

extension Database {
    /// Runs a statement that is kept, to its end.
    func run(_ sql: String, _ arguments: [(any DatabaseValueConvertible)?]) throws {
        try query(sql, arguments) { _ in true }
    }

    /// Runs a query whose statement is kept, row by row. `body` makes no query of the same text.
    ///
    /// - Parameter body: false ends it.
    func query(_ sql: String, _ arguments: [(any DatabaseValueConvertible)?], _ body: (Columns) throws -> Bool) throws {
        let statement = try cachedStatement(sql: sql)
        let handle = statement.sqliteStatement
        guard sqlite3_bind_parameter_count(handle) == arguments.count else {
            throw ReplicaDefect("\(arguments.count) arguments are too few or too many for: \(sql)")
        }
        let recorder = statement.isReadonly ? nil : RedoRecorder.current
        var bound: [DatabaseValue] = []
        if recorder != nil { bound.reserveCapacity(arguments.count) }
        // GRDB's own arguments are checked and copied twice, which takes longer than most of our statements.
        for (index, argument) in arguments.enumerated() {
            let value = argument?.databaseValue ?? .null
            let code = value.bind(to: handle, at: CInt(index + 1))
            guard code == SQLITE_OK else { throw failure(code, sql) }
            if recorder != nil { bound.append(value) }
        }
        let before = recorder == nil ? 0 : totalChangesCount
        defer { sqlite3_reset(handle) }
        while true {
            switch sqlite3_step(handle) {
            case SQLITE_ROW: guard try body(Columns(statement: handle)) else { return }
            case SQLITE_DONE:
                recorder?.record(sql, bound, changedRows: totalChangesCount - before)
                return
            case let code: throw failure(code, sql)
            }
        }
    }

    private func failure(_ code: CInt, _ sql: String) -> DatabaseError {
        DatabaseError(
            resultCode: ResultCode(rawValue: code), message: String(cString: sqlite3_errmsg(sqliteConnection)), sql: sql
        )
    }

    /// The first row of a query whose statement is kept, or nil.
    func one<Value>(
        _ sql: String, _ arguments: [(any DatabaseValueConvertible)?], _ decode: (Columns) throws -> Value
    ) throws -> Value? {
        var value: Value?
        try query(sql, arguments) { columns in
            value = try decode(columns)
            return false
        }
        return value
    }

    /// All rows of a query whose statement is kept.
    func all<Value>(
        _ sql: String, _ arguments: [(any DatabaseValueConvertible)?], _ decode: (Columns) throws -> Value
    ) throws -> [Value] {
        var values: [Value] = []
        try query(sql, arguments) { columns in
            values.append(try decode(columns))
            return true
        }
        return values
    }
}
