/// Writes numbers, lowest byte first, and records: the length of what follows the checksum, the checksum, and that.
struct RecordWriter {
    private(set) var bytes: [UInt8] = []
    private var payload = 0

    init(capacity: Int) { bytes.reserveCapacity(capacity) }

    mutating func put(_ value: some FixedWidthInteger) {
        for index in 0..<(value.bitWidth / 8) { bytes.append(UInt8(truncatingIfNeeded: value >> (8 * index))) }
    }

    mutating func put(_ some: some Sequence<UInt8>) { bytes += some }

    mutating func beginRecord() {
        put(UInt32(0))
        put(UInt64(0))
        payload = bytes.count
    }

    mutating func endRecord() {
        let (length, checksum) = (UInt32(bytes.count - payload), RecordReader.checksum(of: bytes[payload...]))
        let begin = payload - RecordReader.headerSize
        for index in 0..<4 { bytes[begin + index] = UInt8(truncatingIfNeeded: length >> (8 * UInt32(index))) }
        for index in 0..<8 { bytes[begin + 4 + index] = UInt8(truncatingIfNeeded: checksum >> (8 * UInt64(index))) }
    }
}

/// Reads what a ``RecordWriter`` has written. A record that was not written to its end is as if it had not been begun.
struct RecordReader {
    static let headerSize = 12
    private(set) var rest: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

    mutating func next<Number: FixedWidthInteger>() -> Number? {
        let size = Number.bitWidth / 8
        guard rest.count >= size else { return nil }
        defer { rest = rest.dropFirst(size) }
        return rest.prefix(size).reversed().reduce(0) { $0 << 8 | Number(truncatingIfNeeded: $1) }
    }

    mutating func next(_ count: Int) -> ArraySlice<UInt8>? {
        guard count >= 0, rest.count >= count else { return nil }
        defer { rest = rest.dropFirst(count) }
        return rest.prefix(count)
    }

    /// The next record's bytes after the checksum; nil at the end, and for a record that is damaged.
    mutating func nextRecord() -> ArraySlice<UInt8>? {
        guard let length: UInt32 = next(), let checksum: UInt64 = next(), let payload = next(Int(length)) else {
            return nil
        }
        return Self.checksum(of: payload) == checksum ? payload : nil
    }

    /// FNV-1a.
    static func checksum(of bytes: ArraySlice<UInt8>) -> UInt64 {
        var sum: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in bytes { sum = (sum ^ UInt64(byte)) &* 0x100_0000_01b3 }
        return sum
    }
}
