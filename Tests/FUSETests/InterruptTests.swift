import FUSE
import Synchronization
import SystemPackage
import TestSupport
import Testing

@Suite(.tags(.mount, .timing), .enabled("\(FUSEAvailability.obstacle ?? "")") { FUSEAvailability.isAvailable })
struct InterruptTests {
    /// Reads one byte and says what came of it. It gets a signal soon that does nothing but break the call off.
    private static let patientReader = """
        import os, signal, sys
        def stop(*_): raise InterruptedError
        signal.signal(signal.SIGALRM, stop)
        f = os.open(sys.argv[1], os.O_RDONLY)
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        try: print(os.read(f, 1))
        except InterruptedError: print("interrupted")
        """

    @Test(arguments: ["INT", "TERM", "KILL"])
    func aSignalEndsAParkedRead(signal: String) async throws {
        try await Mounted.run { mount async throws in
            mount.fileSystem.add("parked", .parked(size: 5))
            let result = try await Command.run("timeout", "-s", signal, "0.3", "cat", mount["parked"])
            #expect(result.status != 0)
            #expect(result.duration < .seconds(5))
        }
    }

    @Test(arguments: [true, false])
    func tellsOfAnInterruptedRead(directIO: Bool) async throws {
        try await Mounted.run({ $0.asynchronousRead = directIO }) { mount async throws in
            mount.fileSystem.add("parked", .parked(size: 5))
            mount.fileSystem.state.withLock { $0.openOptions = directIO ? [.directIO] : [] }
            let result = try await Command.python(Self.patientReader, mount["parked"])
            #expect(result.line == "interrupted")
            #expect(result.duration < .seconds(5))
            #expect(mount.fileSystem.counts.interrupts >= 1)
        }
    }

    @Test(arguments: ["STOP", "TSTP", "CHLD", "WINCH"])
    func aReaderThatIsStoppedReadsOn(signal: String) async throws {
        try await Mounted.run({ $0.asynchronousRead = false }) { mount async throws in
            mount.fileSystem.add("parked", .parked(size: 5))
            mount.fileSystem.state.withLock { $0.openOptions = [.directIO] }
            let reader = Task { try await Command.shell("head -c 5 \"$1\"", mount["parked"]) }
            let isParked = await eventually { mount.fileSystem.hasParkedRead }
            #expect(isParked)
            // A shell waits for its child: the signal goes to that.
            try await Command.run("pkill", "-\(signal)", "-f", "^head -c 5 \(mount["parked"])$").expectSuccess()
            try await Task.sleep(for: .milliseconds(300))
            #expect(mount.fileSystem.counts.interrupts == 0)
            mount.fileSystem.takeParkedRead()?.reply.take()?.succeed(Array("bytes".utf8))
            _ = try await Command.run("pkill", "-CONT", "-f", "^head -c 5 \(mount["parked"])$")
            #expect(try await reader.value.line == "bytes")
        }
    }

    /// The kernel lists the signals of a process behind all of its groups.
    @Test(.enabled(if: FUSEAvailability.isRoot, "only root can be in any group"))
    func aReaderInManyGroupsReadsOn() async throws {
        try await Mounted.run({ $0.asynchronousRead = false }) { mount async throws in
            mount.fileSystem.add("parked", .parked(size: 5))
            mount.fileSystem.state.withLock { $0.openOptions = [.directIO] }
            let groups = (0..<1000).map { String(100_000_000 + $0) }.joined(separator: ",")
            let reader = Task {
                try await Command.run("setpriv", "--groups", groups, "head", "-c", "5", mount["parked"])
            }
            let isParked = await eventually { mount.fileSystem.hasParkedRead }
            #expect(isParked)
            try await Command.run("pkill", "-STOP", "-f", "^head -c 5 \(mount["parked"])$").expectSuccess()
            try await Task.sleep(for: .milliseconds(300))
            #expect(mount.fileSystem.counts.interrupts == 0)
            mount.fileSystem.takeParkedRead()?.reply.take()?.succeed(Array("bytes".utf8))
            _ = try await Command.run("pkill", "-CONT", "-f", "^head -c 5 \(mount["parked"])$")
            #expect(try await reader.value.line == "bytes")
        }
    }

    @Test func stoppedCallerCanBeKilled() async throws {
        try await Mounted.run { mount async throws in
            mount.fileSystem.add("parked", .parked(size: 5))
            let result = try await Command.shell(
                "cat \"$1\" & sleep 0.2; kill -STOP $!; sleep 0.3; kill -KILL $!; wait $!; echo $?", mount["parked"])
            #expect(result.line == "137")
            #expect(result.duration < .seconds(5))
        }
    }

    @Test func tellsOfAnInterruptedLookup() async throws {
        try await Mounted.run { mount async throws in
            let program = try await BackgroundProgram("stat", mount["parked lookup"])
            defer { program.kill() }
            #expect(await eventually { mount.fileSystem.state.withLock { !$0.parkedLookups.isEmpty } })
            program.interrupt()
            #expect(await program.ends())
            #expect(program.status != 0)
            #expect(await eventually { mount.fileSystem.counts.interrupts == 1 })
            #expect(try await Command.run("ls", mount.path.string).status == 0)
        }
    }

    @Test func survivesManyInterruptionsAtOnce() async throws {
        try await Mounted.run({ $0.asynchronousRead = false }) { mount async throws in
            mount.fileSystem.add("parked", .parked(size: 5))
            mount.fileSystem.state.withLock { $0.openOptions = [.directIO] }
            // Half of them are answered at about the moment in which they are interrupted.
            let answerer = Task {
                while !Task.isCancelled {
                    mount.fileSystem.takeParkedRead()?.reply.take()?.succeed([])
                    await Task.yield()
                }
            }
            let result = try await Command.shell(
                """
                for i in $(seq 100); do timeout -s INT 0.0$((i % 5 + 1)) cat "$1" & done
                wait
                echo done
                """, mount["parked"])
            answerer.cancel()
            await answerer.value
            #expect(result.line == "done")
            #expect(try await Command.run("ls", mount.path.string).line == "parked")
        }
    }
}
