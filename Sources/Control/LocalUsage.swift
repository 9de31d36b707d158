import FileProvider

/// How much of what lies below a directory is on this machine.
package struct LocalUsage: Sendable {
    package struct Entry: Codable, Hashable, Sendable {
        package var path: String
        /// The bytes on this machine.
        package var local: Int64
        /// The bytes of all that lies there.
        package var size: Int64
        /// The number of directories there that were never listed, and whose sizes are not in the sum.
        package var unlisted = 0
        /// `file`, `directory` or `symlink`; nil for the top.
        package var kind: String?
        /// `dataless`, `partial` or `materialized`; nil for the top.
        package var content: String?

        /// The sizes that a remote lists may exceed 64 bits together.
        fileprivate mutating func add(_ local: Int64, _ size: Int64, unlisted: Int = 0) {
            self.local = self.local.saturatingAdd(local)
            self.size = self.size.saturatingAdd(size)
            self.unlisted += unlisted
        }
    }

    private let top: String
    private let depth: Int
    private let showsFiles: Bool
    /// By the bytes of their paths. Two that differ only in Unicode normalization are equal as `String`.
    private var sums: [[UInt8]: Entry] = [:]
    private var counted: Set<Int64> = []

    /// - Parameters:
    ///   - depth: how many levels below the directory have entries of their own.
    ///   - showsFiles: whether files have, too.
    package init(below top: String, depth: Int, showsFiles: Bool) {
        self.top = top
        self.depth = depth
        self.showsFiles = showsFiles
        sums[Array(top.utf8)] = Entry(path: top, local: 0, size: 0)
    }

    package mutating func add(_ items: [ItemInformation]) {
        for item in items {
            let isDirectory = item.kind == "directory"
            let isNew = isDirectory || counted.insert(item.inode).inserted
            let (local, size) = isDirectory || !isNew ? (0, 0) : (item.localBytes, item.size)
            let unlisted = isDirectory && item.content != "materialized" ? 1 : 0
            let components = item.path.utf8.dropFirst(top.utf8.count).split(separator: UInt8(ascii: "/"))
            let shown = min(depth, components.count - (isDirectory || showsFiles ? 0 : 1))
            var path = top
            count(local, size, unlisted, at: path)
            for component in components.prefix(max(0, shown)) {
                path += (path == "/" ? "" : "/") + String(Substring(component))
                count(local, size, unlisted, at: path)
            }
            guard shown == components.count, shown > 0 else { continue }
            let key = Array(path.utf8)
            sums[key]?.kind = item.kind
            sums[key]?.content = item.content
        }
    }

    private mutating func count(_ local: Int64, _ size: Int64, _ unlisted: Int, at path: String) {
        sums[Array(path.utf8), default: Entry(path: path, local: 0, size: 0)].add(local, size, unlisted: unlisted)
    }

    /// The sums of some entries.
    package static func total(of entries: some Sequence<Entry>) -> (local: Int64, size: Int64) {
        var total = Entry(path: "", local: 0, size: 0)
        for entry in entries { total.add(entry.local, entry.size) }
        return (total.local, total.size)
    }

    /// The most local bytes first, and what holds an entry before it.
    package var entries: [Entry] {
        sums.values.sorted { one, other in
            if one.local != other.local { return one.local > other.local }
            if one.path.utf8.count != other.path.utf8.count { return one.path.utf8.count < other.path.utf8.count }
            return one.path.utf8.lexicographicallyPrecedes(other.path.utf8)
        }
    }
}
