import Foundation

/// Whether tests can mount on this machine.
package enum FUSEAvailability {
    /// Why not, for the tests that are skipped; nil when they can.
    package static let obstacle: String? = {
        let files = FileManager.default
        guard files.fileExists(atPath: "/dev/fuse") else { return "this machine has no /dev/fuse" }
        if isRoot || fusermount != nil { return nil }
        return "only root can mount here: fusermount3 is not installed"
    }()

    package static var isAvailable: Bool { obstacle == nil }

    /// Why an ordinary user cannot mount, or cannot be played by this process; nil when all is there.
    package static let ordinaryUserObstacle: String? = {
        if let obstacle { return obstacle }
        guard isRoot else { return "the tests run as an ordinary user already" }
        guard let fusermount else { return "fusermount3 is not installed" }
        let mode = try? FileManager.default.attributesOfItem(atPath: fusermount)[.posixPermissions] as? Int
        guard (mode ?? 0) & 0o4000 != 0 else { return "fusermount3 is not set-user-ID" }
        let device = try? FileManager.default.attributesOfItem(atPath: "/dev/fuse")[.posixPermissions] as? Int
        guard (device ?? 0) & 0o006 == 0o006 else { return "/dev/fuse is for root only" }
        guard find("setpriv") != nil else { return "setpriv is not installed" }
        return nil
    }()

    /// Whether this process may do all that root may, as far as its user tells.
    package static var isRoot: Bool { NSUserName() == "root" }

    private static let fusermount = find("fusermount3")

    private static func find(_ program: String) -> String? {
        let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
        return path.split(separator: ":").map { "\($0)/\(program)" }.first {
            FileManager.default.isExecutableFile(atPath: $0)
        }
    }
}
