/// File names for the parts of keys, and back. A key's part between two slashes is a file name as it stands, unless no file
/// system can show it; then it gets a name with ``mark`` in it, so that nothing is hidden:
///
/// | in the bucket | shown as |
/// |---|---|
/// | an empty part (`a//b`) | `%yonder-empty` |
/// | `.` and `..` | `%yonder-dot`, `%yonder-dotdot` |
/// | keys below `a/` where there is an object `a` too | the directory `a%yonder-directory` |
/// | content in an object whose key ends with a slash | the file `%yonder-content` in that directory |
/// | a symbolic link's object that cannot be read, or where there is an object `a` or are keys below `a/` | the file `a.rclonelink` |
/// | a part that has `%yonder-` in it itself | with `%yonder-name-` before it |
/// | keys below such a part where there is an object of that name too | with `%yonder-directory-name-` before it |
enum KeyNames {
    static let mark = "%yonder-"
    static let empty = "%yonder-empty"
    static let dot = "%yonder-dot"
    static let dotDot = "%yonder-dotdot"
    static let directory = "%yonder-directory"
    static let content = "%yonder-content"
    static let literal = "%yonder-name-"
    static let literalDirectory = "%yonder-directory-name-"

    static func name(of part: String) -> String {
        switch part {
        case "": empty
        case ".": dot
        case "..": dotDot
        default: part.contains(mark) ? literal + part : part
        }
    }

    /// The name of a directory whose name an object has too.
    static func directoryName(of part: String) -> String {
        part.contains(mark) ? literalDirectory + part : name(of: part) + directory
    }

    /// The part of a key that a name stands for.
    static func part(of name: String) -> String {
        switch name {
        case empty: return ""
        case dot: return "."
        case dotDot: return ".."
        default:
            for prefix in [literal, literalDirectory] where name.hasPrefix(prefix) {
                return String(name.dropFirst(prefix.count))
            }
            return name.hasSuffix(directory) ? part(of: String(name.dropLast(directory.count))) : name
        }
    }

    /// Whether a name can only be a directory's.
    static func isDirectoryOnly(_ name: String) -> Bool {
        name == empty || name.hasPrefix(literalDirectory)
            || !name.hasPrefix(literal) && name.utf8.count > directory.utf8.count && name.hasSuffix(directory)
    }

    static func hasControlCharacters(_ key: String) -> Bool { key.utf8.contains { $0 < 0x20 || $0 == 0x7F } }

    /// Whether a new item may have this name: a name with a meaning of its own may not be made.
    static func canBeMade(_ name: String) -> Bool { !name.contains(mark) }
}

/// Symbolic links as `rclone --links` keeps them: objects with this at the end of their key, and the target inside.
enum LinkNames {
    static let suffix = ".rclonelink"
    /// The longest target, in bytes; a larger object is a file.
    static let longestTarget = 4095

    static func isOne(_ name: String) -> Bool { name.utf8.count > suffix.utf8.count && name.hasSuffix(suffix) }

    static func canBeTarget(_ size: Int64) -> Bool { (1...Int64(longestTarget)).contains(size) }
}
