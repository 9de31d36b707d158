"""A WebDAV server at 50 ms round trip and 1 Gbit/s: finding, reading in order and in any, uploading, and one large file both ways.

The server is Apache's mod_dav on loopback, behind a relay that delays what passes. All but the large file must be so many
times as fast as with rclone mount; the large file has to fill 90 % of the line.
"""

import os
import pathlib
import random
import shutil
import socket
import subprocess
import sys
import time

from .stage import Report, Unavailable

FIND, READ, ANY_ORDER, UPLOAD, LINE = 10.0, 5.0, 15.0, 8.0, 0.9
# With rclone's own backend between Yonder and the server.
THROUGH = 5.0
LARGE = 256 << 20


def add_options(parser):
    add_line_options(parser)


def add_line_options(parser):
    parser.add_argument(
        "--through", choices=["rclone"], help="mount a remote of rclone's configuration, beside rclone mount of the same")
    parser.add_argument("--round-trip", metavar="MS", type=float, default=50, help="in milliseconds (50)")
    parser.add_argument("--megabits", metavar="N", type=float, default=1000, help="a second, each way (1000)")
    parser.add_argument("--only", metavar="STEP", choices=["find", "read", "upload", "large"], help="one step alone")


def run(stage, options):
    contenders = ["yonder"] + (["rclone"] if stage.has_rclone else [])
    if options.through and not stage.has_rclone:
        raise Unavailable("rclone is not installed")
    kind = "WebDAV through rclone" if options.through else "WebDAV"
    report = Report(
        f"{kind} at {options.round_trip:g} ms and {options.megabits:g} Mbit/s (rclone: vfs cache full)", contenders)
    with Server(stage.scratch) as server, Line(server.port, options.round_trip, options.megabits) as line:
        fill(server.root)
        for _ in range(options.repeat or 1):
            for contender in contenders:
                measure(
                    report, contender, server, options.only,
                    lambda: _mount(stage, contender, line, options.through), stage.unmount)
    if "rclone" in contenders:
        require_ratios(report, "rclone", *([THROUGH] * 4 if options.through else [FIND, READ, ANY_ORDER, UPLOAD]))
    if not options.through:
        require_line(report, options.megabits, LINE)
    return report


def _mount(stage, contender, line, through):
    if contender == "yonder" and through:
        return mount_through_rclone(stage, f"type = webdav\nurl = http://127.0.0.1:{line.port}/\nvendor = other\n")
    if contender == "yonder":
        return stage.mount_yonder(f"webdav://127.0.0.1:{line.port}/").path
    return stage.mount_rclone(
        ":webdav:", is_read_only=False, options=["--webdav-url", f"http://127.0.0.1:{line.port}/"]).path


def mount_through_rclone(stage, settings, path=""):
    """Mounts a remote of a configuration of rclone's."""
    configuration = stage.scratch / "through.conf"
    configuration.write_text(f"[far]\n{settings}")
    return stage.mount_yonder(f"rclone:far:{path}", {"RCLONE_CONFIG": str(configuration)}).path


def require_ratios(report, other, find, read, any_order, upload):
    """Yonder is so many times as fast as another contender."""
    limits = {
        "cold find": find, "250 small files in order": read, "250 small files in any order": any_order,
        "2,000 uploads": upload}
    for name, least in limits.items():
        if report.has(name):
            report.require(f"{name}: {other}'s time / yonder's", report.median(name, other) / report.median(name, "yonder"), least)


def require_line(report, megabits, least):
    """A large file fills so much of the line."""
    for name in ("256 MiB down", "256 MiB up"):
        if report.has(name):
            report.require(f"{name}: part of the line", report.median(name, "yonder") / (megabits * 125_000 / 1e6), least)


def measure(report, contender, server, only, mount, unmount):
    """Takes the steps with one contender, or one of them, on a mount of its own."""

    def record(name, unit, value):
        report.add_number(name, unit, contender, value)

    folder = mount()
    if only in (None, "find"):
        record("cold find", "s", timed(lambda: find(folder / "tree", 10_400)))
        record("warm find", "s", timed(lambda: find(folder / "tree", 10_400)))
    if only in (None, "read"):
        record("250 small files in order", "s", timed(lambda: read(folder / "small", range(250))))
        numbers = random.Random(1).sample(range(250), 250)
        record("250 small files in any order", "s", timed(lambda: read(folder / "shuffled", numbers)))
    if only in (None, "large"):
        record("256 MiB down", "MB/s", LARGE / 1e6 / timed(lambda: copy(folder / "large", None)))
    if only in (None, "upload"):
        target = folder / f"uploads-{contender}-{time.monotonic_ns()}"
        record("2,000 uploads", "s", timed(lambda: _upload(target, server.root / target.name, 2_000)))
    if only in (None, "large"):
        name = f"large-{contender}-{time.monotonic_ns()}"
        seconds = timed(lambda: _upload_large(folder / name, server.root / name, server.root / "large"))
        record("256 MiB up", "MB/s", LARGE / 1e6 / seconds)
        (server.root / name).unlink()
    unmount(folder)


