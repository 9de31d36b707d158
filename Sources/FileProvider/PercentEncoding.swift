package enum PercentEncoding {
    /// Every byte that is neither a letter, a digit nor one of `-._~`, as `%XX`; `also` names more that stay.
    package static func encode(_ text: some StringProtocol, keeping also: StaticString = "") -> String {
        encode(bytes: text.utf8, keeping: also)
    }

    package static func encode(bytes: some Collection<UInt8>, keeping also: StaticString = "") -> String {
        let kept = also.description.utf8
        var out: [UInt8] = []
        out.reserveCapacity(bytes.count)
        for byte in bytes {
            if isUnreserved(byte) || kept.contains(byte) {
                out.append(byte)
            } else {
                out.append(UInt8(ascii: "%"))
                out.append(hexadecimal[Int(byte >> 4)])
                out.append(hexadecimal[Int(byte & 15)])
            }
        }
        return String(decoding: out, as: UTF8.self)
    }

    /// The decoded bytes; nil where a `%` is not followed by two digits.
    package static func decode(_ text: some StringProtocol) -> [UInt8]? {
        var out: [UInt8] = []
        var bytes = text.utf8.makeIterator()
        while let byte = bytes.next() {
            guard byte == UInt8(ascii: "%") else {
                out.append(byte)
                continue
            }
            guard let high = bytes.next().flatMap(digit), let low = bytes.next().flatMap(digit) else { return nil }
            out.append(high << 4 | low)
        }
        return out
    }

    private static let hexadecimal = Array("0123456789ABCDEF".utf8)

    private static func isUnreserved(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        case UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"): true
        default: false
        }
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case 0x30...0x39: byte - 0x30
        case 0x41...0x46: byte - 0x41 + 10
        case 0x61...0x66: byte - 0x61 + 10
        default: nil
        }
    }
}
