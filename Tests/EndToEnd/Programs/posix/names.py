"""Cases of names: making, removing, linking and moving them."""

import os
import stat

from calls import EXCHANGE, NOREPLACE, WHITEOUT
from cases import KINDS, case, make, remove

CREATE = os.O_CREAT | os.O_WRONLY

# Every call that takes a path, as the arguments around it.
ON_PATHS = {
    "mkdir": lambda p: ("mkdir", p),
    "rmdir": lambda p: ("rmdir", p),
    "unlink": lambda p: ("unlink", p),
    "create": lambda p: ("open", "s", p, CREATE),
    "exclusive": lambda p: ("open", "s", p, CREATE | os.O_EXCL),
    "open": lambda p: ("open", "s", p, os.O_RDONLY),
    "opendir": lambda p: ("open", "s", p, os.O_RDONLY | os.O_DIRECTORY),
    "nofollow": lambda p: ("open", "s", p, os.O_RDONLY | os.O_NOFOLLOW),
    "append": lambda p: ("open", "s", p, os.O_WRONLY | os.O_APPEND),
    "truncating": lambda p: ("open", "s", p, os.O_WRONLY | os.O_TRUNC),
    "fifo": lambda p: ("mknod", p, stat.S_IFIFO | 0o644),
    "device": lambda p: ("mknod", p, stat.S_IFCHR | 0o644, 0x0105),
    "plain": lambda p: ("mknod", p, stat.S_IFREG | 0o644),
    "bind": lambda p: ("bind", p),
    "connect": lambda p: ("connect", p),
    "symlink": lambda p: ("symlink", "somewhere", p),
    "readlink": lambda p: ("readlink", p),
    "link": lambda p: ("link", p, "other"),
    "linked": lambda p: ("link", "source", p),
    "link following": lambda p: ("link_following", p, "other"),
    "rename": lambda p: ("rename", p, "other"),
    "renamed": lambda p: ("rename", "source", p),
    "renamed directory": lambda p: ("rename", "folder", p),
    "exchange": lambda p: ("renameat2", "source", p, EXCHANGE),
    "exchange directory": lambda p: ("renameat2", p, "folder", EXCHANGE),
    "keep": lambda p: ("renameat2", "source", p, NOREPLACE),
    "both": lambda p: ("renameat2", "source", p, NOREPLACE | EXCHANGE),
    "nonsense": lambda p: ("renameat2", "source", p, 64),
    "chmod": lambda p: ("chmod", p, 0o640),
    "chown": lambda p: ("chown", p, 65534, 65533),
    "lchown": lambda p: ("lchown", p, 65534, 65533),
    "truncate": lambda p: ("truncate", p, 5),
    "utimens": lambda p: ("utimens", p, (1, 2), (3, 4)),
    "utimens link": lambda p: ("utimens", p, (1, 2), (3, 4), 0x100),
    "stat": lambda p: ("stat", p),
    "lstat": lambda p: ("lstat", p),
    "access": lambda p: ("access", p, os.R_OK),
    "setxattr": lambda p: ("setxattr", p, "user.a", b"b"),
    "getxattr": lambda p: ("getxattr", p, "user.a"),
    "listxattr": lambda p: ("listxattr", p),
    "removexattr": lambda p: ("removexattr", p, "user.a"),
    "list": lambda p: ("listdir", p),
}

LONG, TOO_LONG = "n" * 255, "n" * 256
DEEP = "/".join(["d" * 200] * 20)

# A device is only looked at: it could not be opened on a mount.
NO_DEVICES = {"open", "create", "append", "truncating", "nofollow"}

PATHS = {
    "missing": "missing",
    "below missing": "missing/name",
    "below file": "source/name",
    "file with slash": "source/",
    "missing with slash": "missing/",
    "folder with slash": "folder/",
    "full folder": "full",
    "full folder with slash": "full/",
    "dot": ".",
    "dot dot": "..",
    "dot below": "folder/.",
    "dot dot below": "folder/..",
    "full dot dot": "full/below/..",
    "longest": LONG,
    "too long": TOO_LONG,
    "below too long": TOO_LONG + "/name",
    "path too long": DEEP + "/" + DEEP,
    "path almost too long": "./" * 2044 + "source",
    "loop": "loop",
    "below loop": "loop/name",
    "dangling": "dangling",
    "dangling with slash": "dangling/",
    "link to file": "link",
    "link to file with slash": "link/",
    "link to folder": "way",
    "link to folder with slash": "way/",
    "through a link": "way/name",
    "empty": "",
    "with bytes": "käse\n\U0001F9C0",
    "a fifo": "pipe",
    "below a fifo": "pipe/name",
    "a socket": "socket",
    "itself": "source",
    "another": "second",
}


