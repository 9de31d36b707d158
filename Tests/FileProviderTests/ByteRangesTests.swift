import FileProvider
import Testing

@Suite struct ByteRangesTests {
    @Test func insertingMergesWhatTouches() {
        var ranges = ByteRanges([10..<20, 30..<40])
        ranges.insert(20..<30)
        #expect(ranges.ranges == [10..<40])
        ranges.insert(50..<60)
        ranges.insert(0..<5)
        #expect(ranges.ranges == [0..<5, 10..<40, 50..<60])
        #expect(ranges.count == 45)
        ranges.insert(3..<55)
        #expect(ranges.ranges == [0..<60])
    }

    @Test func emptyRangesChangeNothingAndAreAlwaysThere() {
        var ranges = ByteRanges()
        ranges.insert(7..<7)
        #expect(ranges.isEmpty)
        #expect(ranges.contains(7..<7))
    }

    @Test func subtractingLeavesWhatTheOtherHasNot() {
        let ranges = ByteRanges([0..<10, 20..<30, 40..<50])
        #expect(ranges.subtracting(ByteRanges([5..<25, 40..<50])).ranges == [0..<5, 25..<30])
        #expect(ranges.subtracting(ByteRanges()) == ranges)
        #expect(ByteRanges().subtracting(ranges).isEmpty)
    }

    /// Every set of three ranges over a small line, against a set of single bytes.
    @Test func agreesWithSingleBytes() {
        let line: Int64 = 9
        let all = (0..<line).flatMap { low in (low..<line + 1).map { low..<$0 } }
        for first in all {
            for second in all where second.lowerBound >= first.lowerBound {
                let ranges = ByteRanges([first, second])
                let bytes = Set(first).union(second)
                #expect(ranges.count == Int64(bytes.count))
                for probe in all {
                    #expect(ranges.contains(probe) == bytes.isSuperset(of: probe), "\(ranges) contains \(probe)")
                    let missing = Set(ranges.gaps(in: probe).flatMap { Set($0) })
                    #expect(missing == Set(probe).subtracting(bytes), "gaps of \(probe) in \(ranges)")
                }
            }
        }
    }
}
