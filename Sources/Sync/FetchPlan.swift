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
            let isNeeded = wanted.contains { !present.contains($0) }
            return isNeeded && running == 0 ? [0..<size] : []
        }
        var expected = present
        for range in coming.ranges { expected.insert(range) }
        var fetches: [Range<Int64>] = []
        for range in wanted {
            for target in targets(for: range, expected: expected) {
                for gap in expected.gaps(in: target) {
                    for piece in Self.pieces(of: gap) {
                        guard running + fetches.count < Self.mostFetches else { return fetches }
                        fetches.append(piece)
                        expected.insert(piece)
                    }
                }
            }
        }
        return fetches
    }

    /// What a reader needs, and then what it will need soon.
    private func targets(for range: Range<Int64>, expected: ByteRanges) -> [Range<Int64>] {
        let run = Self.run(before: range.lowerBound, in: expected)
        let isSequential = run > 0 || range.lowerBound == 0
        let window =
            isSequential ? min(max(run, Self.smallestWindow), Self.largestWindow) : Self.randomWindow
        let start = isSequential ? range.lowerBound : range.lowerBound / Self.alignment * Self.alignment
        let needed = start..<min(size, max(range.upperBound, start + window))
        guard isSequential, run >= Self.smallestWindow else { return [needed] }
        return [needed, needed.upperBound..<min(size, needed.upperBound + 2 * window)].filter { !$0.isEmpty }
    }

    /// How many bytes lead up to an offset without a gap.
    private static func run(before offset: Int64, in expected: ByteRanges) -> Int64 {
        guard let range = expected.ranges.last(where: { $0.lowerBound < offset }), range.upperBound >= offset else {
            return 0
        }
        return offset - range.lowerBound
    }

    private static func pieces(of range: Range<Int64>) -> [Range<Int64>] {
        stride(from: range.lowerBound, to: range.upperBound, by: Int(largestWindow)).map {
            $0..<min(range.upperBound, $0 + largestWindow)
        }
    }
}
