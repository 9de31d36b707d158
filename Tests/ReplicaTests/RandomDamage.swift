import Foundation
import SystemPackage
import TestSupport

@testable import Replica

/// A damage of a replica's folder: bytes, pages, rows, content files. Never the bytes of unsent content itself.
enum RandomDamage: CaseIterable {
    case databaseByte, headerByte, pages, truncation, row, rowRemoved, logByte, newFileLog
    case contentRemoved, contentTruncated, contentReplaced, orphan, sidecar

    /// - Returns: what was done, in words.
    func inflict(on replica: DamagedReplica, with numbers: inout SeededNumbers) async throws -> String {
        switch self {
        case .databaseByte:
            return try flip(replica.database, in: 0..<Int.max, &numbers)
        case .headerByte:
            return try flip(replica.database, in: 0..<100, &numbers)
        case .logByte:
            return try flip(FilePath(replica.database.string + "-wal"), in: 0..<Int.max, &numbers)
        case .newFileLog:
            return try flip(FilePath(replica.database.string + "-new"), in: 0..<Int.max, &numbers)
        case .pages:
            let size = try size(of: replica.database)
            let page = Int.random(in: 0..<max(1, size / 4096), using: &numbers)
            let garbage = (0..<4096).map { _ in UInt8.random(in: 0...255, using: &numbers) }
            let bytes = Bool.random(using: &numbers) ? garbage : [UInt8](repeating: 0, count: 4096)
            try write(bytes, at: page * 4096, to: replica.database)
            return "page \(page + 1) overwritten"
        case .truncation:
            let length = Int.random(in: 0..<max(1, try size(of: replica.database)), using: &numbers)
            let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: replica.database.string))
            defer { try? handle.close() }
            try handle.truncate(atOffset: UInt64(length))
            return "truncated to \(length)"
        case .row, .rowRemoved:
            return try await sabotage(replica, numbers.next())
        case .contentRemoved, .contentTruncated, .contentReplaced:
            guard let number = cleanContents(replica).randomElement(using: &numbers) else { return "nothing" }
            let path = replica.directory.appending("contents").appending(number).string
            try FileManager.default.removeItem(atPath: path)
            if self == .contentTruncated { try Data("x".utf8).write(to: URL(fileURLWithPath: path)) }
            if self == .contentReplaced {
                if Bool.random(using: &numbers) {
                    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
                } else {
                    try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: "/etc/passwd")
                }
            }
            return "\(self) of \(number)"
        case .orphan:
            let name = Bool.random(using: &numbers) ? "stray" : "\(Int.random(in: 900...999, using: &numbers))"
            let path = replica.directory.appending("contents").appending(name).string
            try Data("orphan".utf8).write(to: URL(fileURLWithPath: path))
            return "orphan \(name)"
        case .sidecar:
            let path = replica.directory.appending("domain.json").string
            try Data("{".utf8).write(to: URL(fileURLWithPath: path))
            return "domain.json damaged"
        }
    }

    private func cleanContents(_ replica: DamagedReplica) -> [String] {
        let names = try? FileManager.default.contentsOfDirectory(
            atPath: replica.directory.appending("contents").string)
        let unsent = Set(replica.unsentNumbers.map(\.description))
        return (names ?? []).filter { Int64($0) != nil && !unsent.contains($0) }.sorted()
    }

    private func size(of path: FilePath) throws -> Int {
        try FileManager.default.attributesOfItem(atPath: path.string)[.size] as? Int ?? 0
    }

    private func flip(_ path: FilePath, in range: Range<Int>, _ numbers: inout SeededNumbers) throws -> String {
        let name = path.lastComponent?.string ?? ""
        guard FileManager.default.fileExists(atPath: path.string) else { return "no '\(name)'" }
        let bytes = range.clamped(to: 0..<(try size(of: path)))
        guard let offset = bytes.randomElement(using: &numbers) else { return "empty" }
        let handle = try FileHandle(forUpdating: URL(fileURLWithPath: path.string))
        defer { try? handle.close() }
        try handle.seek(toOffset: UInt64(offset))
        let byte = try handle.read(upToCount: 1)?.first ?? 0
        let flipped = byte ^ UInt8(1 << Int.random(in: 0..<8, using: &numbers))
        try write([flipped], at: offset, to: path)
        return "byte \(offset) of '\(name)'"
    }

    private func write(_ bytes: [UInt8], at offset: Int, to path: FilePath) throws {
        let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: path.string))
        defer { try? handle.close() }
        try handle.seek(toOffset: UInt64(offset))
        try handle.write(contentsOf: Data(bytes))
    }

    /// Changes a value of a row, or removes the row, as no program of ours does.
    private func sabotage(_ replica: DamagedReplica, _ seed: UInt64) async throws -> String {
        let script = """
            import random, sqlite3, sys
            random.seed(int(sys.argv[2]))
            db = sqlite3.connect(sys.argv[1])
            db.execute('pragma foreign_keys = off')
            db.execute('pragma ignore_check_constraints = on')
            table = random.choice(['inode', 'item', 'inode', 'item', 'contentRange', 'domain', 'deletion', 'finding'])
            key = {'domain': 'key', 'contentRange': 'inode', 'inode': 'number'}.get(table, 'id')
            keys = [r[0] for r in db.execute(f'select {key} from {table}')]
            if not keys:
                print('no row in', table)
            elif sys.argv[3] == 'remove':
                row = random.choice(keys)
                db.execute(f'delete from {table} where {key} = ?', (row,))
                print('removed', table, row)
            else:
                row = random.choice(keys)
                columns = [r for r in db.execute(f'pragma table_info({table})') if r[1] != key]
                column = random.choice(columns)
                values = {'INTEGER': [0, 0, 1, 2, 3, 4, -1, 7777, 2**62, 2**63 - 1], 'TEXT': ['', 'x', 'a/b', '..'],
                          'BLOB': [b'', b'x']}[column[2]]
                value = random.choice(values + [None])
                print('set', table, row, column[1], value)
                try:
                    db.execute(f'update {table} set "{column[1]}" = ? where {key} = ?', (value, row))
                except sqlite3.IntegrityError as error:
                    print('refused', error)
            db.commit()
            """
        let outcome = try await Command.python(
            script, replica.database.string, "\(seed)", self == .rowRemoved ? "remove" : "change")
        // A database that was damaged before may not be written any more.
        return outcome.status == 0 ? outcome.line : "python could not write it"
    }
}
