"""A random sequence of calls over a small name space, and the shortest one that shows a difference."""

import fcntl
import os
import random
import stat

from calls import EXCHANGE, KEEP_SIZE, NOREPLACE, PUNCH, UTIME_NOW, UTIME_OMIT, ZERO
from pair import Difference

NAMES = ["a", "b", "c", "d", "e"]
SLOTS = ["s1", "s2", "s3", "s4"]
MODES = [0o777, 0o666, 0o644, 0o600, 0o755, 0o6777, 0o2775, 0o1777, 0o444, 0]
SIZES = [0, 1, 7, 4095, 4096, 5000, 70_000]


class Generator:
    """Thinks up calls. All that is random is decided here, so that a sequence can be made again, also in part."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def path(self):
        depth = self.random.choice((1, 1, 1, 2, 2, 3))
        return "/".join(self.random.choice(NAMES) for _ in range(depth))

    def data(self):
        size = self.random.choice((1, 3, 10, 4096, 9000))
        return bytes([self.random.randrange(65, 91)]) * size

    def moment(self):
        return self.random.choice(((0, UTIME_NOW), (0, UTIME_OMIT), (self.random.randrange(1, 1 << 31), 5), (-7, 3)))

    def id(self):
        return self.random.choice((-1, 0, 65534, 65533))

    def call(self):
        pick, path, slot = self.random.choice, self.path, pick_slot(self.random)
        size = pick(SIZES)
        kind = pick(WEIGHTED)
        arguments = {
            "mkdir": lambda: (path(), pick(MODES) | 0o300), "rmdir": lambda: (path(),), "unlink": lambda: (path(),),
            "rename": lambda: (path(), path()), "renameat2": lambda: (path(), path(), pick((NOREPLACE, EXCHANGE))),
            "link": lambda: (path(), path()), "symlink": lambda: (pick(NAMES), path()),
            "mknod": lambda: (path(), pick((stat.S_IFIFO, stat.S_IFREG, stat.S_IFSOCK)) | pick(MODES)),
            "readlink": lambda: (path(),), "listdir": lambda: (path(),), "stat": lambda: (path(),),
            "lstat": lambda: (path(),), "access": lambda: (path(), pick((0, 1, 2, 4, 6))),
            "chmod": lambda: (path(), pick(MODES)), "chown": lambda: (path(), self.id(), self.id()),
            "lchown": lambda: (path(), self.id(), self.id()), "truncate": lambda: (path(), size),
            "utimens": lambda: (path(), self.moment(), self.moment(), pick((0, 0x100))),
            "setxattr": lambda: (path(), "user." + pick(NAMES), self.data()[:20], pick((0, 0, 1, 2))),
            "removexattr": lambda: (path(), "user." + pick(NAMES)),
            "open": lambda: (slot, path(), pick((0, 1, 2)) | pick((0, os.O_CREAT)) | pick((0, 0, os.O_EXCL))
                             | pick((0, 0, os.O_TRUNC)) | pick((0, 0, os.O_APPEND)), pick(MODES)),
            "close": lambda: (slot,), "read": lambda: (slot, size), "write": lambda: (slot, self.data()),
            "pread": lambda: (slot, size, pick(SIZES)), "pwrite": lambda: (slot, self.data(), pick(SIZES)),
            "lseek": lambda: (slot, size, pick((0, 1, 2))), "fstat": lambda: (slot,),
            "ftruncate": lambda: (slot, size), "fchmod": lambda: (slot, pick(MODES)),
            "fchown": lambda: (slot, self.id(), self.id()), "fsync": lambda: (slot,),
            "futimens": lambda: (slot, self.moment(), self.moment()),
            "fallocate": lambda: (slot, pick((0, KEEP_SIZE, PUNCH | KEEP_SIZE, ZERO, ZERO | KEEP_SIZE)), pick(SIZES),
                                  pick(SIZES)),
            "copy_range": lambda: (slot, pick(SIZES), pick(SLOTS), pick(SIZES), size),
            "sendfile": lambda: (slot, 0, pick(SLOTS), size), "link_descriptor": lambda: (slot, path()),
            "mmap": lambda: ("m", slot, 5000), "store": lambda: ("m", b"mapped", 0), "load": lambda: ("m", 9, 0),
            "msync": lambda: ("m",), "data_and_holes": lambda: (slot,), "fifo": lambda: (path(),),
        }[kind]()
        user = pick(("root", "root", "root", "ann", "bob", "eve"))
        # How much is compared afterwards: a look at everything also lets the kernel learn what it had forgotten.
        return (user, kind, arguments, pick((0, 0, 1, 1, 1, 2)))


def pick_slot(source):
    return source.choice(SLOTS)


WEIGHTS = {
    "mkdir": 6, "rmdir": 3, "unlink": 5, "rename": 9, "renameat2": 4, "link": 5, "symlink": 2, "mknod": 3, "readlink": 1,
    "listdir": 3, "stat": 3, "lstat": 2, "access": 2, "chmod": 4, "chown": 3, "lchown": 1, "truncate": 4, "utimens": 3,
    "setxattr": 3, "removexattr": 1, "open": 22, "close": 5, "read": 4, "write": 9, "pread": 4, "pwrite": 7, "lseek": 2,
    "fstat": 3, "ftruncate": 4, "fchmod": 2, "fchown": 2, "fsync": 1, "futimens": 2, "fallocate": 4, "copy_range": 3,
    "sendfile": 2, "link_descriptor": 1, "mmap": 2, "store": 2, "load": 2, "msync": 1, "data_and_holes": 1, "fifo": 1,
}
WEIGHTED = [kind for kind, weight in WEIGHTS.items() for _ in range(weight)]


def difference_of(pair, sequence, folder):
    """Makes the calls in a folder of their own; the number of the one that differs, and how."""
    at, found = len(sequence), None
    try:
        pair.begin(folder)
        for at, (user, name, arguments, depth) in enumerate(sequence):
            pair.depth = depth
            if pair.evicts_every and at % pair.evicts_every == pair.evicts_every - 1:
                pair.evict()
            if is_safe(pair, name, arguments) and is_told_apart(pair, user, name, arguments):
                pair.run(user, name, arguments)
        pair.depth = 2
        pair.look()
    except Difference as difference:
        found = difference
    pair.end()
    return (at, found) if found else None


def is_safe(pair, name, arguments):
    """Mapped memory beyond the end of its file is not touched: SIGBUS would kill the process."""
    if name not in ("store", "load", "msync"):
        return True
    if "m" not in pair.plain.slots:
        return True
    try:
        return all(side.slots["m"].size() >= 5000 for side in pair.sides)
    except (OSError, KeyError, ValueError):
        return False


def is_told_apart(pair, user, name, arguments):
    """Asking for no other owner takes the set-ID bits, which only the owner may. But FUSE has the same words for it as for
    taking them after a write, which every writer may do: for a file that is being written the two cannot be told
    apart."""
    if name not in ("chown", "lchown", "fchown") or arguments[1:] != (-1, -1) or user == "root":
        return True
    try:
        asked = os.fstat(pair.plain.slots[arguments[0]]) if name == "fchown" else pair.plain.status(arguments[0])
        held = [os.fstat(slot).st_ino for slot in pair.plain.slots.values() if is_written(slot)]
    except (OSError, KeyError, TypeError):
        return True
    if not asked.st_mode & (stat.S_ISUID | stat.S_ISGID) or asked.st_ino not in held:
        return True
    pair.explained.add("FUSE has the same words for a chown of nothing and for what writing does to set-ID bits")
    return False


def is_written(slot):
    return isinstance(slot, int) and fcntl.fcntl(slot, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY


def run(pair, seed, count, show):
    generator = Generator(seed)
    sequence = [generator.call() for _ in range(count)]
    found = difference_of(pair, sequence, "random")
    if not found:
        return 0
    at, difference = found
    print("DIFFERENCE after %d calls: %s\nlooking for the shortest sequence" % (at + 1, difference), flush=True)
    sequence, difference = shortened(pair, sequence[:at + 1], difference)
    print("DIFFERENCE of seed %d, after\n%s  %s\n" % (seed, show([c[:3] for c in sequence]), difference), flush=True)
    return 1


def shortened(pair, sequence, difference):
    """Leaves calls out, in ever smaller pieces, as long as some difference stays."""
    attempts, size = 0, max(1, len(sequence) // 2)
    while size and attempts < 2000:
        start = 0
        while start < len(sequence) and attempts < 2000:
            shorter = sequence[:start] + sequence[start + size:]
            attempts += 1
            found = difference_of(pair, shorter, "shorter%d" % attempts) if shorter else None
            if found:
                sequence, difference = shorter[:found[0] + 1], found[1]
            else:
                start += size
        size //= 2
    return sequence, difference
