/// The bytes of a file on an in-memory remote.
public enum RemoteContent: Hashable, Sendable {
    /// These bytes.
    case bytes([UInt8])
    /// Pseudo-random bytes that are computed from offset and seed.
    case pattern(size: Int64, seed: UInt64)

    /// The UTF-8 bytes of a text.
    public init(_ text: String) {
        self = .bytes(Array(text.utf8))
    }

    /// The number of bytes.
    public var size: Int64 {
        switch self {
        case .bytes(let bytes): Int64(bytes.count)
        case .pattern(let size, _): size
        }
    }

    /// The bytes of a range, which must lie in the content.
    public subscript(range: Range<Int64>) -> [UInt8] {
        switch self {
        case .bytes(let bytes): Array(bytes[Int(range.lowerBound)..<Int(range.upperBound)])
        case .pattern(_, let seed): Self.bytes(in: range, seed: seed)
        }
    }

    private static let block: Int64 = 4096
    /// 0, 1, … 255, 0, …: a block is a stretch of it, which is copied and not computed byte by byte.
    private static let ramp = (0..<block + 256).map { UInt8(truncatingIfNeeded: $0) }

    /// No two neighbouring blocks of a pattern are likely to be alike.
    private static func bytes(in range: Range<Int64>, seed: UInt64) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(range.count)
        var offset = range.lowerBound
        while offset < range.upperBound {
            let number = offset / block
            let end = min(range.upperBound, (number + 1) * block)
            let first = Int64(((UInt64(bitPattern: number) &+ seed) &* 0x9E37_79B9_7F4A_7C15) >> 56)
            bytes += ramp[Int(first + offset % block)..<Int(first + offset % block + end - offset)]
            offset = end
        }
        return bytes
    }
}
