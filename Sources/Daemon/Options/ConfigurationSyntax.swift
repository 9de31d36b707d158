/// Refuses text on which TOMLKit's parser stops the process.
///
/// toml++ asserts, also in release builds, that a key starts with a character of a key, and that digits form a number or a
/// date. The configuration has only tables, strings, arrays of strings and booleans, so everything else outside strings
/// and comments is refused here with an error.
struct ConfigurationSyntax {
    struct Mistake: Error, CustomStringConvertible {
        let line: Int
        let description: String
    }

    private let bytes: [UInt8]
    private var position = 0
    private var line = 1
    /// Whether nothing but white space stands before the position in its line.
    private var isAtLineStart = true
    private var openBrackets = 0

    /// - Throws: ``Mistake`` with the number of the line.
    static func check(_ text: String) throws(Mistake) {
        var syntax = ConfigurationSyntax(bytes: Array(text.utf8))
        while let byte = syntax.next { try syntax.take(byte) }
    }

    private init(bytes: [UInt8]) { self.bytes = bytes }

    private var next: UInt8? { position < bytes.count ? bytes[position] : nil }

    private func mistake(_ text: String) -> Mistake { Mistake(line: line, description: "line \(line): \(text)") }

    private mutating func take(_ byte: UInt8) throws(Mistake) {
        switch byte {
        case UInt8(ascii: "\n"):
            position += 1
            line += 1
            isAtLineStart = true
            return
        case UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\r"):
            position += 1
            return
        case UInt8(ascii: "#"):
            while let byte = next, byte != UInt8(ascii: "\n") { position += 1 }
            return
        case UInt8(ascii: "\""), UInt8(ascii: "'"): try takeString(quotedBy: byte)
        case UInt8(ascii: "["):
            if isAtLineStart, openBrackets == 0 { try takeHeader() } else { takeBracket(opening: true) }
        case UInt8(ascii: "]"): takeBracket(opening: false)
        case UInt8(ascii: "="), UInt8(ascii: ","): position += 1
        default: try takeWord()
        }
        isAtLineStart = false
    }

    private mutating func takeBracket(opening: Bool) {
        openBrackets = max(0, openBrackets + (opening ? 1 : -1))
        position += 1
    }

    /// `[table]` or `[[table]]`, with a bare or quoted name.
    private mutating func takeHeader() throws(Mistake) {
        for _ in 0..<2 where next == UInt8(ascii: "[") { position += 1 }
        while let byte = next, byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") { position += 1 }
        guard let byte = next, Self.isOfWord(byte) || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") else {
            throw mistake("a table needs a name")
        }
        if Self.isOfWord(byte) { try takeWord() } else { try takeString(quotedBy: byte) }
        while let byte = next, byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") { position += 1 }
        guard next == UInt8(ascii: "]") else { throw mistake("a table's name ends with ']'") }
        while next == UInt8(ascii: "]") { position += 1 }
    }

    private static func isOfWord(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "-"):
            true
        default: false
        }
    }

    /// A bare key, `true` or `false`, or a whole number.
    private mutating func takeWord() throws(Mistake) {
        let start = position
        while let byte = next, Self.isOfWord(byte) { position += 1 }
        guard let first = bytes[start..<position].first else {
            throw mistake("a character that has no meaning here")
        }
        let digits = UInt8(ascii: "0")...UInt8(ascii: "9")
        guard !digits.contains(first) || bytes[start..<position].allSatisfy(digits.contains), position - start <= 64,
            first != UInt8(ascii: "-")
        else { throw mistake("only strings, 'true', 'false' and whole numbers are values") }
    }

    private mutating func takeString(quotedBy quote: UInt8) throws(Mistake) {
        let begin = line
        let isLong = bytes[position...].starts(with: [quote, quote, quote])
        position += isLong ? 3 : 1
        while let byte = next {
            if byte == quote, !isLong || bytes[position...].starts(with: [quote, quote, quote]) {
                position += isLong ? 3 : 1
                return
            }
            if byte == UInt8(ascii: "\n") {
                guard isLong else { break }
                line += 1
            }
            position += byte == UInt8(ascii: "\\") && quote == UInt8(ascii: "\"") ? 2 : 1
        }
        line = begin
        throw mistake("a string is not closed")
    }
}
