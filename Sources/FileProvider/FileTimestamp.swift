import Foundation

/// A timestamp: nanoseconds since 1970 in 64 bits, from the year 1677 to 2262.
///
/// Foundation's `Date` would lose the last digits of a modification time, which a mount must show exactly.
public struct FileTimestamp: Hashable, Comparable, Sendable, Codable {
    /// Nanoseconds since 1970-01-01 00:00 UTC; negative before.
    public var nanosecondsSince1970: Int64

    /// A time in nanoseconds since 1970.
    public init(nanosecondsSince1970: Int64) {
        self.nanosecondsSince1970 = nanosecondsSince1970
    }

    /// A time in seconds and nanoseconds, clamped to the representable range.
    public init(seconds: Int64, nanoseconds: Int64 = 0) {
        let (scaled, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        let (sum, overflowToo) = scaled.addingReportingOverflow(nanoseconds)
        nanosecondsSince1970 = overflow || overflowToo ? (seconds < 0 ? .min : .max) : sum
    }

    /// The present time.
    package static var now: FileTimestamp {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return FileTimestamp(seconds: Int64(time.tv_sec), nanoseconds: Int64(time.tv_nsec))
    }

    /// Whole seconds, rounded down, so that ``nanoseconds`` is never negative.
    public var seconds: Int64 {
        nanosecondsSince1970 >= 0
            ? nanosecondsSince1970 / 1_000_000_000 : (nanosecondsSince1970 + 1) / 1_000_000_000 - 1
    }

    /// The nanoseconds after ``seconds``, 0 to 999,999,999.
    public var nanoseconds: Int64 {
        let rest = nanosecondsSince1970 % 1_000_000_000
        return rest >= 0 ? rest : rest + 1_000_000_000
    }

    public static func < (one: FileTimestamp, other: FileTimestamp) -> Bool {
        one.nanosecondsSince1970 < other.nanosecondsSince1970
    }
}
