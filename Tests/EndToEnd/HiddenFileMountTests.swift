import Foundation
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// What the daemon makes on a server for itself, at a distance that gives a test time to end it.
    @Suite(.enabled(if: DAVServer.Kind.apache.program != nil, "apache2 is not installed")) struct HiddenFileMounts {
        /// The names on the server that are not the user's.
        private func hidden(_ remote: FarRemote) -> [String] {
            guard let folder = remote.folder?.string else { return [] }
            let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
            return names.filter { $0.hasPrefix(".yonder-") }
        }

        /// Mounts a folder, and writes a file until the server has some hidden ones.
        private func write(_ yonder: Installation, _ remote: FarRemote) async throws {
            try await remote.mount(yonder)
            #expect(try await Command.shell("echo text > \"$1\"", yonder["file"]).status == 0)
            #expect(await eventually(within: .seconds(20)) { hidden(remote).count > 3 })
        }

        @Test("DAV-13: an unmount just after the first write leaves nothing hidden on the server") func unmounts()
            async throws
        {
            try await FarRemote.run(.webDAV, milliseconds: 100) { remote, yonder in
                try await write(yonder, remote)
                #expect(try await yonder.yonder("unmount", yonder.mount.string).status == 0)
                #expect(hidden(remote) == [])
                // What was written then comes at the next mount.
                try await remote.mount(yonder)
                #expect(try await yonder.yonder("wait", "--timeout", "50").status == 0)
                #expect(try await remote.has("file") && hidden(remote) == [])
            }
        }

        @Test("DAV-14: what a daemon that was killed has left on the server goes when it is mounted again")
        func isKilled() async throws {
            try await FarRemote.run(.webDAV, milliseconds: 100) { remote, yonder in
                try await write(yonder, remote)
                try await yonder.killDaemon()
                let left = Set(hidden(remote))
                #expect(!left.isEmpty)
                try await remote.mount(yonder)
                #expect(await eventually(within: .seconds(30)) { left.isDisjoint(with: hidden(remote)) })
                #expect(try await yonder.yonder("wait", "--timeout", "50").status == 0)
                #expect(await eventually(within: .seconds(10)) { hidden(remote) == [] })
            }
        }
    }
}
