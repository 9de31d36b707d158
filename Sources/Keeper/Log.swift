import Glibc

/// Writes to standard error, which is the daemon's log.
package enum Log {
    package static func write(_ text: String) {
        var seconds = time(nil)
        var parts = tm()
        localtime_r(&seconds, &parts)
        func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let moment =
            "\(parts.tm_year + 1900)-\(two(parts.tm_mon + 1))-\(two(parts.tm_mday))"
            + "T\(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec))"
        let line = "\(moment) notice yonder-keeper: \(text)\n"
        _ = Glibc.write(2, line, line.utf8.count)
    }
}
