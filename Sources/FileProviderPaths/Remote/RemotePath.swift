/// The names from the root of the domain down to an item.
///
///     let path = RemotePath(["photos", "2024", "beach.jpg"])
///     path.name    // "beach.jpg"
///     path.parent  // photos/2024
///
/// Two paths are equal if their bytes are: two Unicode forms of one text are two names.
public struct RemotePath: Hashable, Sendable {
    /// The names, from the root down; none for the root itself. No name is empty, `.` or `..`, or contains `/` or NUL.
    public var names: [String]

    /// A path of these names.
    public init(_ names: [String]) {
        self.names = names
    }

    /// The directory that is mounted.
    public static let root = RemotePath([])

    /// The last name; nil for the root.
    public var name: String? { names.last }
    /// The path of the directory that contains the item; the root's is the root.
    public var parent: RemotePath { RemotePath(names.dropLast()) }

    /// Whether a path can have a name: an empty one would refer to the directory itself, and two dots to the one above.
    package static func isName(_ name: String) -> Bool {
        !name.isEmpty && name != "." && name != ".." && !name.utf8.contains { $0 == UInt8(ascii: "/") || $0 == 0 }
    }

    /// Returns the path of an item in this directory.
    public func appending(_ name: String) -> RemotePath { RemotePath(names + [name]) }

    /// Whether the path begins with all names of another one, and has more.
    public func isBelow(_ other: RemotePath) -> Bool {
        names.count > other.names.count && RemotePath(Array(names.prefix(other.names.count))) == other
    }

    public static func == (one: RemotePath, other: RemotePath) -> Bool {
        one.names.count == other.names.count
            && zip(one.names, other.names).allSatisfy { $0.utf8.elementsEqual($1.utf8) }
    }

    public func hash(into hasher: inout Hasher) {
        for name in names {
            for byte in name.utf8 { hasher.combine(byte) }
            hasher.combine(UInt8(0))
        }
    }
}
