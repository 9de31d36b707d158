import Foundation
import Glibc
import Syscalls
import SystemPackage
import TestSupport
import Testing

@testable import Daemon

/// What a daemon ends that another one, which was killed, has started.
@Suite struct LeftProgramTests {
    @Test("TAKEOVER-12: a daemon ends the programs of the one before it, and no others")
    func endsTheirGroups() async throws {
        let folder = try TemporaryDirectory()
        defer { folder.remove() }
        func start(_ script: String, startedBy: String) async throws -> ChildProcess {
            var environment = ProcessInfo.processInfo.environment
            environment[LeftPrograms.variable] = startedBy
            return try await ChildProcess.start(
                ChildProcess.Launch("/bin/sh", ["-c", script, "sh", folder.path.string], environment: environment))
        }
        let mine = folder.path.string
        let script = "sleep 60 & echo $! > \"$1\"/child; setsid sleep 60 & echo $! > \"$1\"/session; wait"
        let left = try await start(script, startedBy: mine)
        let others = try await start("sleep 60", startedBy: mine + "2")
        defer { for process in [left, others] { process.killGroup() } }
        func number(_ name: String) -> Int32? {
            (try? String(contentsOfFile: folder[name].string, encoding: .utf8)).flatMap { Int32($0.dropLast()) }
        }
        #expect(await eventually { number("session").flatMap { ObservedProcess($0)?.session == $0 } ?? false })
        let (child, session) = (try #require(number("child")), try #require(number("session")))
        defer { kill(session, SIGKILL) }
        #expect(await LeftPrograms.kill(of: mine) == 1)
        #expect(await left.end(within: .seconds(5)) == .killed(signal: SIGKILL))
        #expect(await eventually { ObservedProcess(child).map { !$0.isRunning(as: $0) } ?? true })
        #expect(others.isRunning && kill(session, 0) == 0)
        #expect(await LeftPrograms.kill(of: mine) == 0)
    }
}
