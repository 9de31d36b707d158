/// A set of byte offsets: sorted ranges that neither touch nor overlap.
package struct ByteRanges: Hashable, Sendable, CustomStringConvertible {
    package private(set) var ranges: [Range<Int64>]

    package init() {
        ranges = []
    }

    package init(_ ranges: some Sequence<Range<Int64>>) {
        self.init()
        for range in ranges { insert(range) }
    }

    package var isEmpty: Bool { ranges.isEmpty }

    /// How many bytes the set holds.
    package var count: Int64 { ranges.reduce(0) { $0 + ($1.upperBound - $1.lowerBound) } }

    package mutating func insert(_ range: Range<Int64>) {
        guard !range.isEmpty else { return }
        let first = firstIndex(endingAtOrAfter: range.lowerBound)
        var last = first
        var merged = range
        while last < ranges.count, ranges[last].lowerBound <= range.upperBound {
            merged = min(merged.lowerBound, ranges[last].lowerBound)..<max(merged.upperBound, ranges[last].upperBound)
            last += 1
        }
        ranges.replaceSubrange(first..<last, with: CollectionOfOne(merged))
    }

    /// Whether every byte of a range is in the set; an empty range always is.
    package func contains(_ range: Range<Int64>) -> Bool {
        if range.isEmpty { return true }
        let index = firstIndex(endingAtOrAfter: range.lowerBound + 1)
        return index < ranges.count && ranges[index].lowerBound <= range.lowerBound
            && ranges[index].upperBound >= range.upperBound
    }

    /// The parts of a range that are not in the set.
    package func gaps(in range: Range<Int64>) -> [Range<Int64>] {
        var gaps: [Range<Int64>] = []
        var position = range.lowerBound
        var index = firstIndex(endingAtOrAfter: range.lowerBound)
        while index < ranges.count, ranges[index].lowerBound < range.upperBound, position < range.upperBound {
            if ranges[index].lowerBound > position { gaps.append(position..<ranges[index].lowerBound) }
            position = max(position, ranges[index].upperBound)
            index += 1
        }
        if position < range.upperBound { gaps.append(position..<range.upperBound) }
        return gaps
    }

    /// The bytes of this set that another one does not hold.
    package func subtracting(_ other: ByteRanges) -> ByteRanges {
        ByteRanges(ranges.flatMap { other.gaps(in: $0) })
    }

    package var description: String {
        "{" + ranges.map { "\($0.lowerBound)..<\($0.upperBound)" }.joined(separator: ", ") + "}"
    }

    private func firstIndex(endingAtOrAfter offset: Int64) -> Int {
        var low = 0
        var high = ranges.count
        while low < high {
            let middle = (low + high) / 2
            if ranges[middle].upperBound < offset { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
