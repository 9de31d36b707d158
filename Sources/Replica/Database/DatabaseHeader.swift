import Foundation
import SystemPackage

/// The first 100 bytes of an SQLite database (https://sqlite.org/fileformat.html, section 1.3).
///
/// Most of its fields have one value in every database of ours, so a damaged field is noticed and can be restored.
struct DatabaseHeader {
    static let length = 100
    /// SQLite's default page size, which no schema of ours changes.
    static let pageSize = 4096

    private(set) var bytes: [UInt8]

    /// Reads the header of a database file.
    ///
    /// - Returns: nil for a file that does not exist, has fewer than 100 bytes, or is open in this process: its header was examined
    ///   before.
    init?(at path: FilePath) {
        let data = OpenDatabaseFiles.withClosed(path) { () -> Data? in
            guard let file = FileHandle(forReadingAtPath: path.string) else { return nil }
            defer { try? file.close() }
            return try? file.read(upToCount: Self.length)
        }
        guard let data, data.count == Self.length else { return nil }
        bytes = [UInt8](data)
    }

    /// Which field does not have the value that it must have; nil when all have.
    var defect: String? {
        for field in Self.fixed where !bytes[field.offset...].starts(with: field.value) {
            // A new database is like that until its log is moved into it for the first time.
            if field.isZeroAtFirst, bytes[field.offset...].starts(with: [0, 0, 0, 0]) { continue }
            return "the header's \(field.name) is damaged"
        }
        guard bytes[18] == bytes[19], bytes[18] == 1 || bytes[18] == 2 else {
            return "the header's format version is damaged"
        }
        return nil
    }

    /// Gives every field the value that it must have. The list of free pages is emptied, and the length is the file's.
    mutating func restore(fileSize: Int64) {
        for field in Self.fixed {
            bytes.replaceSubrange(field.offset..<(field.offset + field.value.count), with: field.value)
        }
        (bytes[18], bytes[19]) = (2, 2)
        let pages = UInt32(clamping: fileSize / Int64(Self.pageSize))
        bytes.replaceSubrange(28..<32, with: Self.bigEndian(pages))
        bytes.replaceSubrange(32..<40, with: [UInt8](repeating: 0, count: 8))
        // The length counts only when this number is the change counter's.
        bytes.replaceSubrange(92..<96, with: bytes[24..<28])
    }

    /// How long the file is to be, as the header says.
    var statedSize: Int64 {
        Int64(bytes[28..<32].reduce(0) { $0 << 8 | UInt32($1) }) * Int64(Self.pageSize)
    }

    private struct Field {
        var name: String
        var offset: Int
        var value: [UInt8]
        var isZeroAtFirst = false
    }

    private static let fixed = [
        Field(name: "signature", offset: 0, value: Array("SQLite format 3\0".utf8)),
        Field(name: "page size", offset: 16, value: [UInt8(pageSize >> 8), UInt8(pageSize & 0xFF)]),
        Field(name: "size of reserved space", offset: 20, value: [0]),
        Field(name: "payload fractions", offset: 21, value: [64, 32, 32]),
        Field(name: "schema format", offset: 44, value: bigEndian(4), isZeroAtFirst: true),
        Field(name: "largest root page", offset: 52, value: bigEndian(0)),
        Field(name: "text encoding", offset: 56, value: bigEndian(1), isZeroAtFirst: true),
        Field(name: "vacuum mode", offset: 64, value: bigEndian(0)),
    ]

    private static func bigEndian(_ number: UInt32) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * $0)) }
    }
}
