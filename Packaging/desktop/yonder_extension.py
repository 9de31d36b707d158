"""Emblems and a menu for the items of Yonder mounts, in Nautilus, Nemo and Caja.

The file managers load this file through their Python bindings: nautilus-python 1.x and 4.x, nemo-python and caja-python. Imported by
another program it defines only what needs no GObject, which Tests/Desktop/extension_tests.py tests.

YONDER_EXTENSION_LOG names a file that gets one line of JSON for each answer to the file manager and each command that has ended.
Docs/Desktop.md is the user's page.
"""

import concurrent.futures
import fcntl
import json
import os
import re
import select
import shutil
import sys
import threading
import time
import urllib.parse
from typing import NamedTuple

FILE_SYSTEM_TYPE = "fuse.yonder"
MOUNTINFO = "/proc/self/mountinfo"
# A getxattr is answered by the daemon from its database. Only a stopped daemon takes longer than this.
STATE_TIMEOUT = 0.25
# One argument list of execve is limited to 2 MiB, including the environment.
BATCH_BYTES = 256 * 1024
SHOWN_LINES = 12


# Mounts


def parse_mountinfo(text):
    """Returns the file system type by mount point, from the bytes of /proc/self/mountinfo.

    Of two mounts on one directory the later one is visible.
    """
    types = {}
    for line in text.splitlines():
        fields = line.split(b" ")
        try:
            separator = fields.index(b"-", 6)
            mountpoint, kind = fields[4], fields[separator + 1]
        except (ValueError, IndexError):
            continue
        # The kernel writes space, tab, newline and backslash as octal numbers.
        mountpoint = re.sub(rb"\\([0-7]{3})", lambda match: bytes([int(match[1], 8)]), mountpoint)
        types[os.fsdecode(mountpoint)] = os.fsdecode(kind)
    return types


def enclosing_mount(path, types):
    """Returns the mount point of the Yonder mount that contains an absolute path, or None.

    The path is compared as text: no call touches a file system, which may be a dead one.
    """
    if not path.startswith("/"):
        return None
    directory = os.path.normpath(path)
    while directory not in types:
        parent = os.path.dirname(directory)
        if parent == directory:
            return None
        directory = parent
    return directory if types[directory] == FILE_SYSTEM_TYPE else None


class MountTable:
    """The mounts of this process. It reads mountinfo again only after a change, which poll(2) reports as POLLPRI."""

    def __init__(self, source=MOUNTINFO):
        self._file = open(source, "rb", buffering=0)
        self._poll = select.poll()
        self._poll.register(self._file, select.POLLPRI)
        self._types = None

    def close(self):
        self._file.close()

    def mountpoint(self, path):
        if self._poll.poll(0) or self._types is None:
            self._file.seek(0)
            self._types = parse_mountinfo(self._file.read())
        return enclosing_mount(path, self._types)


def path_of(uri):
    """Returns the path of a file: URI, or None. Bytes that are not UTF-8 become surrogates, as everywhere in Python."""
    if not uri or not uri.startswith("file:///"):
        return None
    return os.fsdecode(urllib.parse.unquote_to_bytes(uri[len("file://"):]))


# In JSON a byte that is not part of valid UTF-8 is the scalar U+10FF00 and the byte (NAME-10); in Python it is U+DC00 and the byte.
BYTES = {0x10FF00 + byte: 0xDC00 + byte for byte in range(0x80, 0x100)}


def path_in_json(text):
    """Returns the path that the JSON of a command names, as `path_of` returns it."""
    return os.fsdecode(text.translate(BYTES).encode("utf-8", "surrogateescape"))


# States


class ItemState(NamedTuple):
    content: str
    sync: str
    # The item's own policy. is_kept is the effective one: the policy keepDownloaded also holds for all descendants.
    policy: str
    is_kept: bool
    is_directory: bool


def read_attribute(path, name):
    # A symbolic link has no user attributes, and its target may be on another file system.
    return os.getxattr(path, "user.yonder." + name, follow_symlinks=False).decode()


