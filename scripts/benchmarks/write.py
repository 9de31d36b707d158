"""Making 5,000 small files, unpacking a source tree, and how long it takes until the remote has them.

Making is from the first open to the last close, by one process. Draining is from there until the source folder has every
file at its full size; for Yonder until `yonder wait` has returned, too. rclone has written by then to its cache alone, as
Yonder has to its replica, and sends after the delay that it has by default (--vfs-write-back 5s). Yonder must make files
five times as fast as rclone mount.
"""

import io
import os
import subprocess
import tarfile
import time

from .stage import Report, Unavailable

LEAST = 5.0
PATIENCE = 600


def add_options(parser):
    parser.add_argument("--files", metavar="N", type=int, default=5_000, help="how many files (5000)")
    parser.add_argument("--folders", metavar="N", type=int, default=50, help="in how many directories (50)")
    parser.add_argument("--size", metavar="BYTES", type=int, default=1_000, help="how big each file is (1000)")


def run(stage, options):
    archive = stage.scratch / "tree.tar"
    unpacked = _make_archive(archive, options.files)
    sources = {name: stage.scratch / f"source-{name}" for name in ("native", "yonder", "rclone")}
    for source in sources.values():
        source.mkdir()
    yonder = stage.mount_yonder(sources["yonder"])
    places = {"native": sources["native"], "yonder": yonder.path}
    if stage.has_rclone:
        places["rclone"] = stage.mount_rclone(sources["rclone"], is_read_only=False).path
    numbers = {name: {contender: [] for contender in places} for name in ("make", "make/d", "tar", "tar/d")}
    for round in range(options.repeat or 3):
        made = _expected(f"made-{round}", options.files, options.folders, options.size)
        tree = [(f"tree-{round}/{name}", size) for name, size in unpacked]
        for contender, place in places.items():
            # Dirty pages of the contender before must not slow down this one.
            os.sync()
            for row, work, files in (
                    ("make", lambda: _make(place, made, options.size), made),
                    ("tar", lambda: _unpack(archive, place / f"tree-{round}"), tree)):
                start = time.perf_counter()
                work()
                end = time.perf_counter()
                numbers[row][contender].append((end - start) * 1000)
                if contender == "native":
                    continue
                if contender == "yonder":
                    yonder.yonder("wait")
                _await(sources[contender], files, contender)
                numbers[row + "/d"][contender].append((time.perf_counter() - end) * 1000)
    report = Report(
        f"Writing {options.files:,} files of {options.size:,} bytes in {options.folders} directories; tar x of "
        f"{len(unpacked):,} files (rclone: vfs cache full, over a local folder)", list(places))
    report.add("make files", "ms", numbers["make"])
    report.add("until the source has them", "ms", numbers["make/d"])
    report.add("tar x", "ms", numbers["tar"])
    report.add("until the source has it", "ms", numbers["tar/d"])
    if "rclone" in places:
        report.require(
            "make files: rclone's time / yonder's",
            report.median("make files", "rclone") / report.median("make files", "yonder"), LEAST)
    else:
        print("rclone is not installed: nothing to compare with")
    return report


def _expected(top, files, folders, size):
    return [(f"{top}/directory {number % folders:03}/file {number:05}.txt", size) for number in range(files)]


def _make(place, files, size):
    content = b"x" * size
    for folder in sorted({os.path.dirname(name) for name, _ in files}):
        (place / folder).mkdir(parents=True)
    for name, _ in files:
        descriptor = os.open(place / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        os.write(descriptor, content)
        os.close(descriptor)


def _make_archive(path, files):
    """An archive such as a release of some program: modules of a dozen files, sizes of every kind."""
    made = []
    with tarfile.open(path, "w") as archive:
        for number in range(files):
            module, file = divmod(number, 12)
            folder = f"src/part{module % 20:02}/module{module:04}"
            if file == 0:
                entry = tarfile.TarInfo(folder)
                entry.type, entry.mode, entry.mtime = tarfile.DIRTYPE, 0o755, 1_700_000_000
                archive.addfile(entry)
            entry = tarfile.TarInfo(f"{folder}/file{file:02}.c")
            entry.size, entry.mode, entry.mtime = 200 + (number * 7919) % 12_000, 0o644, 1_700_000_000 + number
            archive.addfile(entry, io.BytesIO(b"int x;\n" * (entry.size // 7 + 1)))
            made.append((entry.name, entry.size))
    return made


def _unpack(archive, place):
    place.mkdir()
    subprocess.run(["tar", "-xf", archive, "-C", place], check=True)


def _await(source, files, contender):
    """Waits until a folder has files at their full size."""
    deadline = time.monotonic() + PATIENCE
    for name, size in files:
        path = source / name
        while not _has(path, size):
            if time.monotonic() > deadline:
                raise Unavailable(f"{contender} has not sent '{name}' after {PATIENCE} seconds")
            time.sleep(0.02)


def _has(path, size):
    try:
        return os.stat(path).st_size == size
    except FileNotFoundError:
        return False