@case(call=ON_PATHS, user=["root", "ann"])
def every_call_on_every_path(t, call, user):
    is_fresh = False
    for path in PATHS.values():
        if not is_fresh:
            t.again()
            populate(t)
        answer = t.run(user, *split(ON_PATHS[call](path)))
        is_fresh = isinstance(answer, str) and answer.startswith("E")


def populate(t):
    """Something of every kind, for calls to be made on."""
    t.depth = 0
    t.open("made", "source", CREATE, 0o666)
    t.write("made", b"something")
    t.close("made")
    make(t, "file", "second", mode=0o666)
    t.mkdir("folder", 0o777)
    t.mkdir("full", 0o777)
    t.mkdir("full/below", 0o777)
    t.symlink("loop", "loop")
    t.symlink("nowhere", "dangling")
    t.symlink("source", "link")
    t.symlink("full", "way")
    make(t, "fifo", "pipe", mode=0o666)
    make(t, "socket", "socket")
    t.depth = 2
    t.look()


def split(call):
    return call[0], call[1:]


@case(call=[c for c in ON_PATHS if c not in NO_DEVICES], kind=["character", "block"], user=["root", "ann"])
def calls_on_devices(t, call, kind, user):
    make(t, "file", "source")
    t.mkdir("folder")
    make(t, kind, "device", mode=0o666)
    t.run(user, *split(ON_PATHS[call]("device")))


@case(old=KINDS + ["full"], new=KINDS + ["full", "missing"], way=[0, NOREPLACE, EXCHANGE, WHITEOUT])
def rename_onto(t, old, new, way):
    for kind, name in ((old, "old"), (new, "new")):
        if kind == "full":
            t.mkdir(name)
            make(t, "file", name + "/below")
        elif kind != "missing":
            make(t, kind, name)
    if way == WHITEOUT:
        return
    t.renameat2("old", "new", way)
    t.lstat("new")
    t.listdir()


@case(old=KINDS, new=KINDS + ["missing"], way=[0, EXCHANGE])
def rename_between_directories(t, old, new, way):
    t.mkdir("one")
    t.mkdir("two")
    make(t, old, "one/old")
    if new != "missing":
        make(t, new, "two/new")
    t.renameat2("one/old", "two/new", way)
    t.stat("one")
    t.stat("two")
    t.lstat("two/new")


@case(kind=KINDS)
def links_count(t, kind):
    make(t, kind, "a")
    t.link("a", "b")
    t.mkdir("d")
    t.link("b", "d/c")
    t.link("a", "b")
    t.chmod("b", 0o600) if kind != "link" else None
    t.lchown("d/c", 65534, 65533)
    t.rename("a", "b")
    t.renameat2("a", "b", NOREPLACE)
    t.renameat2("a", "b", EXCHANGE)
    remove(t, kind, "a")
    t.lstat("d/c")
    t.rename("d/c", "a")
    remove(t, kind, "b")
    remove(t, kind, "a")


@case(kind=KINDS)
def made_again(t, kind):
    for other in KINDS:
        make(t, kind, "n")
        make(t, other, "n")
        remove(t, kind, "n")
        t.lstat("n")
        make(t, other, "n")
        remove(t, other, "n")


@case(way=[0, EXCHANGE, NOREPLACE])
def rename_below_itself(t, way):
    t.mkdir("a")
    t.mkdir("a/b")
    t.mkdir("a/b/c")
    for old, new in (("a", "a/x"), ("a", "a/b/x"), ("a", "a/b"), ("a", "a/b/c"), ("a/b", "a"), ("a/b/c", "a"),
                     ("a", "a"), ("a/b", "a/b/c"), (".", "x"), ("a/.", "x"), ("a/..", "x"), ("a", "."), ("a", "..")):
        t.renameat2(old, new, way)
    t.rename("a/b/c", "c")
    t.rename("a/b", "c/b")
    t.stat("a")
    t.stat("c")


@case()
def directories_count_their_own(t):
    for n in range(5):
        t.mkdir("d%d" % n)
        t.stat(".")
    t.mkdir("d0/below")
    t.rename("d0/below", "d1/below")
    t.renameat2("d1", "d2", EXCHANGE)
    make(t, "file", "f")
    t.renameat2("d2/below", "f", EXCHANGE)
    t.rename("d3", "d4")
    t.stat("d4")
    t.rename("d4", "d0/d4")
    for path in ("f", "d0/d4", "d0", "d1", "d2"):
        t.rmdir(path)
    t.rename("d2/below", "x")


