import SystemPackage
import Testing

@testable import Syscalls

/// Whether a path leads to a mount, by lines as the kernel writes them.
@Suite struct MountTableTests {
    /// Whether the mount with the number 30 on `/home/u/m` is covered in a table with more mounts.
    private func isCovered(_ more: String...) -> Bool? {
        let lines = ["25 1 0:20 / / rw - ext4 /dev/a rw"] + more
        return MountTable(parsing: Array(lines.joined(separator: "\n").utf8)).place(of: 30, device: "0:50")?.isCovered
    }

    private let mount = "30 25 0:50 / /home/u/m rw - fuse.yonder //yonder/m rw"

    @Test("no other mount is on it or on a directory above it") func free() {
        #expect(isCovered(mount) == false)
        #expect(isCovered(mount, "31 30 0:51 / /home/u/m/below rw - tmpfs x rw") == false)
        #expect(isCovered(mount, "31 25 0:51 / /home/u/mm rw - tmpfs x rw") == false)
        #expect(isCovered(mount, "32 25 0:52 / /home/v rw - tmpfs x rw") == false)
        #expect(isCovered() == nil)
    }

    @Test("a mount on it or on a directory above it covers it, wherever its line is") func covered() {
        for path in ["/home/u", "/home", "/"] {
            let cover = "31 25 0:51 / \(path) rw - tmpfs x rw"
            #expect(isCovered(mount, cover) == true)
            #expect(isCovered(cover, mount) == true)
        }
        #expect(isCovered(mount, "31 30 0:51 / /home/u/m rw - tmpfs x rw") == true)
    }

    @Test("a table is parsed again when its text has changed, and only then") func parsedOnce() {
        let last = LastMountTable()
        var parsed = 0
        func paths(in line: String) -> [String] {
            last.mounts(of: Array(line.utf8)) { text in
                parsed += 1
                return MountTable(parsing: text).mounts
            }.map { String(decoding: $0.path, as: UTF8.self) }
        }
        let moved = mount.replacing("/home/u/m", with: "/home/v/m")
        let found = [mount, mount, moved, moved, mount].map(paths)
        #expect(found == [["/home/u/m"], ["/home/u/m"], ["/home/v/m"], ["/home/v/m"], ["/home/u/m"]])
        #expect(parsed == 3)
    }

    @Test("a path leads to the mount that the kernel finds on the way, whichever line comes first") func paths() {
        func mount(at path: String, _ more: String...) -> Int64? {
            let lines = more + ["25 1 0:20 / / rw - ext4 /dev/a rw", "1 1 0:1 / / rw - rootfs none rw"]
            return MountTable(parsing: Array(lines.joined(separator: "\n").utf8)).mount(containing: path)?.identifier
        }
        for path in ["/home/u/m", "/home/u/m/a/b"] { #expect(mount(at: path, self.mount) == 30) }
        for path in ["/", "/home/u", "/home/u/mm", "/home/u/m2/m"] { #expect(mount(at: path, self.mount) == 25) }
        // On it, in it, and on a directory above it.
        #expect(mount(at: "/home/u/m/a", "31 30 0:51 / /home/u/m rw - tmpfs x rw", self.mount) == 31)
        #expect(mount(at: "/home/u/m/a", "31 30 0:51 / /home/u/m/a rw - tmpfs x rw", self.mount) == 31)
        #expect(mount(at: "/home/u/m/b", "31 30 0:51 / /home/u/m/a rw - tmpfs x rw", self.mount) == 30)
        #expect(mount(at: "/home/u/m/a", self.mount, "31 25 0:51 / /home/u rw - tmpfs x rw") == 31)
        // It hides nothing from processes that have the old root.
        #expect(mount(at: "/home/u/m/a", self.mount, "31 25 0:51 / / rw - tmpfs x rw") == 30)
        // In a root that is no mount, as after chroot(2).
        let table = MountTable(parsing: Array(self.mount.utf8))
        #expect(table.mount(containing: "/home/u/m/a")?.identifier == 30)
        #expect(table.mount(containing: "/home/u") == nil)
    }

    @Test("a mount that it is on does not cover it, whichever came first; a mount over that one does") func above() {
        let moved = "30 40 0:50 / /home/u/m rw - fuse.yonder //yonder/m rw"
        let home = "40 25 0:60 / /home rw - ext4 /dev/b rw"
        #expect(isCovered(moved, home) == false && isCovered(home, moved) == false)
        #expect(isCovered(home, moved, "41 40 0:61 / /home rw - tmpfs x rw") == true)
        #expect(isCovered(home, moved, "41 25 0:61 / /home/u rw - tmpfs x rw") == false)
        #expect(isCovered(home, moved, "41 25 0:61 / / rw - tmpfs x rw") == true)
    }
}
