import FileProviderPaths

/// Names as rclone's API has them: control characters are represented by their symbols, and a symbol that stands for itself has a
/// quote in front (rclone's `lib/encoder`, standard encoding).
///
/// What represents a slash, a NUL or a whole name of dots, none of which a name here can have, stays as it is.
enum RcloneName {
    private static let quote: Unicode.Scalar = "\u{201B}"
    /// The symbol for NUL, followed by those for the other control characters.
    private static let symbols: UInt32 = 0x2400
    private static let symbolForDelete: UInt32 = 0x2421
    private static let unnameable: Set<Unicode.Scalar> = ["\u{2400}", "\u{FF0F}"]
    private static let dots: Set<String> = [
        "\u{FF0E}", "\u{FF0E}\u{FF0E}", "\u{201B}\u{FF0E}", "\u{201B}\u{FF0E}\u{201B}\u{FF0E}",
    ]

    static func text(_ path: RemotePath) -> String { path.names.map(encode).joined(separator: "/") }

    static func encode(_ name: String) -> String {
        let scalars = Array(name.unicodeScalars)
        guard !dots.contains(name), scalars.contains(where: { symbol(of: $0) != nil || isQuotable($0) }) else {
            return name
        }
        var encoded = String.UnicodeScalarView()
        for (index, scalar) in scalars.enumerated() {
            if let symbol = symbol(of: scalar) {
                encoded.append(symbol)
                continue
            }
            let isQuoteOfUnnameable =
                scalar == quote && index + 1 < scalars.count && unnameable.contains(scalars[index + 1])
            if isQuotable(scalar), !isQuoteOfUnnameable { encoded.append(quote) }
            encoded.append(scalar)
        }
        return String(encoded)
    }

    static func decode(_ name: String) -> String {
        let scalars = Array(name.unicodeScalars)
        guard !dots.contains(name), scalars.contains(where: isQuotable) else { return name }
        var decoded = String.UnicodeScalarView()
        var index = 0
        while index < scalars.count {
            let scalar = scalars[index]
            index += 1
            if scalar == quote, index < scalars.count, isQuotable(scalars[index]) {
                decoded.append(scalars[index])
                index += 1
            } else {
                decoded.append(control(of: scalar) ?? scalar)
            }
        }
        return String(decoded)
    }

    /// Whether a character that stands for itself has a quote in front.
    private static func isQuotable(_ scalar: Unicode.Scalar) -> Bool { scalar == quote || control(of: scalar) != nil }

    private static func symbol(of scalar: Unicode.Scalar) -> Unicode.Scalar? {
        if scalar.value == 0x7F { return Unicode.Scalar(symbolForDelete) }
        return scalar.value < 0x20 ? Unicode.Scalar(symbols + scalar.value) : nil
    }

    private static func control(of scalar: Unicode.Scalar) -> Unicode.Scalar? {
        if scalar.value == symbolForDelete { return "\u{7F}" }
        guard (symbols + 1..<symbols + 0x20).contains(scalar.value) else { return nil }
        return Unicode.Scalar(scalar.value - symbols)
    }
}
