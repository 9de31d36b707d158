import Foundation
import Syscalls
import SystemPackage

extension FileStatus {
    /// The status of an open file whose content is about to be read. Returns once each later write gives the file another time:
    /// kernels before 6.13 give the same time to all writes of one tick of the clock, which takes at most 10 ms.
    static func settled(of file: FileDescriptor) throws(Errno) -> FileStatus {
        for _ in 1...6 {
            let status = try FileStatus(of: file)
            guard status.isOfThisTick else { return status }
            Thread.sleep(forTimeInterval: 0.002)
        }
        return try FileStatus(of: file)
    }

    /// Whether a write now may give the file the time that it has.
    private var isOfThisTick: Bool {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME_COARSE, &now)
        let seconds = modified.seconds &- Int64(now.tv_sec)
        // A time that was set may be any.
        guard (-1...1).contains(seconds) else { return false }
        return (0...20_000_000).contains(seconds * 1_000_000_000 + modified.nanoseconds - Int64(now.tv_nsec))
    }
}
