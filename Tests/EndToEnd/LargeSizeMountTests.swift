import Foundation
import SystemPackage
import TestSupport
import Testing

private enum SharedMemory {
    static var isPossible: Bool { FileManager.default.isWritableFile(atPath: "/dev/shm") }
}

extension RealMount {
    /// Sizes near the end of 64 bits, as processes set them. The state lies on tmpfs, which takes them.
    @Suite(.enabled(if: SharedMemory.isPossible, "there is no tmpfs that this user can write")) struct LargeSizes {
        private func run(_ test: (Installation) async throws -> Void) async throws {
            let state = "/dev/shm/yonder-\(UUID().uuidString)"
            defer { try? FileManager.default.removeItem(atPath: state) }
            try await Installation.run { yonder in
                let installation = yonder.with(["YONDER_STATE_DIR": state])
                try await withCleanUp({ _ = try await installation.yonder("shutdown", seconds: 20) }) {
                    try await test(installation)
                }
            }
        }

        @Test("WRITE-7: a file is not made larger than 2^62 bytes, and the daemon lives", arguments: ["0", "1"])
        func sizesAreRefused(passthrough: String) async throws {
            try await run { other in
                let yonder = other.with(["YONDER_PASSTHROUGH": passthrough])
                try yonder.write("small", to: "small")
                try await yonder.mountSource()
                #expect(try await yonder.shell("ls") == "small\n")
                #expect(try await yonder.yonder("pause", "mount").status == 0)
                let script = """
                    import os, sys, errno
                    fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
                    def attempt(call, *arguments):
                        try:
                            call(fd, *arguments)
                            return 'done'
                        except OSError as error:
                            return errno.errorcode[error.errno]
                    print(attempt(os.ftruncate, 2**63 - 1), attempt(os.ftruncate, 2**62 + 1), attempt(os.ftruncate, 5))
                    # The kernel writes by itself where it may, and its own limit is higher.
                    attempt(os.pwrite, b'x', 2**63 - 2)
                    attempt(os.posix_fallocate, 2**62, 2**62 - 1)
                    print(os.fstat(fd).st_size >= 5)
                    os.close(fd)
                    """
                let outcome = try await Command.python(script, yonder["huge"])
                #expect(outcome.output == "EFBIG EFBIG done\nTrue\n", "\(outcome.output)\(outcome.errors)")
                let daemon = yonder.daemon
                for line in ["ls -la huge", "stat huge", "head -c 5 huge | wc -c", "rm huge", "ls"] {
                    let seen = try await Command.shell("cd \"$1\" && \(line)", yonder.mount.string)
                    #expect(seen.status == 0, "\(line): \(seen.errors)")
                }
                #expect(try await yonder.yonder("status").status == 0)
                #expect(yonder.daemon == daemon)
            }
        }
    }
}
