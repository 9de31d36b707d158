import Foundation
import SystemPackage
import TestSupport
import Testing

/// What the units of the packages have a shell do.
@Suite struct UnitEnvironmentTests {
    /// Runs the first shell command of a unit under a key, as systemd does.
    private func run(
        _ key: String, of unit: String, programs: FilePath, environment: [String: String]
    ) async throws -> Command.Outcome {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appendingPathComponent("Packaging/systemd/" + unit)
        let text = try String(contentsOf: file, encoding: .utf8)
        let start = key + "=/bin/sh -c '"
        let line = try #require(text.split(separator: "\n").first { $0.hasPrefix(start) })
        let words = String(line.dropFirst(start.count).dropLast()).replacing("$$", with: "$")
            .replacing("@bindir@", with: programs.string)
        return try await Command(["/bin/sh", "-c", words], environment: environment).run()
    }

    @Test(
        "CMD-23: the units ignore a relative XDG_STATE_HOME",
        arguments: [
            ("user/yonderd.service", "", "/h/.local/state"), ("user/yonderd.service", "state", "/h/.local/state"),
            ("user/yonderd.service", "/s", "/s"), ("system/yonderd@.service", "./state", "/h/.local/state"),
            ("system/yonderd@.service", "/s", "/s"),
        ])
    func crashReport(_ unit: String, given: String, used: String) async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let keeper = try directory.makeFile("yonder-keeper", Array("#!/bin/sh\necho \"$@\"\n".utf8))
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: keeper.string)
        let outcome = try await run(
            "ExecStart", of: unit, programs: directory.path, environment: ["HOME": "/h", "XDG_STATE_HOME": given])
        #expect(
            outcome.line == "--crash-report \(used)/yonder/crash-loop -- \(directory["yonderd"])",
            "\(outcome.errors)")
    }

    @Test("CMD-23: domains are mounted at the login also with a relative XDG_STATE_HOME", arguments: [true, false])
    func login(hasDomains: Bool) async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        if hasDomains { _ = try directory.makeDirectory(".local/state/yonder/domains/d") }
        let outcome = try await run(
            "ExecCondition", of: "user/yonderd-login.service", programs: directory.path,
            environment: ["HOME": directory.path.string, "XDG_STATE_HOME": "state"])
        #expect(outcome.status == (hasDomains ? 0 : 1), "\(outcome.errors)")
    }
}
