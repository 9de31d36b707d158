"""`find -ls` over 10,000 files in 400 directories: the first time, and again.

Cold is the first listing of a new mount, which asks the remote; warm are the following. Warm, Yonder must be five times as
fast as rclone mount.
"""

import subprocess
import time

from .stage import Report

LEAST = 5.0


def add_options(parser):
    parser.add_argument("--files", metavar="N", type=int, default=10_000, help="how many files (10000)")
    parser.add_argument("--folders", metavar="N", type=int, default=400, help="how many directories (400)")


def run(stage, options):
    source = stage.scratch / "source"
    _make_tree(source, options.files, options.folders)
    repeat = options.repeat or 5
    contenders = {"native": [], "yonder": []}
    if stage.has_rclone:
        contenders["rclone"] = []
    cold = {contender: [] for contender in contenders}
    warm = {contender: [] for contender in contenders}
    expected = _count(source)
    for _ in range(3):
        # A new mount for each, so that cold is cold; the source itself is in the page cache for both.
        mounts = {"native": source, "yonder": stage.mount_yonder(source).path}
        if "rclone" in contenders:
            mounts["rclone"] = stage.mount_rclone(source).path
        for contender, path in mounts.items():
            if contender != "native":
                cold[contender].append(_find(path))
        for contender, path in mounts.items():
            if _count(path) != expected:
                raise RuntimeError(f"{contender} does not list all of the {expected} items")
        for _ in range(repeat):
            for contender, path in mounts.items():
                warm[contender].append(_find(path))
        for contender, path in mounts.items():
            if contender != "native":
                stage.unmount(path)
    title = f"find -ls over {options.files:,} files in {options.folders} directories (rclone: vfs cache full)"
    report = Report(title, list(contenders))
    report.add("cold", "ms", cold)
    report.add("warm", "ms", warm)
    if "rclone" in contenders:
        report.require(
            "warm: rclone's time / yonder's", report.median("warm", "rclone") / report.median("warm", "yonder"), LEAST)
    else:
        print("rclone is not installed: nothing to compare with")
    return report


def _make_tree(root, files, folders):
    """Directories in a tree six deep, the files spread over them."""
    paths = [root]
    root.mkdir()
    for number in range(1, folders):
        path = paths[(number - 1) // 3] / f"directory {number:04}"
        path.mkdir()
        paths.append(path)
    for number in range(files):
        (paths[number % folders] / f"file {number:06}.txt").write_bytes(b"x" * (number % 64))


def _find(path):
    """Milliseconds that `find -ls` takes."""
    start = time.perf_counter()
    subprocess.run(["find", str(path), "-ls"], stdout=subprocess.DEVNULL, check=True)
    return (time.perf_counter() - start) * 1000


def _count(path):
    done = subprocess.run(["find", str(path), "-printf", "x"], capture_output=True, check=True)
    return len(done.stdout)
