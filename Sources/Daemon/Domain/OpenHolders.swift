import Foundation
import Replica

/// Which processes hold an inode of a mount open, as /proc tells: those of this user, and all of them for root.
struct OpenHolders: Sendable {
    struct Holder: Hashable, Sendable, CustomStringConvertible {
        var process: Int32
        var command: String

        var description: String { "\(command) (pid \(process))" }
    }

    /// Where the inode is mounted.
    let mountpoint: String
    let inode: InodeNumber

    /// Never touches the mount itself.
    func find() -> [Holder] {
        let processes = Self.names(in: "/proc").compactMap { Int32($0) }
        return processes.sorted().compactMap { process in
            guard hasOpen(process) || maps(process) else { return nil }
            let command = Self.text(of: "/proc/\(process)/comm") ?? "?"
            return Holder(process: process, command: command.trimmingCharacters(in: .newlines))
        }
    }

    /// The link of a descriptor says where the file was found, which may be under another name now, so the inode counts.
    private func hasOpen(_ process: Int32) -> Bool {
        Self.names(in: "/proc/\(process)/fd").contains { descriptor in
            guard
                let path = try? FileManager.default.destinationOfSymbolicLink(
                    atPath: "/proc/\(process)/fd/\(descriptor)"),
                Mountpoint.contains(mountpoint, path),
                let information = Self.text(of: "/proc/\(process)/fdinfo/\(descriptor)")
            else { return false }
            return information.split(separator: "\n").contains { line in
                let fields = line.split(whereSeparator: \.isWhitespace)
                return fields.first == "ino:" && fields.last.flatMap { Int64($0) } == inode.rawValue
            }
        }
    }

    /// The fifth field of a mapping is the inode, the rest the path.
    private func maps(_ process: Int32) -> Bool {
        guard let maps = Self.text(of: "/proc/\(process)/maps") else { return false }
        return maps.split(separator: "\n").contains { line in
            let fields = line.split(separator: " ", maxSplits: 5)
            guard fields.count == 6, Int64(fields[4]) == inode.rawValue else { return false }
            return Mountpoint.contains(mountpoint, String(fields[5].drop { $0 == " " }))
        }
    }

    private static func names(in directory: String) -> [String] {
        (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
    }

    private static func text(of file: String) -> String? {
        try? String(contentsOfFile: file, encoding: .utf8)
    }
}
