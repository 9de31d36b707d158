"""A domain of 1,000,000 items: how long the whole of it takes, and how much memory the daemon, step by step.

One directory of a tenth of the files, the others in directories of a thousand. The daemon must stay under 250 MB throughout.
"""

import pathlib
import subprocess
import sys
import time

from .stage import Report

MEMORY = 250


def add_options(parser):
    parser.add_argument("--items", metavar="N", type=int, default=1_000_000, help="how many files (1000000)")


def run(stage, options):
    source = stage.scratch / "source"
    _make_tree(source, options.items)
    mount = stage.mount_yonder(source)
    daemon = mount.daemon()
    big = mount.path / "big"
    report = Report(f"{options.items:,} files, {options.items // 10:,} of them in one directory", ["yonder"])
    peaks = []

    def measure(name, action):
        daemon.forget_peak_memory()
        start = time.perf_counter()
        output = action()
        taken = time.perf_counter() - start
        peaks.append(daemon.peak_memory())
        report.add(name, "s", {"yonder": [taken]})
        report.add(f"  peak memory in {name}", "MB", {"yonder": [peaks[-1]]})
        print(f"{name}: {taken:.1f} s, {peaks[-1]:.0f} MB", file=sys.stderr, flush=True)
        return output

    def step(name, *command):
        words = [str(word) for word in command]
        return measure(name, lambda: subprocess.run(words, stdout=subprocess.PIPE, check=True).stdout.count(b"\n"))

    def ask(name, *arguments):
        words = [str(word) for word in arguments]
        return measure(name, lambda: mount.yonder(*words).count("\n"))

    listed = [
        step("ls of the large directory, the first time", "ls", "-U", big),
        step("ls -l of it, again", "ls", "-l", big) - 1,
        ask("yonder ls of it", "ls", big),
    ]
    if set(listed) != {options.items // 10}:
        raise RuntimeError(f"{listed} of {options.items // 10} entries were listed")
    found = step("find, the first time", "find", mount.path)
    again = step("find -ls, again", "find", mount.path, "-ls")
    below = ask("yonder ls -R", "ls", "-R", mount.path)
    if not found == again == below + 1:
        raise RuntimeError(f"found {found}, again {again}, listed {below}")
    ask("reimport of all", "reimport", mount.path, "--wait")
    # At once, while the directories are still being compared with the remote.
    ask("evict of all", "evict", mount.path)
    if step("find, once more", "find", mount.path) != found:
        raise RuntimeError("something is missing after the reimport")
    ask("evict of all, again", "evict", mount.path)
    report.require(f"{MEMORY} MB / the daemon's peak memory", MEMORY / max(peaks), 1)
    return report


def _make_tree(root, items):
    root.mkdir()
    _fill(root / "big", items // 10)
    left = items - items // 10
    number = 0
    while left > 0:
        parent = root / f"part {number // 100:03}"
        parent.mkdir(exist_ok=True)
        _fill(parent / f"directory {number:05}", min(1000, left))
        left -= 1000
        number += 1


def _fill(directory: pathlib.Path, count):
    directory.mkdir()
    for number in range(count):
        (directory / f"file {number:06}").touch()
