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

        /// Root's requests of more than a page are in a pipe of the thread that receives them. libfuse closes the pipe after a write that
        /// was refused, because the data is still in it.
        @Test(
            "a daemon that gets no more descriptors answers every request, also after large writes that were refused",
            .enabled("only root's requests are in pipes, and only root sets the limits of a daemon") {
                FUSEAvailability.isRoot
            })
        func noMoreDescriptors() async throws {
            try await Installation.mounted(["file": "text"], environment: ["YONDER_PASSTHROUGH": "0"]) {
                yonder async throws in
                let daemon = try #require(yonder.daemon)
                let script = """
                    import os, resource, sys
                    path, daemon = sys.argv[1], int(sys.argv[2])
                    file = os.open(path, os.O_RDWR)
                    data = b"x" * 65536
                    # Each serving thread gets a pipe.
                    for _ in range(16): os.pwrite(file, data, 0)
                    before = resource.prlimit(daemon, resource.RLIMIT_NOFILE)
                    resource.prlimit(daemon, resource.RLIMIT_NOFILE, (3, before[1]))
                    try:
                        for number in range(16):
                            try: os.pwrite(file, data, 1 << 62)
                            except OSError: pass
                            try: os.getxattr(file, "user.missing-%d" % number)
                            except OSError: pass
                    finally:
                        resource.prlimit(daemon, resource.RLIMIT_NOFILE, before)
                    os.pwrite(file, data, 0)
                    print(os.fstat(file).st_size)
                    """
                let outcome = try await Command.python(script, yonder["file"], String(daemon))
                #expect(outcome.output == "65536\n", "\(outcome.errors)")
                #expect(yonder.daemon == daemon)
            }
        }
    }
}
