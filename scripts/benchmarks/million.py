"""A domain of 1,000,000 items: what the whole of it takes, and each operation on one item beside a domain of 10,000.

One directory of a tenth of the files, the others in directories of a thousand. The daemon must stay under 250 MB throughout, an
operation on one item take at most one and a half times as long as in the small domain, an item at most 600 bytes of the database,
and the first entry of the large directory come within 100 ms. As root, because the daemon is killed and the kernel's caches are
dropped.
"""

import os
import pathlib
import random
import subprocess
import sys
import time

from .stage import Report, Unavailable

MEMORY = 250
SMALL = 10_000
RATIO = 1.5
BYTES_PER_ITEM = 600
FIRST_ENTRY = 100
# Three operations in the large domain, and one in the small one, where the directories are known: no limit.
WITH_DIRECTORIES = "stat with its directories"


def add_options(parser):
    parser.add_argument("--items", metavar="N", type=int, default=1_000_000, help="how many files (1000000)")


def run(stage, options):
    if os.geteuid() != 0:
        raise Unavailable("this drops the kernel's caches: run it as root")
    small, large = f"{SMALL:,}", f"{options.items:,}"
    report = Report(f"{large} files, {options.items // 10:,} of them in one directory", [small, large])
    whole = {}
    single = {}
    for name, items in ((small, SMALL), (large, options.items)):
        domain = Domain(stage, items)
        whole[name] = domain.measure_whole()
        single[name] = domain.measure_single()
        whole[name] |= domain.measure_recovery()
        domain.end()
    for step in whole[large]:
        report.add(step, whole[large][step][1], {name: [whole[name][step][0]] for name in whole})
    for operation in single[large]:
        report.add(operation, "ms", {name: single[name][operation] for name in single})
    peaks = [value for step, (value, unit) in whole[large].items() if unit == "MB"]
    report.require_at_most("MB of memory, the daemon's peak", max(peaks), MEMORY)
    report.require_at_most("bytes of the database for each item", whole[large]["database / item"][0], BYTES_PER_ITEM)
    report.require_at_most("ms to the first entry of the large directory", 1000 * whole[large]["first entry"][0], FIRST_ENTRY)
    for operation in single[large]:
        if operation == WITH_DIRECTORIES:
            continue
        ratio = report.median(operation, large) / report.median(operation, small)
        report.require_at_most(f"{operation}: time / that among {small}", ratio, RATIO)
    return report


