import FileProvider
import FileProviderPaths
import Foundation
import SystemPackage

/// The entries of a listing that were not consumed yet, in order. The first ones are in memory, further ones in a file without
/// a name, so that the memory does not grow with the directory.
struct EntrySpool {
    private var memory: [RemoteEntry] = []
    private var taken = 0
    /// The bytes of the texts of those that were not taken.
    private var textBytes = 0
    private let directory: FilePath
    private var file: FileDescriptor?
    /// The bytes that are written to the file next, and their offset.
    private var outgoing: [UInt8] = []
    private var end: Int64 = 0
    /// The bytes that were read from the file, the position in them, and the offset of their end in the file.
    private var incoming: [UInt8] = []
    private var position = 0
    private var readUpTo: Int64 = 0
    private var inFile = 0

    private static let mostInMemory = 4000
    /// The bytes of the texts of the entries in memory, and of those that are taken at once: a server's may be a megabyte long.
    private static let mostTextBytes = 4 << 20
    private static let block = 256 << 10

    /// - Parameter directory: the directory of the file. If no file can be created, all entries stay in memory.
    init(in directory: FilePath) {
        self.directory = directory
    }

    var count: Int { memory.count - taken + inFile }

    /// The number of entries that take memory.
    var held: Int { memory.count }

    /// The number of bytes in the file.
    var spilled: Int64 { end }

    /// Blocks for as long as the disk does.
    mutating func append(_ entry: RemoteEntry) throws {
        guard inFile > 0 || memory.count - taken >= Self.mostInMemory || textBytes >= Self.mostTextBytes, open() else {
            memory.append(entry)
            textBytes += Self.textBytes(of: entry)
            return
        }
        EntryRecord.write(entry, to: &outgoing)
        inFile += 1
        if outgoing.count >= Self.block { try flush() }
    }

    /// Removes and returns the oldest entries, fewer than the limit where they are long. Blocks for as long as the disk does.
    mutating func take(_ limit: Int) throws -> [RemoteEntry] {
        var entries = Array(memory[taken..<min(memory.count, taken + min(limit, memory.count))])
        taken += entries.count
        // No more are moved than were taken.
        if taken >= memory.count - taken {
            memory.removeFirst(taken)
            taken = 0
        }
        var bytes = entries.reduce(0) { $0 + Self.textBytes(of: $1) }
        textBytes -= bytes
        while entries.count < limit, bytes < Self.mostTextBytes, inFile > 0 {
            let entry = try next()
            entries.append(entry)
            bytes += Self.textBytes(of: entry)
            inFile -= 1
        }
        if inFile == 0, file != nil { try rewind() }
        return entries
    }

    /// Removes all entries and the file.
    mutating func close() {
        try? file?.close()
        self = EntrySpool(in: directory)
    }

    private static func textBytes(of entry: RemoteEntry) -> Int {
        entry.name.utf8.count + entry.tag.count + (entry.stableIdentifier?.utf8.count ?? 0)
    }

    private mutating func open() -> Bool {
        if file != nil { return true }
        for directory in [directory.string, FileManager.default.temporaryDirectory.path] {
            let path = FilePath(directory).appending("listing-" + String(UInt64.random(in: .min ... .max), radix: 16))
            guard
                let file = try? FileDescriptor.open(
                    path, .readWrite, options: [.create, .exclusiveCreate, .closeOnExec], permissions: .ownerReadWrite)
            else { continue }
            try? FileManager.default.removeItem(atPath: path.string)
            self.file = file
            return true
        }
        return false
    }

    private mutating func flush() throws {
        guard let file, !outgoing.isEmpty else { return }
        try file.writeAll(toAbsoluteOffset: end, outgoing)
        end += Int64(outgoing.count)
        outgoing = []
    }

    /// Empties the file when all entries were consumed.
    private mutating func rewind() throws {
        (outgoing, incoming, position, readUpTo, end) = ([], [], 0, 0, 0)
        try file?.resize(to: 0, retryOnInterrupt: true)
    }

    private mutating func next() throws -> RemoteEntry {
        while true {
            if let entry = EntryRecord.read(incoming, at: &position) { return entry }
            if readUpTo == end { try flush() }
            let count = Int(min(Int64(Self.block), end - readUpTo))
            guard let file, count > 0 else { throw FileProviderError.posix(.ioError, "a listing's file is cut short") }
            let start = readUpTo
            let bytes = try [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
                filled = try file.read(fromAbsoluteOffset: start, into: .init(buffer))
            }
            guard !bytes.isEmpty else { throw FileProviderError.posix(.ioError, "a listing's file is cut short") }
            incoming = Array(incoming[position...]) + bytes
            position = 0
            readUpTo += Int64(bytes.count)
        }
    }
}

