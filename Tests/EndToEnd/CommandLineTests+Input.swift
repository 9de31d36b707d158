import Control
import Foundation
import SystemPackage
import TestSupport
import Testing

/// Odd arguments, and variables of the environment.
extension RealMount.CommandLine {
    @Test("CMD-22: names among the arguments do not control the terminal when the arguments are wrong")
    func oddArguments() async throws {
        let outcome = try await Command([Installation.program, "ls", "a", "b\u{1B}[31m\u{9B}\u{202E}"]).run()
        #expect(outcome.status == 64 && outcome.output.isEmpty)
        #expect(outcome.errors.contains(#"b\x{1b}[31m\x{9b}\x{202e}"#), "\(outcome.errors)")
        #expect(!outcome.errors.unicodeScalars.contains { [0x1B, 0x9B, 0x202E].contains($0.value) })
        #expect(outcome.errors.contains("\nUsage: yonder ls"), "\(outcome.errors)")
    }

    @Test("CMD-23: relative paths in Yonder's variables begin in the command's directory, for its daemon, too")
    func relativeVariables() async throws {
        try await Installation.run { yonder in
            try "[ignore]\nnames = [\"x.part\"]\n".write(
                toFile: yonder.directory["config.toml"].string, atomically: true, encoding: .utf8)
            let here = yonder.with([
                "YONDER_STATE_DIR": "state", "YONDER_SOCKET": "./socket", "YONDER_CONFIG": "config.toml",
            ])
            let made = try await here.run(
                "cd \"$1\" && yonder mount source mount && echo x > mount/x.part && yonder info mount/x.part",
                yonder.directory.path.string)
            #expect(made.status == 0 && made.output.contains("excluded"), "\(made.output)\(made.errors)")
            // The same daemon by other paths.
            let below = yonder.with(["YONDER_STATE_DIR": "../state", "YONDER_SOCKET": "../socket"])
            let again = try await below.run("cd \"$1\" && yonder mount mount", yonder.source.string)
            #expect(again.status == 0 && again.errors == "", "\(again.errors)")
            try await yonder.yonder("status", "mount").expectSuccess()
        }
    }

    @Test(
        "CMD-23: a daemon whose variables have relative paths does not start",
        arguments: ["YONDER_STATE_DIR", "YONDER_SOCKET", "YONDER_CONFIG"])
    func relativeVariables(ofDaemon name: String) async throws {
        try await Installation.run { yonder in
            try await Command(
                [Installation.program + "d"], environment: yonder.with([name: "relative"]).environment
            ).run().expectFailure(64, saying: "\(name) has a relative path")
        }
    }
}
