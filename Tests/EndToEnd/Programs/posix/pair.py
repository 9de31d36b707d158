"""Two trees that are given the same calls, and the comparison of what comes of them.

After each call the answers are compared, and then everything that can be seen of the two trees: names, kinds, modes,
owners, link counts, which names share an inode, sizes, contents, link targets, attributes, and of each inode's times
whether the call has moved them.
"""

import os
import shutil
import stat
import subprocess
import time

from calls import Side, digest, links

DAY = 86_400_000_000_000

# The differences that may be, each with its reason: (call, the mount's answer, the plain directory's), None for any.
# Beside these, never compared: st_dev, st_ino as such, st_blocks, st_blksize, a directory's st_size, access times that
# were not set, and the order of listings, which POSIX leaves to each file system.
EXPLAINED = [
    ("tmpfile", "ENOTSUP", None, "O_TMPFILE is optional, and programs fall back"),
    ("fallocate", "ENOTSUP", None, "FUSE passes on no collapsing and inserting"),
]


class Difference(Exception):
    pass


class Pair:
    def __init__(self, mounted, plain):
        self.mounted, self.plain = Side(mounted), Side(plain)
        self.sides = (self.mounted, self.plain)
        self.checks = 0
        self.umask_value = 0
        self.trail = []
        self.before = ({}, {})
        self.explained = set()
        # The inodes on both sides that a slot maps; those that were stored to through memory; and those of them whose
        # pages have been written since. Storing in shared memory moves a file's times at once, or when the page is
        # written: POSIX leaves it open.
        self.mapped, self.stored, self.settled, self.same = {}, set(), set(), set()
        # How much is compared after each call: 0 the answer, 1 the trees, 2 also contents.
        self.depth = 2
        # After how many random calls all that can be is made dataless on the mount; 0 for never.
        self.evicts_every = 0
        self.evictions = 0

    # -- One case ------------------------------------------------------------------------------------------------------

    def begin(self, folder):
        for side in self.sides:
            side.enter("")
            shutil.rmtree(folder, ignore_errors=True)  # What a run that was killed has left.
            os.mkdir(folder)
            os.chmod(folder, 0o777)
            side.enter(folder)
        self.umask_value = 0
        self.depth = 2
        self.trail = []
        self.before = ({}, {})
        self.mapped, self.stored, self.settled, self.same = {}, set(), set(), set()
        self.look()

    def end(self):
        for side in self.sides:
            side.close_all()
            folder = side.base
            side.enter("")
            shutil.rmtree(folder)
            if os.path.exists(folder):
                raise Difference("the case's folder is still there")

    def again(self):
        """Goes on in an empty folder."""
        folder = os.path.basename(self.plain.base)
        self.end()
        self.begin(folder)

    def run(self, user, name, args):
        self.trail.append((user, name, args))
        mapped = self.mapped.get(args[0]) if args else None
        self.same |= self.kept_attribute(name, args)
        answers = [side.call(user, self.umask_value, name, args) for side in self.sides]
        self.checks += 1
        if mapped and name == "store":
            self.stored |= mapped
            self.settled -= mapped
        elif mapped and answers == [None, None] and name in ("mmap", "msync", "close"):
            self.settled |= mapped & self.stored
        if name == "mmap" and answers == [None, None] and isinstance(self.plain.slots.get(args[1]), int):
            self.mapped[args[0]] = {os.fstat(side.slots[args[1]]).st_ino for side in self.sides}
        if answers[0] != answers[1] and not self.explains(name, *answers):
            raise Difference("the mount answers %r, the plain directory %r" % tuple(answers))
        if self.depth:
            self.look()
        return answers[1]

    def kept_attribute(self, name, args):
        """The inodes of a file whose attribute is being set to what it is: ext4 does nothing then, and others move the
        change time."""
        try:
            if name == "setxattr" and os.getxattr(os.path.join(self.plain.base, args[0]), args[1]) == args[2]:
                return {os.stat(os.path.join(side.base, args[0])).st_ino for side in self.sides}
            if name == "fsetxattr" and os.getxattr(self.plain.slots[args[0]], args[1]) == args[2]:
                return {os.fstat(side.slots[args[0]]).st_ino for side in self.sides}
        except (OSError, KeyError, TypeError):
            pass
        return set()

    def explains(self, name, mounted, plain):
        for call, one, other, reason in EXPLAINED:
            if call == name and mounted == one and other in (None, plain):
                self.explained.add(reason)
                return True
        return False

    def evict(self):
        """Has the mount send what was changed and give up all content that can be: nothing may be seen of it."""
        for command in (["wait", "--timeout", "60"], ["evict"]):
            done = subprocess.run(
                [os.environ.get("YONDER_PROGRAM", "yonder"), *command, self.mounted.base], stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, text=True)
            # What is open, has several names, or is not for the remote refuses with 1.
            if done.returncode not in (0, 1):
                raise Difference("yonder %s ends with %d: %s" % (command[0], done.returncode, done.stdout))
        self.evictions += 1

    def umask(self, mask):
        self.umask_value = mask

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)

        def call(*args, by="root"):
            return self.run(by, name, args)
        return call

    # -- Comparing trees -----------------------------------------------------------------------------------------------

    def look(self):
        """Compares the trees, and what the last call did to times."""
        seen = [survey(side.base, self.depth > 1) for side in self.sides]
        told = [
            [entry.told(before, entry.inode in self.stored, entry.inode in self.same) for entry in found.values()]
            for found, before in zip(seen, self.before)]
        self.stored -= self.settled
        self.settled, self.same = set(), set()
        self.before = tuple({entry.inode: entry for entry in found.values()} for found in seen)
        self.checks += len(told[1])
        if told[0] == told[1]:
            return
        mounted, plain = ({one[0]: one for one in side} for side in told)
        lines = []
        for path in sorted(mounted.keys() | plain.keys()):
            if mounted.get(path) != plain.get(path):
                lines.append("%s\n      mount: %r\n      plain: %r" % (path, mounted.get(path), plain.get(path)))
        raise Difference("the trees differ:\n    " + "\n    ".join(lines))