/// The binary form of an entry in a spool, with the fields that a WebDAV server can set.
enum EntryRecord {
    private struct Flags: OptionSet {
        var rawValue: UInt8

        static let strong = Flags(rawValue: 1)
        static let unsettled = Flags(rawValue: 2)
        static let trashable = Flags(rawValue: 4)
        static let saysWritable = Flags(rawValue: 8)
        static let writable = Flags(rawValue: 16)
    }

    static func write(_ entry: RemoteEntry, to bytes: inout [UInt8]) {
        let start = bytes.count
        append(0, 4, to: &bytes)
        var flags: Flags = []
        if entry.isTagStrong { flags.insert(.strong) }
        if entry.isTagUnsettled { flags.insert(.unsettled) }
        if entry.isTrashable { flags.insert(.trashable) }
        if entry.isWritable != nil { flags.insert(.saysWritable) }
        if entry.isWritable == true { flags.insert(.writable) }
        bytes += [entry.kind == .directory ? 1 : 0, flags.rawValue]
        append(entry.name.utf8, to: &bytes)
        append(entry.tag, to: &bytes)
        append(entry.stableIdentifier.map { [1] + Array($0.utf8) } ?? [], to: &bytes)
        append(UInt64(bitPattern: entry.size ?? -1), 8, to: &bytes)
        let date = entry.attributes.contentModificationDate
        append(date == nil ? 0 : 1, 1, to: &bytes)
        append(UInt64(bitPattern: date?.nanosecondsSince1970 ?? 0), 8, to: &bytes)
        append(entry.attributes.permissions.map { UInt64($0) } ?? 0xFFFF_FFFF, 4, to: &bytes)
        let length = bytes.count - start - 4
        for index in 0..<4 { bytes[start + index] = UInt8(truncatingIfNeeded: length >> (8 * index)) }
    }

    /// - Returns: nil when the record is incomplete.
    static func read(_ bytes: [UInt8], at position: inout Int) -> RemoteEntry? {
        guard bytes.count - position >= 4 else { return nil }
        let length = Int(number(bytes, position, 4))
        guard bytes.count - position - 4 >= length else { return nil }
        var place = position + 4
        position = place + length
        let kind: ItemKind = bytes[place] == 1 ? .directory : .file
        let flags = Flags(rawValue: bytes[place + 1])
        place += 2
        let (name, tag, stable) = (field(bytes, &place), field(bytes, &place), field(bytes, &place))
        let size = Int64(bitPattern: number(bytes, place, 8))
        let isDated = bytes[place + 8] == 1
        let date = FileTimestamp(nanosecondsSince1970: Int64(bitPattern: number(bytes, place + 9, 8)))
        let permissions = number(bytes, place + 17, 4)
        var entry = RemoteEntry(
            name: String(decoding: name, as: UTF8.self), kind: kind, tag: Array(tag),
            isTagStrong: flags.contains(.strong),
            stableIdentifier: stable.isEmpty ? nil : String(decoding: stable.dropFirst(), as: UTF8.self),
            size: size < 0 ? nil : size,
            attributes: RemoteAttributes(
                contentModificationDate: isDated ? date : nil,
                permissions: permissions == 0xFFFF_FFFF ? nil : UInt16(truncatingIfNeeded: permissions)),
            isWritable: flags.contains(.saysWritable) ? flags.contains(.writable) : nil)
        entry.isTagUnsettled = flags.contains(.unsettled)
        entry.isTrashable = flags.contains(.trashable)
        return entry
    }

    private static func append(_ value: UInt64, _ count: Int, to bytes: inout [UInt8]) {
        for shift in 0..<count { bytes.append(UInt8(truncatingIfNeeded: value >> (8 * UInt64(shift)))) }
    }

    private static func append(_ field: some Collection<UInt8>, to bytes: inout [UInt8]) {
        append(UInt64(field.count), 4, to: &bytes)
        bytes += field
    }

    private static func number(_ bytes: [UInt8], _ place: Int, _ count: Int) -> UInt64 {
        (0..<count).reduce(0) { $0 | UInt64(bytes[place + $1]) << (8 * UInt64($1)) }
    }

    private static func field(_ bytes: [UInt8], _ place: inout Int) -> ArraySlice<UInt8> {
        let count = Int(number(bytes, place, 4))
        defer { place += 4 + count }
        return bytes[(place + 4)..<(place + 4 + count)]
    }
}
