import FUSE
import Foundation
import SystemPackage
import TestSupport
import Testing

/// Mounting without being root. Where the tests run as root, this very program is started again as an ordinary user,
/// and does there what the second of these tests says.
@Suite(.tags(.mount)) struct OrdinaryUserTests {
    private static let mark = "YONDER_TESTS_AS_ORDINARY_USER"
    private static var isPlayed: Bool { ProcessInfo.processInfo.environment[mark] != nil }

    @Test(
        .enabled("\(FUSEAvailability.ordinaryUserObstacle ?? "")") {
            FUSEAvailability.ordinaryUserObstacle == nil && !isPlayed
        })
    func mountsAsAnother() async throws {
        let program = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"]
        let reaches = try await Command(user + ["test", "-x", program]).run()
        try #require(reaches.status == 0, "an ordinary user cannot run \(program)")
        // The directory for temporary files that this process has may be closed to that user.
        let scratch = try TemporaryDirectory()
        defer { scratch.remove() }
        let owned = try await Command.run("chown", "65534:65534", scratch.path.string)
        try #require(owned.status == 0, "\(owned.errors)")
        let played = try await Command(
            user + [program, "--testing-library", "swift-testing", "--filter", "OrdinaryUserTests/mountsWithHelper"],
            environment: [Self.mark: "1", "HOME": scratch.path.string, "TMPDIR": scratch.path.string], seconds: 40
        ).run()
        #expect(played.status == 0, "\(played.output)\n\(played.errors)")
        #expect(
            (played.output + played.errors).contains("mountsWithHelper() passed"), "\(played.output)\n\(played.errors)")
    }

    @Test(
        .enabled("played by the test above, or run as an ordinary user") {
            isPlayed || (FUSEAvailability.isAvailable && !FUSEAvailability.isRoot)
        })
    func mountsWithHelper() async throws {
        try await Mounted.run({ $0.source = #"//yonder/a,b\c"# }) { mount async throws in
            #expect(mount.session.negotiated?.passthrough == false)
            #expect(mount.session.isMounted)
            mount.fileSystem.add("file", .bytes(Array("mine".utf8)))
            #expect(try await Command.run("cat", mount["file"]).output == "mine")
            let line = try await Command.shell(#"grep -F " $1 " /proc/mounts"#, mount.path.string).line
            #expect(line.hasPrefix(#"//yonder/a,b\134c "#))
            #expect(line.contains(" fuse.test "))
            try mount.session.unmount()
            await mount.session.waitUntilEnded()
        }
    }
}
