/// The bytes of a file on an in-memory remote.
public enum RemoteContent: Hashable, Sendable {
    case bytes([UInt8])
    /// As many bytes as wanted without holding them: each follows from its offset and the seed.
    case pattern(size: Int64, seed: UInt64)

    public init(_ text: String) {
        self = .bytes(Array(text.utf8))
    }

    public var size: Int64 {
        switch self {
        case .bytes(let bytes): Int64(bytes.count)
        case .pattern(let size, _): size
        }
    }

    /// The bytes of a range, which must lie inside the content.
    public subscript(range: Range<Int64>) -> [UInt8] {
        switch self {
        case .bytes(let bytes): Array(bytes[Int(range.lowerBound)..<Int(range.upperBound)])
        case .pattern(_, let seed): range.map { Self.byte(at: $0, seed: seed) }
        }
    }

    /// The byte that a pattern has at an offset: no two blocks of 4,096 bytes are alike.
    public static func byte(at offset: Int64, seed: UInt64) -> UInt8 {
        let mixed = (UInt64(bitPattern: offset >> 12) &+ seed) &* 0x9E37_79B9_7F4A_7C15
        return UInt8(truncatingIfNeeded: (mixed >> 56) &+ UInt64(bitPattern: offset & 0xFFF))
    }
}
