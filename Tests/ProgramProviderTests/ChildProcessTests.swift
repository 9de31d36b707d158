import FileProvider
import Foundation
import Syscalls
import SystemPackage
import TestSupport
import Testing

@Suite struct ChildProcessTests {
    private let environment = ["PATH": "/usr/bin:/bin", "LC_ALL": "C"]

    private func shell(_ line: String) -> ChildProcess.Launch {
        ChildProcess.Launch("sh", ["-c", line], environment: environment)
    }

    @Test("a program inherits its three descriptors and no others, however many are open here")
    func descriptors() async throws {
        var opened: [FileDescriptor] = []
        defer { for descriptor in opened { try? descriptor.close() } }
        // Not closed on exec, and more than a page of directory entries.
        for _ in 0..<400 { opened.append(try FileDescriptor.open("/dev/null", .readOnly)) }
        let (end, output) = try await ChildProcess.run(
            shell("ls /proc/self/fd"), reading: .output, within: .seconds(20))
        #expect(end == .exited(0))
        // The fourth is the directory that `ls` reads.
        #expect(String(decoding: output, as: UTF8.self) == "0\n1\n2\n3\n")
    }

    @Test("a program that is started by a cancelled task can be ended") func cancelledStart() async throws {
        let launch = shell("sleep 60")
        let starting = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await ChildProcess.start(launch)
        }
        let result = try #require(await starting.result(within: .seconds(20)))
        let process = try result.get()
        process.killGroup()
        #expect(await process.end(within: .seconds(20)) != nil)
    }

    @Test("a program blocks and ignores no signal, leads a process group, and has the environment that it is given")
    func state() async throws {
        let process = try await ChildProcess.start(shell("sleep 60"))
        defer { process.killGroup() }
        // Its own words: before it has begun, all signals are blocked for a moment.
        let (_, bytes) = try await ChildProcess.run(
            shell("cat /proc/self/status"), reading: .output, within: .seconds(20))
        let status = String(decoding: bytes, as: UTF8.self)
        for field in ["SigBlk", "SigIgn"] {
            let line = try #require(status.split(separator: "\n").first { $0.hasPrefix(field) })
            let signals = try #require(UInt64(line.suffix(16), radix: 16))
            // 32 and 33 are the C library's own, which no program uses.
            #expect(signals & ~0x1_8000_0000 == 0, "\(line)")
        }
        #expect(getpgid(process.processIdentifier) == process.processIdentifier)
        let (_, output) = try await ChildProcess.run(shell("env; pwd"), reading: .output, within: .seconds(20))
        let lines = Set(String(decoding: output, as: UTF8.self).split(separator: "\n").map(String.init))
        #expect(
            lines.isSubset(of: [
                "PATH=/usr/bin:/bin", "LC_ALL=C", "PWD=/", "_=/usr/bin/env", "OLDPWD=/", "SHLVL=0", "/",
            ]))
        #expect(lines.isSuperset(of: ["PATH=/usr/bin:/bin", "/"]))
    }

    @Test("its end is known with its status, also when it is killed, and with those that it has started")
    func ends() async throws {
        #expect(await (try ChildProcess.start(shell("exit 3"))).waitForEnd() == .exited(3))
        let killed = try await ChildProcess.start(shell("kill -9 $$"))
        #expect(await killed.waitForEnd() == .killed(signal: 9))
        #expect(killed.end?.exitStatus == 137 && !killed.isRunning)
        let parent = try await ChildProcess.startWithPipes(shell("sleep 60 & echo $!; wait"))
        defer { parent.pipes.closeAll() }
        #expect(await parent.process.end(within: .milliseconds(50)) == nil)
        let bytes = try [UInt8](unsafeUninitializedCapacity: 100) { buffer, count in
            count = try parent.pipes.output.read(into: .init(buffer))
        }
        let child = try #require(Int32(String(decoding: bytes, as: UTF8.self).trimmingCharacters(in: .newlines)))
        parent.process.killGroup()
        #expect(await parent.process.end(within: .seconds(20)) == .killed(signal: 9))
        // In a container no process may reap it.
        let isGone = await eventually {
            let status = try? String(contentsOfFile: "/proc/\(child)/status", encoding: .utf8)
            return status?.contains("State:\tZ") ?? true
        }
        #expect(isGone)
    }

    @Test("one that is missing, prints too much, hangs or whose caller is cancelled is an error")
    func errors() async throws {
        let missing = ChildProcess.Launch("no-such-program", environment: environment)
        await #expect(throws: ChildProcess.StartError.self) { try await ChildProcess.start(missing) }
        await #expect(throws: ChildProcess.RunError.tooMuchOutput) {
            try await ChildProcess.run(
                shell("head -c 100001 /dev/zero"), reading: .output, limit: 100_000, within: .seconds(20))
        }
        await #expect(throws: ChildProcess.RunError.timedOut) {
            try await ChildProcess.run(shell("sleep 60; :"), reading: .errors, within: .milliseconds(200))
        }
        let launch = shell("sleep 60; :")
        let task = Task { try await ChildProcess.run(launch, reading: .output, within: .seconds(20)) }
        try await Task.sleep(for: .milliseconds(100))
        task.cancel()
        let clock = ContinuousClock()
        let start = clock.now
        await #expect(throws: CancellationError.self) { _ = try await task.value }
        #expect(clock.now - start < .seconds(10))
    }
}
