/// Recognizes a misspelt command.
enum CommandNames {
    /// Most letters that may be wrong in a name.
    private static let tolerance = 2

    /// The command that was probably meant by a word that is none.
    static func suggestion(for word: String, among names: [String]) -> String? {
        let distances = names.map { (name: $0, distance: distance(Array(word.utf8), Array($0.utf8))) }
        guard let best = distances.min(by: { $0.distance < $1.distance }),
            best.distance <= min(tolerance, max(1, word.utf8.count / 3))
        else { return nil }
        return best.name
    }

    /// The number of letters that have to be inserted, removed, replaced or exchanged with their neighbour.
    private static func distance(_ one: [UInt8], _ other: [UInt8]) -> Int {
        var rows = [Array(0...other.count)]
        for i in one.indices {
            var row = [i + 1]
            for j in other.indices {
                var cost = min(rows[i][j + 1] + 1, row[j] + 1, rows[i][j] + (one[i] == other[j] ? 0 : 1))
                if i > 0, j > 0, one[i] == other[j - 1], one[i - 1] == other[j] {
                    cost = min(cost, rows[i - 1][j - 1] + 1)
                }
                row.append(cost)
            }
            rows.append(row)
        }
        return rows[one.count][other.count]
    }
}
