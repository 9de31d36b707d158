"""Everyday work with files that are here, beside the native file system, a FUSE passthrough without a database, and rclone mount.

The passthrough is libfuse's example passthrough_ll (Debian: libfuse3-dev), compiled here, with the kernel's caches as generous
as Yonder's. Neither it nor rclone checks permissions. Yonder does, and so does the same example as passthrough-checked
(-o default_permissions): the kernel asks for a directory's attributes before each change of a name in it. All of it is done on a
disk and on a tmpfs. Yonder may take 1.3 times as long as the passthrough, and no longer than rclone mount (--vfs-cache-mode full).
Between two steps Yonder sends what the last one has changed.
"""

import os
import pathlib
import random
import shutil
import sqlite3
import statistics
import subprocess
import time

from .stage import Report, Stage, Unavailable
from .write import _make_archive

MOST = 1.3
FILES = 3_000
LARGE = 256 << 20
# Of the passthrough, with the options that each is mounted with.
PASSTHROUGHS = {"passthrough": "", "passthrough-checked": ",default_permissions"}
EXAMPLE = "/usr/share/doc/libfuse3-dev/examples/passthrough_ll.c"


def add_options(parser):
    parser.add_argument("--only", metavar="STEP", action="append", help="one step alone; may be repeated")
    parser.add_argument("--place", choices=["disk", "tmpfs"], help="one of both alone")
    parser.add_argument("--contenders", metavar="LIST", help="some alone, with commas between them")


def run(stage, options):
    fixtures = Fixtures(stage.scratch)
    contenders = ["native", "yonder"] + (list(PASSTHROUGHS) if fixtures.passthrough else []) + (["rclone"] if stage.has_rclone else [])
    if options.contenders:
        contenders = [name for name in contenders if name in options.contenders.split(",")]
    report = Report(f"Everyday work: {FILES:,} files, and a large one of 256 MiB (rclone: vfs cache full)", contenders)
    if options.place != "tmpfs":
        _measure(stage, "disk", fixtures, contenders, report, options)
    if options.place != "disk" and os.path.ismount("/dev/shm"):
        with Stage("/dev/shm", stage.programs) as memory:
            _measure(memory, "tmpfs", fixtures, contenders, report, options)
    for name, _, numbers in report.rows:
        for peer, most in (("passthrough", MOST), ("rclone", 1.0)):
            if numbers.get(peer) and numbers.get("yonder"):
                ratio = statistics.median(numbers["yonder"]) / statistics.median(numbers[peer])
                report.require_at_most(f"{name}: yonder's time / {peer}'s", ratio, most)
    return report


def _measure(stage, place, fixtures, contenders, report, options):
    rows = {}
    for round in range(options.repeat or 3):
        for contender in contenders:
            with Contender(stage, contender, fixtures) as mounted:
                for name, step in STEPS:
                    if options.only and name not in options.only and name not in NEEDED:
                        continue
                    mounted.settle()
                    start = time.perf_counter()
                    step(mounted.path, fixtures)
                    seconds = time.perf_counter() - start
                    if not options.only or name in options.only:
                        rows.setdefault(name, {}).setdefault(contender, []).append(seconds * 1000)
    for name, numbers in rows.items():
        report.add(f"{name} ({place})", "ms", numbers)


class Contender:
    """A mount of a new folder, or the folder itself."""

    def __init__(self, stage, name, fixtures):
        self._stage, self._name, self._fixtures = stage, name, fixtures

    def __enter__(self):
        self._folder = self._stage.scratch / f"folder-{self._name}-{time.monotonic_ns()}"
        self._folder.mkdir()
        self._mount = None
        if self._name == "yonder":
            self._mount = self._stage.mount_yonder(self._folder)
        elif self._name == "rclone":
            self._mount = self._stage.mount_rclone(self._folder, is_read_only=False)
        elif self._name in PASSTHROUGHS:
            options = f"source={self._folder},cache=always,timeout=3600{PASSTHROUGHS[self._name]}"
            self._mount = self._stage.mount_program(
                self._name, lambda mount: [self._fixtures.passthrough, "-f", "-o", options, mount])
        self.path = self._mount.path if self._mount else self._folder
        return self

    def settle(self):
        """Lets what the last step has begun come to its end."""
        if self._name == "yonder":
            self._mount.yonder("wait")
        os.sync()

    def __exit__(self, *_):
        if self._name == "yonder":
            self._mount.yonder("shutdown")
        if self._mount:
            self._stage.unmount(self._mount.path)
        shutil.rmtree(self._folder, ignore_errors=True)


