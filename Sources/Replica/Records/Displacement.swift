import FileNames

/// Names for items that have to make room for another while a batch or a listing is under way, and decorated names for
/// those that came second.
enum Displacement {
    /// A name that no lookup can ask for, because it holds a slash.
    static func name(forItem id: Int64) -> String { "/\(id)" }

    static func isDisplaced(_ name: String) -> Bool { name.utf8.first == 0x2F }

    /// `name (2).ext`, and so on: never longer than Linux allows.
    static func decorated(_ name: String, number: Int) -> String { Self.name(name, with: " (\(number))") }

    /// A name with something added before its ending.
    static func name(_ name: String, with suffix: String) -> String {
        let dot = name.utf8.lastIndex(of: 0x2E).flatMap { $0 == name.utf8.startIndex ? nil : $0 } ?? name.utf8.endIndex
        var stem = String(name[..<dot])
        let ending = String(name[dot...])
        guard FileNameText.byteCount(of: ending) + suffix.utf8.count < 255 else {
            return decoratedWhole(name, suffix: suffix)
        }
        while FileNameText.byteCount(of: stem + suffix + ending) > 255 { stem.unicodeScalars.removeLast() }
        return stem + suffix + ending
    }

    private static func decoratedWhole(_ name: String, suffix: String) -> String {
        var stem = name
        while FileNameText.byteCount(of: stem + suffix) > 255 { stem.unicodeScalars.removeLast() }
        return stem + suffix
    }
}
