"""The pause that a reader, a writer and a `stat` see when the daemon is killed, until the next one answers."""

import math
import os
import pathlib
import signal
import statistics
import threading
import time

from .stage import Report

PAUSE = 0.3


def add_options(parser):
    parser.add_argument(
        "--items", metavar="N", type=int, nargs="+", default=[1_000, 100_000, 1_000_000],
        help="how many files (1000 100000 1000000)")
    parser.add_argument("--open", metavar="N", type=int, default=1_000, help="how many files are open (1000)")


def run(stage, options):
    report = Report("The pause after SIGKILL", ["yonder"])
    for items in options.items:
        source = stage.scratch / f"source-{items}"
        _make_tree(source, items)
        mount = stage.mount_yonder(source)
        for _ in os.walk(mount.path):
            pass
        opened = [os.open(path, os.O_RDONLY) for path in _some(mount.path, options.open)]
        pauses = {"stat": [], "reader": [], "writer": []}
        for _ in range(options.repeat or 15):
            for kind, pause in _kill(mount).items():
                pauses[kind].append(pause)
        for file in opened:
            os.close(file)
        for kind, values in pauses.items():
            values.sort()
            report.add(f"{items:,} items: {kind}, median", "s", {"yonder": [statistics.median(values)]})
            report.add(f"{items:,} items: {kind}, p99", "s", {"yonder": [values[math.ceil(0.99 * len(values)) - 1]]})
            report.add(f"{items:,} items: {kind}, longest", "s", {"yonder": [values[-1]]})
        if items <= 100_000:
            report.require(
                f"{PAUSE} s / the median pause of a stat with {items:,} items", PAUSE / statistics.median(pauses["stat"]), 1)
        stage.unmount(mount.path)
    return report


def _kill(mount):
    """Kills the daemon while three threads work, and returns the longest call of each."""
    longest = {"stat": 0.0, "reader": 0.0, "writer": 0.0}
    done = threading.Event()

    def repeat(kind, call):
        while not done.is_set():
            start = time.perf_counter()
            call()
            longest[kind] = max(longest[kind], time.perf_counter() - start)

    work = mount.path / "work"
    with open(work, "wb", buffering=0) as writer, open(work, "rb", buffering=0) as reader:
        writer.write(b"x" * 4096)
        # A name that the kernel has not cached.
        calls = {
            "stat": lambda: os.path.exists(mount.path / f"none {time.perf_counter_ns()}"),
            "reader": lambda: reader.seek(0) or reader.read(4096),
            "writer": lambda: writer.seek(0) or writer.write(b"y" * 4096),
        }
        threads = [threading.Thread(target=repeat, args=item) for item in calls.items()]
        for thread in threads:
            thread.start()
        time.sleep(0.3)
        os.kill(mount.daemon().number, signal.SIGKILL)
        time.sleep(2)
        done.set()
        for thread in threads:
            thread.join()
    return longest


def _make_tree(root, items):
    for number in range(items):
        directory = root / str(number // 1000)
        if number % 1000 == 0:
            directory.mkdir(parents=True)
        (directory / f"file {number}").touch()


def _some(root, count):
    paths = []
    for directory, _, names in os.walk(root):
        for name in names:
            if len(paths) == count:
                return paths
            paths.append(pathlib.Path(directory) / name)
    return paths
