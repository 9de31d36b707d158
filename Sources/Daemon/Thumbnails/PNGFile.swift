/// An image in the Portable Network Graphics format, as far as its texts go. (PNG 1.2, sections 3 and 4.2.3)
struct PNGFile: Hashable, Sendable {
    private(set) var bytes: [UInt8]

    private static let signature: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
    private static let header = Array("IHDR".utf8)
    private static let text = Array("tEXt".utf8)

    /// - Returns: nil for bytes that do not begin as such an image.
    init?(_ bytes: [UInt8]) {
        guard bytes.starts(with: Self.signature), let first = Self.chunk(in: bytes[Self.signature.count...]),
            first.type.elementsEqual(Self.header)
        else { return nil }
        self.bytes = bytes
    }

    /// The texts before the image, by keyword.
    var texts: [String: String] {
        var texts: [String: String] = [:]
        var rest = bytes[Self.signature.count...]
        while let chunk = Self.chunk(in: rest), !chunk.type.elementsEqual(Array("IDAT".utf8)) {
            if chunk.type.elementsEqual(Self.text), let end = chunk.content.firstIndex(of: 0) {
                let keyword = String(decoding: chunk.content[..<end], as: UTF8.self)
                texts[keyword] = String(decoding: chunk.content[(end + 1)...], as: UTF8.self)
            }
            rest = rest.dropFirst(chunk.length)
        }
        return texts
    }

    /// Adds texts, unless it has all of them.
    ///
    /// - Parameter texts: of ASCII characters.
    mutating func set(_ texts: KeyValuePairs<String, String>) {
        let present = self.texts
        guard !texts.allSatisfy({ present[$0.key] == $0.value }),
            let header = Self.chunk(in: bytes[Self.signature.count...])
        else { return }
        let added = texts.flatMap { Self.chunk(Self.text, Array($0.key.utf8) + [0] + Array($0.value.utf8)) }
        bytes.insert(contentsOf: added, at: Self.signature.count + header.length)
    }

    private static func chunk(
        in bytes: ArraySlice<UInt8>
    ) -> (type: ArraySlice<UInt8>, content: ArraySlice<UInt8>, length: Int)? {
        guard bytes.count >= 12 else { return nil }
        let count = bytes.prefix(4).reduce(0) { $0 << 8 | Int($1) }
        guard count <= bytes.count - 12 else { return nil }
        let start = bytes.startIndex
        return (bytes[start + 4..<start + 8], bytes[start + 8..<start + 8 + count], count + 12)
    }

    private static func chunk(_ type: [UInt8], _ content: [UInt8]) -> [UInt8] {
        number(UInt32(content.count)) + type + content + number(checksum(of: type + content))
    }

    private static func number(_ value: UInt32) -> [UInt8] {
        [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: value >> $0) }
    }

    /// CRC-32. (PNG 1.2, section 3.4)
    private static func checksum(of bytes: [UInt8]) -> UInt32 {
        var sum = UInt32.max
        for byte in bytes {
            sum ^= UInt32(byte)
            for _ in 0..<8 { sum = sum & 1 == 0 ? sum >> 1 : sum >> 1 ^ 0xEDB8_8320 }
        }
        return ~sum
    }
}