class Fixtures:
    """An archive, a Git repository and a large file, on the disk."""

    def __init__(self, scratch):
        self.archive, self.repository, self.large = scratch / "tree.tar", scratch / "repository", scratch / "large"
        self.files = _make_archive(self.archive, FILES)
        tree = scratch / "tree"
        tree.mkdir()
        subprocess.run(["tar", "-xf", self.archive, "-C", tree], check=True)
        author = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
        git(tree, "init", "-q")
        git(tree, "add", ".")
        git(tree, "commit", "-qm", "tree", variables=author)
        tree.rename(self.repository)
        self.large.write_bytes(os.urandom(LARGE))
        self.passthrough = self._compile(scratch / "passthrough_ll")

    @staticmethod
    def _compile(program):
        """The passthrough; nothing where it cannot be compiled."""
        if not os.path.exists(EXAMPLE):
            print("libfuse3-dev is not installed: no passthrough to compare with")
            return None
        flags = subprocess.run(["pkg-config", "--cflags", "--libs", "fuse3"], capture_output=True, text=True)
        compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
        if flags.returncode != 0 or not compiler:
            print("there is no C compiler: no passthrough to compare with")
            return None
        done = subprocess.run([compiler, "-O2", "-o", program, EXAMPLE, *flags.stdout.split()], capture_output=True, text=True)
        if done.returncode != 0:
            raise Unavailable(f"passthrough_ll does not compile: {done.stderr.strip()[:300]}")
        return program


def git(folder, *arguments, variables=None):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    subprocess.run(
        ["git", "-c", "gc.auto=0", "-c", "safe.directory=*", *arguments], cwd=folder, env=environment | (variables or {}),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)


def command(*arguments):
    subprocess.run(arguments, stdout=subprocess.DEVNULL, check=True)


def unpack(place, fixtures):
    (place / "tree").mkdir()
    command("tar", "-xf", fixtures.archive, "-C", place / "tree")


def create(place, _):
    (place / "created").mkdir()
    for number in range(FILES):
        descriptor = os.open(place / "created" / f"{number:05}", os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        os.write(descriptor, b"x" * 1_000)
        os.close(descriptor)


def stat(place, _):
    for number in range(FILES):
        os.stat(place / "created" / f"{number:05}")


def save(place, _):
    """As editors do: a new file under another name, and a rename."""
    (place / "saved").mkdir(exist_ok=True)
    for number in range(300):
        temporary = place / "saved" / f".{number % 10}.swp"
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.write(descriptor, b"y" * 4_000)
        os.close(descriptor)
        os.rename(temporary, place / "saved" / f"document {number % 10}")


def commit(place, _):
    connection = sqlite3.connect(place / "data.sqlite", isolation_level=None)
    connection.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT)")
    for number in range(200):
        connection.execute("INSERT INTO t (b) VALUES (?)", (f"row {number} " + "z" * 200,))
    connection.close()


def copy_large(place, fixtures):
    command("dd", f"if={fixtures.large}", f"of={place / 'large'}", "bs=1M", "status=none")


def write_randomly(place, _):
    source = random.Random(1)
    block = b"w" * 4096
    descriptor = os.open(place / "large", os.O_WRONLY)
    for _ in range(8_192):
        os.pwrite(descriptor, block, source.randrange(LARGE // 4096) * 4096)
    os.close(descriptor)


def read_randomly(place, _):
    source = random.Random(2)
    descriptor = os.open(place / "large", os.O_RDONLY)
    for _ in range(16_384):
        os.pread(descriptor, 4096, source.randrange(LARGE // 4096) * 4096)
    os.close(descriptor)


STEPS = [
    ("tar x", unpack),
    ("find -ls", lambda place, _: command("find", place / "tree", "-ls")),
    ("grep -r", lambda place, _: command("sh", "-c", 'grep -r nothing "$1"; true', "sh", place / "tree")),
    ("cp -r", lambda place, _: command("cp", "-r", place / "tree", place / "copy")),
    ("mv", lambda place, _: command("mv", place / "copy", place / "moved")),
    ("chmod -R", lambda place, _: command("chmod", "-R", "go-r", place / "moved")),
    ("rm -rf", lambda place, _: command("rm", "-rf", place / "moved")),
    ("git clone", lambda place, fixtures: git(place, "clone", "-q", "--no-hardlinks", fixtures.repository, "clone")),
    ("git status", lambda place, _: git(place / "clone", "status")),
    ("3,000 creations", create),
    ("3,000 stats", stat),
    ("300 atomic saves", save),
    ("200 sqlite commits", commit),
    ("copy of 256 MiB", copy_large),
    ("8,192 random writes", write_randomly),
    ("16,384 random reads", read_randomly),
]
# What others work on.
NEEDED = {"tar x", "cp -r", "mv", "git clone", "3,000 creations", "copy of 256 MiB"}
