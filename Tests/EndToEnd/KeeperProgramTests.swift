import Foundation
import SystemPackage
import TestSupport
import Testing

/// `yonder-keeper` with a worker of the tests.
@Suite(.serialized) struct KeeperPrograms {
    /// What a worker has found at its start.
    private struct Start: Decodable {
        var pid: Int32
        var parent: Int32
        var inherited: [[String]]
        var open: Int
        var isForMe: Bool
        /// When the process was started, in seconds.
        var time: Double
        var watchdog: String?
        var restarts: String
    }

    /// A keeper whose workers execute a plan each.
    private struct Run {
        let directory: TemporaryDirectory
        let program: BackgroundProgram

        func starts() throws -> [Start] {
            try (0...).lazy.map { directory["\($0).json"].string }
                .prefix { FileManager.default.fileExists(atPath: $0) }
                .map { try JSONDecoder().decode(Start.self, from: Data(contentsOf: URL(fileURLWithPath: $0))) }
        }

        func waitForStarts(_ count: Int, within time: Duration = .seconds(15)) async throws -> [Start] {
            #expect(try await eventually(within: time) { try starts().count >= count })
            let all = try starts()
            try #require(all.count >= count)
            return all
        }

        /// Returns when the keeper has handled all messages of a worker.
        func waitForBarrier(of start: Start) async throws {
            let passed = directory["\(start.pid).barrier"].string
            #expect(await eventually(within: .seconds(15)) { FileManager.default.fileExists(atPath: passed) })
        }
    }

