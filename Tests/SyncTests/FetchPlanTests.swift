import FileProvider
import Replica
import Testing

@testable import Sync

@Suite struct FetchPlanTests {
    private let mebibyte: Int64 = 1 << 20

    @Test("PATH-5: a file of up to 1 MiB comes whole, a larger one in parts") func aSmallFileComesWhole() {
        #expect(FetchPlan(size: mebibyte, canFetchRanges: true).isWhole)
        #expect(!FetchPlan(size: mebibyte + 1, canFetchRanges: true).isWhole)
        let plan = FetchPlan(size: 1000, canFetchRanges: true)
        #expect(plan.fetches(present: ByteRanges(), coming: ByteRanges(), wanted: [0..<10], running: 0) == [0..<1000])
        #expect(plan.fetches(present: ByteRanges(), coming: ByteRanges([0..<1000]), wanted: [5..<10], running: 1) == [])
    }

    @Test func withoutRangesEverythingComesInOne() {
        let plan = FetchPlan(size: 50 * mebibyte, canFetchRanges: false)
        #expect(
            plan.fetches(present: ByteRanges(), coming: ByteRanges(), wanted: [0..<10], running: 0)
                == [0..<50 * mebibyte])
    }

    @Test func theBeginningOfAHugeFileMovesLittle() {
        let plan = FetchPlan(size: 5 << 30, canFetchRanges: true)
        let fetches = plan.fetches(present: ByteRanges(), coming: ByteRanges(), wanted: [0..<131_072], running: 0)
        #expect(fetches == [0..<mebibyte])
    }

    @Test func jumpsStaySmall() {
        let plan = FetchPlan(size: 5 << 30, canFetchRanges: true)
        let fetches = plan.fetches(
            present: ByteRanges([0..<mebibyte]), coming: ByteRanges(), wanted: [(1 << 30) + 5..<(1 << 30) + 4101],
            running: 0)
        #expect(fetches == [1 << 30..<(1 << 30) + FetchPlan.randomWindow])
    }

    @Test func windowsGrowWhileReadingInOrder() {
        let plan = FetchPlan(size: 1 << 30, canFetchRanges: true)
        var present = ByteRanges()
        var largest: Int64 = 0
        var offset: Int64 = 0
        var count = 0
        while offset < 256 * mebibyte {
            let wanted = offset..<offset + 131_072
            for fetch in plan.fetches(present: present, coming: ByteRanges(), wanted: [wanted], running: 0) {
                largest = max(largest, fetch.upperBound - fetch.lowerBound)
                present.insert(fetch)
                count += 1
            }
            #expect(present.contains(wanted))
            offset += 131_072
        }
        #expect(largest == FetchPlan.largestWindow)
        #expect(count < 40)
        #expect(present.count <= 256 * mebibyte + 3 * FetchPlan.largestWindow)
    }

    @Test func neverMoreFetchesThanAllowedAndNeverAByteTwice() {
        let plan = FetchPlan(size: 1 << 30, canFetchRanges: true)
        let fetches = plan.fetches(
            present: ByteRanges(), coming: ByteRanges(), wanted: [0..<1 << 30, 5 * mebibyte..<6 * mebibyte], running: 1)
        #expect(fetches.count == FetchPlan.mostFetches - 1)
        #expect(ByteRanges(fetches).count == fetches.reduce(0) { $0 + $1.upperBound - $1.lowerBound })
    }

    @Test("WRITE-7: a size or a range at the end of 64 bits is planned without a crash", arguments: [true, false])
    func theEndOfNumbersIsPlanned(canFetchRanges: Bool) {
        for size in [Int64.max, FileProviderItem.maximumDocumentSize] {
            let plan = FetchPlan(size: size, canFetchRanges: canFetchRanges)
            let wanted = [size - 4096..<size, 0..<size, (size / 2)..<(size / 2) + 1]
            for present in [ByteRanges(), ByteRanges([0..<size]), ByteRanges([0..<size - 1])] {
                let fetches = plan.fetches(present: present, coming: ByteRanges(), wanted: wanted, running: 0)
                #expect(fetches.allSatisfy { $0.lowerBound >= 0 && $0.upperBound <= size })
            }
        }
    }
}
