/// Names by a pattern in which `*` stands for any bytes, also none.
package enum NamePattern {
    /// Whether a text fits a pattern. Both are compared byte by byte.
    package static func matches(_ text: String, _ pattern: String) -> Bool {
        let (text, pattern) = (Array(text.utf8), Array(pattern.utf8))
        var (at, from) = (0, 0)
        // Where the last star was, and how far it reaches.
        var star: Int?
        var reach = 0
        while at < text.count {
            if from < pattern.count, pattern[from] == UInt8(ascii: "*") {
                (star, reach) = (from, at)
                from += 1
            } else if from < pattern.count, pattern[from] == text[at] {
                (at, from) = (at + 1, from + 1)
            } else if let last = star {
                reach += 1
                (at, from) = (reach, last + 1)
            } else {
                return false
            }
        }
        return pattern[from...].allSatisfy { $0 == UInt8(ascii: "*") }
    }
}