def fill(root):
    folders = [root / "tree"]
    folders[0].mkdir()
    for number in range(1, 401):
        folder = folders[(number - 1) // 3] / f"directory {number:03}"
        folder.mkdir()
        folders.append(folder)
    for number in range(10_000):
        (folders[number % 401] / f"file {number:05}").write_bytes(b"x" * (number % 64))
    for name in ("small", "shuffled"):
        (root / name).mkdir()
        for number in range(250):
            (root / name / f"{number:03}.txt").write_bytes(os.urandom(2_000))
    (root / "large").write_bytes(os.urandom(LARGE))
    # Apache gives a file that was written in the last second a weak ETag, and another one later.
    for path in [root / "large", *(root / "small").iterdir(), *(root / "shuffled").iterdir()]:
        os.utime(path, (1_600_000_000, 1_600_000_000))
    subprocess.run(["chmod", "-R", "a+rwX", root], check=True)


def timed(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def find(folder, least):
    found = subprocess.run(["find", folder, "-ls"], stdout=subprocess.PIPE, check=True).stdout.count(b"\n")
    if found < least:
        raise RuntimeError(f"{found} of {least} items were found")


def read(folder, numbers):
    for number in numbers:
        if len((folder / f"{number:03}.txt").read_bytes()) != 2_000:
            raise RuntimeError("a small file is not whole")


def copy(source, target):
    subprocess.run(["dd", f"if={source}", f"of={target or '/dev/null'}", "bs=1M", "status=none"], check=True)


def _upload(target, remote, count):
    target.mkdir()
    for number in range(count):
        (target / f"{number:04}.txt").write_bytes(b"x" * 1_000)
    deadline = time.monotonic() + 900
    while time.monotonic() < deadline:
        if remote.is_dir():
            sizes = [entry.stat().st_size for entry in os.scandir(remote) if entry.name.endswith(".txt")]
            if len(sizes) == count and all(size == 1_000 for size in sizes):
                return
        time.sleep(0.05)
    raise RuntimeError("the uploads did not arrive")


def _upload_large(target, remote, source):
    shutil.copyfile(source, target)
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        if remote.exists() and remote.stat().st_size == LARGE:
            return
        time.sleep(0.02)
    raise RuntimeError("the large file did not arrive")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """Apache's mod_dav over a folder, on loopback."""

    MODULES = ["mpm_event", "authn_core", "authz_core", "dav", "dav_fs"]

    def __init__(self, scratch):
        self._folder = pathlib.Path(scratch) / "server"

    def __enter__(self):
        if not os.access("/usr/sbin/apache2", os.X_OK):
            raise Unavailable("there is no Apache here: Debian's package apache2")
        self.root = self._folder / "files"
        self.root.mkdir(parents=True)
        self.port = free_port()
        # As root, Apache serves as another user.
        for path in (self._folder, self.root):
            path.chmod(0o777)
        for path in [self._folder.parent]:
            path.chmod(0o711)
        modules = "\n".join(f"LoadModule {m}_module /usr/lib/apache2/modules/mod_{m}.so" for m in self.MODULES)
        user = "User www-data\nGroup www-data\n" if os.geteuid() == 0 else ""
        config = self._folder / "apache.conf"
        config.write_text(f"""
            ServerRoot {self._folder}
            ServerName 127.0.0.1
            Listen 127.0.0.1:{self.port}
            PidFile {self._folder}/pid
            ErrorLog {self._folder}/errors
            DocumentRoot {self.root}
            DavLockDB {self._folder}/locks
            KeepAlive On
            MaxKeepAliveRequests 0
            {modules}
            {user}
            <Directory {self.root}>
                Require all granted
                Dav On
            </Directory>
            """)
        self._process = subprocess.Popen(
            ["/usr/sbin/apache2", "-f", config, "-DFOREGROUND"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(self.port, self._process, "Apache")
        # It starts more processes, a second after the first connections: what it is asked before waits for that.
        for _ in range(2):
            connections = [socket.create_connection(("127.0.0.1", self.port)) for _ in range(40)]
            time.sleep(1.5)
            for connection in connections:
                connection.close()
        return self

    def __exit__(self, *_):
        self._process.terminate()
        self._process.wait()


class Line:
    """The relay between the mounts and the server."""

    def __init__(self, to, round_trip, megabits):
        self._arguments = [to, round_trip, megabits]

    def __enter__(self):
        self.port = free_port()
        program = pathlib.Path(__file__).with_name("link.py")
        self._process = subprocess.Popen(
            [sys.executable, program, str(self.port), *map(str, self._arguments)], stdout=subprocess.PIPE)
        if not self._process.stdout.readline():
            raise Unavailable("the relay does not start")
        return self

    def __exit__(self, *_):
        self._process.terminate()
        self._process.wait()


def wait_for(port, process, name):
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise Unavailable(f"{name} does not start")