def read_state(path, mountpoint, is_directory, attribute=read_attribute):
    """Returns the state of an item, or None if the mount does not tell: it is dead, or the item was removed."""
    try:
        policy = attribute(path, "policy")
        content = attribute(path, "content")
        sync = attribute(path, "sync")
        directory, effective = path, policy
        while effective == "inherited" and directory not in (mountpoint, "/"):
            directory = os.path.dirname(directory)
            effective = attribute(directory, "policy")
    except (OSError, UnicodeDecodeError):
        return None
    return ItemState(content, sync, policy, effective == "keepDownloaded", is_directory)


class StateReader:
    """Reads states in a thread and waits for it only briefly, because a stopped daemon must not stop the file manager.

    A mount that did not answer in time is not asked again before its first call has returned.
    """

    # The thread needs the interpreter lock to finish, and gets it only while this class waits.
    PROBE_SECONDS = 0.02
    PROBE_INTERVAL = 1

    def __init__(self, timeout=STATE_TIMEOUT, read=read_state):
        self._timeout = timeout
        self._read = read
        self._unanswered = {}
        self._skipped = []

    def states(self, requests):
        """Returns the states by path. `requests` is a list of (path, mount point, is a directory)."""
        deadline = time.monotonic() + self._timeout
        states = {}
        for path, mountpoint, is_directory in requests:
            if not self._is_answering(mountpoint):
                self._skipped.append(path)
                continue
            answer = self._start(path, mountpoint, is_directory)
            try:
                state = answer.result(max(deadline - time.monotonic(), self.PROBE_SECONDS))
            except concurrent.futures.TimeoutError:
                self._unanswered[mountpoint] = (answer, time.monotonic() + self.PROBE_INTERVAL)
                self._skipped.append(path)
                continue
            if state:
                states[path] = state
        return states

    @property
    def has_skipped(self):
        return bool(self._skipped)

    def take_skipped(self):
        """Returns the paths without an answer since the last call, for another try later."""
        skipped, self._skipped = self._skipped, []
        return skipped

    def _is_answering(self, mountpoint):
        answer, next_probe = self._unanswered.get(mountpoint, (None, 0))
        if not answer:
            return True
        if time.monotonic() < next_probe:
            return False
        if not concurrent.futures.wait([answer], self.PROBE_SECONDS).done:
            self._unanswered[mountpoint] = (answer, time.monotonic() + self.PROBE_INTERVAL)
            return False
        del self._unanswered[mountpoint]
        return True

    def _start(self, *request):
        answer = concurrent.futures.Future()

        def run():
            try:
                answer.set_result(self._read(*request))
            except Exception as error:  # pylint: disable=broad-except
                answer.set_exception(error)

        # A daemon thread, because one that waits for a stopped daemon must not delay the end of the process.
        threading.Thread(target=run, daemon=True).start()
        return answer


def emblems(state):
    """Returns the names of the emblems of an item, the most urgent first."""
    names = []
    if state.sync in ("failed", "pending", "uploading"):
        names.append(f"yonder-{state.sync}")
    if state.is_kept:
        names.append("yonder-kept")
    # A directory is materialized once it was listed, which says nothing about the files in it.
    if not state.is_directory and not (state.is_kept and state.content == "materialized"):
        names.append(f"yonder-{state.content}")
    return names


# The menu


class Entry(NamedTuple):
    command: str
    label: str
    tip: str
    paths: list


