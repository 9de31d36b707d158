import FileProvider
import Foundation

extension FileTimestamp {
    package static let distantFuture = FileTimestamp(nanosecondsSince1970: .max)

    /// The present time, as rows keep it.
    static var now: FileTimestamp {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return FileTimestamp(seconds: Int64(time.tv_sec), nanoseconds: Int64(time.tv_nsec))
    }

    /// The moment so much later.
    package func advanced(by duration: Duration) -> FileTimestamp {
        let (seconds, attoseconds) = duration.components
        return FileTimestamp(
            nanosecondsSince1970: nanosecondsSince1970 &+ seconds &* 1_000_000_000 &+ attoseconds / 1_000_000_000)
    }
}
