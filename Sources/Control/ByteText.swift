package enum ByteText {
    private static let units = ["KiB", "MiB", "GiB", "TiB", "PiB"]

    /// A size with a binary unit, for example `1.5 GiB`.
    package static func text(_ bytes: Int64) -> String {
        guard bytes >= 1024 else { return bytes == 1 ? "1 byte" : "\(bytes) bytes" }
        var value = Double(bytes) / 1024
        var unit = 0
        while value >= 1023.95, unit < units.count - 1 {
            value /= 1024
            unit += 1
        }
        let tenths = Int64((value * 10).rounded())
        return value < 9.95
            ? "\(tenths / 10).\(tenths % 10) \(units[unit])" : "\(Int64(value.rounded())) \(units[unit])"
    }

    /// How much of a total is done, in whole percents of at most 100; all of nothing is.
    package static func percent(_ done: Int64, of total: Int64) -> Int64 {
        guard total > 0 else { return 100 }
        // Sizes of remotes go up to 2^62: the product may need more than 64 bits.
        return total.dividingFullWidth(min(max(0, done), total).multipliedFullWidth(by: 100)).quotient
    }

    /// A smaller size without a unit is probably one whose unit was forgotten.
    package static let leastWithoutUnit: Int64 = 64 << 10

    /// Parses a size such as `500M`, `10GiB` or `1048576`. All units are powers of 1024.
    ///
    /// - Returns: nil for an invalid size, or one that does not fit in 64 bits.
    package static func bytes(_ text: String) -> Int64? {
        let digits = text.utf8.prefix { $0 >= 0x30 && $0 <= 0x39 }
        guard let number = Int64(String(Substring(digits))) else { return nil }
        let exponents = ["": 0, "b": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5]
        let unit = String(text.dropFirst(digits.count)).lowercased()
        let stem = unit.hasSuffix("ib") ? String(unit.dropLast(2)) : unit.count == 2 ? String(unit.dropLast()) : unit
        guard unit.count != 2 || unit.hasSuffix("b"), let exponent = exponents[stem] else { return nil }
        let (bytes, overflow) = number.multipliedReportingOverflow(by: 1 << (10 * exponent))
        return overflow ? nil : bytes
    }
}
