/// Text as one word of a command that a user copies from a message into a shell.
package enum ShellWord {
    /// Besides letters.
    private static let plain = Set("0123456789/.-_+,:@".unicodeScalars)

    /// Puts a backslash before each ASCII character that a shell may not take as it is.
    ///
    /// - Parameter text: without control characters.
    package static func escaped(_ text: String) -> String {
        var word = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            if scalar.isASCII, !scalar.properties.isAlphabetic, !plain.contains(scalar) { word.append("\\") }
            word.append(scalar)
        }
        return String(word)
    }
}
