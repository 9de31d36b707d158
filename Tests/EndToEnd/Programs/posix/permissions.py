"""Cases of permissions: who may do what, and which set-ID bits are taken away on the way."""

import os
import stat

from calls import EXCHANGE, NOFOLLOW, UTIME_NOW, UTIME_OMIT
from cases import KINDS, case, make, owner, remove
from names import CREATE, ON_PATHS, split

USERS = ["root", "ann", "bob", "eve"]


@case(user=USERS, mode=[0o000, 0o100, 0o200, 0o300, 0o400, 0o500, 0o700, 0o070, 0o050, 0o030, 0o010, 0o007, 0o005,
                        0o003, 0o001, 0o1777, 0o1077], owner=["ann", "bob"])
def in_a_directory(t, user, mode, owner):
    """Everything that is done with names, in a directory that allows this much."""
    t.depth = 0
    t.mkdir("d")
    t.mkdir("mine", 0o777)
    t.chown("mine", *who(user))
    make(t, "file", "mine/f", by=user)
    for by in ("root", "ann", "bob"):
        make(t, "file", "d/" + by, by="root", mode=0o666)
        t.chown("d/" + by, *who(by))
        t.mkdir("d/dir " + by)
        t.chown("d/dir " + by, *who(by))
        t.open("s", "d/spare " + by, CREATE, 0o666)
        t.chown("d/spare " + by, *who(by))
    t.chown("d", *who(owner))
    t.chmod("d", mode)
    t.depth = 2
    t.listdir("d", by=user)
    t.access("d", os.W_OK | os.X_OK, by=user)
    t.stat("d/ann", by=user)
    t.open("s", "d/ann", os.O_RDONLY, by=user)
    t.open("s", "d/new", CREATE, by=user)
    t.mkdir("d/new directory", by=user)
    t.mknod("d/new fifo", stat.S_IFIFO, by=user)
    t.symlink("x", "d/new link", by=user)
    t.link("mine/f", "d/new name", by=user)
    t.bind("d/new socket", by=user)
    for by in ("root", "ann", "bob"):
        t.link("d/" + by, "mine/link", by=user)
        t.unlink("mine/link", by=user)
        t.rename("d/" + by, "d/renamed", by=user)
        t.rename("d/renamed", "d/" + by, by=user)
        t.rename("d/spare " + by, "d/" + by, by=user)
        t.rename("d/dir " + by, "d/moved", by=user)
        t.rename("d/moved", "mine/moved", by=user)
        t.renameat2("d/" + by, "mine/f", EXCHANGE, by=user)
        t.unlink("d/" + by, by=user)
        t.rmdir("d/dir " + by, by=user)
        t.rmdir("mine/moved", by=user)


def who(user):
    return owner(user)


@case(user=USERS, kind=["file", "directory", "fifo", "socket", "character", "link"], owner=["ann", "bob"])
def sticky_directory(t, user, kind, owner):
    """In a sticky directory only the owner of a name, or of the directory, takes it away or replaces it."""
    t.mkdir("d", 0o777)
    t.chown("d", *who("bob"))
    t.chmod("d", 0o1777)
    t.mkdir("free", 0o777)
    for name in ("d/a", "d/b", "d/c", "free/x", "free/y"):
        make(t, kind, name)
        t.lchown(name, *who(owner))
    make(t, kind, "free/mine")
    t.lchown("free/mine", *who(user))
    t.rename("free/x", "d/a", by=user)
    t.rename("free/mine", "d/b", by=user)
    t.rename("d/c", "free/moved", by=user)
    t.renameat2("d/a", "free/y", EXCHANGE, by=user)
    for name in ("d/a", "d/b", "d/c"):
        t.rename(name, name + " moved", by=user)
        remove(t, kind, name, by=user)


@case(user=USERS, mode=[0o000, 0o400, 0o200, 0o600, 0o040, 0o020, 0o060, 0o004, 0o002, 0o006, 0o100, 0o010, 0o001,
                        0o777], kind=["file", "fifo", "directory", "socket"])
