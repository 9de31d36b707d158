/// File names as text.
///
/// A name on Linux is bytes, and need not be UTF-8. A `String` holds each byte that is not part of a valid UTF-8 sequence as
/// one scalar of the range U+10FF80 to U+10FFFF: the byte 0xC3 is U+10FFC3. Where a name contains a scalar of that range
/// itself, in valid UTF-8, each of its four bytes is held in this way. So each name has exactly one text, and the text gives
/// back the name. Targets of symbolic links are held in the same way.
///
///     FileNameText.text(of: [0x61, 0xFF])          // "a\u{10FFFF}"
///     FileNameText.bytes(of: "a\u{10FFFF}")        // [0x61, 0xFF]
public enum FileNameText {
    /// The scalars that represent bytes.
    private static let escapes: ClosedRange<UInt32> = 0x10FF80...0x10FFFF
    private static let base: UInt32 = 0x10FF00
    /// The first byte of these scalars in UTF-8.
    private static let lead: UInt8 = 0xF4

    /// Returns the text of a name.
    ///
    /// - Parameter name: any bytes.
    public static func text(of name: some Collection<UInt8>) -> String {
        if let text = String(validating: name, as: UTF8.self), isUTF8(text) { return text }
        let bytes = Array(name)
        var text = String.UnicodeScalarView()
        var position = 0
        func escape(_ count: Int) {
            for byte in bytes[position..<position + count] {
                if let scalar = Unicode.Scalar(base + UInt32(byte)) { text.append(scalar) }
            }
            position += count
        }
        var parser = Unicode.UTF8.ForwardParser()
        var iterator = bytes.makeIterator()
        while true {
            switch parser.parseScalar(from: &iterator) {
            case .valid(let encoded):
                let scalar = Unicode.UTF8.decode(encoded)
                if escapes.contains(scalar.value) {
                    escape(encoded.count)
                } else {
                    text.append(scalar)
                    position += encoded.count
                }
            case .error(let length): escape(length)
            case .emptyInput: return String(text)
            }
        }
    }

    /// Returns the name of a text.
    public static func bytes(of text: String) -> [UInt8] {
        if isUTF8(text) { return Array(text.utf8) }
        return text.unicodeScalars.reduce(into: []) { bytes, scalar in
            if escapes.contains(scalar.value) {
                bytes.append(UInt8(truncatingIfNeeded: scalar.value))
            } else {
                bytes += UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter
            }
        }
    }

    /// The length in bytes of the name of a text.
    public static func byteCount(of text: String) -> Int {
        // An escaped byte takes four bytes in UTF-8.
        isUTF8(text)
            ? text.utf8.count : text.utf8.count - 3 * text.unicodeScalars.count { escapes.contains($0.value) }
    }

    /// Whether the name of a text equals its UTF-8: no byte is escaped.
    public static func isUTF8(_ text: String) -> Bool {
        !text.utf8.contains(lead) || !text.unicodeScalars.contains { escapes.contains($0.value) }
    }

    /// Whether a text is the text of its name. Other texts never match a name of the kernel.
    public static func isNormal(_ text: String) -> Bool {
        isUTF8(text) || Self.text(of: bytes(of: text)).utf8.elementsEqual(text.utf8)
    }
}
