/// A timestamp: seconds since 1970, possibly negative, and nanoseconds.
package struct FileTime: Hashable, Sendable {
    package var seconds: Int64
    /// 0 to 999,999,999.
    package var nanoseconds: Int64

    package init(seconds: Int64, nanoseconds: Int64 = 0) {
        self.seconds = seconds
        self.nanoseconds = nanoseconds
    }
}
