"""The list of cases, and how one is declared."""

import itertools
import os
import stat

from calls import USERS

CASES = []


def case(**variants):
    """Declares a function a case: once for each combination of the variants' values, given by name."""
    def declare(body):
        for values in itertools.product(*variants.values()):
            chosen = dict(zip(variants, values))
            CASES.append((body, chosen))
        return body
    return declare


def title(body, chosen):
    return body.__name__ + "".join(" %s=%s" % item for item in chosen.items())


# The kinds of things that have names. A device is made by root and never opened, because a mount has no devices.
KINDS = ["file", "directory", "fifo", "character", "block", "socket", "link"]


def make(t, kind, path, by="root", mode=0o644):
    """Makes something of a kind."""
    if kind == "file":
        t.open("made", path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode, by=by)
        t.close("made")
    elif kind == "directory":
        t.mkdir(path, mode, by=by)
    elif kind == "fifo":
        t.mknod(path, stat.S_IFIFO | mode, by=by)
    elif kind == "character":
        t.mknod(path, stat.S_IFCHR | mode, 0x0102)
        t.lchown(path, *owner(by))
    elif kind == "block":
        t.mknod(path, stat.S_IFBLK | mode, 0x0304)
        t.lchown(path, *owner(by))
    elif kind == "socket":
        t.bind(path, by=by)
    elif kind == "link":
        t.symlink("target", path, by=by)


def owner(user):
    return USERS[user][:2]


def remove(t, kind, path, by="root"):
    if kind == "directory":
        t.rmdir(path, by=by)
    else:
        t.unlink(path, by=by)