class Domain:
    """A folder of many files, mounted, and measured."""

    def __init__(self, stage, items):
        self._items = items
        self._source = stage.scratch / f"source-{items}"
        self._directories = _make_tree(self._source, items)
        self._stage = stage
        self._mount = stage.mount_yonder(self._source)
        self._path = self._mount.path
        self._steps = {}

    # --- The whole of it ---

    def measure_whole(self):
        """Step → seconds, and what memory the daemon had in it at the most."""
        big = self._path / "big"
        self._step("first entry", lambda: next(os.scandir(big)))
        listed = [
            self._run("ls of the large directory, the first time", "ls", "-U", big),
            self._run("ls -l of it, again", "ls", "-l", big) - 1,
            self._ask("yonder ls of it", "ls", big),
        ]
        if set(listed) != {self._items // 10}:
            raise RuntimeError(f"{listed} of {self._items // 10} entries were listed")
        found = self._run("find, the first time", "find", self._path)
        self._steps["database / item"] = (self._database_size() / found, "B")
        again = self._run("find -ls, again", "find", self._path, "-ls")
        below = self._ask("yonder ls -R", "ls", "-R", self._path)
        if not found == again == below + 1:
            raise RuntimeError(f"found {found}, again {again}, listed {below}")
        self._ask("status", "status", self._path)
        self._ask("reimport of all", "reimport", self._path, "--wait")
        # At once, while the directories are still being compared with the remote.
        self._ask("evict of all", "evict", self._path)
        if self._run("find, once more", "find", self._path) != found:
            raise RuntimeError("something is missing after the reimport")
        self._ask("pin of all", "pin", self._path)
        self._ask("unpin of all", "unpin", self._path)
        self._ask("check", "check", self._path)
        return self._steps

    def measure_recovery(self):
        """After kill -9: how long the next call waits."""
        self._steps = {}
        _drop_kernel_caches()
        os.kill(self._mount.daemon().number, 9)
        start = time.perf_counter()
        os.stat(self._path / self._directories[0])
        self._steps["stat after kill -9"] = (time.perf_counter() - start, "s")
        return self._steps

    def end(self):
        self._mount.yonder("unmount", str(self._path))

    def _run(self, name, *command):
        words = [str(word) for word in command]
        return self._step(name, lambda: subprocess.run(words, stdout=subprocess.PIPE, check=True).stdout.count(b"\n"))

    def _ask(self, name, *arguments):
        words = [str(word) for word in arguments]
        return self._step(name, lambda: self._mount.yonder(*words).count("\n"))

    def _step(self, name, action):
        daemon = self._mount.daemon()
        daemon.forget_peak_memory()
        start = time.perf_counter()
        output = action()
        taken = time.perf_counter() - start
        peak = daemon.peak_memory()
        self._steps |= {name: (taken, "s"), f"  peak memory in {name}": (peak, "MB")}
        print(f"{self._items:,}: {name}: {taken:.2f} s, {peak:.0f} MB", file=sys.stderr, flush=True)
        return output

    def _database_size(self):
        return sum(file.stat().st_size for file in self._mount.replica.glob("*.sqlite*"))

    # --- One item ---

    def measure_single(self):
        """Operation → milliseconds of each time, on items chosen at random."""
        self._wait()
        _drop_kernel_caches()
        measured = {WITH_DIRECTORIES: self._times(300, lambda file: os.stat(file), False, first=100)}
        _drop_kernel_caches()
        measured |= {
            "stat": self._times(300, lambda file: os.stat(file)),
            "creation": self._times(300, lambda file: os.close(os.open(f"{file} new", os.O_CREAT | os.O_WRONLY))),
            "chmod": self._times(300, lambda file: os.chmod(file, 0o600)),
            "rename": self._times(300, lambda file: os.rename(file, f"{file} renamed")),
            "removal": self._times(300, lambda file: os.unlink(f"{file} renamed")),
        }
        self._wait()
        commands = ["info", "pin", "unpin", "evict"]
        for command in commands:
            measured[f"yonder {command} of a file"] = self._times(
                9, lambda file, command=command: self._mount.yonder(command, f"{file} new"))
        for command in commands[1:]:
            measured[f"yonder {command} of a directory"] = self._times(
                9, lambda file, command=command: self._mount.yonder(command, os.path.dirname(file)))
        return measured

    def _wait(self):
        self._mount.yonder("wait", "--timeout", "600", str(self._path))

    def _times(self, count, action, knows_directory=True, first=0):
        """How long each call takes, with the path of another file each time, and the same ones for each operation.

        The kernel knows the directory before: the small domain has so few that it knows them all after a few calls, and the operation
        on the file is what is compared.
        """
        directories = random.Random(self._items).sample(self._directories, len(self._directories))
        times = []
        for number in range(count):
            turn, place = divmod(number, len(directories))
            file = str(self._path / directories[place] / f"file {first + turn:06}")
            if knows_directory:
                os.stat(self._path / directories[place])
            start = time.perf_counter()
            action(file)
            times.append(1000 * (time.perf_counter() - start))
        return times


def _drop_kernel_caches():
    pathlib.Path("/proc/sys/vm/drop_caches").write_text("2\n")


def _make_tree(root, items):
    """Returns the directories of a thousand, as paths below the root."""
    root.mkdir()
    _fill(root / "big", items // 10)
    left = items - items // 10
    number = 0
    directories = []
    while left > 0:
        place = pathlib.Path(f"part {number // 100:03}") / f"directory {number:05}"
        (root / place.parent).mkdir(exist_ok=True)
        _fill(root / place, min(1000, left))
        directories.append(place)
        left -= 1000
        number += 1
    return directories


def _fill(directory: pathlib.Path, count):
    directory.mkdir()
    name = str(directory / "file ")
    for number in range(count):
        os.close(os.open(f"{name}{number:06}", os.O_CREAT | os.O_WRONLY, 0o644))
