import FileProvider

/// An entry of a tar archive.
struct TarEntry: Sendable {
    /// The offset of its first header.
    var offset: Int64
    /// The offset of its bytes.
    var data: Int64
    var path: String
    var kind: ItemKind
    var size: Int64
    var permissions: UInt16
    /// Seconds since 1970.
    var modifiedAt: Int64
    var linkTarget: String
}

/// Reads the headers of a tar archive in order: POSIX (ustar and pax), and GNU's long names.
struct TarReader {
    private let archive: TarArchive
    private var position: Int64 = 0
    private static let block: Int64 = 512
    /// The maximum size of an extended header in bytes.
    private static let longestText: Int64 = 1 << 20
    /// The maximum size of an entry, so that the sum of an offset and a size fits in 64 bits.
    private static let largestEntry: Int64 = 1 << 61

    init(_ archive: TarArchive) {
        self.archive = archive
    }

    /// Checks that the archive begins with a header or is empty, so that another file is refused before it is mounted.
    ///
    /// - Throws: `malformedResponse`; `serverUnreachable` if it cannot be read.
    func checkBeginning() throws {
        let header = try archive.bytes(at: 0, count: Int(Self.block))
        guard isEnd(header) || isHeader(header) else {
            throw FileProviderError(.malformedResponse, "it is not an uncompressed tar archive")
        }
    }

    private func isEnd(_ header: [UInt8]) -> Bool { header.isEmpty || header.allSatisfy { $0 == 0 } }

    private func isHeader(_ header: [UInt8]) -> Bool {
        guard header.count == Int(Self.block), let sum = number(header[148..<156]) else { return false }
        return sum == checksum(of: header)
    }

    /// The next file, directory or symbolic link; nil at the end.
    ///
    /// - Throws: `malformedResponse` for an invalid header; `serverUnreachable` if the archive cannot be read.
    mutating func next() throws -> TarEntry? {
        var start: Int64?
        var said: [String: String] = [:]
        while true {
            let offset = position
            let header = try archive.bytes(at: offset, count: Int(Self.block))
            if isEnd(header) { return nil }
            guard isHeader(header), let length = number(header[124..<136]), length >= 0 else {
                throw FileProviderError(.malformedResponse, "there is no tar header at byte \(offset)")
            }
            let size = header[156] == UInt8(ascii: "x") ? length : said["size"].flatMap { Int64($0) } ?? length
            guard (0...Self.largestEntry).contains(size), offset <= Self.largestEntry else {
                throw FileProviderError(.malformedResponse, "an entry of \(size) bytes at byte \(offset)")
            }
            position = offset + Self.block + (size + Self.block - 1) / Self.block * Self.block
            switch header[156] {
            case UInt8(ascii: "x"):
                said.merge(records(in: try text(at: offset, size))) { $1 }
            case UInt8(ascii: "L"):
                said["path"] = string(try text(at: offset, size)[...])
            case UInt8(ascii: "K"):
                said["linkpath"] = string(try text(at: offset, size)[...])
            case let type:
                guard let kind = kind(of: type) else {
                    said = [:]
                    start = nil
                    continue
                }
                let prefix = string(header[345..<500])
                let name = string(header[0..<100])
                let isUStar = header[257..<263].elementsEqual("ustar\0".utf8)
                return TarEntry(
                    offset: start ?? offset, data: offset + Self.block,
                    path: said["path"] ?? (isUStar && !prefix.isEmpty ? prefix + "/" + name : name), kind: kind,
                    size: kind == .file ? size : 0,
                    permissions: UInt16(truncatingIfNeeded: number(header[100..<108]) ?? 0o644) & 0o7777,
                    modifiedAt: said["mtime"].flatMap { $0.split(separator: ".").first.flatMap { Int64($0) } }
                        ?? number(header[136..<148]) ?? 0,
                    linkTarget: said["linkpath"] ?? string(header[157..<257]))
            }
            start = start ?? offset
        }
    }

    private func kind(of type: UInt8) -> ItemKind? {
        switch type {
        case 0, UInt8(ascii: "0"), UInt8(ascii: "7"): .file
        case UInt8(ascii: "2"): .symbolicLink
        case UInt8(ascii: "5"): .directory
        // Hard links, devices, and private entries of other programs are skipped.
        default: nil
        }
    }

    private func text(at offset: Int64, _ size: Int64) throws -> [UInt8] {
        guard size <= Self.longestText else {
            throw FileProviderError(.malformedResponse, "a header of \(size) bytes at byte \(offset)")
        }
        return try archive.bytes(at: offset + Self.block, count: Int(size))
    }

    /// The sum of a header's bytes, with spaces in place of the checksum field.
    private func checksum(of header: [UInt8]) -> Int64 {
        header.indices.reduce(0) { $0 + ((148..<156).contains($1) ? 32 : Int64(header[$1])) }
    }

    /// A number in octal digits, or in binary if the first bit is set.
    private func number(_ field: ArraySlice<UInt8>) -> Int64? {
        if let first = field.first, first & 0x80 != 0 {
            return field.dropFirst().suffix(8).reduce(0) { $0 << 8 | Int64($1) }
        }
        let digits = string(field).split(separator: " ").first ?? "0"
        return Int64(digits, radix: 8)
    }

    private func string(_ field: ArraySlice<UInt8>) -> String {
        String(decoding: field.prefix { $0 != 0 }, as: UTF8.self)
    }

    /// Parses pax records: a length, a space, `key=value` and a newline.
    private func records(in bytes: [UInt8]) -> [String: String] {
        var records: [String: String] = [:]
        var rest = bytes[...]
        while let blank = rest.firstIndex(of: 32), let length = Int(string(rest[..<blank])), length > 0,
            length <= rest.count, blank < rest.startIndex + length - 1
        {
            let record = rest[(blank + 1)..<(rest.startIndex + length - 1)]
            if let equals = record.firstIndex(of: UInt8(ascii: "=")) {
                records[string(record[..<equals])] = String(decoding: record[(equals + 1)...], as: UTF8.self)
            }
            rest = rest.dropFirst(length)
        }
        return records
    }
}
