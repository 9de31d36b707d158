import Foundation
import SystemPackage
import TestSupport
import Testing

/// A small file system for a state directory.
enum SmallDisk {
    static var isPossible: Bool { geteuid() == 0 }

    /// Runs a test with the state on a tmpfs, which is unmounted whatever the test does.
    ///
    /// - Parameter test: gets the installation, and the directory of the tmpfs.
    static func run(
        megabytes: Int = 64, _ test: (Installation, String) async throws -> Void
    ) async throws {
        try await Installation.run { yonder in
            let disk = try yonder.directory.makeDirectory("disk").string
            let mounted = try await Command.run(
                "mount", "-t", "tmpfs", "-o", "size=\(megabytes)m,mode=700", "tmpfs", disk)
            try #require(mounted.status == 0, "\(mounted.errors)")
            let small = yonder.with(["YONDER_STATE_DIR": disk + "/state"])
            try await withCleanUp({
                _ = try? await small.yonder("shutdown", seconds: 20)
                _ = try? await Command.run("umount", "-l", disk)
            }) {
                try await test(small, disk)
            }
        }
    }

    /// Leaves not one block.
    static func fill(_ disk: String) async throws {
        _ = try await Command.shell(
            "for size in 1M 4k; do dd if=/dev/zero of=\"$1/filler-$size-$$\" bs=$size 2>/dev/null; done; true", disk)
    }
}
