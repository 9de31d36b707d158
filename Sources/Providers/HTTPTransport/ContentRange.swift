/// The value of `Content-Range`, such as `bytes 0-99/200`.
package struct ContentRange: Hashable, Sendable {
    package var range: Range<Int64>
    package var total: Int64?

    package init?(_ text: String?) {
        guard let text, text.lowercased().hasPrefix("bytes ") else { return nil }
        let parts = text.dropFirst(6).split(separator: "/")
        let bounds =
            parts.first?.split(separator: "-", omittingEmptySubsequences: false).map { Int64($0.trimmingBlanks()) }
            ?? []
        guard parts.count == 2, bounds.count == 2, let first = bounds[0], let last = bounds[1], first >= 0,
            first <= last, last < Int64.max
        else { return nil }
        range = first..<last + 1
        total = Int64(parts[1].trimmingBlanks())
        if let total, total < range.upperBound { return nil }
    }
}
