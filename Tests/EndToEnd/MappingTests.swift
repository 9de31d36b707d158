import Daemon
import FileProviderTesting
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// Files that are written through a mapping after their descriptor was closed.
    @Suite struct Mappings {
        /// Maps a file, closes it, waits, and stores. Python's own mapping keeps a descriptor open.
        private static let program = """
            import ctypes, os, sys, time
            libc = ctypes.CDLL(None, use_errno=True)
            libc.mmap.restype = ctypes.c_void_p
            libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
            file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
            if os.fstat(file).st_size == 0: os.write(file, b'original')
            address = libc.mmap(None, 4096, 3, 1, file, 0)
            os.close(file)
            time.sleep(2.5)
            ctypes.memmove(address, b'MAPPED--', 8)
            """

        @Test("SEND-5: a store through a mapping after the last close is sent", arguments: ["old", "new"])
        func storeAfterClose(in name: String) async throws {
            try await Installation.mounted(["old": "original"]) { yonder async throws in
                try await Command.python(Self.program, yonder[name]).expectSuccess()
                #expect(try await yonder.yonder("wait", "--timeout", "30").status == 0)
                #expect(yonder.sourceText(name) == "MAPPED--")
            }
        }

        /// Makes a file and stores 32 MiB in it through a mapping, which it keeps.
        private static let largeStore = """
            import mmap, os, sys, time
            file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
            os.ftruncate(file, 32 << 20)
            mapping = mmap.mmap(file, 32 << 20)
            mapping[:] = b'0123456789abcdef' * (2 << 20)
            open(sys.argv[2], 'w').close()
            time.sleep(100)
            """

        private static let comparison = """
            import sys
            sys.exit(open(sys.argv[1], 'rb').read() != b'0123456789abcdef' * (2 << 20))
            """

        @Test("MOUNT-2: an unmount whose caller goes away goes on to its end, and keeps what was stored")
        func unmountWithoutItsCaller() async throws {
            let directory = try TemporaryDirectory()
            defer { directory.remove() }
            let provider = InMemoryProvider()
            try await ProvidedMount.run(provider: provider, in: directory) { mount async throws in
                let ready = directory["ready"]
                let (program, _) = try await BackgroundProgram.start(
                    ["python3", "-c", Self.largeStore, mount["file"], ready.string], until: ready)
                defer { program.kill() }
                // As that of a command whose client was interrupted.
                let caller = Task { await mount.host.stop() }
                caller.cancel()
                _ = await caller.value
                #expect(!mount.host.isMounted)
            }
            let next = InMemoryProvider(tree: provider.tree)
            try await ProvidedMount.run(provider: next, in: directory) { mount async throws in
                try await Command.python(Self.comparison, mount["file"]).expectSuccess()
            }
        }
    }
}
