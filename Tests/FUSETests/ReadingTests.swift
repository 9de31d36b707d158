import FUSE
import Syscalls
import SystemPackage
import TestSupport
import Testing

@Suite(.tags(.mount), .enabled("\(FUSEAvailability.obstacle ?? "")") { FUSEAvailability.isAvailable })
struct ReadingTests {
    @Test func listsAndReads() async throws {
        try await Mounted.run { mount async throws in
            let folder = mount.fileSystem.add("folder", .children([:]))
            // The same text in two forms of Unicode: two files.
            mount.fileSystem.add(FileName("e\u{301}"), .bytes(Array("decomposed".utf8)), to: folder)
            mount.fileSystem.add(FileName("\u{e9}"), .bytes(Array("composed".utf8)), to: folder)
            mount.fileSystem.add(FileName(bytes: [0xff, 0x0a]), .bytes(Array("odd".utf8)), to: folder)
            mount.fileSystem.add("link", .target(Array("folder".utf8)))
            let listing = try await Command.python(
                "import os,sys; print(sorted(os.listdir(os.fsencode(sys.argv[1]))))", mount["folder"])
            #expect(listing.line == #"[b'e\xcc\x81', b'\xc3\xa9', b'\xff\n']"#)
            #expect(try await Command.run("cat", mount["folder/e\u{301}"]).output == "decomposed")
            #expect(try await Command.run("cat", mount["link/\u{e9}"]).output == "composed")
            #expect(try await Command.run("readlink", mount["link"]).line == "folder")
            #expect(
                try await Command.shell("LC_ALL=C stat -c '%F %s %a' \"$1\"", mount["folder/\u{e9}"]).line
                    == "regular file 8 644")
        }
    }

    @Test func listsALargeDirectory() async throws {
        try await Mounted.run { mount async throws in
            for number in 0..<2000 {
                mount.fileSystem.add(FileName("a rather long name, number \(number)"), .bytes([]))
            }
            #expect(try await Command.shell("ls -l \"$1\" | wc -l", mount.path.string).line == "2001")
            #expect(try await Command.shell("find \"$1\" -type f | sort -u | wc -l", mount.path.string).line == "2000")
        }
    }

    @Test func answersAParkedReadLater() async throws {
        try await Mounted.run { mount async throws in
            mount.fileSystem.add("parked", .parked(size: 5))
            let reader = Task { try await Command.run("cat", mount["parked"]) }
            #expect(await eventually { mount.fileSystem.counts.reads > 0 })
            // A parked read occupies no serving thread.
            #expect(try await Command.run("ls", mount.path.string).line == "parked")
            let parked = try #require(mount.fileSystem.takeParkedRead()).reply
            parked.take()?.succeed(Array("later".utf8))
            let isTaken = parked.take() == nil
            #expect(isTaken)
            #expect(try await reader.value.output == "later")
        }
    }

    @Test func aForgottenReplyIsEIO() async throws {
        try await Mounted.run { mount async throws in
            mount.fileSystem.add("forgotten", .forgotten(size: 5))
            try await Command.shell("LC_ALL=C cat \"$1\"", mount["forgotten"])
                .expectFailure(saying: "Input/output error")
        }
    }

    @Test func splicesFromAFile() async throws {
        try await Mounted.run { mount async throws in
            let bytes = (0..<3_000_001).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
            let path = try mount.directory.makeFile("source", bytes)
            let file = OwnedDescriptor(try FileDescriptor.open(path, .readOnly))
            mount.fileSystem.add("spliced", .file(file, size: UInt64(bytes.count)))
            #expect(try await Command.run("cmp", path.string, mount["spliced"]).status == 0)
            // The source is shorter than its reported size: the kernel adds zeros.
            mount.fileSystem.add("short", .file(file, size: UInt64(bytes.count) + 5000))
            #expect(try await Command.run("cmp", "-n", "3000001", path.string, mount["short"]).status == 0)
        }
    }

    @Test func answersFromAFileOnAnotherThread() async throws {
        try await Mounted.run { mount async throws in
            let path = try mount.directory.makeFile("source", Array(repeating: 7, count: 100_000))
            let file = OwnedDescriptor(try FileDescriptor.open(path, .readOnly))
            mount.fileSystem.add("parked", .parked(size: 100_000))
            let reader = Task { try await Command.run("cmp", path.string, mount["parked"]) }
            let answerer = Task {
                while !Task.isCancelled {
                    if let read = mount.fileSystem.takeParkedRead() {
                        // More than was asked for is not sent: the kernel would not take it, and the reader would wait.
                        read.reply.take()?.succeed(from: file, at: read.offset, count: read.count + 1)
                    }
                    await Task.yield()
                }
            }
            #expect(try await reader.value.status == 0)
            answerer.cancel()
        }
    }

    @Test func seeksDataAndHoles() async throws {
        try await Mounted.run { mount async throws in
            mount.fileSystem.add("sparse", .bytes([UInt8](repeating: 1, count: 8192)))
            let result = try await Command.python(
                """
                import os,sys
                f = os.open(sys.argv[1], os.O_RDONLY)
                print(os.lseek(f, 0, os.SEEK_DATA), os.lseek(f, 0, os.SEEK_HOLE), os.lseek(f, 100, os.SEEK_DATA))
                try: os.lseek(f, 5000, os.SEEK_DATA)
                except OSError as e: print(e.errno)
                """, mount["sparse"])
            #expect(result.line == "0 4096 100\n6")
        }
    }

    @Test func statistics() async throws {
        try await Mounted.run { mount async throws in
            let result = try await Command.run("stat", "-f", "-c", "%b %f %a %c %d %S %l", mount.path.string)
            #expect(result.line == "1000 600 500 77 11 4096 255")
        }
    }
}
