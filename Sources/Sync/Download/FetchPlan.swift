import FileProvider
import Replica

/// Decides which ranges of a file to fetch next: a pure function of what is here, what is coming and what is wanted.
///
/// Windows grow with the run of bytes that leads up to the reader, because that is how far it has read in order; a jump
/// starts small again.
struct FetchPlan: Sendable {
    /// The whole file in one fetch, because it is small or because the provider knows no ranges.
    var isWhole: Bool
    var size: Int64

    static let smallFile: Int64 = 1 << 20
    static let smallestWindow: Int64 = 1 << 20
    static let largestWindow: Int64 = 16 << 20
    static let randomWindow: Int64 = 256 << 10
    static let alignment: Int64 = 128 << 10
    static let mostFetches = 4

    init(size: Int64, canFetchRanges: Bool) {
        // A database may hold a size that is no longer taken in: the sums below have to stay within 64 bits.
        let size = max(0, min(size, FileProviderItem.maximumDocumentSize))
        self.size = size
        isWhole = !canFetchRanges || size <= Self.smallFile
    }

    /// The fetches to start.
    ///
    /// - Parameters:
    ///   - present: what is here.
    ///   - coming: what running fetches bring.
    ///   - wanted: what readers wait for, the one that asked first in front.
    ///   - running: how many fetches run.
    func fetches(
        present: ByteRanges, coming: ByteRanges, wanted: [Range<Int64>], running: Int
    ) -> [Range<Int64>] {
        if isWhole {
            let isNeeded = wanted.contains { !present.contains($0.clamped(to: 0..<size)) }
            return isNeeded && running == 0 ? [0..<size] : []
        }
        var expected = present
        for range in coming.ranges { expected.insert(range) }
        var fetches: [Range<Int64>] = []
        for range in wanted.map({ $0.clamped(to: 0..<size) }) where !range.isEmpty {
            while running + fetches.count < Self.mostFetches, let next = next(for: range, expected: expected) {
                fetches.append(next)
                expected.insert(next)
            }
        }
        return fetches
    }

    /// The next fetch for a reader: what it needs, and, once it has read in order for a while, what it will need soon.
    private func next(for range: Range<Int64>, expected: ByteRanges) -> Range<Int64>? {
        let run = Self.run(before: range.lowerBound, in: expected)
        guard run > 0 || range.lowerBound == 0 else {
            let start = range.lowerBound / Self.alignment * Self.alignment
            let needed = start..<min(size, max(range.upperBound, start + Self.randomWindow))
            return expected.gaps(in: needed).first.map {
                $0.lowerBound..<min($0.upperBound, $0.lowerBound + Self.largestWindow)
            }
        }
        let length = range.upperBound - range.lowerBound
        let window = min(max(2 * run, length, Self.smallestWindow), Self.largestWindow)
        let isSteady = run >= Self.smallestWindow
        let horizon = min(size, max(range.upperBound, isSteady ? range.lowerBound + 2 * window : 0))
        guard let gap = expected.gaps(in: range.lowerBound..<horizon).first else { return nil }
        // A whole window at a time: many small fetches would each cost a round trip.
        let end = min(size, gap.lowerBound + window)
        return expected.gaps(in: gap.lowerBound..<end).first
    }

    /// How many bytes lead up to an offset without a gap.
    private static func run(before offset: Int64, in expected: ByteRanges) -> Int64 {
        guard let range = expected.ranges.last(where: { $0.lowerBound < offset }), range.upperBound >= offset else {
            return 0
        }
        // More makes no difference, and twice as much has to stay within 64 bits.
        return min(offset - range.lowerBound, largestWindow)
    }
}
