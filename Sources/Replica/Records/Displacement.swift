import FileNames
import FileProvider

/// Names for items that have to make room for another while a batch or a listing is under way, and decorated names for
/// those that came second.
enum Displacement {
    /// A name that no lookup can ask for, because it holds a slash.
    static func name(forItem id: Int64) -> String { "/\(id)" }

    static func isDisplaced(_ name: String) -> Bool { name.utf8.first == 0x2F }

    /// The condition for a row of the table `item`: its name does not begin with a slash, after which comes the zero.
    static let isNotDisplaced = "(item.name < '/' OR item.name >= '0')"

    /// The name of a row of the table `item` for the user: that which it is to get, where it was displaced. Null if that is not known.
    static let nameForUser = "CASE WHEN \(isNotDisplaced) THEN item.name ELSE item.baseName END"

    /// The bytes of the longest name on Linux.
    static let mostBytes = 255

    /// `name (2).ext`, and so on: never longer than allowed.
    static func decorated(_ name: String, number: Int, atMost limit: Int = mostBytes) -> String {
        Self.name(name, with: " (\(number))", atMost: limit)
    }

    /// The name itself, or `name (2).ext` and so on where that is taken.
    static func freeName(
        for name: String, atMost limit: Int = mostBytes, isFree: (String) throws -> Bool
    ) rethrows -> String {
        func candidate(_ number: Int) -> String {
            number == 1
                ? Self.name(name, with: "", atMost: limit) : decorated(name, number: number, atMost: limit)
        }
        return try candidate(FreeNumber.search { try !isFree(candidate($0)) })
    }

    /// A name with something added before its ending, and cut there where it is longer than allowed.
    static func name(_ name: String, with suffix: String, atMost limit: Int = mostBytes) -> String {
        let dot = name.utf8.lastIndex(of: 0x2E).flatMap { $0 == name.utf8.startIndex ? nil : $0 } ?? name.utf8.endIndex
        var stem = String(name[..<dot])
        let ending = String(name[dot...])
        guard FileNameText.byteCount(of: ending) + suffix.utf8.count < limit else {
            return decoratedWhole(name, suffix: suffix, atMost: limit)
        }
        while FileNameText.byteCount(of: stem + suffix + ending) > limit { stem.unicodeScalars.removeLast() }
        return stem + suffix + ending
    }

    private static func decoratedWhole(_ name: String, suffix: String, atMost limit: Int) -> String {
        var stem = name
        while FileNameText.byteCount(of: stem + suffix) > limit { stem.unicodeScalars.removeLast() }
        return stem + suffix
    }
}
