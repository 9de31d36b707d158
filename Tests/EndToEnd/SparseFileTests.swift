import Control
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// Holes of files: in the mount, in the local copy, and in a source folder.
    @Suite struct SparseFiles {
        /// Makes a file of 64 MiB with 4 KiB of data in the middle.
        private static let make = """
            python3 -c '
            import os, sys
            file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
            os.ftruncate(file, 64 << 20)
            os.pwrite(file, b"x" * 4096, 32 << 20)
            ' "$1"
            """

        /// The blocks of a file, as `stat` prints them.
        private func blocks(_ path: String) async throws -> Int {
            let outcome = try await Command.run("stat", "-c", "%b", path)
            return try #require(Int(outcome.output.dropLast()), "\(outcome.errors)")
        }

        @Test("READ-6: a download from a folder and an upload to a folder keep the holes of a file") func holes()
            async throws
        {
            try await Installation.run { yonder in
                try await yonder.expectDone(Self.make, yonder.source.appending("theirs").string)
                try await yonder.mountSource()
                // A part counts as what it takes, too.
                #expect(try await yonder.yonder("download", "--range", "0:8388608", yonder["theirs"]).status == 0)
                #expect(try await eventually { try await yonder.info("theirs").localBytes >= 8 << 20 })
                #expect(try await yonder.info("theirs").content == "partial")
                #expect(try await (1...256).contains(blocks(yonder["theirs"])))
                try await yonder.shell("cat theirs > /dev/null")
                #expect(try await eventually { try await yonder.info("theirs").content == "materialized" })
                #expect(try await blocks(yonder["theirs"]) <= 256)
                // A new file, a copy of it, and another version of a file that the source has.
                try await yonder.expectDone(Self.make, yonder["ours"])
                try await yonder.shell("cp --sparse=auto ours copy; printf x | dd of=theirs bs=1 seek=100 conv=notrunc")
                for name in ["ours", "copy", "theirs"] { #expect(try await blocks(yonder[name]) <= 256) }
                try await yonder.expectSent()
                for name in ["ours", "copy", "theirs"] {
                    #expect(try await blocks(yonder.source.appending(name).string) <= 256, "\(name)")
                }
                try await yonder.shell("cmp ours copy; cmp ours \"$1\"", yonder.source.appending("copy").string)
            }
        }

        @Test("READ-6: st_blocks, SEEK_DATA and SEEK_HOLE tell of a local file what its content file has")
        func extents()
            async throws
        {
            try await Installation.mounted { yonder async throws in
                try await yonder.expectDone(Self.make, yonder["sparse"])
                try await yonder.shell("truncate -s 1G empty; head -c 1000000 /dev/urandom > dense; printf x > small")
                let extents = try await yonder.shell(
                    """
                    python3 -c '
                    import os
                    file = os.open("sparse", os.O_RDONLY)
                    start = os.lseek(file, 0, os.SEEK_DATA)
                    print(start, os.lseek(file, start, os.SEEK_HOLE), os.lseek(file, 0, os.SEEK_HOLE))'
                    """)
                #expect(extents == "\(32 << 20) \((32 << 20) + 4096) 0\n")
                #expect(try await blocks(yonder["empty"]) == 0)
                #expect(try await blocks(yonder["small"]) == 8)
                #expect(try await blocks(yonder["dense"]) >= 1_000_000 / 512)
                let local = try await yonder.shell("fallocate -p -o 0 -l 512K dense; stat -c %b dense")
                #expect(try #require(Int(local.dropLast())) < 1200)
                // The same in a mount whose daemon knows only what the database says.
                try await yonder.expectSent()
                _ = try await yonder.yonder("shutdown")
                try await yonder.mountSource()
                #expect(try await blocks(yonder["empty"]) == 0)
                #expect(try await blocks(yonder["sparse"]) <= 256)
                #expect(try await blocks(yonder["dense"]) < 1200)
                #expect(try await blocks(yonder.source.appending("empty").string) == 0)
            }
        }

        @Test("READ-6: a file that is open for writing has no holes: a store through a mapping is copied")
        func mapped() async throws {
            try await Installation.mounted { yonder async throws in
                try await yonder.shell("truncate -s 1M sparse")
                let copy = try await yonder.shell(
                    """
                    python3 -c '
                    import mmap, os, subprocess
                    file = os.open("sparse", os.O_RDWR)
                    mapping = mmap.mmap(file, 1 << 20)
                    mapping[500000:500006] = b"stored"
                    subprocess.run(["cp", "--sparse=always", "sparse", "copy"], check=True)
                    print(open("copy", "rb").read()[500000:500006])
                    subprocess.run(["tar", "-Scf", "archive", "sparse"], check=True)
                    print(b"stored" in open("archive", "rb").read())'
                    """)
                #expect(copy == "b'stored'\nTrue\n")
            }
        }
    }
}
