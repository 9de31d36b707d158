import Testing

@testable import Sync

@Suite struct BurstOfChangesTests {
    private let start = ContinuousClock.now

    /// So many changes, ten milliseconds apart.
    private func burst(_ count: Int) -> (burst: BurstOfChanges, end: ContinuousClock.Instant) {
        var burst = BurstOfChanges(at: start)
        for number in 0..<count { burst.note(at: start + .milliseconds(10 * number)) }
        return (burst, start + .milliseconds(10 * (count - 1)))
    }

    @Test func aFewChangesAreSentAtOnce() {
        let (burst, end) = burst(BurstOfChanges.least - 1)
        #expect(burst.isOn(at: end))
        #expect(burst.endOfPrecedence(at: end) == nil)
    }

    @Test func manyAreSentWhenTheyHaveEnded() {
        let (burst, end) = burst(BurstOfChanges.least)
        #expect(burst.endOfPrecedence(at: end) == end + BurstOfChanges.quiet)
        #expect(burst.endOfPrecedence(at: end + BurstOfChanges.quiet) == nil)
        #expect(!burst.isOn(at: end + BurstOfChanges.quiet))
    }

    @Test func changesWithoutEndAreSentMeanwhile() {
        let (burst, end) = burst(400)
        #expect(burst.isOn(at: end))
        #expect(burst.endOfPrecedence(at: end) == nil)
        let (shorter, soon) = self.burst(290)
        #expect(shorter.endOfPrecedence(at: soon) == start + BurstOfChanges.longestPrecedence)
    }

    @Test func theNextBurstBeginsAnew() {
        var (burst, end) = burst(400)
        end += .seconds(1)
        burst.note(at: end)
        #expect(burst.endOfPrecedence(at: end) == nil)
        for number in 1..<BurstOfChanges.least { burst.note(at: end + .milliseconds(number)) }
        let last = end + .milliseconds(BurstOfChanges.least - 1)
        #expect(burst.endOfPrecedence(at: last) == last + BurstOfChanges.quiet)
    }
}
