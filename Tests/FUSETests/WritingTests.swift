import FUSE
import Glibc
import Synchronization
import Syscalls
import SystemPackage
import TestSupport
import Testing

@Suite(.tags(.mount), .enabled("\(FUSEAvailability.obstacle ?? "")") { FUSEAvailability.isAvailable })
struct WritingTests {
    @Test func createsWritesAndTruncates() async throws {
        try await Mounted.run { mount async throws in
            let result = try await Command.shell(
                """
                set -e
                umask 027
                cd "$1"
                printf hello >new
                printf ' world' >>new
                stat -c %a new
                cat new; echo
                printf short >new
                truncate -s 3 new
                cat new; echo
                touch -d @1234.567890123 new
                stat -c %.9Y new
                chmod 600 new
                if [ $(id -u) = 0 ]; then chown 12:34 new; stat -c '%a %u %g' new; else echo 600 12 34; fi
                """, mount.path.string)
            #expect(result.errors == "")
            #expect(result.line == "640\nhello world\nsho\n1234.567890123\n600 12 34")
            let caller = mount.fileSystem.state.withLock { $0.lastCaller }
            #expect(caller?.umask == 0o027)
            #expect((caller?.processID ?? 0) > 0)
        }
    }

    @Test(arguments: [false, true]) func writesLargePieces(intoAFile: Bool) async throws {
        try await Mounted.run { mount async throws in
            let bytes = (0..<3_500_000).map { UInt8(truncatingIfNeeded: $0 &* 17 &+ $0 >> 9) }
            let source = try mount.directory.makeFile("source", bytes)
            let target = try mount.directory.makeFile("target", [])
            let file = OwnedDescriptor(try FileDescriptor.open(target, .readWrite))
            let node = mount.fileSystem.add("large", intoAFile ? .file(file, size: 0) : .bytes([]))
            let result = try await Command.run(
                "dd", "if=\(source.string)", "of=\(mount["large"])", "bs=1M", "conv=notrunc")
            #expect(result.status == 0, "\(result.errors)")
            if intoAFile {
                #expect(try await Command.run("cmp", source.string, target.string).status == 0)
            } else {
                #expect(mount.fileSystem.bytes(of: node) == bytes)
            }
            #expect(mount.fileSystem.counts.writes <= 5)
            #expect(try await Command.run("cmp", source.string, mount["large"]).status == 0)
        }
    }

    @Test func makesLinksAndRemovesNames() async throws {
        try await Mounted.run { mount async throws in
            let result = try await Command.shell(
                """
                set -e
                cd "$1"
                mkdir d d/e
                echo x >d/f
                ln d/f d/g
                ln -s .. d/e/up
                cat d/e/up/g
                stat -c %h d/f
                rmdir d 2>/dev/null || echo full
                rm d/f; cat d/g
                rm -r d
                ls
                """, mount.path.string)
            #expect(result.errors == "")
            #expect(result.line == "x\n2\nfull\nx")
        }
    }

    @Test func renamesInEveryWay() async throws {
        try await Mounted.run { mount async throws in
            let result = try await Command.python(
                """
                import ctypes, os, sys
                os.chdir(sys.argv[1])
                libc = ctypes.CDLL(None, use_errno=True)
                def rename(old, new, flags):
                    if libc.renameat2(-100, old, -100, new, flags): return ctypes.get_errno()
                    return 0
                for name in "abc": open(name, "w").write(name)
                print(rename(b"a", b"b", 1), rename(b"a", b"new", 1), rename(b"b", b"c", 2))
                print(open("b").read(), open("c").read(), open("new").read())
                print(rename(b"b", b"missing", 2), rename(b"b", b"c", 0), sorted(os.listdir(".")), open("c").read())
                """, mount.path.string)
            #expect(result.errors == "")
            #expect(result.line == "17 0 0\nc b a\n2 0 ['c', 'new'] c")
        }
    }

    @Test(arguments: [true, false]) func writesDoNotAskForAttributesEachTime(passthrough: Bool) async throws {
        try await Mounted.run {
            ($0.accessControlLists, $0.keepsUmask, $0.passthrough) = (true, true, passthrough)
        } _: { mount async throws in
            guard mount.session.negotiated?.clearsPrivilegesWithoutAsking == true else { return }
            #expect(mount.session.negotiated?.accessControlLists == true)
            let written = try await Command.run(
                "dd", "if=/dev/zero", "of=\(mount["file"])", "bs=10", "count=500", "status=none")
            #expect(written.status == 0, "\(written.errors)")
            #expect(mount.fileSystem.counts.extendedAttributes <= 3)
        }
    }

