import FileProvider
import Foundation

extension FileTimestamp {
    /// The present time, as rows keep it.
    static var now: FileTimestamp {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return FileTimestamp(seconds: Int64(time.tv_sec), nanoseconds: Int64(time.tv_nsec))
    }
}
