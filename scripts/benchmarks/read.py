"""Reads of a file that is here, in order and at random, beside the same file without a mount.

As root: the kernel then reads materialized files by itself (passthrough). Everything is in the page cache, because that
is where a mount costs most. How a file came into it matters, too: the kernel keeps what was read from the disk in larger
pieces than what was written a little at a time. So both files are put on the disk, dropped from the cache and read back
before they are measured; --as-written spares that, and shows what a file is like that was downloaded a moment ago.
Yonder must reach nine tenths of the native file's speed.
"""

import json
import os
import shutil
import statistics
import subprocess

from .stage import Report, Unavailable

LEAST = 0.9
WORKLOADS = [("sequential, 1 MiB", "read", "1M", "MiB/s"), ("random, 4 KiB", "randread", "4k", "reads/s")]


def add_options(parser):
    parser.add_argument("--size", metavar="MIB", type=int, default=256, help="how big the file is (256)")
    parser.add_argument("--seconds", metavar="S", type=int, default=1, help="how long each measurement lasts (1)")
    parser.add_argument("--as-written", action="store_true", help="measure what writing has left in the page cache")


def run(stage, options):
    if os.geteuid() != 0:
        raise Unavailable("this benchmark is for root: only root's reads can pass through")
    if shutil.which("fio") is None:
        raise Unavailable("fio is not installed: apt-get install fio")
    source = stage.scratch / "source"
    source.mkdir()
    with open(source / "file", "wb") as file:
        for _ in range(options.size):
            file.write(os.urandom(1 << 20))
    paths = {"native": source / "file"}
    yonder = stage.mount_yonder(source)
    yonder.yonder("download", str(yonder.path / "file"))
    paths["yonder"] = yonder.path / "file"
    if stage.has_rclone:
        paths["rclone"] = stage.mount_rclone(source).path / "file"
    if not options.as_written:
        for path in [paths["native"], *yonder.content_files()]:
            _drop_from_cache(path)
    for path in paths.values():
        _read_once(path)
    report = Report(f"Reading a file of {options.size} MiB that is here (rclone: mount of the same folder, vfs cache full)",
                    list(paths))
    for name, pattern, block, unit in WORKLOADS:
        numbers = {contender: [] for contender in paths}
        ratios = []
        for round in range(options.repeat or 9):
            # By turns, because a shared machine is now faster and now slower: what was measured next to each other is
            # compared, and the middle of the comparisons counts.
            turn = ["native", "yonder"] if round % 2 == 0 else ["yonder", "native"]
            if "rclone" in paths and round < 3:
                turn.append("rclone")
            for contender in turn:
                numbers[contender].append(_measure(paths[contender], pattern, block, options.seconds))
            ratios.append(numbers["yonder"][-1] / numbers["native"][-1])
        report.add(name, unit, numbers)
        report.require(f"{name}: yonder / native", statistics.median(ratios), LEAST)
    return report


def _drop_from_cache(path):
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)


def _read_once(path):
    with open(path, "rb", buffering=0) as file:
        while file.read(1 << 20):
            pass


def _measure(path, pattern, block, seconds):
    done = subprocess.run(
        ["fio", "--name=bench", f"--filename={path}", "--readonly", f"--rw={pattern}", f"--bs={block}", "--ioengine=psync",
         "--invalidate=0", "--time_based", f"--runtime={seconds}", "--output-format=json"],
        capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd="/")
    if done.returncode != 0:
        raise Unavailable(f"fio failed on '{path}': {done.stderr.strip() or done.stdout.strip()}")
    read = json.loads(done.stdout[done.stdout.index("{"):])["jobs"][0]["read"]
    return read["bw_bytes"] / (1 << 20) if pattern == "read" else read["iops"]