    private func run(options: [String] = [], _ plan: [String], _ test: (Run) async throws -> Void) async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let folder = URL(fileURLWithPath: Installation.program).deletingLastPathComponent().path
        let words = String(decoding: try JSONEncoder().encode(plan), as: UTF8.self)
        let program = try await BackgroundProgram(
            ["\(folder)/yonder-keeper"] + options
                + ["--", "/usr/bin/python3", Self.worker, directory.path.string, words])
        let run = Run(directory: directory, program: program)
        defer {
            program.kill()
            for start in (try? run.starts()) ?? [] { Foundation.kill(start.pid, SIGKILL) }
        }
        try await test(run)
    }

    private static let worker = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("Programs/keeper/worker.py").path

    @Test("after SIGKILL the next worker has the stored descriptors with their names") func handsOver() async throws {
        try await run([
            "store one first store gone x store two second remove gone ready barrier sleep 60",
            "store three third ready barrier sleep 60", "ready sleep 60",
        ]) { run in
            let first = try await run.waitForStarts(1)[0]
            #expect(first.inherited.isEmpty && !first.isForMe && first.restarts == "0")
            #expect(first.watchdog == "60000000" && first.parent == run.program.processIdentifier)
            try await run.waitForBarrier(of: first)
            kill(first.pid, SIGKILL)
            let second = try await run.waitForStarts(2)[1]
            #expect(second.inherited == [["one", "first"], ["two", "second"]])
            #expect(second.isForMe && second.restarts == "1")
            // Two descriptors more, and none of the keeper's.
            #expect(second.open == first.open + 2)
            try await run.waitForBarrier(of: second)
            kill(second.pid, SIGKILL)
            let third = try await run.waitForStarts(3)[2]
            #expect(third.inherited == [["one", "first"], ["two", "second"], ["three", "third"]])
            let memory = try await Command.shell(
                "sed -n 's/^VmRSS:[^0-9]*\\([0-9]*\\) kB/\\1/p' /proc/$1/status", String(run.program.processIdentifier))
            #expect(try #require(Int(memory.line)) < 10_000)
        }
    }

    @Test(
        "TAKEOVER-12: what a worker has started ends with it, but for what has a session of its own",
        arguments: ["die SIGKILL", "exit 133"])
    func endsChildren(_ end: String) async throws {
        try await run(["ready start \(end)", "ready sleep 60"]) { run in
            _ = try await run.waitForStarts(2)
            let numbers = try String(contentsOfFile: run.directory["started"].string, encoding: .utf8)
                .split(whereSeparator: \.isWhitespace).compactMap { Int32($0) }
            try #require(numbers.count == 3)
            defer { kill(numbers[2], SIGKILL) }
            // The keeper has reaped them as well.
            #expect(await eventually(within: .seconds(15)) { numbers.prefix(2).allSatisfy { kill($0, 0) != 0 } })
            #expect(kill(numbers[2], 0) == 0)
        }
    }

    @Test("a crash loop backs off") func backsOff() async throws {
        try await run(options: ["--longest-pause", "0.6"], ["ready sleep 60", "die SIGSEGV"]) { run in
            kill(try await run.waitForStarts(1)[0].pid, SIGKILL)
            let times = try await run.waitForStarts(7).map(\.time)
            let pauses = zip(times, times.dropFirst()).map { $1 - $0 }
            // The kill is no crash. After the first crash at once, then with growing pauses.
            #expect(pauses[2] >= 0.1 && pauses[3] >= 0.2 && pauses[4] >= 0.5 && pauses[5] >= 0.6, "\(pauses)")
            #expect(run.program.isRunning)
            // It ends also while no worker runs.
            run.program.interrupt()
            #expect(await run.program.ends())
        }
    }

    @Test("a worker that misses its watchdog is killed, also a stopped one") func watchdog() async throws {
        try await run(
            options: ["--watchdog", "1"], ["ready alive 3 sleep 60", "ready die SIGSTOP", "ready alive 60"]
        ) { run in
            let starts = try await run.waitForStarts(3, within: .seconds(60))
            let text = try String(contentsOfFile: run.directory["0.alive"].string, encoding: .utf8)
            let lastReport = try #require(Double(text))
            // On a loaded machine a worker may report nothing for a second, and is killed then, too. A start is counted in ticks of 10 ms.
            #expect(starts[1].time - lastReport > 0.98, "it was killed although it reported life")
            #expect(run.program.isRunning)
        }
    }

    @Test(
        "the keeper ends with a worker that ends orderly, or is killed while it does",
        arguments: [("ready exit 0", 0), ("exit 69", 69), ("ready last die SIGKILL", 0), ("ready last exit 1", 0)])
    func ends(_ plan: String, _ status: Int32) async throws {
        try await run([plan]) { run in
            #expect(await run.program.ends(within: .seconds(10)))
            #expect(run.program.status == status)
            let starts = try run.starts()
            #expect(starts.count == 1)
        }
    }

    @Test("a worker that asks for it, or fails after it was ready, is started again", arguments: [133, 1])
    func startsAgain(_ status: Int32) async throws {
        try await run(["ready exit \(status)", "ready exit 0"]) { run in
            #expect(await run.program.ends(within: .seconds(10)))
            #expect(run.program.status == 0)
            let restarts = try run.starts().map(\.restarts)
            #expect(restarts == ["0", "1"])
        }
    }

    @Test("SIGTERM is passed to the worker, whose status is the keeper's") func terminates() async throws {
        try await run(["ready sleep 60"]) { run in
            _ = try await run.waitForStarts(1)
            kill(run.program.processIdentifier, SIGTERM)
            #expect(await run.program.ends())
            #expect(run.program.status == 128 + SIGTERM)
        }
    }

    @Test("broken messages, and messages of other processes, change nothing") func isHostile() async throws {
        try await run(["ready store kept x broken strangers barrier die SIGKILL", "ready sleep 60"]) { run in
            let second = try await run.waitForStarts(2)[1]
            #expect(second.inherited == [["kept", "x"]])
            #expect(run.program.isRunning)
            let descriptors = try FileManager.default.contentsOfDirectory(
                atPath: "/proc/\(run.program.processIdentifier)/fd")
            #expect(descriptors.count < 10, "descriptors of refused messages stay open")
        }
    }

    @Test("wrong usage has a status of its own") func usage() async throws {
        let folder = URL(fileURLWithPath: Installation.program).deletingLastPathComponent().path
        try await Command.run("\(folder)/yonder-keeper", "--nonsense").expectFailure(64, saying: "usage:")
    }
}
