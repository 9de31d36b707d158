import FileProvider
import Foundation

/// The dates of HTTP and S3, parsed without a formatter, because listings have a hundred thousand of them.
package enum HTTPDate {
    /// Seconds since 1970 of a date in one of the three forms of RFC 9110 (`Sun, 06 Nov 1994 08:49:37 GMT`,
    /// `Sunday, 06-Nov-94 08:49:37 GMT`, `Sun Nov  6 08:49:37 1994`); nil for anything else.
    package static func seconds(from text: some StringProtocol) -> Int64? {
        let bytes = Array(text.utf8)
        if let usual = usual(bytes) { return usual }
        let words = bytes.split { $0 == 0x20 || $0 == UInt8(ascii: ",") || $0 == UInt8(ascii: "-") }.map {
            Array($0)
        }
        guard words.count >= 5 else { return nil }
        let isOldest = months.contains(words[1])
        let (day, month, year, time) =
            isOldest ? (words[2], words[1], words[4], words[3]) : (words[1], words[2], words[3], words[4])
        guard let month = months.firstIndex(of: month), let day = number(day), var year = number(year) else {
            return nil
        }
        if year < 70 { year += 2000 } else if year < 100 { year += 1900 }
        let clock = time.split(separator: UInt8(ascii: ":")).compactMap { number(Array($0)) }
        guard clock.count == 3 else { return nil }
        return seconds(year: year, month: month + 1, day: day, hour: clock[0], minute: clock[1], second: clock[2])
    }

    /// Parses the form that all present servers write, by offsets; nil for any other.
    private static func usual(_ bytes: [UInt8]) -> Int64? {
        guard bytes.count == 29, bytes[3] == UInt8(ascii: ","), bytes[4] == 0x20, bytes[7] == 0x20, bytes[11] == 0x20,
            bytes[16] == 0x20, bytes[19] == UInt8(ascii: ":"), bytes[22] == UInt8(ascii: ":"), bytes[25] == 0x20
        else { return nil }
        func number(_ range: Range<Int>) -> Int64? {
            var value: Int64 = 0
            for index in range {
                guard (0x30...0x39).contains(bytes[index]) else { return nil }
                value = value * 10 + Int64(bytes[index] - 0x30)
            }
            return value
        }
        guard let month = months.firstIndex(where: { $0.elementsEqual(bytes[8..<11]) }), let day = number(5..<7),
            let year = number(12..<16), let hour = number(17..<19), let minute = number(20..<22),
            let second = number(23..<25)
        else { return nil }
        return seconds(year: year, month: month + 1, day: day, hour: hour, minute: minute, second: second)
    }

    /// Seconds since 1970, and the nanoseconds beyond them, of a date as ISO 8601 has it (`2009-10-12T17:50:30.000Z`).
    package static func timestamp(iso8601 text: some StringProtocol) -> (seconds: Int64, nanoseconds: Int64)? {
        let bytes = Array(text.utf8)
        guard bytes.count >= 19 else { return nil }
        func part(_ start: Int, _ count: Int) -> Int64? { number(Array(bytes[start..<start + count])) }
        guard bytes[4] == UInt8(ascii: "-"), bytes[10] == UInt8(ascii: "T") || bytes[10] == 0x20,
            let year = part(0, 4), let month = part(5, 2), let day = part(8, 2), let hour = part(11, 2),
            let minute = part(14, 2), let second = part(17, 2),
            let whole = seconds(year: year, month: Int(month), day: day, hour: hour, minute: minute, second: second)
        else { return nil }
        var rest = bytes[19...]
        var nanoseconds: Int64 = 0
        if rest.first == UInt8(ascii: ".") {
            var unit: Int64 = 100_000_000
            rest = rest.dropFirst()
            while let digit = rest.first, (0x30...0x39).contains(digit) {
                nanoseconds += Int64(digit - 0x30) * unit
                unit /= 10
                rest = rest.dropFirst()
            }
        }
        if rest.isEmpty || rest.elementsEqual("Z".utf8) { return (whole, nanoseconds) }
        // A zone: +hh:mm or -hh:mm.
        let digits = rest.dropFirst().filter { $0 != UInt8(ascii: ":") }
        guard let sign = rest.first, sign == UInt8(ascii: "+") || sign == UInt8(ascii: "-"), digits.count == 4,
            let hours = number(Array(digits.prefix(2))), let minutes = number(Array(digits.suffix(2)))
        else { return nil }
        let offset = hours * 3600 + minutes * 60
        return (sign == UInt8(ascii: "+") ? whole - offset : whole + offset, nanoseconds)
    }

    /// A time as `YYYY-MM-DDThh:mm:ssZ`.
    package static func iso8601(_ seconds: Int64) -> String {
        parts(of: seconds).iso8601 + "Z"
    }

    /// A time as `YYYYMMDDThhmmssZ`, the short form of ISO 8601.
    package static func compact(_ seconds: Int64) -> String {
        iso8601(seconds).filter { $0 != "-" && $0 != ":" }
    }

    /// A time in the preferred form of RFC 9110.
    package static func text(_ seconds: Int64) -> String {
        let parts = parts(of: seconds)
        let month = String(decoding: months[Int(parts.tm_mon)], as: UTF8.self)
        let date = [parts.tm_mday.padded(to: 2), month, (parts.tm_year + 1900).padded(to: 4)]
        return "\(weekdays[Int(parts.tm_wday)]), \(date.joined(separator: " ")) \(parts.iso8601.suffix(8)) GMT"
    }

    private static let weekdays = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ].map { Array($0.utf8) }

    private static func number(_ bytes: [UInt8]) -> Int64? {
        guard !bytes.isEmpty, bytes.count <= 9, bytes.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return bytes.reduce(0) { $0 * 10 + Int64($1 - 0x30) }
    }

    private static func seconds(
        year: Int64, month: Int, day: Int64, hour: Int64, minute: Int64, second: Int64
    ) -> Int64? {
        guard (1...12).contains(month), (1...31).contains(day), (0...23).contains(hour), (0...59).contains(minute),
            (0...60).contains(second)
        else { return nil }
        return days(year, Int64(month), day) * 86_400 + hour * 3600 + minute * 60 + second
    }

    /// Days since 1970 in the Gregorian calendar, counted in eras of 400 years that begin in March.
    private static func days(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
        // timegm(3) takes a lock that all threads share.
        let y = month <= 2 ? year - 1 : year
        let era = (y < 0 ? y - 399 : y) / 400
        let yearOfEra = y - era * 400
        let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }

    /// The parts of a time in UTC.
    private static func parts(of seconds: Int64) -> tm {
        var (time, parts) = (time_t(seconds), tm())
        gmtime_r(&time, &parts)
        return parts
    }
}
