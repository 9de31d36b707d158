import Foundation
import SystemPackage

/// Which processes hold a path open, as /proc tells: those of this user, and all of them for root.
enum OpenHolders {
    struct Holder: Hashable, Sendable, CustomStringConvertible {
        var process: Int32
        var command: String

        var description: String { "\(command) (pid \(process))" }
    }

    /// Never touches the path itself.
    static func holders(of path: String) -> [Holder] {
        let files = FileManager.default
        let processes = (try? files.contentsOfDirectory(atPath: "/proc"))?.compactMap { Int32($0) } ?? []
        return processes.sorted().compactMap { process in
            let folder = "/proc/\(process)/fd"
            let descriptors = (try? files.contentsOfDirectory(atPath: folder)) ?? []
            let holdsIt = descriptors.contains { descriptor in
                (try? files.destinationOfSymbolicLink(atPath: "\(folder)/\(descriptor)"))?.utf8.elementsEqual(path.utf8)
                    ?? false
            }
            guard holdsIt || maps(process, path) else { return nil }
            let command = (try? String(contentsOfFile: "/proc/\(process)/comm", encoding: .utf8)) ?? "?"
            return Holder(process: process, command: command.trimmingCharacters(in: .newlines))
        }
    }

    private static func maps(_ process: Int32, _ path: String) -> Bool {
        guard let maps = try? String(contentsOfFile: "/proc/\(process)/maps", encoding: .utf8) else { return false }
        return maps.utf8.split(separator: UInt8(ascii: "\n")).contains { line in
            line.count > path.utf8.count && line.suffix(path.utf8.count).elementsEqual(path.utf8)
        }
    }
}
