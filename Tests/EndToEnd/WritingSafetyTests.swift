import Foundation
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// What must hold whatever happens while something is written.
    @Suite struct WritingSafety {
        /// Writes files until it cannot, and notes each in a log elsewhere once it is closed.
        static let writer = """
            import os, sys
            root, log, name = sys.argv[1:4]
            done = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            number = 0
            try:
                while True:
                    number += 1
                    final = f'{root}/{name}-{number}'
                    path = final + '.part' if number % 3 == 0 else final
                    with open(path, 'wb') as file:
                        file.write(f'{name}-{number}\\n'.encode() * (number % 50 * 40 + 1))
                        if number % 2: file.flush(), os.fsync(file.fileno())
                    if path != final: os.rename(path, final)
                    os.write(done, f'{name}-{number}\\n'.encode())
            except OSError:
                pass
            """

        /// Says which of the files of a log are missing, or have other bytes.
        static let reader = """
            import sys
            root, log = sys.argv[1:3]
            for line in open(log):
                name = line.strip()
                number = int(name.split('-')[-1])
                try:
                    if open(f'{root}/{name}').read() != line * (number % 50 * 40 + 1): print('wrong', name)
                except OSError as error: print(error)
            """

        @Test("SEND-2: SIGKILL in the middle of four writers loses nothing that was closed, and sends nothing twice")
        func survivesSIGKILL() async throws {
            try await Installation.run { yonder in
                let log = yonder.directory["log"].string
                try await yonder.mountSource()
                for round in 0..<3 {
                    let written = Int.random(in: 20...150)
                    let before = Self.lines(of: log)
                    let writers = try await BackgroundProgram.start(forEach: 0..<4) {
                        ["python3", "-c", Self.writer, yonder.mount.string, log, "round\(round)-\($0)"]
                    }
                    defer { for writer in writers { writer.kill() } }
                    #expect(await eventually(within: .seconds(10)) { Self.lines(of: log) >= before + written })
                    try await yonder.killDaemon()
                    for writer in writers { #expect(await writer.ends()) }
                    #expect(try await yonder.yonder("mount", "mount").status == 0)
                    #expect(try await Command.python(Self.reader, yonder.mount.string, log).output == "")
                }
                try await yonder.expectSent()
                #expect(try await Command.python(Self.reader, yonder.source.string, log).output == "")
                // What has another name than any writer gave would be a second copy of something.
                let strange = try await Command.shell("ls -A \"$1\" | grep -v '^round' || true", yonder.source.string)
                #expect(strange.output == "")
                #expect(try await yonder.conflicts() == [:])
            }
        }

        @Test(
            "a full state disk refuses writers, keeps what was written, and works again when there is room",
            .enabled(if: FUSEAvailability.isRoot, "only root can make a small disk"))
        func survivesAFullDisk() async throws {
            try await SmallDisk.run(megabytes: 16) { yonder, disk in try await fill(yonder, disk) }
        }

        private func fill(_ yonder: Installation, _ disk: String) async throws {
            // Writes until the disk is full; a line for each file that was written whole.
            let fill = """
                import errno, os, sys
                root, name = sys.argv[1:3]
                for number in range(1000):
                    try:
                        descriptor = os.open(f'{root}/{name}-{number}', os.O_WRONLY | os.O_CREAT | os.O_EXCL)
                    except OSError as error:
                        print(errno.errorcode[error.errno])
                        break
                    try:
                        data = bytes([number % 251]) * int(sys.argv[3])
                        if os.write(descriptor, data) != len(data): raise OSError(errno.ENOSPC, 'short')
                        os.fsync(descriptor)
                        print(number, flush=True)
                    except OSError as error:
                        print(errno.errorcode[error.errno])
                        break
                    finally: os.close(descriptor)
                """
            let check = """
                import sys
                for number in range(int(sys.argv[2])):
                    data = open(f'{sys.argv[1]}/big-{number}', 'rb').read()
                    if data != bytes([number % 251]) * 1000000: print(number, len(data))
                """
            try await yonder.mountSource()
            #expect(try await Command.run("ls", "-A", yonder.mount.string).output == "")
            #expect(try await yonder.yonder("pause", "mount").status == 0)
            let big = try await Command.python(fill, yonder.mount.string, "big", "1000000")
            let lines = big.output.split(separator: "\n")
            #expect(lines.last == "ENOSPC", "\(big.output)\(big.errors)")
            let count = lines.count - 1
            #expect(count > 5)
            // Until not even a row fits.
            let small = try await Command.python(fill, yonder.mount.string, "small", "100")
            #expect(small.output.split(separator: "\n").last == "ENOSPC", "\(small.output)\(small.errors)")
            #expect(try await Command.python(check, yonder.mount.string, String(count)).output == "")
            #expect(try await Command.run("ls", yonder.mount.string).status == 0)

            #expect(try await Command.run("mount", "-o", "remount,size=64m", disk).status == 0)
            try await yonder.shell("echo again > again; cat again; rm -f small-1")
            #expect(try await yonder.yonder("resume", "mount").status == 0)
            try await yonder.expectSent()
            #expect(try await Command.python(check, yonder.source.string, String(count)).output == "")
        }

        @Test("WRITE-6: a file of 1 GiB is written, sent and downloaded without being held in memory")
        func writesHugeFiles() async throws {
            try await Installation.mounted { yonder async throws in
                let daemon = try #require(yonder.daemon)
                let written = try await Command.run(
                    "dd", "if=/dev/zero", "of=\(yonder["huge"])", "bs=1M", "count=1024", "status=none", seconds: 60)
                #expect(written.status == 0, "\(written.errors)")
                #expect(try await yonder.yonder("wait", "--timeout", "60", seconds: 70).status == 0)
                let sent = yonder.source.appending("huge").string
                try await Command.run("cmp", yonder["huge"], sent, seconds: 60).expectSuccess()
                // The kernel tells of a close a moment after it.
                #expect(try await eventually { try await yonder.yonder("evict", yonder["huge"]).status == 0 })
                try await Command.run("cmp", yonder["huge"], sent, seconds: 60).expectSuccess()
                let peak = try await Command.shell("awk '/^VmHWM/ { print $2 }' /proc/$1/status", String(daemon))
                #expect(try #require(Int(peak.line)) < 100_000, "kB at most: \(peak.line)")
            }
        }

        /// Writes a file anew without end, each generation one byte, all by one call. After some generations comes a pause in which the
        /// file begins to be sent.
        static let rewriter = """
            import os, sys, time
            descriptor = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
            generation = 0
            while True:
                generation += 1
                os.pwrite(descriptor, bytes([generation % 251]) * int(sys.argv[2]), 0)
                time.sleep(1.5 if generation % 10 == 0 else 0.01)
            """

        @Test("SEND-3: what is rewritten without end is never half of one and half of another in the source")
        func sendsNoMixture() async throws {
            try await Installation.mounted { yonder async throws in
                let look = """
                    import sys, time
                    seen = set()
                    end = time.monotonic() + 4
                    while time.monotonic() < end or len(seen) < 6 and time.monotonic() < end + 10:
                        for name in sys.argv[2:]:
                            try: data = open(f'{sys.argv[1]}/{name}', 'rb').read()
                            except FileNotFoundError: continue
                            if data and data.count(data[:1]) != len(data): print(name, 'is mixed'); sys.exit()
                            seen.add((name, data[:1]))
                        time.sleep(0.005)
                    print(len(seen))
                    """
                let sizes = ["4096", "300000", "20000000"]
                let writers = try await BackgroundProgram.start(forEach: sizes) {
                    ["python3", "-c", Self.rewriter, yonder["file\($0)"], $0]
                }
                defer { for writer in writers { writer.kill() } }
                // While a process waits, it is sent again after each change.
                let hurry = try await BackgroundProgram(
                    "sh", "-c", "while :; do \"$0\" wait --timeout 2; done", Installation.program,
                    environment: yonder.environment)
                defer { hurry.kill() }
                let seen = try await Command(
                    ["python3", "-c", look, yonder.source.string] + sizes.map { "file\($0)" }
                ).run()
                #expect(!seen.output.contains("mixed"), "\(seen.output)")
                // Some generations have arrived while they were written.
                #expect((Int(seen.line) ?? 0) > 5, "\(seen.output)\(seen.errors)")
                for writer in writers { writer.kill() }
                hurry.kill()
                for writer in writers { #expect(await writer.ends()) }
                // The last generation arrives, whole.
                try await yonder.expectSent()
            }
        }

        private static func lines(of path: String) -> Int {
            ((try? Data(contentsOf: URL(fileURLWithPath: path))) ?? Data()).count { $0 == 10 }
        }
    }
}
