"""Cases of contents: reading, writing, lengths, room, memory, and unlinked files."""

import fcntl
import os

from calls import COLLAPSE, INSERT, KEEP_SIZE, PUNCH, UTIME_NOW, UTIME_OMIT, ZERO
from cases import case, make
from names import CREATE

MAKE = os.O_CREAT | os.O_RDWR
END = (1 << 63) - 1


@case(size=[0, 1, 4095, 4096, 4097, 100_000, 1 << 22])
def lengths(t, size):
    t.open("s", "f", MAKE)
    t.truncate("f", size)
    t.pwrite("s", b"end", size)
    t.pread("s", 10, max(0, size - 4))
    t.ftruncate("s", size // 2)
    t.ftruncate("s", size + 5)
    t.pread("s", 16, size // 2)
    t.truncate("f", 0)
    t.pread("s", 16, 0)
    t.write("s", b"from the beginning")
    t.lseek("s", 3, os.SEEK_SET)
    t.ftruncate("s", 1)
    t.write("s", b"beyond the end")
    t.close("s")
    t.truncate("f", size)
    t.whole("f")


@case()
def lengths_that_cannot_be(t):
    t.open("s", "f", MAKE)
    t.open("r", "f", os.O_RDONLY)
    for size in (-1, -(1 << 63)):
        t.truncate("f", size)
        t.ftruncate("s", size)
    t.ftruncate("r", 0)
    t.write("r", b"x")
    t.open("w", "f", os.O_WRONLY)
    t.read("w", 1)
    t.pwrite("s", b"x", -1)
    t.pread("s", 1, -1)
    t.lseek("s", -1, os.SEEK_SET)
    t.lseek("s", -5, os.SEEK_END)
    t.lseek("s", 10, os.SEEK_END)
    t.write("s", b"after a gap")
    t.data_and_holes("s")


@case(flags=[0, os.O_APPEND, os.O_SYNC, os.O_DSYNC, os.O_APPEND | os.O_SYNC])
def several_descriptors(t, flags):
    t.open("a", "f", MAKE | flags)
    t.open("b", "f", os.O_RDWR | flags)
    t.open("c", "f", os.O_RDONLY)
    t.dup("a", "d")
    for n in range(6):
        t.write("a", b"a%d " % n)
        t.write("b", b"bb%d " % n)
        t.write("d", b"ddd%d " % n)
        t.pwrite("b", b"P", n)
        t.read("c", 4)
        t.stat("f")
    t.ftruncate("b", 7)
    t.write("a", b"again")
    t.close("a")
    t.write("d", b"still")
    t.open("e", "f", os.O_WRONLY | os.O_TRUNC)
    t.write("d", b"x")
    t.pread("c", 100, 0)
    t.fstat("c")


@case(reading=[True, False], kept=[True, False])
def unlinked_while_open(t, reading, kept):
    t.open("s", "f", MAKE, 0o644)
    t.write("s", b"first")
    if reading:
        t.open("r", "f", os.O_RDONLY)
    if kept:
        t.link("f", "kept")
    t.unlink("f")
    t.fstat("s")
    t.write("s", b"second")
    t.pread("s", 99, 0)
    t.ftruncate("s", 8)
    t.fstat("s")
    t.fchmod("s", 0o4751)
    t.fchown("s", 65534, 65533)
    t.futimens("s", (1, 1), (2, 2))
    t.fsetxattr("s", "user.a", b"b")
    t.fsync("s")
    t.fdatasync("s")
    t.fallocate("s", 0, 0, 5000)
    t.lseek("s", 0, os.SEEK_END)
    t.fstat("s")
    t.link_descriptor("s", "back")
    t.open("n", "f", MAKE)
    t.write("n", b"another")
    t.fstat("s")
    t.close("s")
    t.stat("f")
    if reading:
        t.read("r", 20)
        t.fstat("r")


@case(old=["open", "closed"], new=["open", "closed"], exchange=[0, 2])
def renamed_over_while_open(t, old, new, exchange):
    for name in ("old", "new"):
        t.open(name, name, MAKE)
        t.write(name, name.encode() * 3)
    if old == "closed":
        t.close("old")
    if new == "closed":
        t.close("new")
    t.renameat2("old", "new", exchange)
    for name in ("old", "new"):
        t.fstat(name)
        t.write(name, b" more")
        t.pread(name, 99, 0)
        t.ftruncate(name, 4)
        t.fchmod(name, 0o600)
    t.stat("new")
    t.truncate("new", 2)
    t.close("old")
    t.close("new")
    t.whole("new")


@case(mode=[0, KEEP_SIZE, PUNCH, PUNCH | KEEP_SIZE, ZERO, ZERO | KEEP_SIZE, 64, PUNCH | ZERO],
      flags=[os.O_RDWR, os.O_RDONLY, os.O_WRONLY, os.O_RDWR | os.O_APPEND])
def room(t, mode, flags):
    t.open("w", "f", MAKE)
    t.write("w", b"0123456789abcdef" * 1000)
    t.open("s", "f", flags)
    for offset, length in ((0, 4096), (4096, 4096), (100, 50), (15_000, 9000), (20_000, 10), (0, 0), (-1, 5), (5, -1),
                           (1 << 62, 1 << 62)):
        t.fallocate("s", mode, offset, length)
        t.fstat("s")
    t.pread("w", 20, 4090)
    t.close("s")
    t.close("w")
    t.stat("f")


@case(mode=[COLLAPSE, INSERT, 64, 128])
def room_that_is_refused(t, mode):
    t.depth = 0
    t.open("s", "f", MAKE)
    t.write("s", bytes(20_000))
    t.fallocate("s", mode, 4096, 4096)
    t.mkdir("d")
    t.open("d", "d", os.O_RDONLY)
    t.fallocate("d", 0, 0, 1)


@case(size=[0, 10, 70_000])
def copies(t, size):
    t.open("a", "a", MAKE)
    t.write("a", bytes(n * 7 % 251 for n in range(size)))
    t.open("b", "b", MAKE)
    for source_offset, target_offset, count in ((0, 0, 1 << 20), (5, 3, 7), (size, 0, 10), (size + 5, 0, 1), (0, size, 9)):
        t.copy_range("a", source_offset, "b", target_offset, count)
    t.copy_range("a", 0, "a", size, size)
    t.copy_range("a", 0, "a", 3, 9)
    t.sendfile("a", 0, "b", 4096)
    t.lseek("a", 0, os.SEEK_SET)
    t.splice("a", "b", 4096)
    t.open("r", "a", os.O_RDONLY)
    t.copy_range("a", 0, "r", 0, 5)
    t.open("x", "b", os.O_WRONLY | os.O_APPEND)
    t.copy_range("a", 0, "x", 0, 5)
    t.sendfile("a", 0, "x", 5)
    t.mkdir("d")
    t.open("d", "d", os.O_RDONLY)
    t.copy_range("d", 0, "b", 0, 5)
    t.read("d", 5)
    t.ftruncate("d", 5)
    t.write("d", b"x")


@case(size=[1, 5000, 100_000])
def shared_memory(t, size):
    t.open("s", "f", MAKE)
    t.write("s", b"a" * size)
    t.mmap("m", "s", size)
    t.store("m", b"B", size - 1)
    t.pread("s", 1, size - 1)
    t.pwrite("s", b"C", 0)
    t.load("m", 5, 0)
    t.msync("m")
    t.close("s")
    t.store("m", b"D", size // 2)
    t.msync("m")
    t.open("s", "f", os.O_RDWR)
    t.pread("s", 5, size // 2)
    t.ftruncate("s", size + 5000)
    t.store("m", b"E", 0)
    t.msync("m")
    t.close("s")
    t.unlink("f")
    t.store("m", b"F", 0)
    t.msync("m")
    t.load("m", 4, 0)


@case()
def memory_without_a_descriptor(t):
    """What is stored in memory after the last close reaches the file."""
    t.depth = 0
    t.open("s", "f", MAKE)
    t.write("s", b"x" * 9000)
    t.mmap("m", "s", 9000)
    t.mmap_private("p", "s", 9000)
    t.close("s")
    t.store("m", b"shared", 100)
    t.store("p", b"private", 200)
    t.msync("m")
    t.close("m")
    t.close("p")
    t.depth = 2
    t.whole("f")
    t.stat("f")
    t.open("r", "f", os.O_RDONLY)
    t.mmap("n", "r", 9000)
    t.mmap("n", "r", 9000, False)
    t.load("n", 20, 95)
    t.truncate("f", 5)
    t.stat("f")


@case(flags=[0, os.O_APPEND])
def direct(t, flags):
    t.open("s", "f", MAKE | os.O_DIRECT | flags)
    t.direct_write("s", b"d", 8192, 0)
    t.direct_read("s", 4096, 4096)
    t.open("o", "f", os.O_RDWR)
    t.pwrite("o", b"buffered", 10)
    t.direct_read("s", 4096, 0)
    t.direct_write("s", b"e", 4096, 4096)
    t.pread("o", 10, 4090)
    t.direct_read("s", 8192, 8192)
    t.ftruncate("o", 100)
    t.direct_read("s", 4096, 0)


@case()
def sparse(t):
    t.open("s", "f", MAKE)
    for place in (1 << 20, 1 << 30, 1 << 36):
        t.pwrite("s", b"island", place)
        t.data_and_holes("s")
        t.pread("s", 10, place - 4)
    t.ftruncate("s", 1 << 37)
    t.data_and_holes("s")
    t.close("s")
    t.open("s", "f", os.O_RDONLY)
    t.data_and_holes("s")
    t.pread("s", 10, (1 << 30) - 2)
    t.truncate("f", 0)


@case()
def truncating_opens(t):
    for flags in (os.O_WRONLY, os.O_RDWR, os.O_RDONLY):
        t.open("s", "f", MAKE)
        t.write("s", b"content")
        t.open("k", "f", os.O_RDONLY)
        t.open("t", "f", flags | os.O_TRUNC)
        t.open("c", "f", flags | os.O_TRUNC | os.O_CREAT)
        t.pread("k", 10, 0)
        t.write("s", b"+")
        t.write("t", b"new")
        t.close("k")
        t.close("s")
        t.close("t")
        t.close("c")
        t.stat("f")
    t.open("e", "f", CREATE | os.O_EXCL | os.O_TRUNC)


@case(kind=["shared", "exclusive"])
def locks(t, kind):
    t.open("a", "f", MAKE)
    t.open("b", "f", os.O_RDWR)
    which = fcntl.LOCK_SH if kind == "shared" else fcntl.LOCK_EX
    record = fcntl.F_RDLCK if kind == "shared" else fcntl.F_WRLCK
    t.flock("a", which)
    for other in (fcntl.LOCK_SH, fcntl.LOCK_EX):
        t.flock("b", other)
        t.flock_elsewhere("f", other)
        t.flock("b", fcntl.LOCK_UN)
    t.flock("a", fcntl.LOCK_UN)
    t.flock_elsewhere("f", fcntl.LOCK_EX)
    t.lock("a", record, 10, 10)
    for start, length in ((0, 10), (0, 11), (15, 1), (20, 5), (0, 0)):
        for other in (fcntl.F_RDLCK, fcntl.F_WRLCK):
            t.lock_elsewhere("f", other, start, length)
    t.lock("b", fcntl.F_UNLCK, 12, 3)
    t.lock_elsewhere("f", fcntl.F_WRLCK, 12, 3)
    t.close("b")
    t.lock_elsewhere("f", fcntl.F_WRLCK, 0, 0)


@case()
def programs(t):
    t.open("s", "run", MAKE, 0o755)
    t.write("s", b"#!/bin/sh\necho ran\n")
    t.execute("run")
    t.close("s")
    t.execute("run")
    t.chmod("run", 0o644)
    t.execute("run")
    t.open("s", "copy", MAKE, 0o755)
    with open("/bin/true", "rb") as file:
        t.write("s", file.read())
    t.execute("copy")
    t.close("s")
    t.execute("copy")
    t.open("s", "copy", os.O_RDONLY)
    t.execute("copy")


@case()
def fifos_and_sockets(t):
    for user in ("root", "ann"):
        make(t, "fifo", "p", by=user, mode=0o600)
        t.open("w", "p", os.O_WRONLY, by=user)
        t.open("r", "p", os.O_RDONLY, by=user)
        t.open("w", "p", os.O_WRONLY, by=user)
        t.write("w", b"through", by=user)
        t.fstat("r")
        t.read("r", 20, by=user)
        t.lseek("r", 0, 0)
        t.ftruncate("w", 0)
        t.rename("p", "q")
        t.unlink("q")
        t.write("w", b"gone", by=user)
        t.read("r", 20)
        t.close("w")
        t.close("r")
        make(t, "fifo", "p", by=user)
        t.fifo("p", by=user)
        t.truncate("p", 0)
        t.unlink("p")
        t.talk("s", by=user)
        t.connect("s", by=user)
        t.bind("s", by=user)
        t.open("o", "s", os.O_RDWR, by=user)
        t.truncate("s", 0)
        t.unlink("s")


@case(seconds=[0, 1, -1, -1_000_000_000, 1 << 31, (1 << 32) + 5, 5_000_000_000, 1_700_000_000],
      nanoseconds=[0, 1, 999_999_999, 123_456_789])
def times(t, seconds, nanoseconds):
    at = (seconds, nanoseconds)
    for kind in ("file", "directory", "fifo", "link"):
        make(t, kind, kind)
        t.depth = 0  # To look at a link or a directory is to read it.
        t.utimens(kind, at, (1, 1), 0x100)
        t.times(kind)
        t.utimens(kind, (2, 2), at, 0x100)
        t.times(kind)
        t.utimens(kind, (0, UTIME_OMIT), at, 0x100)
        t.times(kind)
        t.utimens(kind, at, (0, UTIME_OMIT), 0x100)
        t.times(kind)
        t.depth = 2
        t.utimens(kind, (0, UTIME_NOW), (0, UTIME_OMIT), 0x100)
        t.utimens(kind, (0, UTIME_OMIT), (0, UTIME_NOW), 0x100)
    t.open("s", "file", os.O_RDWR)
    t.futimens("s", at, at)
    t.times("file")
    t.close("s")
    t.times("file")
    t.open("s", "file", os.O_RDWR)
    t.write("s", b"x")
    t.futimens("s", at, at)
    t.close("s")
    t.stat("file")
    t.chmod("file", 0o600)
    t.truncate("file", 0)


@case(size=[0, 1, 1000, 4000, 65536, 65537])
def attribute_sizes(t, size):
    make(t, "file", "f")
    if size <= 1000 or size > 65536:
        t.setxattr("f", "user.a", b"v" * size)
        t.getxattr("f", "user.a")
        for room in (0, 1, size // 2, size, size + 1):
            t.getxattr_sized("f", "user.a", room)
            t.listxattr_sized("f", 0)
        t.listxattr_sized("f", 1)
        t.setxattr("f", "user." + "n" * 250, b"x")
        t.setxattr("f", "user." + "n" * 251, b"x")
        t.setxattr("f", "user.a", b"", 1)
        t.setxattr("f", "user.b", b"", 2)
        t.setxattr("f", "user.a", b"new", 2)
        t.setxattr("f", "user.c", b"new", 1)
        t.setxattr("f", "user.c", b"new", 3)
        t.setxattr("f", "user.c", b"new", 8)
        t.removexattr("f", "user.a")
        t.removexattr("f", "user.a")
        t.getxattr("f", "user.a")
        t.link("f", "g")
        t.listxattr("g")
        t.unlink("f")
        t.listxattr("g")
