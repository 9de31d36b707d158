/// One moment by two clocks.
package struct LedgerMoment: Sendable {
    package var instant: ContinuousClock.Instant
    /// Seconds since 1970, for what outlives the process.
    package var date: Int64

    package init(instant: ContinuousClock.Instant, date: Int64) {
        self.instant = instant
        self.date = date
    }
}
