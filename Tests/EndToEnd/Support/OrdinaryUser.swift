import SystemPackage
import TestSupport
import Testing

/// An installation of user 65534, played by root. Its files and its mount are that user's.
struct OrdinaryUser {
    let yonder: Installation

    /// The words before a program that this user runs.
    static let prefix = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"]

    static func run(_ test: (OrdinaryUser) async throws -> Void) async throws {
        try await Installation.run { installation in
            let home = installation.directory.path.string
            let owned = try await Command.run("chown", "-R", "65534:65534", home)
            try #require(owned.status == 0, "\(owned.errors)")
            let user = OrdinaryUser(
                yonder: installation.with([
                    "HOME": home, "SOURCE": installation.source.string, "MOUNT": installation.mount.string,
                ]))
            let reaches = try await user.shell("yonder --version")
            try #require(reaches.status == 0, "an ordinary user cannot run \(Installation.program)")
            try await withCleanUp({ _ = try? await user.shell("yonder shutdown") }) { try await test(user) }
        }
    }

    /// Runs a line of shell as that user, in which `yonder` is ours, `$SOURCE` the folder and `$MOUNT` where it is mounted.
    func shell(_ line: String, seconds: Int = 60) async throws -> Command.Outcome {
        try await Command(
            Self.prefix + ["bash", "-c", "yonder() { '\(Installation.program)' \"$@\"; }\n" + line],
            environment: yonder.environment, seconds: seconds
        ).run()
    }
}

extension Trait where Self == ConditionTrait {
    /// Skips a test of an ordinary user, and says why, where none can mount.
    static var ordinaryUser: Self {
        .enabled("\(FUSEAvailability.ordinaryUserObstacle ?? "")") { FUSEAvailability.ordinaryUserObstacle == nil }
    }
}
