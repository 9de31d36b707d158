import Control
import Foundation
import SystemPackage
import TestSupport
import Testing

/// Names of domains, and paths, among the arguments.
extension RealMount.CommandLine {
    @Test("CMD-17: a domain is found by its name also where the working directory was removed")
    func removedDirectory() async throws {
        try await Installation.mounted { yonder async throws in
            let line = "mkdir \"$1\"; cd \"$1\"; rmdir \"$1\"; yonder status "
            let gone = yonder.directory["gone"].string
            try await yonder.run(line + "mount", gone).expectSuccess()
            try await yonder.run(line + "nosuch", gone).expectFailure(69, saying: "no such domain")
            try await yonder.run(line + ".", gone).expectFailure(64, saying: "the working directory is gone")
        }
    }

    @Test("CMD-17: a word that is neither a domain nor an item is not taken for a path in the working directory")
    func mistypedNames() async throws {
        try await Installation.mounted(["file": "x", "d/e": "x"]) { yonder async throws in
            #expect(try await yonder.run("ls \"$1\" >/dev/null", yonder.mount.string).status == 0)
            for command in [
                "unmount nosuch", "pause nosuch", "set nosuch poll=5", "show nosuch", "signal nosuch",
                "wait nosuch", "check nosuch", "mount nosuch",
                "trash empty nosuch", "remove nosuch --keep none --force", "remove d/../nosuch --keep none --force",
            ] {
                let outcome = try await yonder.run("cd \"$1\" && yonder \(command)", yonder.mount.string)
                #expect(
                    outcome.status != 0 && outcome.errors.contains("no such domain"),
                    "\(command): \(outcome.errors)")
            }
            #expect(try await yonder.status().connection == .online)
            for path in ["file", ".", "./file", "d/unlisted", "\"$1\"/file"] {
                let outcome = try await yonder.run("cd \"$1\" && yonder signal \(path)", yonder.mount.string)
                #expect(outcome.status == 0, "\(path): \(outcome.errors)")
            }
            // The name of a mount point is a path, also where nothing is mounted.
            #expect(try await yonder.run("cd \"$1\"/.. && yonder unmount mount", yonder.mount.string).status == 0)
            #expect(try await yonder.run("cd \"$1\" && yonder mount nosuch", yonder.mount.string).status != 0)
        }
    }

    @Test("CMD-8: what a refusal says to type is for a shell, also for a domain whose name has spaces")
    func nameWithSpaces() async throws {
        try await Installation.mounted(["file": "x"], options: ["--name", "my photos"]) { yonder async throws in
            try await yonder.yonder("unmount", "my photos").expectSuccess()
            let refused = try await yonder.yonder("status", "my photos")
            let advice = try #require(refused.errors.split(separator: "'").dropFirst().first, "\(refused.errors)")
            #expect(advice == #"yonder mount my\ photos"#, "\(refused.errors)")
            try await yonder.run(String(advice)).expectSuccess()
            try await yonder.yonder("status", "my photos").expectSuccess()
        }
    }

    @Test("the name of a domain that is not mounted is not taken for a path in another domain's mount")
    func namesTakePrecedenceOverPaths() async throws {
        try await Installation.mounted(["other/file": "x"]) { yonder async throws in
            let second = try yonder.directory.makeDirectory("second source")
            let mounted = try await yonder.yonder(
                "mount", second.string, yonder.directory["second"].string, "--name", "other")
            #expect(mounted.status == 0, "\(mounted.errors)")
            #expect(try await yonder.yonder("unmount", "other").status == 0)
            for command in ["status", "pending", "signal", "conflicts", "wait"] {
                let outcome = try await yonder.run("cd \"$1\" && yonder \(command) other", yonder.mount.string)
                #expect(
                    outcome.status == 69 && outcome.errors.contains("not mounted"), "\(command): \(outcome.errors)")
                let path = try await yonder.run(
                    "cd \"$1\" && ls > /dev/null && yonder \(command) ./other", yonder.mount.string)
                #expect(path.status == 0, "\(command): \(path.errors)")
            }
        }
    }
}