def menu_entries(states):
    """Returns the entries for selected items. Each has the paths of those items that it would change."""
    def those(condition):
        return [path for path, state in states.items() if condition(state)]

    entries = [
        Entry("download", "Download", "Download the content now", those(
            lambda state: not state.is_kept if state.is_directory else state.content != "materialized")),
        Entry("pin", "Keep downloaded", "Download the content, and keep it on this machine", those(
            lambda state: not state.is_kept)),
        # An item that is kept because of its directory cannot be released by itself; "Why" names the directory.
        Entry("unpin", "Do not keep downloaded", "Allow the local content to be removed", those(
            lambda state: state.policy == "keepDownloaded")),
        Entry("evict", "Free up space", "Remove the local content; the remote keeps it", those(
            lambda state: not state.is_kept and state.content != "dataless")),
        # The command takes one path.
        Entry("why", "Why…", "Explain the state of this item", list(states) if len(states) == 1 else []),
    ]
    return [entry for entry in entries if entry.paths]


def batches(paths, limit=BATCH_BYTES):
    """Divides paths into lists that fit on a command line."""
    batch, size = [], 0
    for path in paths:
        length = len(os.fsencode(path)) + 1
        if batch and size + length > limit:
            yield batch
            batch, size = [], 0
        batch.append(path)
        size += length
    if batch:
        yield batch


def failure_text(command, status, stderr):
    """Returns what to show for a command that did not end with 0, or None."""
    if status == 0:
        return None
    lines = [line for line in stderr.splitlines() if line.strip()]
    if not lines:
        return f"'yonder {command}' ended with status {status}."
    hidden = len(lines) - SHOWN_LINES
    if hidden > 0:
        lines[SHOWN_LINES:] = [f"and {hidden} more"]
    return "\n".join(lines)


class ShownPaths:
    """The paths that got emblems, the latest last. The file manager's own objects are not kept alive for this."""

    def __init__(self, limit=10000):
        self._limit = limit
        self._paths = {}

    def add(self, path):
        self._paths.pop(path, None)
        self._paths[path] = True
        if len(self._paths) > self._limit:
            del self._paths[next(iter(self._paths))]

    def affected(self, paths):
        """Returns the given paths, and the shown paths below them."""
        paths = dict.fromkeys(paths)
        below = tuple(path.rstrip("/") + "/" for path in paths)
        return list(paths) + [path for path in self._paths if path not in paths and path.startswith(below)]

    def __contains__(self, path):
        return path in self._paths


