import Glibc

/// Milliseconds since the machine was started, without the time in which it was suspended.
enum Clock {
    static var now: Int {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return time.tv_sec * 1000 + time.tv_nsec / 1_000_000
    }
}
