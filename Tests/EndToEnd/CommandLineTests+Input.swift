import Control
import Foundation
import SystemPackage
import TestSupport
import Testing

/// Mistakes in arguments, and variables of the environment.
extension RealMount.CommandLine {
    @Test("CMD-22: names among the arguments do not control the terminal when the arguments are wrong")
    func oddArguments() async throws {
        let outcome = try await Command([Installation.program, "ls", "a", "b\u{1B}[31m\u{9B}\u{202E}"]).run()
        #expect(outcome.status == 64 && outcome.output.isEmpty)
        #expect(outcome.errors.contains(#"b\x{1b}[31m\x{9b}\x{202e}"#), "\(outcome.errors)")
        #expect(!outcome.errors.unicodeScalars.contains { [0x1B, 0x9B, 0x202E].contains($0.value) })
        #expect(outcome.errors.contains("\nUsage: yonder ls"), "\(outcome.errors)")
    }

    @Test("the check of programs refuses other sources, and 'yonder providers' knows a program by its name")
    func programNames() async throws {
        try await Installation.run { yonder in
            try await yonder.yonder("provider", "check", "s3://bucket").expectFailure(64, saying: "for programs only")
            let folder = try yonder.directory.makeDirectory("programs")
            let program = folder.appending("yonder-provider-some").string
            try "#!/bin/sh\n".write(toFile: program, atomically: true, encoding: .utf8)
            try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: program)
            let path = yonder.with(["PATH": "\(folder.string):/usr/bin:/bin"])
            let known = try await path.yonder("providers", "some")
            #expect(known.status == 0 && known.output.hasPrefix("program: "), "\(known.output)\(known.errors)")
            try await path.yonder("providers", "other").expectFailure(saying: "no such kind of source")
        }
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

    @Test(
        "ACCESS-7: a password in an address is refused before anything is done, and is not printed",
        arguments: [
            ["mount", "webdav://user:secret@127.0.0.1/", "DIR"], ["mount", "https://user:secret@host/", "DIR"],
            ["mount", "sftp://user:secret@host/"],
            ["import", "/", "webdav://user:sec/secret@host/", "DIR", "--yes"],
            ["mount", "s3://bucket", "DIR", "--endpoint", "https://user:secret@host"],
        ])
    func passwords(_ arguments: [String]) async throws {
        try await Installation.run { yonder in
            let words = arguments.map { $0 == "DIR" ? yonder.mount.string : $0 }
            let outcome = try await Command([Installation.program] + words, environment: yonder.environment).run()
            #expect(outcome.status == 64 && outcome.errors.contains("password"), "\(outcome.errors)")
            #expect(!(outcome.output + outcome.errors).contains("secret"))
            #expect(!FileManager.default.fileExists(atPath: yonder.directory["socket"].string))
        }
    }

    @Test(
        "CMD-8: a time of the last use is one of RFC 3339, with nothing behind it",
        arguments: [
            ("2026-01-31T12:00:00Z", 69), ("2026-01-31T12:00:00.123456789Z", 69), ("2026-01-31T12:00:00.5+02:00", 69),
            ("2026-01-31T12:00:00Z tomorrow", 64), ("2026-01-31T12:00:00+02:00Z", 64), ("2026-01-31T12:00:00+2", 64),
            ("2026-01-31T12:00:00.Z", 64), ("2026-02-30T12:00:00Z", 64), ("2026-01-31", 64), ("", 64),
        ])
    func times(_ time: String, _ status: Int32) async throws {
        try await Installation.run { yonder in
            let outcome = try await yonder.yonder("used", "--at", time, yonder["file"])
            #expect(outcome.status == status, "\(outcome.errors)")
            #expect(outcome.errors.contains(status == 64 ? "RFC 3339" : "no daemon answers"), "\(outcome.errors)")
        }
    }

    @Test("ACCESS-8: a secret that is not UTF-8 is refused, and not replaced by another") func secretOfOtherBytes()
        async throws
    {
        try await Installation.run { yonder in
            let line = "printf 'p\\344ss\\n' | yonder mount webdav://127.0.0.1:1/ \"$1\" --password-stdin"
            try await yonder.run(line, yonder.mount.string).expectFailure(
                64, saying: "the password is not text in UTF-8")
        }
    }

    @Test(
        "CMD-8: a common mistake is answered with what to type",
        arguments: [
            (["unmuont", "x"], 64, "did you mean 'unmount'?"),
            (["dowload", "x"], 64, "did you mean 'download'?"),
            (["frobnicate"], 64, "'yonder --help' lists all"),
            (["mount", "/", "DIR", "--cache-limit", "10"], 64, "give a unit, as in 10G"),
            (["mount", "https://127.0.0.1:1/a", "DIR"], 1, "did you mean 'webdavs://127.0.0.1:1/a'?"),
            (["mount", "dav://host/a", "DIR"], 1, "did you mean 'webdav://host/a'?"),
            (["mount", "file:///a b", "DIR"], 1, "did you mean '/a b'?"),
        ])
    func mistakes(_ arguments: [String], _ status: Int32, _ advice: String) async throws {
        try await Installation.run { yonder in
            let words = arguments.map { $0 == "DIR" ? yonder.mount.string : $0 }
            let outcome = try await Command([Installation.program] + words, environment: yonder.environment).run()
            #expect(outcome.status == status && outcome.errors.contains(advice), "\(outcome.errors)")
        }
    }

    @Test(
        "CMD-8: TLS to a port without TLS is told so, in words and without places of the build",
        .enabled(if: DAVServer.Kind.apache.program != nil, "apache2 is not installed"))
    func plainPort() async throws {
        let server = try await DAVServer.start(.apache)
        try await withCleanUp({ await server.stop() }) {
            try await Installation.run { yonder in
                let source = server.source.replacing("webdav://", with: "webdavs://")
                let outcome = try await yonder.yonder("mount", source, yonder.mount.string)
                #expect(outcome.status == 1)
                #expect(
                    outcome.errors.contains("does not speak TLS (wrong version number); 'webdav://'")
                        && !outcome.errors.contains(".cc"), "\(outcome.errors)")
            }
        }
    }
}
