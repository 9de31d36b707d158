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
    /// How long after a probe that a busy server did not answer the next one is due; twice as long after each further one.
    var probePause = Duration.seconds(60)
    /// How often uploads that were given up are looked for.
    var tidyingPause = Duration.seconds(86_400)
    /// A renaming of a directory pauses when the directory has more than twice the objects that it had at first, and this many more.
    var usualGrowth = 100
    /// In seconds, chosen at random. Of two clients that copy each other's copies, the one with the shorter pause finds new ones, and gives
    /// up; the other one finds none, and ends its renaming.
    var pauseAfterGrowth = 1.0...8.0
}
