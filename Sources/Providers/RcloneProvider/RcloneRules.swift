enum RcloneRules {
    /// The rules that leave some items of a recursive listing out.
    static func excluding(_ items: [RcloneItem]) -> [String] {
        let directories = Set(items.filter(\.IsDir).map { Array(($0.Path ?? $0.Name).utf8) })
        // The rule of a directory covers all that is below it.
        return items.compactMap { item in
            let path = item.Path ?? item.Name
            let parent = path.utf8.split(separator: UInt8(ascii: "/")).dropLast().joined(separator: "/".utf8)
            if directories.contains(Array(parent)) { return nil }
            return pattern(of: path) + (item.IsDir ? "/**" : "")
        }
    }

    private static func pattern(of path: String) -> String {
        var pattern = "/".unicodeScalars
        for scalar in path.unicodeScalars {
            if "*?[]{}\\".unicodeScalars.contains(scalar) { pattern.append("\\") }
            // In rclone's responses it stands for bytes that are not UTF-8.
            pattern.append(scalar == "\u{FFFD}" ? "?" : scalar)
        }
        return String(pattern)
    }
}
