/// How much of a domain's local content was used in the last hour, day and week, and before.
package struct ContentAges: Codable, Hashable, Sendable {
    package var name: String
    /// Bytes: one number for each of ``bounds``, each without those before it, and the rest.
    package var bytes: [Int64]

    package init(name: String, bytes: [Int64]) {
        self.name = name
        self.bytes = bytes
    }

    /// In seconds, ascending.
    package static let bounds: [Int64] = [3_600, 86_400, 7 * 86_400]
    /// The name of each number.
    package static let names = ["hour", "day", "week", "older"]
}
