import Foundation
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// The directory of a domain while the domain is not mounted.
    @Suite struct UnmountedDirectories {
        @Test(
            "MOUNT-9: an ordinary user cannot write to the directory of a domain while nothing is mounted there",
            .enabled("\(FUSEAvailability.ordinaryUserObstacle ?? "")") { FUSEAvailability.ordinaryUserObstacle == nil })
        func protected() async throws {
            try await OrdinaryUser.run { user in
                func check(_ line: String, _ status: Int32 = 0) async throws {
                    let outcome = try await user.shell(line)
                    #expect(outcome.status == status, "\(line): \(outcome.errors)")
                }
                try await check("yonder mount \"$SOURCE\" \"$MOUNT\" && touch \"$MOUNT/first\"")
                for _ in 0..<2 {
                    try await check("yonder unmount \"$MOUNT\"")
                    try await check("touch \"$MOUNT/lost\"", 1)
                    // A mount that fails leaves it as it was; where this one does not, it is taken back.
                    try await check("yonder mount mount --allow-other; yonder unmount mount; true")
                    try await check("touch \"$MOUNT/lost\"", 1)
                    try await check(
                        "yonder mount mount --no-allow-other && touch \"$MOUNT/other\" && ls \"$MOUNT\" | wc -l")
                }
                _ = try await user.yonder.killDaemonAndKeeper()
                try await check("fusermount3 -u \"$MOUNT\"")
                try await check("touch \"$MOUNT/lost\"", 1)
                let elsewhere = "yonder mount --name mount \"$SOURCE\" \"$HOME/elsewhere\""
                try await check("yonder mount mount && yonder unmount mount && \(elsewhere)")
                try await check("touch \"$MOUNT/own\" && rm \"$MOUNT/own\"")
                try await check("yonder unmount mount && yonder mount --name mount \"$SOURCE\" \"$MOUNT\"")
                try await check("touch \"$HOME/elsewhere/own\"")
                try await check("yonder remove mount")
                try await check("touch \"$MOUNT/own\"")
            }
        }

        @Test("MOUNT-9: a directory with files is no place for a mount, and the refusal names them")
        func occupied() async throws {
            try await Installation.run { yonder in
                let directory = yonder.mount.string
                try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
                for name in ["a", "b", "c", "d", "e"] {
                    try Data().write(to: URL(fileURLWithPath: directory + "/" + name))
                }
                let refused = try await yonder.yonder("mount", yonder.source.string, directory)
                #expect(refused.status == 1)
                #expect(refused.errors.contains("it has 'a', 'b', 'c' and 2 more"), "\(refused.errors)")
                #expect(try FileManager.default.contentsOfDirectory(atPath: directory).count == 5)
            }
        }
    }
}