def opening(t, user, mode, kind):
    make(t, kind, "f")
    t.chown("f", 65534, 65533)
    t.chmod("f", mode)
    for flags in (os.O_RDONLY, os.O_WRONLY, os.O_RDWR, os.O_RDONLY | os.O_TRUNC, os.O_WRONLY | os.O_TRUNC,
                  os.O_WRONLY | os.O_APPEND, os.O_RDONLY | os.O_CREAT, os.O_RDWR | os.O_CREAT | os.O_EXCL,
                  os.O_RDONLY | os.O_DIRECTORY, os.O_RDONLY | os.O_NOFOLLOW, os.O_RDONLY | os.O_NOATIME, os.O_PATH,
                  os.O_RDWR | os.O_CREAT | os.O_TRUNC, os.O_CREAT | os.O_DIRECTORY, os.O_WRONLY | os.O_NOATIME):
        t.open("s", "f", flags, by=user)
    for mask in range(8):
        t.access("f", mask, by=user)
    t.truncate("f", 3, by=user)
    t.utimens("f", None, None, by=user)
    t.utimens("f", (0, UTIME_NOW), (0, UTIME_NOW), by=user)
    t.utimens("f", (0, UTIME_OMIT), (0, UTIME_OMIT), by=user)
    t.utimens("f", (0, UTIME_OMIT), (0, UTIME_NOW), by=user)
    t.utimens("f", (0, UTIME_NOW), (0, UTIME_OMIT), by=user)
    t.utimens("f", (9, 9), (9, 9), by=user)
    t.setxattr("f", "user.a", b"b", by=user)
    t.getxattr("f", "user.a", by=user)
    t.listxattr("f", by=user)
    t.removexattr("f", "user.a", by=user)
    t.link("f", "g", by=user)


@case(user=USERS, kind=KINDS, way=["chown", "lchown"], mode=[0o7777, 0o6755, 0o2745, 0o4711, 0o644])
def changing_owners(t, user, kind, way, mode):
    if kind == "link" and way == "chown":
        return
    for n, (uid, gid) in enumerate(((-1, -1), (65534, -1), (-1, 65534), (-1, 65533), (-1, 0), (0, 0), (65534, 65534),
                                    (65533, 65533), (65531, 65533), (-1, 65531))):
        name = "f%d" % n
        make(t, kind, name)
        t.lchown(name, 65534, 65533)
        if kind != "link":
            t.chmod(name, mode)
        t.run(user, way, (name, uid, gid))
        if kind != "link":
            t.chmod(name, mode)
        t.run("root", way, (name, uid, gid))


@case(user=USERS, kind=[k for k in KINDS if k != "link"], group=[65534, 65533, 65531, 0])
def changing_modes(t, user, kind, group):
    for n, mode in enumerate((0o0, 0o777, 0o1777, 0o2777, 0o4777, 0o7777, 0o7000, 0o2666, 0o123)):
        make(t, kind, "f%d" % n)
        t.chown("f%d" % n, 65534, group)
        t.chmod("f%d" % n, mode, by=user)
        t.chmod("f%d" % n, mode)
        t.chmod("f%d" % n, 0o600, by=user)


WRITES = {
    "write": lambda t, by: t.write("s", b"x", by=by),
    "write nothing": lambda t, by: t.write("s", b"", by=by),
    "pwrite": lambda t, by: t.pwrite("s", b"long enough to grow", 7, by=by),
    "ftruncate": lambda t, by: t.ftruncate("s", 1, by=by),
    "ftruncate same": lambda t, by: t.ftruncate("s", 4, by=by),
    "truncate": lambda t, by: t.truncate("f", 2, by=by),
    "truncate same": lambda t, by: t.truncate("f", 4, by=by),
    "O_TRUNC": lambda t, by: t.open("again", "f", os.O_WRONLY | os.O_TRUNC, by=by),
    "O_TRUNC reading": lambda t, by: t.open("again", "f", os.O_RDONLY | os.O_TRUNC, by=by),
    "opened": lambda t, by: t.open("again", "f", os.O_WRONLY, by=by),
    "fallocate": lambda t, by: t.fallocate("s", 0, 0, 9000, by=by),
    "fallocate inside": lambda t, by: t.fallocate("s", 1, 0, 2, by=by),
    "punch": lambda t, by: t.fallocate("s", 3, 0, 2, by=by),
    "copied into": lambda t, by: t.copy_range("other", 0, "s", 0, 5, by=by),
    "sendfile": lambda t, by: t.sendfile("other", 0, "s", 5, by=by),
    "spliced": lambda t, by: t.splice("other", "s", 5, by=by),
    "chown": lambda t, by: t.chown("f", -1, 65534, by=by),
    "xattr": lambda t, by: t.setxattr("f", "user.a", b"b", by=by),
    "times": lambda t, by: t.utimens("f", (1, 2), (3, 4), by=by),
    "link": lambda t, by: t.link("f", "g", by=by),
    "rename": lambda t, by: t.rename("f", "g", by=by),
}


