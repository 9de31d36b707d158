/// Escapes text of other programs for use in one line of output.
package enum LineText {
    /// Replaces control characters, line separators and characters that change the text direction by escapes such as
    /// `\n` and `\x{1b}`.
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

    /// C0, DEL, C1, the line and paragraph separators, and the bidirectional overrides and isolates.
    private static func mustBeEscaped(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0..<0x20, 0x7F...0x9F, 0x2028...0x202E, 0x2066...0x2069: true
        default: false
        }
    }
}
