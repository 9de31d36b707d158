import Foundation
import TestSupport
import Testing

extension RealMount {
    /// What the daemon holds open.
    @Suite struct Descriptors {
        /// The descriptors of a process by what they are: `anon_inode:inotify`, `/dev/fuse`, `pipe`, a path.
        private func kinds(of process: Int32) throws -> [String: Int] {
            let directory = "/proc/\(process)/fd"
            let targets = try FileManager.default.contentsOfDirectory(atPath: directory).compactMap {
                try? FileManager.default.destinationOfSymbolicLink(atPath: "\(directory)/\($0)")
            }
            // How many connections the database has open depends on how many readers there were at once.
            let kinds = targets.filter { !$0.contains("/state/") }.map { target in
                target.hasPrefix("/dev") ? target : String(target.prefix { $0 != "[" })
            }
            return Dictionary(grouping: kinds) { $0 }.mapValues(\.count)
        }

        @Test(
            "MOUNT-4: a mount and its unmount leave no descriptor behind",
            .enabled("only root sees the descriptors of a daemon (ACCESS-3)") { FUSEAvailability.isRoot })
        func remounting() async throws {
            try await Installation.mounted(["directory/file": "text"]) { yonder async throws in
                let daemon = try #require(yonder.daemon)
                func use() async throws {
                    #expect(try await Command.run("cat", yonder["directory/file"]).output == "text")
                    try await yonder.shell("echo more > directory/new; rm directory/new")
                    let mounted = try kinds(of: daemon)
                    #expect(mounted["/dev/fuse"] == 1)
                    #expect(mounted["anon_inode:inotify"] == 1)
                    #expect(try await yonder.yonder("unmount", "mount").status == 0)
                }
                // While nothing is mounted: libfuse makes a pipe for each thread that receives a request, and which do depends on what
                // else the machine does.
                try await use()
                let before = try kinds(of: daemon)
                let turns = 6
                for _ in 0..<turns {
                    #expect(try await yonder.yonder("mount", "mount").status == 0)
                    try await use()
                }
                // One more or less is no leak. A leak of one descriptor in each turn adds `turns` of them.
                var now = before
                let hasNoLeak = try await eventually {
                    now = try kinds(of: daemon)
                    return now.allSatisfy { $0.value < (before[$0.key] ?? 0) + turns }
                }
                #expect(hasNoLeak, "before \(before), now \(now)")
                #expect(yonder.daemon == daemon)
            }
        }
    }
}
