import ArgumentParser
import Control
import Foundation
import Synchronization

extension Yonder {
    struct DiskUsage: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "du", abstract: "Show what takes local room, the most first.",
            discussion: """
                Counts the bytes that are on this machine, below a path. Beside them stands how much there would be if everything \
                was downloaded. Fetches nothing. A file with several names counts once.
                """)

        @Option(
            name: [.customShort("d"), .long],
            help: ArgumentHelp("Show directories so many levels below the path.", valueName: "number"))
        var depth = 1

        @Flag(name: .shortAndLong, help: "Show files, too.")
        var all = false

        @Argument(help: "A path in a mount; by default the working directory.")
        var path: AbsolutePath?

        @OptionGroup var output: OutputOptions

        func validate() throws {
            if depth < 0 { throw ValidationError("--depth takes a number") }
        }

        func run() async throws {
            let top = path?.text ?? AbsolutePath.resolving(".")
            let usage = Mutex(LocalUsage(below: top, depth: depth, showsFiles: all))
            let daemon = DaemonConnection()
            let result = try await daemon.perform(
                .ls(path: top, isRecursive: true),
                onPart: { part in if case .items(let items) = part { usage.withLock { $0.add(items) } } })
            guard case .items(let items) = result else { throw unexpected(result) }
            let entries = usage.withLock { usage in
                usage.add(items)
                return usage.entries
            }
            try Output(output).print(entries) {
                Output.table(
                    entries.map { [ByteText.text($0.local), "of \(ByteText.text($0.size))", Output.shown($0.path)] })
            }
        }
    }
}

/// How much of what lies below a directory is on this machine.
struct LocalUsage {
    struct Entry: Codable, Hashable {
        var path: String
        /// The bytes on this machine.
        var local: Int64
        /// The bytes of all that lies there.
        var size: Int64
    }

    private let top: String
    private let depth: Int
    private let showsFiles: Bool
    private var sums: [String: Entry] = [:]
    private var counted: Set<Int64> = []

    /// - Parameters:
    ///   - depth: how many levels below the directory have entries of their own.
    ///   - showsFiles: whether files have, too.
    init(below top: String, depth: Int, showsFiles: Bool) {
        self.top = top
        self.depth = depth
        self.showsFiles = showsFiles
        sums[top] = Entry(path: top, local: 0, size: 0)
    }

    mutating func add(_ items: [ItemInformation]) {
        for item in items {
            let isDirectory = item.kind == "directory"
            let isNew = isDirectory || counted.insert(item.inode).inserted
            let (local, size) = isDirectory || !isNew ? (0, 0) : (item.localBytes, item.size)
            let components = item.path.utf8.dropFirst(top.utf8.count).split(separator: UInt8(ascii: "/"))
            let shown = min(depth, components.count - (isDirectory || showsFiles ? 0 : 1))
            var path = top
            count(local, size, at: path)
            for component in components.prefix(max(0, shown)) {
                path += (path == "/" ? "" : "/") + String(Substring(component))
                count(local, size, at: path)
            }
        }
    }

    private mutating func count(_ local: Int64, _ size: Int64, at path: String) {
        sums[path, default: Entry(path: path, local: 0, size: 0)].local += local
        sums[path]?.size += size
    }

    /// The most local bytes first, and what holds an entry before it.
    var entries: [Entry] {
        sums.values.sorted { one, other in
            if one.local != other.local { return one.local > other.local }
            if one.path.utf8.count != other.path.utf8.count { return one.path.utf8.count < other.path.utf8.count }
            return one.path < other.path
        }
    }
}
