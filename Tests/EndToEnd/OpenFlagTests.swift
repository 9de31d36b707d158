import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// Flags that a program changes after it has opened a file.
    @Suite struct ChangedFlags {
        /// Writes files in a directory with flags that are taken away in between.
        private static let program = """
            import fcntl, mmap, os, sys
            os.chdir(sys.argv[1])
            os.umask(0o22)
            for name, flags in ("old", 0), ("new", os.O_CREAT):
                file = os.open(name, os.O_WRONLY | os.O_APPEND | flags)
                os.write(file, b"0123456789")
                fcntl.fcntl(file, fcntl.F_SETFL, 0)
                os.pwrite(file, b"XX", 0)
                os.close(file)
            page = mmap.mmap(-1, 4096)
            page.write(b"d" * 4096)
            file = os.open("direct", os.O_WRONLY | os.O_CREAT | os.O_DIRECT)
            os.write(file, page)
            fcntl.fcntl(file, fcntl.F_SETFL, 0)
            os.write(file, b"end")
            os.close(file)
            """

        @Test("READ-10: O_APPEND and O_DIRECT that are taken away from an open file have no effect any more")
        func takenAway() async throws {
            try await Installation.mounted(["old": "first "]) { yonder async throws in
                #expect(try await yonder.shell("cat old") == "first ")
                try await Command.python(Self.program, yonder.mount.string).expectSuccess()
                try await yonder.expectSent()
                #expect(yonder.sourceText("old") == "XXrst 0123456789")
                #expect(yonder.sourceText("new") == "XX23456789")
                #expect(yonder.sourceText("direct") == String(repeating: "d", count: 4096) + "end")
            }
        }
    }
}
