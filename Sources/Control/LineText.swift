/// Text of others as part of one line: with nothing in it that ends the line, or that a terminal takes for a command.
package enum LineText {
    /// Control characters, and what else ends a line or turns its direction, as escapes such as `\n` and `\x{1b}`.
    package static func escaped(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: mustBeEscaped) else { return text }
        return text.unicodeScalars.reduce(into: "") { text, scalar in
            switch scalar {
            case "\n": text += "\\n"
            case "\t": text += "\\t"
            case "\r": text += "\\r"
            case _ where mustBeEscaped(scalar): text += "\\x{" + String(scalar.value, radix: 16) + "}"
            default: text.unicodeScalars.append(scalar)
            }
        }
    }

    /// Control characters (C0, DEL, C1), the line and paragraph separators, and what overrides the direction of text.
    private static func mustBeEscaped(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0..<0x20, 0x7F...0x9F, 0x2028...0x202E, 0x2066...0x2069: true
        default: false
        }
    }
}
