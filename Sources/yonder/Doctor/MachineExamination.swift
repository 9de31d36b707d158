import Foundation
import Syscalls
import SystemPackage

/// The kernel, and what mounting needs of the system.
struct MachineExamination {
    /// The root of the file system; another one in tests.
    var root = "/"
    var path = ProcessInfo.processInfo.environment["PATH"] ?? ""
    var isRoot = Machine.userIdentifier == 0

    var findings: [Finding] { [kernel, device] + (isRoot ? [] : [fusermount]) }

    /// The first kernel that sends unanswered requests again, and reads files itself (FUSE_NOTIFY_RESEND, passthrough).
    private static let firstWhole = [6, 9]

    private var kernel: Finding {
        let release = (try? String(contentsOfFile: place("proc/sys/kernel/osrelease"), encoding: .utf8)) ?? ""
        let text = release.trimmingCharacters(in: .whitespacesAndNewlines)
        let numbers = text.split { !$0.isNumber }.prefix(2).compactMap { Int($0) }
        guard numbers.count == 2, numbers.lexicographicallyPrecedes(Self.firstWhole) else {
            let reading = isRoot ? ", and the kernel reads downloaded files itself" : ""
            return .ok("kernel", "Linux \(text): mounts outlive the daemon\(reading)")
        }
        return .warning(
            "kernel",
            "Linux \(text): when the daemon is killed, what is open on a mount fails, and the mount is made again",
            "Linux 6.9 or newer keeps it")
    }

    private var device: Finding {
        guard let obstacle = MountObstacle.ofDevice(root: FilePath(root)) else {
            return .ok("/dev/fuse", "it can be opened")
        }
        return .error(obstacle.subject, obstacle.reason, obstacle.advice)
    }

    private var fusermount: Finding {
        let program = "fusermount3"
        guard let found = Self.program(program, in: path) else {
            return .error(
                program, "it is not installed, and an ordinary user cannot mount without it",
                "install the package fuse3")
        }
        guard let status = try? FileStatus(at: FilePath(found)), status.permissions & 0o4000 != 0, status.owner == 0
        else {
            return .error(
                found, "it is not set-user-ID root, so an ordinary user cannot mount", "as root: chmod u+s \(found)")
        }
        return .ok(found, "an ordinary user can mount")
    }

    private func place(_ name: String) -> String { FilePath(root).appending(name).string }

    /// The path of a program in PATH.
    static func program(_ name: String, in path: String) -> String? {
        path.split(separator: ":").map { "\($0)/\(name)" }.first(where: FileManager.default.isExecutableFile)
    }
}
