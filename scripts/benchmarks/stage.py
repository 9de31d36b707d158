"""Where benchmarks run: a scratch directory, mounts of Yonder and rclone in it, and reports. Cleaned up at the end."""

import datetime
import os
import pathlib
import platform
import re
import shutil
import signal
import statistics
import subprocess
import tempfile
import time


class Unavailable(Exception):
    """What the benchmark needs is not here."""


class Stage:
    """A scratch directory with what is mounted in it; a context manager that takes all of it away."""

    def __init__(self, directory, programs):
        self.programs = programs
        self._parent = directory
        self._daemons = 0
        self._mounts = []
        self._processes = []
        self._environments = []

    def __enter__(self):
        if not os.access("/dev/fuse", os.R_OK | os.W_OK):
            raise Unavailable("nothing can be mounted here: there is no /dev/fuse for this user")
        if self.programs is None:
            root = pathlib.Path(__file__).resolve().parents[2]
            shown = subprocess.run(
                ["swift", "build", "-c", "release", "--show-bin-path"], cwd=root, stdin=subprocess.DEVNULL,
                capture_output=True, text=True)
            if shown.returncode != 0:
                raise Unavailable(f"the build is not to be found: {shown.stderr.strip()}")
            self.programs = shown.stdout.strip()
        self.programs = pathlib.Path(self.programs).resolve()
        for program in ("yonder", "yonderd", "yonder-keeper"):
            if not os.access(self.programs / program, os.X_OK):
                raise Unavailable(f"'{self.programs / program}' is not there: swift build -c release makes it")
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.default_int_handler)
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="yonder-bench.", dir=self._parent))
        return self

    def __exit__(self, *_):
        for environment in self._environments:
            self._yonder("shutdown", environment=environment, check=False)
        for mount in reversed(self._mounts):
            self.unmount(mount)
        for process in self._processes:
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if not any(mountpoint.startswith(f"{self.scratch}/") for mountpoint in _mountpoints()):
            shutil.rmtree(self.scratch, ignore_errors=True)

    # --- Mounts ---

    def mount_yonder(self, source, variables=None, options=()):
        """Mounts a source as a new domain of a new daemon, with variables in its environment; returns the mount."""
        self._daemons += 1
        state = self.scratch / f"yonder-{self._daemons}"
        environment = {
            "YONDER_STATE_DIR": str(state), "YONDER_SOCKET": str(self.scratch / f"sock-{self._daemons}"),
            "YONDER_CONFIG": str(self.scratch / "none"), **(variables or {})}
        mount = self.scratch / f"mount-yonder-{self._daemons}"
        self._environments.append(environment)
        self._yonder("mount", str(source), str(mount), "--name", "bench", *options, environment=environment)
        self._mounts.append(mount)
        return Mount(self, mount, environment)

    def mount_rclone(self, source, is_read_only=True, options=()):
        """Mounts a folder, or another source, with rclone: --vfs-cache-mode full, all else as it comes."""
        (self.scratch / "rclone.conf").touch()
        return self.mount_program(
            "rclone",
            lambda mount: [
                "rclone", "mount", str(source), mount, "--vfs-cache-mode", "full", "--cache-dir", f"{mount}.cache",
                *(["--read-only"] if is_read_only else []), *options],
            # It does not begin where a bundle of certificates is set.
            {"RCLONE_CONFIG": str(self.scratch / "rclone.conf"), "AWS_CA_BUNDLE": ""})

    def mount_program(self, name, command, variables=None):
        """Mounts something with another program, which runs for as long; `command` takes the mount point."""
        self._daemons += 1
        mount = self.scratch / f"mount-{name}-{self._daemons}"
        mount.mkdir()
        process = subprocess.Popen(
            command(str(mount)), env=os.environ | (variables or {}), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        self._processes.append(process)
        self._mounts.append(mount)
        deadline = time.monotonic() + 20
        while not os.path.ismount(mount):
            if time.monotonic() > deadline or process.poll() is not None:
                raise Unavailable(f"{name} does not mount here")
            time.sleep(0.05)
        return Mount(self, mount, None)

    @property
    def has_rclone(self):
        return shutil.which("rclone") is not None

    def unmount(self, mount):
        """Takes a mount away, lazily when it is busy; one that is gone is fine."""
        if str(mount) not in _mountpoints():
            return
        command = ["umount"] if os.geteuid() == 0 else ["fusermount3", "-u"]
        for lazy in ([], ["-l"] if os.geteuid() == 0 else ["-z"]):
            if subprocess.run(command + lazy + [str(mount)], capture_output=True).returncode == 0:
                return
            time.sleep(0.5)

    def _yonder(self, *arguments, environment, check=True):
        done = subprocess.run(
            [self.programs / "yonder", *arguments], env=os.environ | environment, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=3600)
        if check and done.returncode != 0:
            raise Unavailable(f"yonder {arguments[0]}: {done.stderr.strip()}")
        return done.stdout

    # --- What it ran on ---

    def machine(self):
        rclone = None
        if self.has_rclone:
            rclone = subprocess.run(["rclone", "version"], capture_output=True, text=True).stdout.split("\n")[0]
        return {
            "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "kernel": platform.release(), "architecture": platform.machine(), "cpus": os.cpu_count(),
            "loadBefore": os.getloadavg()[0], "rclone": rclone,
        }


class Mount:
    """A folder that is mounted."""

    def __init__(self, stage, path, environment):
        self.path = path
        self._stage = stage
        self._environment = environment

    def yonder(self, *arguments):
        """Runs a command of Yonder's for this mount."""
        return self._stage._yonder(*arguments, environment=self._environment)

    def daemon(self):
        """The process that serves it."""
        lock = pathlib.Path(self._environment["YONDER_STATE_DIR"]) / "yonderd.lock"
        try:
            process = pathlib.Path("/proc") / lock.read_text().strip()
            if process.joinpath("comm").read_text().strip() == "yonderd":
                return Daemon(process)
        except OSError:
            pass
        raise Unavailable("the daemon is not to be found")

    @property
    def replica(self):
        """The directory of the domain's database and contents."""
        return pathlib.Path(self._environment["YONDER_STATE_DIR"]) / "domains" / "bench"

    def content_files(self):
        """Where the bytes are that are here."""
        return sorted((self.replica / "contents").iterdir())


class Daemon:
    """A running daemon, as /proc shows it."""

    def __init__(self, process):
        self._process = process

    @property
    def number(self):
        return int(self._process.name)

    def forget_peak_memory(self):
        """The peak is that from now on."""
        (self._process / "clear_refs").write_text("5\n")

    def peak_memory(self):
        """The most memory that it has had resident, since it began or since that was forgotten, in MB."""
        for line in (self._process / "status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1000
        raise Unavailable("the kernel does not tell the daemon's memory")


class Report:
    """Rows of numbers, of several contenders each, and the limits that hold for them."""

    def __init__(self, title, contenders):
        self.title = title
        self.contenders = contenders
        self.rows = []
        self.limits = []

    def add(self, name, unit, numbers):
        """A row: contender → its raw numbers."""
        self.rows.append((name, unit, numbers))

    def add_number(self, name, unit, contender, number):
        """One more number of a contender, in the row of that name."""
        if not self.has(name):
            self.add(name, unit, {})
        numbers = next(numbers for row, _, numbers in self.rows if row == name)
        numbers.setdefault(contender, []).append(number)

    def has(self, name):
        return any(row == name for row, _, _ in self.rows)

    def median(self, name, contender):
        numbers = next(numbers for row, _, numbers in self.rows if row == name)
        return statistics.median(numbers[contender]) if numbers.get(contender) else None

    def require(self, text, value, least):
        """A limit: the value, and what it has to be at the least."""
        self.limits.append((text, value, least, False))

    def require_at_most(self, text, value, most):
        """A limit: the value, and what it may be at the most."""
        self.limits.append((text, value, most, True))

    @staticmethod
    def _holds(value, limit, is_most):
        return value <= limit if is_most else value >= limit

    @property
    def is_passed(self):
        return all(self._holds(value, limit, is_most) for _, value, limit, is_most in self.limits)

    def print(self):
        print(f"\n{self.title}\n")
        width = max(len(name) for name, _, _ in self.rows)
        print(" " * width + "".join(f"{contender:>16}" for contender in self.contenders))
        for name, unit, _ in self.rows:
            cells = [self.median(name, contender) for contender in self.contenders]
            print(f"{name:{width}}" + "".join(f"{'-' if c is None else _number(c) + ' ' + unit:>16}" for c in cells))
        print()
        for text, value, limit, is_most in self.limits:
            word = "ok    " if self._holds(value, limit, is_most) else "MISSED"
            print(f"{word} {text}: {value:.2f} (at {'most' if is_most else 'least'} {limit:g})")

    def document(self):
        return {
            "rows": [{"name": name, "unit": unit, "numbers": numbers} for name, unit, numbers in self.rows],
            "limits": [
                {"name": text, "value": value, "most" if is_most else "least": limit,
                 "isPassed": self._holds(value, limit, is_most)}
                for text, value, limit, is_most in self.limits],
        }


def _number(value):
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def _mountpoints():
    with open("/proc/mounts", encoding="utf-8", errors="surrogateescape") as table:
        # Blanks, tabs, newlines and backslashes are three octal digits each.
        return [re.sub(r"\\([0-7]{3})", lambda escape: chr(int(escape[1], 8)), line.split(" ")[1]) for line in table]
