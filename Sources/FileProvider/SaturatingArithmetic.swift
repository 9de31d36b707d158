/// Arithmetic on numbers from outside (sizes, offsets, dates): a result that 64 bits do not hold becomes the nearest that
/// they do, where `+` and `-` would end the process.
extension Int64 {
    package func saturatingAdd(_ other: Int64) -> Int64 {
        let (sum, overflow) = addingReportingOverflow(other)
        return overflow ? (other < 0 ? .min : .max) : sum
    }

    package func saturatingSubtract(_ other: Int64) -> Int64 {
        let (difference, overflow) = subtractingReportingOverflow(other)
        return overflow ? (other < 0 ? .max : .min) : difference
    }

    /// A number of floating point, such as SQLite's `TOTAL` gives; 0 for what is no number.
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