def is_locked(path):
    try:
        with open(path, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        pass
    return False


def is_daemon_running():
    """Returns whether a daemon of the user holds the lock of its state directory. A command may make systemd start one."""
    # A daemon that systemd has started does not know the variables of the session.
    homes = os.environ.get("XDG_STATE_HOME"), os.path.expanduser("~/.local/state")
    states = [os.environ.get("YONDER_STATE_DIR")] + [os.path.join(home, "yonder") for home in homes if home]
    return any(is_locked(os.path.join(state, "yonderd.lock")) for state in states if state)


def log(event, **fields):
    name = os.environ.get("YONDER_EXTENSION_LOG")
    if name:
        with open(name, "a", encoding="utf-8", errors="replace") as file:
            file.write(json.dumps({"event": event, **fields}) + "\n")


# The part for the file managers. Their binding has imported the module of its file manager before it loads extensions.

FileManager = next(
    (sys.modules[f"gi.repository.{name}"] for name in ("Nautilus", "Nemo", "Caja") if f"gi.repository.{name}" in sys.modules),
    None)

if FileManager:
    import gi
    from gi.repository import Gio, GLib, GObject

    def program():
        """Returns the path of yonder. A session may have a shorter PATH than a shell."""
        places = os.environ.get("PATH", os.defpath) + ":/usr/local/bin:/usr/bin"
        return shutil.which("yonder", path=places)

    def toolkit():
        """Returns the version of GTK that this process uses, or None where its introspection data is not installed."""
        name = FileManager.__name__.rpartition(".")[2]
        is_newer = name == "Nautilus" and not FileManager._version.startswith("3.")  # pylint: disable=protected-access
        try:
            gi.require_version("Gtk", "4.0" if is_newer else "3.0")
            from gi.repository import Gtk  # pylint: disable=import-outside-toplevel
        except (ImportError, ValueError):
            return None
        return Gtk

    def show_dialog(title, text):
        Gtk = toolkit()
        if not Gtk:
            return False
        dialog = Gtk.MessageDialog(text=title, secondary_text=text, buttons=Gtk.ButtonsType.CLOSE)
        dialog.set_title("Yonder")
        application = Gio.Application.get_default()
        window = application.get_active_window() if isinstance(application, Gtk.Application) else None
        if window:
            dialog.set_transient_for(window)
        dialog.connect("response", lambda dialog, _: dialog.destroy())
        dialog.present()
        log("shown", by="dialog", title=title, text=text)
        return True

    def notify(title, text, failed):
        """Shows a notification. Calls `failed` if the session has no notification service."""
        body = GLib.markup_escape_text(text)
        arguments = GLib.Variant("(susssasa{sv}i)", ("Yonder", 0, "dialog-warning", title, body, [], {}, -1))

        def ended(bus, result):
            try:
                bus.call_finish(result)
                log("shown", by="notification", title=title, text=text)
            except GLib.Error:
                failed()

        def connected(_, result):
            try:
                bus = Gio.bus_get_finish(result)
            except GLib.Error:
                failed()
                return
            bus.call("org.freedesktop.Notifications", "/org/freedesktop/Notifications", "org.freedesktop.Notifications",
                     "Notify", arguments, None, Gio.DBusCallFlags.NONE, 5000, None, ended)

        Gio.bus_get(Gio.BusType.SESSION, None, connected)

    def report_failure(title, text):
        def without_service():
            if not show_dialog(title, text):
                print(f"yonder_extension: {title}: {text}", file=sys.stderr)

        notify(title, text, without_service)

    def run(command, paths, ended):
        """Runs `yonder COMMAND -- PATHS` without waiting, in as many processes as are needed, one after the other."""
        remaining = list(batches(paths))
        results = []

        def start():
            arguments = [program() or "yonder", command, "--"] + remaining.pop(0)
            try:
                process = Gio.Subprocess.new(
                    [os.fsencode(argument) for argument in arguments],
                    Gio.SubprocessFlags.STDOUT_PIPE | Gio.SubprocessFlags.STDERR_PIPE)
            except GLib.Error as error:
                finish(69, "", error.message)
                return
            process.communicate_async(None, None, communicated)

        def communicated(process, result):
            try:
                _, stdout, stderr = process.communicate_finish(result)
            except GLib.Error as error:
                finish(1, "", error.message)
                return
            status = process.get_exit_status() if process.get_if_exited() else 1
            finish(status, *(output.get_data().decode(errors="replace") for output in (stdout, stderr)))

        def finish(status, stdout, stderr):
            results.append((status, stdout, stderr))
            if remaining:
                start()
                return
            status = max(result[0] for result in results)
            log("ended", command=command, paths=paths, status=status, stderr=stderr)
            ended(status, *("".join(result[index] for result in results) for index in (1, 2)))

        start()

    class EventFollower:
        """Follows `yonder events` while the file manager runs, and gives the paths of items whose state has changed."""

        RESTART_SECONDS = 10
        # Items of a recursive download arrive by the hundred.
        COALESCING_MILLISECONDS = 300

        def __init__(self, is_relevant, changed):
            self._is_relevant = is_relevant
            self._changed = changed
            self._paths = set()
            self._is_running = False
            self._started = -self.RESTART_SECONDS

        def ensure_started(self):
            if self._is_running or time.monotonic() - self._started < self.RESTART_SECONDS:
                return
            self._started = time.monotonic()
            # The mount may be another user's, or its daemon may be ending.
            if not is_daemon_running():
                return
            arguments = [program() or "yonder", "events", "--json"]
            # The process would otherwise outlive a file manager that is killed, until the next event.
            setpriv = shutil.which("setpriv")
            if setpriv:
                arguments = [setpriv, "--pdeathsig", "TERM", "--"] + arguments
            try:
                process = Gio.Subprocess.new(
                    arguments, Gio.SubprocessFlags.STDOUT_PIPE | Gio.SubprocessFlags.STDERR_SILENCE)
            except GLib.Error:
                return
            self._is_running = True
            self._read(Gio.DataInputStream.new(process.get_stdout_pipe()))

        def _read(self, stream):
            stream.read_line_async(GLib.PRIORITY_LOW, None, self._line)

        def _line(self, stream, result):
            try:
                line, _ = stream.read_line_finish(result)
            except GLib.Error:
                line = None
            if line is None:
                self._is_running = False
                return
            try:
                path = path_in_json(json.loads(line).get("path") or "")
            except (ValueError, AttributeError):
                path = None
            if path and self._is_relevant(path):
                if not self._paths:
                    GLib.timeout_add(self.COALESCING_MILLISECONDS, self._deliver)
                self._paths.add(path)
            self._read(stream)

        def _deliver(self):
            paths, self._paths = self._paths, set()
            self._changed(paths)
            return GLib.SOURCE_REMOVE

    class YonderExtension(GObject.GObject, FileManager.InfoProvider, FileManager.MenuProvider):
        """What the file manager calls. It creates one object of each class of an extension."""

        RETRY_SECONDS = 2

        def __init__(self):
            super().__init__()
            self._mounts = MountTable()
            self._reader = StateReader()
            self._shown = ShownPaths()
            self._events = EventFollower(self._shown.__contains__, self._refresh)
            self._is_retrying = False

        def update_file_info(self, file):
            states = self._states([file])
            for path, state in states.items():
                names = emblems(state)
                for name in names:
                    file.add_emblem(name)
                self._shown.add(path)
                self._events.ensure_started()
                log("emblems", path=path, emblems=names)
            self._retry_skipped()
            return FileManager.OperationResult.COMPLETE

        # The API 3.0 of Nautilus, Nemo and Caja pass a window first; the API 4.0 of Nautilus does not.
        def get_file_items(self, *arguments):
            return self._items("item", arguments[-1])

        def get_background_items(self, *arguments):
            return self._items("background", [arguments[-1]])

        def _retry_skipped(self):
            def retry():
                self._is_retrying = False
                self._refresh(self._reader.take_skipped())
                return GLib.SOURCE_REMOVE

            if self._reader.has_skipped and not self._is_retrying:
                self._is_retrying = True
                GLib.timeout_add_seconds(self.RETRY_SECONDS, retry)

        def _states(self, files):
            requests = []
            for file in filter(None, files):
                path = path_of(file.get_uri())
                mountpoint = path and self._mounts.mountpoint(path)
                if mountpoint:
                    requests.append((path, mountpoint, file.is_directory()))
            return self._reader.states(requests)

        def _items(self, place, files):
            entries = menu_entries(self._states(files))
            items = []
            for entry in entries:
                # Nemo and Caja keep one action for a name.
                item = FileManager.MenuItem(
                    name=f"Yonder::{place}-{entry.command}", label=entry.label, tip=entry.tip)
                item.connect("activate", self._activated, entry)
                items.append(item)
            if entries:
                log("menu", place=place, entries={entry.label: entry.paths for entry in entries})
            return items

        def _activated(self, _, entry):
            def ended(status, stdout, stderr):
                self._refresh(entry.paths)
                failure = failure_text(entry.command, status, stderr)
                if failure:
                    report_failure(f"{entry.label} failed", failure)
                elif entry.command == "why":
                    self._explain(stdout)

            run(entry.command, entry.paths, ended)

        def _explain(self, text):
            title, _, explanation = text.strip().partition("\n")
            explanation = "\n".join(line.strip() for line in explanation.splitlines())
            if not show_dialog(os.path.basename(title) or title, explanation):
                report_failure(title, explanation)

        def _refresh(self, paths):
            for path in self._shown.affected(paths):
                uri = GLib.filename_to_uri(path, None)
                file = FileManager.FileInfo.lookup_for_uri(uri)
                if file:
                    file.invalidate_extension_info()
