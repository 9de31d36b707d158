import Glibc

/// Writes to standard error, which is the daemon's log, or the journal.
package enum Log {
    package static func write(_ text: String) {
        let line = line(text)
        _ = Glibc.write(2, line, line.utf8.count)
    }

    private static func line(_ text: String) -> String {
        // The journal has time and name; the number is the priority of a notice. (sd-daemon(3))
        guard getenv("JOURNAL_STREAM") == nil else { return "<5>\(text)\n" }
        var seconds = time(nil)
        var parts = tm()
        localtime_r(&seconds, &parts)
        func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let moment =
            "\(parts.tm_year + 1900)-\(two(parts.tm_mon + 1))-\(two(parts.tm_mday))"
            + "T\(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec))"
        // As the daemon writes it.
        let minutes = Int32(abs(parts.tm_gmtoff) / 60)
        let offset = "\(parts.tm_gmtoff < 0 ? "-" : "+")\(two(minutes / 60))\(two(minutes % 60))"
        return "\(moment)\(offset) notice yonder-keeper: \(text)\n"
    }
}
