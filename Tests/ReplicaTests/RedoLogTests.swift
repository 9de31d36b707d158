import FileProvider
import Foundation
import GRDB
import Syscalls
import SystemPackage
import Testing

@testable import Replica

/// The log of changes that are not committed yet.
@Suite("the redo log") struct RedoLogTests {
    private static func record(_ sequence: Int64, _ text: String = "text") -> RedoRecord {
        RedoRecord(
            sequence: sequence,
            statements: [
                RecordedStatement(
                    sql: "INSERT INTO t VALUES (?, ?, ?, ?, ?)",
                    arguments: [
                        .null, Int64.min.databaseValue, 0.25.databaseValue, (text + "\u{0}\u{1F600}").databaseValue,
                        Data([0, 255]).databaseValue,
                    ]),
                RecordedStatement(sql: "DELETE FROM t", arguments: []),
            ])
    }

    private func withLog(_ body: (FilePath) throws -> Void) throws {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("redo-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        try body(FilePath(path))
    }

    /// Opens the log again, and verifies what is in it.
    private func expect(
        _ expected: [RedoRecord], at path: FilePath, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let (log, records) = try RedoLog.open(at: path, of: "one")
        #expect(records == expected, sourceLocation: sourceLocation)
        log.close()
    }

    @Test("what was appended is read again, with all kinds of values") func isReadAgain() throws {
        try withLog { path in
            try expect([], at: path)
            var log = try RedoLog.open(at: path, of: "one").log
            try log.append(Self.record(1))
            try log.append(Self.record(2))
            log.close()
            try expect([Self.record(1), Self.record(2)], at: path)
        }
    }

    @Test("another database's log is emptied") func ofAnother() throws {
        try withLog { path in
            var log = try RedoLog.open(at: path, of: "one").log
            try log.append(Self.record(1))
            log.close()
            try RedoLog.open(at: path, of: "two").log.close()
            try expect([], at: path)
        }
    }

    @Test("records that a commit has made obsolete are not read, however long the new ones are")
    func obsoleteRecords() throws {
        for count in 0..<40 {
            try withLog { path in
                var log = try RedoLog.open(at: path, of: "one").log
                for sequence in 1...8 { try log.append(Self.record(Int64(sequence))) }
                log.clear()
                let new = Self.record(9, String(repeating: "x", count: count))
                try log.append(new)
                log.close()
                try expect([new], at: path)
            }
        }
    }

    @Test("a record that was not written to its end, or is damaged, ends the log") func damagedEnd() throws {
        try withLog { path in
            var log = try RedoLog.open(at: path, of: "one").log
            try log.append(Self.record(1))
            let end = log.size
            try log.append(Self.record(2))
            let whole = try Data(contentsOf: URL(fileURLWithPath: path.string))
            log.close()
            for offset in Int(end)..<whole.count {
                try whole.prefix(offset).write(to: URL(fileURLWithPath: path.string))
                try expect([Self.record(1)], at: path)
                var flipped = whole
                flipped[offset] ^= 1
                try flipped.write(to: URL(fileURLWithPath: path.string))
                try expect([Self.record(1)], at: path)
            }
        }
    }

    @Test("a log that cannot be read is not taken for a missing one") func unreadable() throws {
        try withLog { path in
            let missing = try RedoLog.read(at: path)
            #expect(missing?.identity == nil)
            // A directory can be opened for reading, and not be read.
            try path.makeDirectory()
            #expect(throws: FileProviderError.self) { _ = try RedoLog.read(at: path) }
            #expect(throws: FileProviderError.self) { _ = try NewFileLog.read(at: path) }
            #expect(throws: FileProviderError.self) { _ = try RedoLog.open(at: path, of: "one") }
        }
    }

    @Test("what is taken back is not in the log") func takenBack() throws {
        try withLog { path in
            var log = try RedoLog.open(at: path, of: "one").log
            try log.append(Self.record(1))
            let size = log.size
            try log.append(Self.record(2))
            try log.takeBack(to: size)
            log.close()
            try expect([Self.record(1)], at: path)
        }
    }
}
