import FileNames
import Foundation
import Syscalls

/// Makes paths absolute for the daemon.
enum AbsolutePath {
    /// The kernel's limit of symbolic links in one path.
    private static let mostLinks = 40

    /// Makes a path absolute and resolves symbolic links outside of Yonder's mounts, except for the last component.
    /// Paths in a mount are not accessed, because that could list directories.
    static func resolving(_ text: String) -> String {
        let start = text.utf8.first == UInt8(ascii: "/") ? text : Machine.currentDirectory + "/" + text
        let mounts = mountpoints()
        var waiting = components(start)
        var path: [String] = []
        var links = 0
        while !waiting.isEmpty {
            let name = waiting.removeFirst()
            if name == ".." {
                _ = path.popLast()
                continue
            }
            path.append(name)
            let current = "/" + path.joined(separator: "/")
            // The daemon resolves the rest.
            if mounts.contains(where: { $0.utf8.elementsEqual(current.utf8) }) { return joined(path, waiting) }
            guard !waiting.isEmpty, links < mostLinks,
                let target = try? FileManager.default.destinationOfSymbolicLink(atPath: current)
            else { continue }
            links += 1
            path.removeLast()
            if target.utf8.first == UInt8(ascii: "/") { path = [] }
            waiting = components(target) + waiting
        }
        return "/" + path.joined(separator: "/")
    }

    /// Appends the rest of a path to a mount point and resolves `.` and `..` lexically.
    private static func joined(_ path: [String], _ rest: [String]) -> String {
        var path = path
        for name in rest {
            if name == ".." { _ = path.popLast() } else { path.append(name) }
        }
        return "/" + path.joined(separator: "/")
    }

    private static func components(_ path: String) -> [String] {
        path.utf8.split(separator: UInt8(ascii: "/")).map { String(Substring($0)) }.filter { $0 != "." }
    }

    /// Whether a mount of Yonder, dead or alive, belongs to a domain with this name, or contains this path.
    static func isInMount(_ text: String) -> Bool {
        let path = resolving(text)
        return mounts().contains { mount in
            mount.source.utf8.elementsEqual("//yonder/\(text)".utf8) || mount.path.utf8.elementsEqual(path.utf8)
                || path.utf8.starts(with: (mount.path + "/").utf8)
        }
    }

    /// The mount points of Yonder's mounts.
    private static func mountpoints() -> [String] { mounts().map(\.path) }

    /// Yonder's mounts, from /proc/self/mounts.
    private static func mounts() -> [(source: String, path: String)] {
        guard let table = FileManager.default.contents(atPath: "/proc/self/mounts") else { return [] }
        return table.split(separator: UInt8(ascii: "\n")).compactMap { line in
            let fields = line.split(separator: UInt8(ascii: " "))
            guard fields.count > 2, fields[2].elementsEqual("fuse.yonder".utf8) else { return nil }
            return (unescaped(Array(fields[0])), unescaped(Array(fields[1])))
        }
    }

    /// Decodes space, tab, newline and backslash, which the table has as a backslash and three octal digits.
    private static func unescaped(_ field: [UInt8]) -> String {
        var bytes: [UInt8] = []
        var rest = field[...]
        while let byte = rest.popFirst() {
            let digits = rest.prefix(3)
            if byte == UInt8(ascii: "\\"), digits.count == 3, digits.allSatisfy({ (48..<56).contains($0) }) {
                bytes.append(digits.reduce(0) { $0 &* 8 &+ ($1 - 48) })
                rest = rest.dropFirst(3)
            } else {
                bytes.append(byte)
            }
        }
        return FileNameText.text(of: bytes)
    }
}
