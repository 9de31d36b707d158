import Foundation
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
                let outcome = try await Command.python(Self.program, yonder[name])
                #expect(outcome.status == 0, "\(outcome.errors)")
                #expect(try await yonder.yonder("wait", "--timeout", "30").status == 0)
                #expect(yonder.sourceText(name) == "MAPPED--")
            }
        }
    }
}
