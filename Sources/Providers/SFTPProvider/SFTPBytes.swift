/// Reads the fields of a message (draft-ietf-secsh-filexfer-02), with its bounds checked.
struct SFTPReader {
    /// The message ends before the field does, or a field has no valid value.
    struct Malformed: Error {}

    private var rest: ArraySlice<UInt8>

    init(_ bytes: [UInt8]) {
        rest = bytes[...]
    }

    var isAtEnd: Bool { rest.isEmpty }

    mutating func uint32() throws(Malformed) -> UInt32 { UInt32(try number(4)) }

    mutating func uint64() throws(Malformed) -> UInt64 { try number(8) }

    mutating func string() throws(Malformed) -> [UInt8] {
        let count = Int(try uint32())
        guard count <= rest.count else { throw Malformed() }
        defer { rest = rest.dropFirst(count) }
        return Array(rest.prefix(count))
    }

    private mutating func number(_ width: Int) throws(Malformed) -> UInt64 {
        guard width <= rest.count else { throw Malformed() }
        defer { rest = rest.dropFirst(width) }
        return rest.prefix(width).reduce(0) { $0 << 8 | UInt64($1) }
    }
}

/// Writes the fields of a message.
struct SFTPWriter {
    private(set) var bytes: [UInt8] = []

    mutating func append(_ byte: UInt8) { bytes.append(byte) }

    mutating func append(_ value: UInt32) {
        for shift in [24, 16, 8, 0] { bytes.append(UInt8(truncatingIfNeeded: value >> UInt32(shift))) }
    }

    mutating func append(_ value: UInt64) {
        append(UInt32(truncatingIfNeeded: value >> 32))
        append(UInt32(truncatingIfNeeded: value))
    }

    mutating func append(_ string: [UInt8]) {
        append(UInt32(string.count))
        bytes += string
    }
}
