"""A bucket at 50 ms round trip and 1 Gbit/s: finding, reading in order and in any, uploading, and one large file both ways.

The store is OpenStack Swift with its S3 API on loopback (in one process, as in the tests), behind a relay that delays what passes. It
answers a few hundred requests a second: what many requests take is bounded by it. rclone mount and s3fs stand beside.
"""

import json
import os
import pathlib
import random
import shutil
import subprocess
import time
import urllib.error
import urllib.request

from . import remote
from .stage import Report, Unavailable

FIND, READ, ANY_ORDER, UPLOAD, LINE = 10.0, 5.0, 15.0, 8.0, 0.9
LARGE = 128 << 20
FOLDERS, FILES_IN_FOLDER, SMALL, UPLOADS = 100, 20, 200, 200
SECRETS = {"AWS_ACCESS_KEY_ID": "test:tester", "AWS_SECRET_ACCESS_KEY": "testing"}
REGION = "us-east-1"


def add_options(parser):
    parser.add_argument("--round-trip", metavar="MS", type=float, default=50, help="in milliseconds (50)")
    parser.add_argument("--megabits", metavar="N", type=float, default=1000, help="a second, each way (1000)")
    parser.add_argument("--only", metavar="STEP", choices=["find", "read", "upload", "large"], help="one step alone")


def run(stage, options):
    contenders = ["yonder"] + [name for name in ("rclone", "s3fs") if shutil.which(name)]
    report = Report(f"S3 at {options.round_trip:g} ms and {options.megabits:g} Mbit/s (rclone: vfs cache full)", contenders)
    with Store(stage.scratch) as store, remote.Line(store.port, options.round_trip, options.megabits) as line:
        store.fill()
        for _ in range(options.repeat or 1):
            for contender in contenders:
                _measure(stage, report, contender, store, line, options.only)
    if "rclone" in contenders:
        limits = {
            "cold find": FIND, "small files in order": READ, "small files in any order": ANY_ORDER, "uploads": UPLOAD}
        for name, least in limits.items():
            if report.has(name):
                report.require(
                    f"{name}: rclone's time / yonder's", report.median(name, "rclone") / report.median(name, "yonder"), least)
    for name in ("128 MiB down", "128 MiB up"):
        if report.has(name):
            report.require(f"{name}: part of the line", report.median(name, "yonder") / (options.megabits * 125_000 / 1e6), LINE)
    return report


def _measure(stage, report, contender, store, line, only):
    folder = _mount(stage, contender, line)

    def record(name, unit, value):
        report.add_number(name, unit, contender, value)

    if only in (None, "find"):
        items = FOLDERS * (FILES_IN_FOLDER + 1) + 1
        record("cold find", "s", remote.timed(lambda: remote.find(folder / "tree", items)))
    if only in (None, "read"):
        record("small files in order", "s", remote.timed(lambda: remote.read(folder / "small", range(SMALL))))
        numbers = random.Random(1).sample(range(SMALL), SMALL)
        record("small files in any order", "s", remote.timed(lambda: remote.read(folder / "shuffled", numbers)))
    if only in (None, "large"):
        record("128 MiB down", "MB/s", LARGE / 1e6 / remote.timed(lambda: remote.copy(folder / "large", None)))
    unique = f"{contender}-{time.monotonic_ns()}"
    if only in (None, "upload"):
        record("uploads", "s", remote.timed(lambda: _upload(folder / unique, store)))
    if only in (None, "large"):
        record("128 MiB up", "MB/s", LARGE / 1e6 / remote.timed(lambda: _upload_large(folder / f"large-{unique}", store)))
    stage.unmount(folder)


