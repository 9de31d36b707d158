/// Sizes and counts that decide how objects are sent.
struct S3Settings: Sendable {
    /// Larger files, in bytes, are sent in parts.
    var multipartThreshold: Int64 = 32 << 20
    var partSize: Int64 = 16 << 20
    /// On a server that checks no preconditions, the condition is checked once more before the last byte of larger files.
    var largestUnwatched: Int64 = 256 << 10
    /// The size, in bytes, up to which the server copies an object with one request.
    var largestCopy: Int64 = 5 << 30
    /// How many requests one upload, one copy or one deletion makes at once.
    var width = 6
    /// How many objects more than twice as many as at first may come into a directory while it is copied.
    var usualGrowth = 100
    /// The pause, in seconds, before a directory that grows more is looked at again: chosen at random, because of two clients that copy each
    /// other's copies the first one to wake gives up, and the other finds nothing new.
    var pauseAfterGrowth = 1.0...8.0
}
