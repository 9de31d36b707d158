/// Arithmetic on numbers from outside (sizes, offsets, dates). A result outside of 64 bits is clamped, where `+` and
/// `-` would trap.
extension Int64 {
    package func saturatingAdd(_ other: Int64) -> Int64 {
        let (sum, overflow) = addingReportingOverflow(other)
        return overflow ? (other < 0 ? .min : .max) : sum
    }

    package func saturatingSubtract(_ other: Int64) -> Int64 {
        let (difference, overflow) = subtractingReportingOverflow(other)
        return overflow ? (other < 0 ? .max : .min) : difference
    }

    /// Converts a floating-point number, for example of SQLite's `TOTAL`; 0 for NaN.
    package init(saturating value: Double) {
        if value.isNaN {
            self = 0
        } else if value >= 0x1p63 {
            self = .max
        } else {
            self = value < -0x1p63 ? .min : Int64(value)
        }
    }
}
