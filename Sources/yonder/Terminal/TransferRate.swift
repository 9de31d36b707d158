import FileProvider

/// The rate of a transfer over the last seconds.
struct TransferRate {
    private var samples: [(time: ContinuousClock.Instant, bytes: Int64)] = []
    private static let window = Duration.seconds(5)

    /// - Parameter bytes: transferred so far.
    /// - Returns: bytes per second; nil during the first second, and for what has no bytes.
    mutating func perSecond(_ bytes: Int64, at now: ContinuousClock.Instant) -> Int64? {
        samples.append((now, bytes))
        // One sample before the window stays: the rate is over the whole window.
        while samples.count > 2, now - samples[1].time >= Self.window { samples.removeFirst() }
        guard bytes > 0, let first = samples.first, now - first.time >= .seconds(1) else { return nil }
        return max(0, Int64(saturating: Double(bytes - first.bytes) / ((now - first.time) / .seconds(1))))
    }
}