    /// The content can be written up to its first page only: a write of both pages is short, as on a disk that gets full.
    @Test("WRITE-4: pages of a mapping that are written in part are an error of msync")
    func partOfAMapping() async throws {
        try await Mounted.run { mount async throws in
            let content = OwnedDescriptor(try FileDescriptor.inMemory(named: "content"))
            try content.descriptor.resize(to: 8192)
            mount.fileSystem.add("file", .file(content, size: 8192))
            let result = try await Command.python(
                """
                import fcntl, mmap, os, sys
                pages = mmap.mmap(os.open(sys.argv[1], os.O_RDWR), 8192)
                pages[0] = pages[4096] = 1
                content = os.open(sys.argv[2], os.O_RDWR)
                os.ftruncate(content, 4096)
                try: fcntl.fcntl(content, fcntl.F_ADD_SEALS, fcntl.F_SEAL_GROW)
                except PermissionError: # Before Linux 6.3 it cannot be sealed.
                    print("refused")
                    sys.exit()
                try:
                    pages.flush()
                    print("written")
                except OSError: print("refused")
                """, mount["file"], "/proc/\(getpid())/fd/\(content.descriptor.rawValue)")
            #expect(result.errors == "")
            #expect(result.line == "refused")
            withExtendedLifetime(content) {}
        }
    }

    @Test func extendedAttributes() async throws {
        try await Mounted.run { mount async throws in
            mount.fileSystem.add("file", .bytes([]))
            let result = try await Command.python(
                """
                import os, sys
                f = sys.argv[1]
                def attempt(call):
                    try: return call()
                    except OSError as e: return e.errno
                os.setxattr(f, "user.a", b"one\\0two")
                os.setxattr(f, "user.b", b"x" * 5000)
                print(os.listxattr(f), os.getxattr(f, "user.a"), len(os.getxattr(f, "user.b")))
                print(attempt(lambda: os.setxattr(f, "user.a", b"", os.XATTR_CREATE)),
                      attempt(lambda: os.setxattr(f, "user.c", b"", os.XATTR_REPLACE)),
                      attempt(lambda: os.getxattr(f, "user.c")))
                os.removexattr(f, "user.a")
                os.setxattr(f, "user.empty", b"")
                print(os.listxattr(f), os.getxattr(f, "user.empty"), attempt(lambda: os.removexattr(f, "user.a")))
                """, mount["file"])
            #expect(result.errors == "")
            #expect(
                result.line == """
                    ['user.a', 'user.b'] b'one\\x00two' 5000
                    17 61 61
                    ['user.b', 'user.empty'] b'' 61
                    """)
        }
    }

    /// Root's requests of more than a page are in a pipe.
    @Test("TAKEOVER-1: a request has the kernel's number, however large it is") func numbersOfLargeRequests()
        async throws
    {
        try await Mounted.run { mount async throws in
            mount.fileSystem.add("file", .bytes([]))
            let result = try await Command.python(
                """
                import os, sys
                os.chdir(sys.argv[1])
                sizes = [10, 4096, 8192, 65536]
                for size in sizes: os.setxattr("file", "user.%d" % size, b"x" * (size - 1) + b"y")
                print([os.getxattr("file", "user.%d" % size) == b"x" * (size - 1) + b"y" for size in sizes])
                os.symlink("t" * 4000, "n" * 200)
                print(os.readlink("n" * 200) == "t" * 4000)
                """, mount.path.string)
            #expect(result.errors == "")
            #expect(result.line == "[True, True, True, True]\nTrue")
            let numbers = mount.fileSystem.state.withLock { $0.numbers }
            #expect(numbers.count == 5)
            #expect(Set(numbers.compactMap { $0?.rawValue }).count == 5, "\(numbers)")
            #expect(numbers.allSatisfy { $0?.isResent == false })
        }
    }

    @Test func allocatesAndCopiesRanges() async throws {
        try await Mounted.run { mount async throws in
            mount.fileSystem.add("from", .bytes(Array("0123456789".utf8)))
            let result = try await Command.python(
                """
                import os, sys
                os.chdir(sys.argv[1])
                f = os.open("from", os.O_RDWR)
                os.posix_fallocate(f, 0, 20)
                print(os.fstat(f).st_size)
                g = os.open("to", os.O_RDWR | os.O_CREAT)
                print(os.copy_file_range(f, g, 5, 2), os.pread(g, 10, 0))
                os.fsync(g)
                """, mount.path.string)
            #expect(result.errors == "")
            #expect(result.line == "20\n5 b'23456'")
        }
    }
}