@case()
def many_names_removed_while_listed(t):
    t.depth = 0
    t.mkdir("big")
    for n in range(5000):
        t.mknod("big/name%05d" % n, stat.S_IFREG | 0o600)
    t.depth = 1
    t.listdir("big")
    t.depth = 0
    t.remove_while_listed("big")
    t.depth = 1
    t.rmdir("big")


@case()
def places_in_a_listing(t):
    t.depth = 0
    t.mkdir("d")
    for n in range(700):
        t.mknod("d/%d" % n, stat.S_IFREG)
    t.seek_in_listing("d")
    t.list_while_made("d")


@case(user=["root", "ann"])
def deleted_working_directory(t, user):
    t.mkdir("d", 0o777)
    t.getcwd_in("d", "../d", by=user)
    t.mkdir("e", 0o777)
    t.open("e", "e", os.O_RDONLY | os.O_DIRECTORY)
    t.rmdir("e")
    t.fstat("e")
    t.fchmod("e", 0o711)
    t.fchown("e", 65534, 65534)
    t.futimens("e", (1, 1), (2, 2))
    t.fsetxattr("e", "user.x", b"y")
    t.fsync("e")
    t.fstat("e")


@case(size=[1, 59, 60, 255, 256, 4000, 4094, 4095, 4096])
def symbolic_links(t, size):
    t.symlink("x" * size, "l")
    t.readlink("l")
    t.lstat("l")
    t.stat("l")
    t.link("l", "m")
    t.lchown("l", 65534, 65534)
    t.depth = 0
    t.utimens("l", (5, 6), (7, 8), 0x100)
    t.times("m")


@case(size=[254, 255, 256])
def names_of_bytes(t, size):
    for name in ("a" * size, "é" * (size // 2), "a" + "日" * (size // 3)):
        for kind in KINDS:
            make(t, kind, name)
            t.rename(name, "b" * size)
            t.rename("b" * size, name)
            t.link(name, "c" * size) if kind != "directory" else None
            t.unlink("c" * size)
            remove(t, kind, name)


@case()
def over_a_mount(t):
    t.mkdir("m")
    make(t, "file", "f")
    t.mkdir("d")
    t.mount("m")
    t.depth = 0
    t.rmdir("m")
    t.unlink("m")
    t.rename("m", "n")
    t.rename("d", "m")
    t.link("f", "m/f")
    t.rename("f", "m/f")
    t.rename("d", "m/d")
    t.renameat2("f", "m", EXCHANGE)
    t.umount("m")
    t.depth = 2
    t.rmdir("m")


@case(mask=[0, 0o22, 0o77, 0o777, 0o137], user=["root", "ann"])
def umask_takes(t, mask, user):
    t.umask(mask)
    for n, mode in enumerate((0o777, 0o644, 0o7777, 0o1755, 0o2755, 0o4755, 0o151)):
        for kind in ("file", "directory", "fifo", "socket"):
            make(t, kind, "%s%d" % (kind, n), by=user, mode=mode)
        t.mknod("plain%d" % n, mode, by=user)


@case(user=["root", "ann", "bob", "eve"], mode=[0o777, 0o2777, 0o2757, 0o3777], group=[65534, 65532])
def inherited_groups(t, user, mode, group):
    t.mkdir("d", 0o777)
    t.chown("d", 65533, group)
    t.chmod("d", mode)
    for kind in KINDS:
        make(t, kind, "d/" + kind, by=user, mode=0o775)
    t.open("s", "d/set", CREATE, 0o6775, by=user)
    t.mkdir("d/directory/below", 0o700, by=user)
    t.mkdir("d/mode", 0o2777, by=user)
    t.mknod("d/node", stat.S_IFREG | 0o2771, by=user)


@case()
def nodes_of_no_kind(t):
    t.mknod("zero", 0o644)
    t.mknod("directory", stat.S_IFDIR | 0o755)
    t.mknod("link", stat.S_IFLNK | 0o777)
    t.mknod("odd", 0o030000 | 0o644)
    t.mknod("big", stat.S_IFCHR | 0o600, os.makedev(4095, 1048575))
    t.mknod("small", stat.S_IFBLK | 0o600, os.makedev(0, 0))
    t.mknod("other", stat.S_IFBLK | 0o600, os.makedev(259, 70000))
    for kind in (stat.S_IFCHR, stat.S_IFBLK, stat.S_IFIFO, stat.S_IFREG, stat.S_IFSOCK):
        t.mknod("ann%o" % kind, kind | 0o600, 0x0101, by="ann")