def _mount(stage, contender, line):
    endpoint = f"http://127.0.0.1:{line.port}"
    if contender == "yonder":
        return stage.mount_yonder("s3://bench", SECRETS, ["--endpoint", endpoint, "--region", REGION]).path
    if contender == "rclone":
        return stage.mount_rclone(
            ":s3:bench", is_read_only=False,
            options=["--s3-provider", "Other", "--s3-endpoint", endpoint, "--s3-region", REGION,
                     "--s3-access-key-id", SECRETS["AWS_ACCESS_KEY_ID"],
                     "--s3-secret-access-key", SECRETS["AWS_SECRET_ACCESS_KEY"]]).path
    return stage.mount_program(
        "s3fs",
        lambda mount: ["s3fs", "bench", mount, "-f", "-o", f"url={endpoint},use_path_request_style,endpoint={REGION}"],
        {"AWSACCESSKEYID": SECRETS["AWS_ACCESS_KEY_ID"], "AWSSECRETACCESSKEY": SECRETS["AWS_SECRET_ACCESS_KEY"]}).path


def _upload(target, store):
    target.mkdir()
    for number in range(UPLOADS):
        (target / f"{number:03}.txt").write_bytes(b"x" * 1_000)
    store.await_objects(f"{target.name}/", ".txt", 1_000, UPLOADS)


def _upload_large(target, store):
    target.write_bytes(store.large)
    store.await_objects(target.name, "", LARGE, 1)


class Store:
    """OpenStack Swift on loopback, filled and looked at through its own interface."""

    def __init__(self, scratch):
        self._folder = pathlib.Path(scratch) / "store"

    def __enter__(self):
        script = pathlib.Path(__file__).resolve().parents[2] / "Tests/S3ProviderTests/Programs/object_store.py"
        if not os.access("/usr/bin/swift-proxy-server", os.X_OK):
            raise Unavailable("there is no Swift here: Debian's packages swift-proxy, -account, -container and -object")
        self._folder.mkdir()
        self._process = subprocess.Popen(
            ["/usr/bin/python3", script, self._folder, REGION], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        port = self._folder / "port"
        deadline = time.monotonic() + 60
        while not port.exists():
            if time.monotonic() > deadline or self._process.poll() is not None:
                self._process.kill()
                raise Unavailable("Swift does not start")
            time.sleep(0.1)
        self.port = int(port.read_text())
        self._login()
        self._request("", "PUT", b"")
        return self

    def __exit__(self, *_):
        self._process.terminate()
        self._process.wait()

    def fill(self):
        for folder in range(FOLDERS):
            for number in range(FILES_IN_FOLDER):
                self._request(f"/tree/folder{folder:03}/file{number:02}", "PUT", b"x" * number)
        for name in ("small", "shuffled"):
            for number in range(SMALL):
                self._request(f"/{name}/{number:03}.txt", "PUT", os.urandom(2_000))
        self.large = os.urandom(LARGE)
        self._request("/large", "PUT", self.large)

    def await_objects(self, prefix, suffix, size, count):
        """Returns when so many objects of a size have names like these."""
        deadline = time.monotonic() + 900
        while time.monotonic() < deadline:
            objects = json.loads(self._request(f"?format=json&prefix={prefix}", "GET", None))
            if sum(o["name"].endswith(suffix) and o["bytes"] == size for o in objects) == count:
                return
            time.sleep(0.1)
        raise RuntimeError("the uploads did not arrive")

    def _login(self):
        headers = {"X-Auth-User": "test:tester", "X-Auth-Key": "testing"}
        with self._open("/auth/v1.0", "GET", None, headers) as answer:
            self._token = answer.headers["X-Auth-Token"]

    def _request(self, path, method, data):
        """A request to the bucket. The store forgets tokens after a minute."""
        while True:
            try:
                with self._open(f"/v1/AUTH_test/bench{path}", method, data, {"X-Auth-Token": self._token}) as answer:
                    return answer.read()
            except urllib.error.HTTPError as error:
                if error.code != 401:
                    raise
                self._login()

    def _open(self, path, method, data, headers):
        return urllib.request.urlopen(
            urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data, headers, method=method))
