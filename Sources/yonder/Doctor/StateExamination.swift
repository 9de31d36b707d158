import Control
import Foundation
import Syscalls
import SystemPackage

/// The directories of the daemon, and the disk below them.
struct StateExamination {
    let places: Places
    var mounts: [MountTable.Mount] = (try? MountTable().mounts) ?? []
    /// The free space below which downloads evict, and changes may find no room, in bytes.
    static let scarce: Int64 = 1 << 30

    var findings: [Finding] {
        do {
            try places.check()
        } catch {
            return [.error(error.path ?? "directories", error.message)]
        }
        return [disk] + (fileSystem.map { [$0] } ?? [])
    }

    /// The state directory, or the nearest one above it that exists.
    private var directory: FilePath {
        var path = FilePath(places.stateDirectory)
        while !FileManager.default.fileExists(atPath: path.string), path.removeLastComponent() {}
        return path
    }

    private var disk: Finding {
        let subject = places.stateDirectory
        guard let statistics = try? FileSystemStatistics(of: directory) else {
            return .error(subject, "its file system cannot be examined")
        }
        if statistics.isReadOnly {
            return .error(
                subject, "its file system is read-only, so nothing can be mounted", Self.otherDirectory)
        }
        if let obstacle { return .error(subject, obstacle, Self.otherDirectory) }
        guard statistics.blocks > 0 else { return .ok(subject, "its file system does not say how much is free") }
        let free = Int64(clamping: statistics.availableBlocks.multipliedReportingOverflow(by: statistics.blockSize).0)
        let text = "\(ByteText.text(free)) are free for changes and downloads"
        guard free < Self.scarce else { return .ok(subject, text) }
        return .warning(subject, "only \(text)", "'yonder evict' and --cache-limit give space back")
    }

    private static let otherDirectory = "set YONDER_STATE_DIR to another directory"

    /// File systems of the kernel, in which no files can be made. Permissions do not say that to root.
    private static let kernels: Set<String> = ["proc", "sysfs"]

    /// Why the state directory cannot be made or written; nil where nothing is known against it. Nothing is written to find out.
    private var obstacle: String? {
        if let type = fileSystemType, Self.kernels.contains(type) {
            return "it is on \(type), where no files can be made"
        }
        let nearest = directory.string
        let files = FileManager.default
        guard !files.isWritableFile(atPath: nearest) || !files.isExecutableFile(atPath: nearest) else { return nil }
        return nearest == FilePath(places.stateDirectory).string
            ? "it cannot be written" : "it cannot be made: '\(nearest)' cannot be written"
    }

    /// Types of file systems that do not keep what is written, or not as a database needs it.
    private static let remote: Set<String> = ["nfs", "nfs4", "cifs", "smb3", "9p", "afs", "ceph"]

    /// The type of the file system; nil if the table of mounts cannot be read.
    private var fileSystemType: String? {
        let path = directory.string
        let holding = mounts.filter { mount in
            let top = String(decoding: mount.path, as: UTF8.self)
            return path == top || path.hasPrefix(top.hasSuffix("/") ? top : top + "/")
        }
        return holding.max(by: { $0.path.count <= $1.path.count })?.type
    }

    /// A finding about the kind of file system; nil for an ordinary one.
    private var fileSystem: Finding? {
        guard let type = fileSystemType else { return nil }
        let advice = "set YONDER_STATE_DIR to a directory on a local disk"
        if type == "tmpfs" || type == "ramfs" {
            return .error(
                places.stateDirectory, "it is in memory (\(type)): a restart loses changes that wait", advice)
        }
        guard Self.remote.contains(type) || type.hasPrefix("fuse") else { return nil }
        return .warning(
            places.stateDirectory, "it is on \(type), where databases are slow and file locks may not hold", advice)
    }
}