@case(way=WRITES, user=USERS, mode=[0o6777, 0o2767, 0o4766, 0o2777], gid=[65534, 65533])
def set_id_bits_are_taken(t, way, user, mode, gid):
    """A write without privilege clears the set-ID bits; one with privilege does not."""
    t.open("other", "source", os.O_CREAT | os.O_RDWR)
    t.write("other", b"some bytes")
    t.lseek("other", 0, 0)
    t.open("s", "f", os.O_CREAT | os.O_RDWR, 0o666)
    t.write("s", b"four")
    t.chown("f", 65534, gid)
    t.chmod("f", mode)
    WRITES[way](t, user)
    t.fstat("s")
    t.chmod("f", mode)
    WRITES[way](t, user)
    t.close("s")
    t.stat("f")


@case(user=USERS, call=[c for c in ON_PATHS if c not in ("both", "nonsense")], mode=[0, 0o666, 0o111])
def below_a_directory(t, user, call, mode):
    """A directory that may not be searched hides what is below it from every call."""
    make(t, "file", "source")
    t.mkdir("folder")
    t.mkdir("d", 0o777)
    make(t, "file", "d/name", mode=0o666)
    t.chown("d", 65534, 65534)
    t.chmod("d", mode)
    t.run(user, *split(ON_PATHS[call]("d/name")))
    t.run(user, *split(ON_PATHS[call]("d/missing")))


@case(user=USERS)
def times_of_others(t, user):
    for kind in KINDS:
        make(t, kind, kind)
        t.lchown(kind, 65534, 65533)
        for accessed, modified in (((1, 2), (3, 4)), ((0, UTIME_NOW), (3, 4)), ((0, UTIME_OMIT), (5, 6)),
                                   ((7, 8), (0, UTIME_OMIT)), ((0, UTIME_NOW), (0, UTIME_NOW)),
                                   ((0, UTIME_OMIT), (0, UTIME_OMIT)), ((0, 1 << 30), (0, 0)), ((0, 0), (0, -1))):
            t.utimens(kind, accessed, modified, NOFOLLOW, by=user)


@case(user=USERS, mode=[0o600, 0o000, 0o666])
def attributes_of_others(t, user, mode):
    for kind in KINDS:
        make(t, kind, kind)
        t.lchown(kind, 65534, 65533)
        if kind != "link":
            t.chmod(kind, mode)
        for name in ("user.a", "trusted.a", "security.a", "system.a", "nothing", "user.", "strange.a"):
            if kind not in ("file", "directory") or name.startswith("user"):
                t.setxattr(kind, name, b"value", by=user) if name.startswith("user") else None
            t.getxattr(kind, name, by=user) if name.startswith("user") else None
        t.listxattr(kind, by=user)
        t.removexattr(kind, "user.a", by=user)
    t.mkdir("sticky")
    t.chown("sticky", 65533, 65533)
    t.chmod("sticky", 0o1777)
    t.setxattr("sticky", "user.a", b"b", by=user)


@case(user=["ann", "bob", "eve"])
def after_the_mode_was_taken(t, user):
    """What was opened stays as it was opened."""
    t.open("s", "f", os.O_CREAT | os.O_RDWR, 0o666, by=user)
    t.chown("f", 0, 0)
    t.chmod("f", 0)
    t.write("s", b"still", by=user)
    t.pread("s", 9, 0, by=user)
    t.ftruncate("s", 2, by=user)
    t.fchmod("s", 0o777, by=user)
    t.open("again", "f", os.O_RDONLY, by=user)
    t.open("r", "g", os.O_CREAT | os.O_RDWR, 0o000, by=user)
    t.write("r", b"written although nothing is allowed", by=user)
    t.open("again", "g", os.O_RDONLY, by=user)
    t.open("only", "h", os.O_CREAT | os.O_WRONLY, 0o444, by=user)
    t.write("only", b"x", by=user)
    t.read("only", 1, by=user)
