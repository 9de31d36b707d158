import Foundation
import Synchronization
import Syscalls
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// Programs that watch files learn of what the remote changes. (inotify)
    @Suite struct WatchedFiles {
        /// Watches a directory and collects the events.
        private final class Watcher: Sendable {
            private let inotify: Inotify
            private let seen = Mutex<[Inotify.Event]>([])

            init(_ directory: String) throws {
                inotify = try Inotify()
                let file = try FileDescriptor.openDirectory(FilePath(directory))
                defer { try? file.close() }
                _ = try inotify.watch(file)
            }

            /// All events up to now.
            var events: [Inotify.Event] {
                let new = inotify.next()
                return seen.withLock { seen in
                    seen += new
                    return seen
                }
            }

            /// The names of changed files up to now.
            var changed: Set<String> { Set(events.filter { $0.kind == .changed }.compactMap(\.name)) }
        }

        /// The threads of the daemon that raise events.
        private func threads(of yonder: Installation) throws -> [String] {
            let tasks = "/proc/\(try #require(yonder.daemon))/task"
            return try FileManager.default.contentsOfDirectory(atPath: tasks).compactMap {
                try? String(contentsOfFile: "\(tasks)/\($0)/comm", encoding: .utf8)
            }.filter { $0 == "fuse-events\n" }
        }

        @Test("CHANGE-11: the watcher of a directory gets events for the remote's changes in it, and no others")
        func directories() async throws {
            try await Installation.mounted([
                "dir/one": "one", "dir/other": "other", "place/file": "elsewhere",
            ]) { yonder async throws in
                #expect(try await Command.run("ls", "-l", yonder["dir"], yonder["place"]).status == 0)
                let watcher = try Watcher(yonder["dir"])

                try yonder.write("one, changed", to: "dir/one")
                #expect(await eventually(within: .seconds(30)) { watcher.changed == ["one"] })
                #expect(try await Command.run("cat", yonder["dir/one"]).output == "one, changed")

                try yonder.write("two", to: "dir/two")
                try yonder.write("elsewhere, changed", to: "place/file")
                // The event of the directory may come after that of the file.
                #expect(
                    try await eventually(within: .seconds(30)) {
                        watcher.changed.contains("two") && watcher.events.contains { $0.kind == .directoryChanged }
                    })

                let count = watcher.events.count
                try FileManager.default.removeItem(atPath: yonder.source.appending("dir/other").string)
                #expect(
                    try await eventually(within: .seconds(30)) {
                        watcher.events.dropFirst(count).contains { $0.kind == .directoryChanged }
                    })
                #expect(watcher.changed == ["one", "two"])
                // An event causes no other: none comes for a while.
                var (seen, quietSince) = (watcher.events.count, ContinuousClock.now)
                #expect(
                    await eventually(within: .seconds(20)) {
                        let now = watcher.events.count
                        if now != seen { (seen, quietSince) = (now, .now) }
                        return ContinuousClock.now - quietSince > .seconds(3)
                    })
                #expect(try await yonder.yonder("wait", "--timeout", "0").status == 0)
            }
        }

        @Test(
            "CHANGE-11: events are raised in a read-only domain, and for a file of mode 444"
        )
        func filesWithoutRights() async throws {
            try await Installation.run { yonder in
                try yonder.write("one", to: "dir/one")
                try FileManager.default.setAttributes(
                    [.posixPermissions: 0o444], ofItemAtPath: yonder.source.appending("dir/one").string)
                try await yonder.mountSource("--read-only")
                #expect(try await Command.run("ls", "-l", yonder["dir"]).status == 0)
                let watcher = try Watcher(yonder["dir"])
                try FileManager.default.removeItem(atPath: yonder.source.appending("dir/one").string)
                try yonder.write("one, changed", to: "dir/one")
                #expect(await eventually(within: .seconds(30)) { watcher.changed == ["one"] })
            }
        }

        @Test("CHANGE-11: without a watcher no event is raised") func withoutWatchers() async throws {
            try await Installation.mounted(["dir/one": "one"]) { yonder async throws in
                #expect(try await Command.run("ls", "-l", yonder["dir"]).status == 0)
                try yonder.write("one, changed", to: "dir/one")
                #expect(
                    try await eventually(within: .seconds(30)) {
                        try await Command.run("cat", yonder["dir/one"]).output == "one, changed"
                    })
                try await Task.sleep(for: .seconds(1))
                #expect(try threads(of: yonder).isEmpty)

                let directory = try FileStatus(at: FilePath(yonder["dir"]))
                #expect(WatchedInodes(on: directory.device).isEmpty)
                let watcher = try Watcher(yonder["dir"])
                #expect(WatchedInodes(on: directory.device).numbers == [directory.inode])
                try yonder.write("one, once more", to: "dir/one")
                #expect(await eventually(within: .seconds(30)) { watcher.changed == ["one"] })
                #expect(try threads(of: yonder).count == 1)
            }
        }
    }
}
