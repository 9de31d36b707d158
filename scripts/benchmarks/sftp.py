"""An SFTP server at 50 ms round trip and 1 Gbit/s: finding, reading in order and in any, uploading, and one large file both ways.

The server is OpenSSH on loopback, behind a relay that delays what passes. All but the large file must be so many times as
fast as with sshfs; the large file has to fill 90 % of the line. rclone mount stands beside them, and OpenSSH's own scp, which
shows what one connection can do. Through rclone, all but the
large file must be so many times as fast as with rclone mount of the same remote.
"""

import os
import pathlib
import shutil
import subprocess
import time

from . import remote
from .stage import Report, Unavailable

FIND, READ, ANY_ORDER, UPLOAD, LINE = 10.0, 10.0, 10.0, 8.0, 0.9


def add_options(parser):
    remote.add_line_options(parser)


def run(stage, options):
    if options.through and not stage.has_rclone:
        raise Unavailable("rclone is not installed")
    peers = ["rclone"] if options.through else [name for name in ("sshfs", "rclone") if shutil.which(name)]
    contenders = ["yonder"] + peers
    kind = "SFTP through rclone" if options.through else "SFTP"
    tools = ["scp"] if not options.through and options.only in (None, "large") and shutil.which("scp") else []
    report = Report(f"{kind} at {options.round_trip:g} ms and {options.megabits:g} Mbit/s (rclone: vfs cache full)", contenders + tools)
    with Server(stage.scratch) as server, remote.Line(server.port, options.round_trip, options.megabits) as line:
        server.connect(line.port)
        remote.fill(server.root)
        for _ in range(options.repeat or 1):
            for contender in contenders:
                remote.measure(
                    report, contender, server, options.only,
                    lambda: _mount(stage, contender, server, options.through), stage.unmount)
            if tools:
                _copy_with_scp(report, server, stage.scratch / "copied")
    if options.through:
        remote.require_ratios(report, "rclone", *[remote.THROUGH] * 4)
        return report
    if "sshfs" in contenders:
        remote.require_ratios(report, "sshfs", FIND, READ, ANY_ORDER, UPLOAD)
    remote.require_line(report, options.megabits, LINE)
    return report


def _mount(stage, contender, server, through):
    if contender == "yonder" and through:
        settings = {"type": "sftp", "host": "127.0.0.1", "port": server.line, "user": server.user, "key_file": server.key}
        return remote.mount_through_rclone(
            stage, "".join(f"{name} = {value}\n" for name, value in settings.items()), server.root)
    if contender == "yonder":
        return stage.mount_yonder(f"sftp://server{server.root}", {"YONDER_SSH": str(server.ssh)}).path
    if contender == "sshfs":
        return stage.mount_program(
            "sshfs", lambda mount: ["sshfs", "-f", "-o", f"ssh_command={server.ssh}", f"server:{server.root}", mount]).path
    return stage.mount_rclone(
        f":sftp:{server.root}", is_read_only=False,
        options=["--sftp-host", "127.0.0.1", "--sftp-port", str(server.line), "--sftp-user", server.user,
                 "--sftp-key-file", str(server.key)]).path


def _copy_with_scp(report, server, copy):
    """Copies the large file there and back without a mount."""
    for name, source, target in (
            ("256 MiB down", f"server:{server.root}/large", copy), ("256 MiB up", copy, f"server:{server.root}/large-scp")):
        start = time.perf_counter()
        subprocess.run(["scp", "-q", "-S", server.ssh, source, target], check=True)
        seconds = time.perf_counter() - start
        row = next(numbers for row, _, numbers in report.rows if row == name)
        row.setdefault("scp", []).append(remote.LARGE / 1e6 / seconds)
    copy.unlink()


class Server:
    """OpenSSH's server over a folder, on loopback, with keys of its own."""

    def __init__(self, scratch):
        self._folder = pathlib.Path(scratch) / "server"

    def __enter__(self):
        if not os.access("/usr/sbin/sshd", os.X_OK):
            raise Unavailable("there is no OpenSSH server here: Debian's package openssh-server")
        self.root = self._folder / "files"
        self.root.mkdir(parents=True)
        self.ssh, self.key = self._folder / "ssh", self._folder / "user-key"
        self.user = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
        self.port = remote.free_port()
        for key in ("host-key", "user-key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self._folder / key], check=True)
        (self._folder / "known").write_text("server " + (self._folder / "host-key.pub").read_text())
        config = self._folder / "sshd_config"
        config.write_text(f"""
            ListenAddress 127.0.0.1
            Port {self.port}
            HostKey {self._folder}/host-key
            AuthorizedKeysFile {self._folder}/user-key.pub
            PidFile none
            StrictModes no
            UsePAM no
            PasswordAuthentication no
            PermitRootLogin yes
            MaxStartups 100
            Subsystem sftp internal-sftp
            """)
        if os.geteuid() == 0:
            # Debian's init script makes it; without it sshd does not start as root.
            os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
        self._process = subprocess.Popen(["/usr/sbin/sshd", "-D", "-f", config, "-E", self._folder / "log"])
        remote.wait_for(self.port, self._process, "OpenSSH's server")
        return self

    def connect(self, port):
        """Lets ssh connect to a port: the line's."""
        self.line = port
        config = self._folder / "ssh_config"
        config.write_text(f"""
            Host server
            HostName 127.0.0.1
            HostKeyAlias server
            Port {port}
            User {self.user}
            IdentityFile {self.key}
            IdentitiesOnly yes
            IdentityAgent none
            UserKnownHostsFile {self._folder}/known
            GlobalKnownHostsFile /dev/null
            StrictHostKeyChecking yes
            """)
        self.ssh.write_text(f"#!/bin/sh\nexec ssh -F '{config}' \"$@\"\n")
        self.ssh.chmod(0o755)

    def __exit__(self, *_):
        self._process.terminate()
        self._process.wait()
