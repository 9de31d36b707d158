import Foundation

/// What a directory consists of: a digest of each item. A million take 8 MB, also on the disk.
package struct DirectoryParts: Codable, Equatable, Sendable {
    private let sorted: [UInt64]

    package init(_ digests: [UInt64]) { sorted = digests.sorted() }

    /// The digest of an item with a path in the directory. With another version it is another part.
    package static func digest(of path: String, version: String) -> UInt64 {
        StableDigest.of(Array("\(path)\0\(version)".utf8))
    }

    package var isEmpty: Bool { sorted.isEmpty }

    package func contains(_ digest: UInt64) -> Bool {
        var (low, high) = (0, sorted.count)
        while low < high {
            let middle = (low + high) / 2
            if sorted[middle] < digest { low = middle + 1 } else { high = middle }
        }
        return low < sorted.count && sorted[low] == digest
    }

    package init(from decoder: any Decoder) throws {
        let bytes = try [UInt8](decoder.singleValueContainer().decode(Data.self))
        sorted = stride(from: 0, to: bytes.count / 8 * 8, by: 8).map { start in
            bytes[start..<start + 8].reduce(0) { $0 << 8 | UInt64($1) }
        }
    }

    package func encode(to encoder: any Encoder) throws {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(8 * sorted.count)
        for digest in sorted {
            for shift in stride(from: 56, through: 0, by: -8) {
                bytes.append(UInt8(truncatingIfNeeded: digest >> shift))
            }
        }
        var container = encoder.singleValueContainer()
        try container.encode(Data(bytes))
    }
}
