import FileProvider

/// Delays a deletion that would push another item out of a trash bin. A bin names an item by its name and the second of the
/// deletion; of two with the same, it keeps one.
actor DeletionTimes {
    private struct Last {
        var inFlight: Int
        /// Whether the item has to be in the bin afterwards.
        var isKept: Bool
        var endedAt: ContinuousClock.Instant
    }

    private var last: [[UInt8]: Last] = [:]
    /// Notified at the end of each deletion.
    private let ends = ChangeSignal()
    /// More than a second, so that the server's clock has advanced.
    private static let distance = Duration.milliseconds(1100)
    /// Bins truncate longer names.
    private static let longestName = 230

    /// Runs a deletion when no other one of the name can collide with it.
    ///
    /// - Parameter isKept: the item has to be in the bin afterwards.
    func run<Value: Sendable>(_ name: String, isKept: Bool, _ body: @Sendable () async throws -> Value) async throws
        -> Value
    {
        let key = name.utf8.count > Self.longestName ? [] : Array(name.utf8)
        while let before = last[key] {
            if !isKept && !before.isKept { break }
            if before.inFlight > 0 {
                _ = try await ends.wait(after: ends.count)
            } else {
                let due = before.endedAt + Self.distance
                if ContinuousClock.now > due { break }
                try await Task.sleep(until: due, clock: .continuous)
            }
        }
        if last.count > 1000 {
            last = last.filter { $0.value.inFlight > 0 || .now - $0.value.endedAt <= Self.distance }
        }
        last[key] = Last(inFlight: (last[key]?.inFlight ?? 0) + 1, isKept: isKept, endedAt: .now)
        defer {
            last[key] = Last(inFlight: (last[key]?.inFlight ?? 1) - 1, isKept: isKept, endedAt: .now)
            ends.notify()
        }
        return try await body()
    }
}
