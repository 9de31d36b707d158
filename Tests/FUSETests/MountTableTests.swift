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

    @Test("a mount that it is on does not cover it, whichever came first; a mount over that one does") func above() {
        let moved = "30 40 0:50 / /home/u/m rw - fuse.yonder //yonder/m rw"
        let home = "40 25 0:60 / /home rw - ext4 /dev/b rw"
        #expect(isCovered(moved, home) == false && isCovered(home, moved) == false)
        #expect(isCovered(home, moved, "41 40 0:61 / /home rw - tmpfs x rw") == true)
        #expect(isCovered(home, moved, "41 25 0:61 / /home/u rw - tmpfs x rw") == false)
        #expect(isCovered(home, moved, "41 25 0:61 / / rw - tmpfs x rw") == true)
    }
}
