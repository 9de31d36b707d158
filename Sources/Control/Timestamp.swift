import FileProvider
import Foundation

/// The format of times in messages: RFC 3339 in UTC, with nanoseconds.
package enum Timestamp {
    package static func text(seconds: Int64, nanoseconds: Int64) -> String {
        let date = Date(timeIntervalSince1970: TimeInterval(seconds))
        let whole = date.formatted(.iso8601.year().month().day().time(includingFractionalSeconds: false))
        return whole + "." + nanoseconds.padded(to: 9) + "Z"
    }
}
