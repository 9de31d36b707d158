import FileNames
import Foundation
import Replica
import Syscalls
import SystemPackage

/// The processes that have an inode of a mount open, from /proc: those of this user, or all for root.
struct OpenHolders: Sendable {
    struct Holder: Hashable, Sendable, CustomStringConvertible {
        var process: Int32
        var command: String

        var description: String { "\(command) (pid \(process))" }
    }

    /// The mount point of the domain.
    let mountpoint: String
    let inode: InodeNumber

    /// Without a process that has only inherited what its parent has open, as a command of a shell does. Does not access the mount.
    func find() -> [Holder] {
        let processes = Self.names(in: "/proc").compactMap { Int32($0) }
        var open: [Int32: Set<String>] = [:]
        var mapping: Set<Int32> = []
        for process in processes {
            let own = descriptors(process)
            if !own.isEmpty { open[process] = own }
            if maps(process) { mapping.insert(process) }
        }
        return mapping.union(open.keys).sorted().compactMap { process -> Holder? in
            if !mapping.contains(process), let own = open[process],
                let parent = ProcessStatus.value("PPid", of: process).flatMap({ Int32($0) }),
                open[parent]?.isSuperset(of: own) == true
            {
                return nil
            }
            let command = Self.text(of: "/proc/\(process)/comm") ?? "?"
            return Holder(process: process, command: command.trimmingCharacters(in: .newlines))
        }
    }

    /// The link of a descriptor shows the name at open time, so the inode is compared.
    private func descriptors(_ process: Int32) -> Set<String> {
        let open = Self.names(in: "/proc/\(process)/fd").filter { descriptor in
            guard
                let path = try? FilePath("/proc/\(process)/fd/\(descriptor)").linkTarget(),
                Mountpoint.contains(mountpoint, path),
                let information = Self.text(of: "/proc/\(process)/fdinfo/\(descriptor)")
            else { return false }
            return information.split(separator: "\n").contains { line in
                let fields = line.split(whereSeparator: \.isWhitespace)
                return fields.first == "ino:" && fields.last.flatMap { Int64($0) } == inode.rawValue
            }
        }
        return Set(open)
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
        (try? FilePath(file).contents()).map { FileNameText.text(of: $0) }
    }
}