class Seen:
    """What can be seen of one name."""

    def __init__(self, path, status, first, facts):
        self.path, self.inode, self.first, self.facts = path, status.st_ino, first, facts
        self.times = (status.st_mtime_ns, status.st_ctime_ns)

    def told(self, before, is_stored, keeps_attribute):
        """As it is compared: times that were set are compared as such, others by what has become of them."""
        old = before.get(self.inode)
        now = time.time_ns()
        moves = []
        for kind, moment in enumerate(self.times):
            if kind == 0 and abs(moment - now) > DAY:
                moves.append(moment)
            elif old is None:
                moves.append("later")  # A new one. Its number says nothing: ext4 gives the same again.
            else:
                was = old.times[kind]
                moves.append("kept" if moment == was else "later" if moment > was or was - now > DAY else "EARLIER")
        if is_stored:
            moves = ["whatever"] * 2
        if keeps_attribute:
            moves[1] = "whatever"
        # Writing to a FIFO moves its times on file systems that the kernel keeps itself; FUSE is not told of it.
        if stat.S_ISFIFO(int(self.facts[0], 8)):
            moves = ["whatever"] * 2
        return (self.path, self.first, *self.facts, "modified", moves[0], "changed", moves[1])


def survey(base, with_contents):
    """All names below a directory, in order, and itself."""
    found, inodes = {}, {}

    def add(path, status):
        kind = stat.S_IFMT(status.st_mode)
        first = inodes.setdefault(status.st_ino, path)
        full = os.path.join(base, path)
        facts = [oct(status.st_mode), links(status), status.st_uid, status.st_gid]
        if kind != stat.S_IFDIR:
            facts.append(status.st_size)
        if kind in (stat.S_IFCHR, stat.S_IFBLK):
            facts.append(status.st_rdev)
        if kind == stat.S_IFLNK:
            facts.append(os.readlink(full))
        elif kind in (stat.S_IFREG, stat.S_IFDIR):
            facts.append([
                (n, digest(os.getxattr(full, n))) for n in sorted(os.listxattr(full)) if n.startswith("user.")])
        if with_contents and kind == stat.S_IFREG and 0 < status.st_size <= 1 << 24:
            with open(full, "rb") as file:
                facts.append(digest(file.read()))
        found[path] = Seen(path, status, first, facts)

    def walk(path):
        for name in sorted(os.listdir(os.path.join(base, path))):
            below = os.path.join(path, name)
            status = os.lstat(os.path.join(base, below))
            add(below, status)
            if stat.S_ISDIR(status.st_mode) and len(below) < 2000:
                walk(below)

    add("", os.lstat(base))
    walk("")
    return found
