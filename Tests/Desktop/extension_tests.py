#!/usr/bin/env python3
"""Tests the extension for file managers without a file manager.

usage: python3 Tests/Desktop/extension_tests.py [-v]
       YONDER_BIN=DIRECTORY python3 Tests/Desktop/extension_tests.py [-v]

DIRECTORY holds `yonder`, `yonderd` and `yonder-keeper`; with it, the extension also reads the states of a real mount. Without it,
or where nothing can be mounted, those tests are skipped. scripts/desktop-check tries the extension in the file managers.
"""

import contextlib
import errno
import fcntl
import importlib.util
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "Packaging/desktop"))

import yonder_extension as extension  # noqa: E402

MOUNTINFO = rb"""21 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
40 21 0:41 / /home/you/archive rw,nosuid,nodev,relatime shared:9 - fuse.yonder //yonder/archive rw,user_id=1000
41 40 0:42 / /home/you/archive/inner rw - tmpfs tmpfs rw
42 21 0:43 / /home/you/with\040space\134here rw shared:1 master:2 - fuse.yonder //yonder/space rw
43 21 0:44 / /mnt/covered rw - fuse.yonder //yonder/covered rw
44 43 0:45 / /mnt/covered rw - ext4 /dev/vdb rw
45 21 0:46 / /mnt/caf""" + "é".encode() + rb"""\011 rw - fuse.yonder //yonder/cafe rw
a line that is not one
"""


def state(content="materialized", sync="synced", policy="inherited", is_kept=False, is_directory=False):
    return extension.ItemState(content, sync, policy, is_kept, is_directory)


class MountTests(unittest.TestCase):
    def setUp(self):
        self.types = extension.parse_mountinfo(MOUNTINFO)

    def mountpoint(self, path):
        return extension.enclosing_mount(path, self.types)

    def test_paths_in_a_mount_and_its_root_have_a_mount_point(self):
        self.assertEqual(self.mountpoint("/home/you/archive"), "/home/you/archive")
        self.assertEqual(self.mountpoint("/home/you/archive/a/b.txt"), "/home/you/archive")

    def test_paths_outside_have_none(self):
        for path in ("/", "/home/you", "/home/you/archive2", "/home/you/archivex/a", "relative", ""):
            self.assertIsNone(self.mountpoint(path), path)

    def test_dots_do_not_lead_out_of_the_comparison(self):
        self.assertIsNone(self.mountpoint("/home/you/archive/../b"))

    def test_another_file_system_within_a_mount_is_not_the_mount(self):
        self.assertIsNone(self.mountpoint("/home/you/archive/inner/file"))

    def test_the_later_of_two_mounts_on_a_directory_counts(self):
        self.assertIsNone(self.mountpoint("/mnt/covered/file"))

    def test_octal_numbers_are_decoded(self):
        self.assertEqual(self.mountpoint("/home/you/with space\\here/x"), "/home/you/with space\\here")
        self.assertEqual(self.mountpoint("/mnt/café\t/x"), "/mnt/café\t")

    def test_the_table_of_this_process_can_be_read(self):
        mounts = extension.MountTable()
        self.addCleanup(mounts.close)
        self.assertIsNone(mounts.mountpoint("/"))

    def test_paths_of_uris(self):
        self.assertEqual(extension.path_of("file:///a%20b/%C3%A9"), "/a b/é")
        self.assertEqual(os.fsencode(extension.path_of("file:///a/%FF")), b"/a/\xff")
        for uri in ("trash:///a", "sftp://host/a", "file://host/a", "", None):
            self.assertIsNone(extension.path_of(uri))

    def test_a_path_in_json_is_the_path_of_the_uri(self):
        for text, uri in (
                ("/m/café", "file:///m/caf%C3%A9"), ("/m/caf\U0010ffe9", "file:///m/caf%E9"),
                # A name with U+10FFE9 itself.
                ("/m/\U0010fff4\U0010ff8f\U0010ffbf\U0010ffa9", "file:///m/%F4%8F%BF%A9")):
            self.assertEqual(extension.path_in_json(text), extension.path_of(uri))


class StateTests(unittest.TestCase):
    def read(self, path, attributes, is_directory=False):
        def attribute(path, name):
            value = attributes.get((path, name), {"policy": "inherited", "content": "dataless", "sync": "synced"}[name])
            if isinstance(value, int):
                raise OSError(value, os.strerror(value), path)
            return value

        return extension.read_state(path, "/m", is_directory, attribute)

    def test_the_policy_of_an_ancestor_is_effective(self):
        self.assertTrue(self.read("/m/a/b/c", {("/m/a", "policy"): "keepDownloaded"}).is_kept)
        self.assertTrue(self.read("/m/a", {("/m", "policy"): "keepDownloaded"}).is_kept)
        self.assertTrue(self.read("/m", {("/m", "policy"): "keepDownloaded"}).is_kept)
        self.assertFalse(self.read("/m/a/b/c", {}).is_kept)

    def test_the_nearest_policy_counts(self):
        attributes = {("/m/a/b", "policy"): "lazy", ("/m/a", "policy"): "keepDownloaded"}
        self.assertFalse(self.read("/m/a/b/c", attributes).is_kept)

    def test_nothing_above_the_mount_is_read(self):
        self.assertFalse(self.read("/m/a", {("/", "policy"): errno.ENODATA}).is_kept)

    def test_errors_mean_no_state(self):
        for number in (errno.ENOTCONN, errno.ENOENT, errno.ENODATA, errno.EOPNOTSUPP, errno.EIO, errno.EACCES):
            self.assertIsNone(self.read("/m/a", {("/m/a", "sync"): number}))

    def test_emblems(self):
        for expected, item in (
                (["yonder-dataless"], state("dataless")),
                (["yonder-partial"], state("partial")),
                (["yonder-materialized"], state()),
                (["yonder-pending", "yonder-materialized"], state(sync="pending")),
                (["yonder-uploading", "yonder-materialized"], state(sync="uploading")),
                (["yonder-failed", "yonder-materialized"], state(sync="failed")),
                (["yonder-materialized"], state(sync="excluded")),
                (["yonder-kept"], state(is_kept=True)),
                (["yonder-kept", "yonder-dataless"], state("dataless", is_kept=True)),
                (["yonder-failed", "yonder-kept"], state(sync="failed", is_kept=True)),
                ([], state(is_directory=True)),
                ([], state("dataless", is_directory=True)),
                (["yonder-kept"], state("dataless", is_kept=True, is_directory=True)),
                (["yonder-pending"], state(sync="pending", is_directory=True))):
            self.assertEqual(extension.emblems(item), expected, item)

    def test_each_emblem_has_an_icon(self):
        icons = ROOT / "Packaging/desktop/icons/hicolor/scalable/emblems"
        names = {name for content in ("dataless", "partial", "materialized")
                 for sync in ("failed", "pending", "uploading") for is_kept in (True, False)
                 for name in extension.emblems(state(content, sync, is_kept=is_kept))}
        self.assertEqual({f"emblem-{name}.svg" for name in names}, {path.name for path in icons.iterdir()})


class StateReaderTests(unittest.TestCase):
    def test_a_mount_that_does_not_answer_is_left_alone_until_it_does(self):
        release = threading.Event()
        calls = []

        def read(path, mountpoint, _):
            calls.append(path)
            if mountpoint == "/stopped":
                release.wait(30)
            return state()

        reader = extension.StateReader(timeout=0.05, read=read)
        reader.PROBE_INTERVAL = 0.05
        requests = [("/stopped/a", "/stopped", False), ("/stopped/b", "/stopped", False), ("/good/a", "/good", False)]
        start = time.monotonic()
        self.assertEqual(list(reader.states(requests)), ["/good/a"])
        self.assertLess(time.monotonic() - start, 5)
        self.assertEqual(calls, ["/stopped/a", "/good/a"])
        self.assertEqual(reader.take_skipped(), ["/stopped/a", "/stopped/b"])
        self.assertFalse(reader.has_skipped)
        release.set()
        deadline = time.monotonic() + 10
        while not reader.states(requests[1:2]):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)

    def test_an_item_without_a_state_is_left_out(self):
        self.assertEqual(extension.StateReader(timeout=10, read=lambda *_: None).states([("/m/a", "/m", False)]), {})


class MenuTests(unittest.TestCase):
    def menu(self, **items):
        return {entry.label: entry.paths for entry in extension.menu_entries(items)}

    def test_a_dataless_file(self):
        self.assertEqual(self.menu(a=state("dataless")), {"Download": ["a"], "Keep downloaded": ["a"], "Why…": ["a"]})

    def test_a_materialized_file(self):
        self.assertEqual(self.menu(a=state()), {"Keep downloaded": ["a"], "Free up space": ["a"], "Why…": ["a"]})

    def test_a_file_that_is_kept_cannot_be_evicted(self):
        self.assertEqual(
            self.menu(a=state(policy="keepDownloaded", is_kept=True)), {"Do not keep downloaded": ["a"], "Why…": ["a"]})

    def test_a_file_that_is_kept_because_of_its_directory_is_released_there(self):
        self.assertEqual(self.menu(a=state(is_kept=True)), {"Why…": ["a"]})

    def test_a_listed_directory_can_be_downloaded_and_evicted(self):
        self.assertEqual(
            self.menu(a=state(is_directory=True)),
            {"Download": ["a"], "Keep downloaded": ["a"], "Free up space": ["a"], "Why…": ["a"]})

    def test_a_directory_that_was_never_listed_has_nothing_to_evict(self):
        self.assertNotIn("Free up space", self.menu(a=state("dataless", is_directory=True)))

    def test_each_entry_has_the_items_that_it_changes(self):
        self.assertEqual(
            self.menu(a=state("dataless"), b=state(), c=state(policy="keepDownloaded", is_kept=True)),
            {"Download": ["a"], "Keep downloaded": ["a", "b"], "Do not keep downloaded": ["c"], "Free up space": ["b"]})

    def test_without_items_of_a_mount_there_is_no_menu(self):
        self.assertEqual(self.menu(), {})


class EventFollowerTests(unittest.TestCase):
    """The part for the file managers, with mocks for GObject."""

    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="yonder-extension."))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        self.repository = unittest.mock.MagicMock()
        self.repository.GObject.GObject = type("GObject", (), {})
        manager = unittest.mock.MagicMock(InfoProvider=type("Info", (), {}), MenuProvider=type("Menu", (), {}))
        modules = {
            "gi": unittest.mock.MagicMock(repository=self.repository), "gi.repository": self.repository,
            "gi.repository.Nautilus": manager}
        environment = {"HOME": str(self.directory), "XDG_STATE_HOME": "", "YONDER_STATE_DIR": ""}
        for patch in (unittest.mock.patch.dict(sys.modules, modules), unittest.mock.patch.dict(os.environ, environment)):
            patch.start()
            self.addCleanup(patch.stop)
        spec = importlib.util.spec_from_file_location("extension_in_file_manager", extension.__file__)
        self.extension = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.extension)

    def test_only_a_daemon_that_runs_is_followed(self):
        start = self.repository.Gio.Subprocess.new
        self.extension.EventFollower(lambda path: True, lambda paths: None).ensure_started()
        start.assert_not_called()
        lock = self.directory / ".local/state/yonder/yonderd.lock"
        lock.parent.mkdir(parents=True)
        with open(lock, "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            self.extension.EventFollower(lambda path: True, lambda paths: None).ensure_started()
        start.assert_called_once()
        self.assertEqual(start.call_args.args[0][-2:], ["events", "--json"])


class CommandTests(unittest.TestCase):
    def test_batches_keep_the_order_and_the_limit(self):
        paths = [f"/m/{number:04}" for number in range(1000)]
        batches = list(extension.batches(paths, limit=100))
        self.assertEqual([path for batch in batches for path in batch], paths)
        self.assertTrue(all(sum(len(path) + 1 for path in batch) <= 100 for batch in batches))
        self.assertEqual(list(extension.batches(["a" * 500], limit=100)), [["a" * 500]])

    def test_a_failure_shows_what_the_command_has_printed(self):
        self.assertIsNone(extension.failure_text("evict", 0, "a warning"))
        self.assertEqual(extension.failure_text("evict", 1, "yonder: /m/a: it is open\n"), "yonder: /m/a: it is open")
        self.assertEqual(extension.failure_text("evict", 3, "\n"), "'yonder evict' ended with status 3.")
        lines = extension.failure_text("evict", 1, "".join(f"line {number}\n" for number in range(50))).splitlines()
        self.assertEqual((len(lines), lines[-1]), (extension.SHOWN_LINES + 1, f"and {50 - extension.SHOWN_LINES} more"))

    def test_a_command_affects_the_shown_paths_below_its_own(self):
        shown = extension.ShownPaths(limit=4)
        for path in ("/m/old", "/m/d/a", "/m/d/e/b", "/m/dx", "/m/d"):
            shown.add(path)
        self.assertNotIn("/m/old", shown)
        self.assertEqual(shown.affected(["/m/d"]), ["/m/d", "/m/d/a", "/m/d/e/b"])
        self.assertEqual(shown.affected([]), [])


def obstacle():
    if not os.environ.get("YONDER_BIN"):
        return "YONDER_BIN does not name the directory of the programs"
    return None if os.access("/dev/fuse", os.R_OK | os.W_OK) else "nothing can be mounted here"


@unittest.skipIf(obstacle(), obstacle())
class RealMountTests(unittest.TestCase):
    def setUp(self):
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="yonder-desktop."))
        self.environment = {
            **os.environ, "YONDER_STATE_DIR": str(self.scratch / "state"), "YONDER_SOCKET": str(self.scratch / "sock"),
            "YONDER_CONFIG": str(self.scratch / "none")}
        # Registered first, so that it runs last.
        self.addCleanup(shutil.rmtree, self.scratch, ignore_errors=True)
        self.source, self.mount = self.scratch / "source", self.scratch / "mount point"
        (self.source / "folder").mkdir(parents=True)
        for name in ("dataless.txt", "here.txt", "kept.txt", "folder/inner.txt"):
            (self.source / name).write_text(f"content of {name}\n")
        # Ranges of small files are not recorded.
        with open(self.source / "large", "wb") as file:
            file.truncate(64 << 20)
        (self.source / "link").symlink_to("here.txt")
        # Made before the mount, so that only a change of mountinfo can show it.
        self.mounts = extension.MountTable()
        self.addCleanup(self.mounts.close)
        self.assertIsNone(self.mounts.mountpoint(str(self.mount)))
        self.yonder("mount", self.source, self.mount, "--name", "desktop")
        self.addCleanup(self.shut_down)
        self.addCleanup(subprocess.run, ["umount", "-l", self.mount], stderr=subprocess.DEVNULL, check=False)
        self.reader = extension.StateReader(timeout=20)

    def eventually(self, condition):
        deadline = time.monotonic() + 20
        while not condition():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.1)

    def shut_down(self):
        # A daemon that a test has killed cannot be shut down.
        with contextlib.suppress(subprocess.CalledProcessError):
            self.yonder("shutdown")

    def yonder(self, *arguments):
        command = [os.path.join(os.environ["YONDER_BIN"], "yonder"), *map(str, arguments)]
        return subprocess.run(command, env=self.environment, check=True, capture_output=True, text=True, timeout=60).stdout

    def state(self, name):
        path = str(self.mount / name)
        mountpoint = self.mounts.mountpoint(path)
        self.assertEqual(mountpoint, str(self.mount))
        return self.reader.states([(path, mountpoint, os.path.isdir(path))]).get(path)

    def emblems(self, name):
        return extension.emblems(self.state(name))

    def test_states_are_read_and_nothing_is_downloaded(self):
        names = ("dataless.txt", "here.txt", "kept.txt", "folder", "large", "")
        for _ in range(3):
            for name in names:
                self.state(name)
        self.assertEqual(self.emblems("dataless.txt"), ["yonder-dataless"])
        self.assertEqual(self.state("folder").content, "dataless")
        (self.mount / "here.txt").read_bytes()
        self.yonder("pin", "--", self.mount / "kept.txt", self.mount / "folder")
        self.yonder("download", "--range", "1048576:4096", "--", self.mount / "large")
        self.assertEqual(self.emblems("here.txt"), ["yonder-materialized"])
        self.assertEqual(self.emblems("folder"), ["yonder-kept"])
        self.assertTrue(self.state("folder/inner.txt").is_kept)
        self.assertEqual(self.state("folder/inner.txt").policy, "inherited")
        # The daemon records a range a moment after it has arrived.
        self.eventually(lambda: self.emblems("large") == ["yonder-partial"])
        self.yonder("pause", "desktop")
        (self.mount / "new.txt").write_text("new\n")
        self.assertEqual(self.emblems("new.txt"), ["yonder-pending", "yonder-materialized"])
        self.yonder("resume", "desktop")
        self.yonder("wait", "desktop")
        self.assertEqual(self.emblems("new.txt"), ["yonder-materialized"])
        self.yonder("evict", "--", self.mount / "new.txt")
        self.assertEqual(self.emblems("new.txt"), ["yonder-dataless"])
        self.assertEqual(self.emblems("dataless.txt"), ["yonder-dataless"])

    def test_links_and_missing_items_have_no_state(self):
        self.assertIsNone(self.state("link"))
        self.assertIsNone(self.state("missing"))

    def test_a_stopped_daemon_does_not_block(self):
        self.assertIsNotNone(self.state("here.txt"))
        daemon = int((self.scratch / "state/yonderd.lock").read_text())
        os.kill(daemon, signal.SIGSTOP)
        try:
            # kill(2) returns before all threads have stopped.
            self.eventually(lambda: all(
                "State:\tT" in (task / "status").read_text() for task in pathlib.Path(f"/proc/{daemon}/task").iterdir()))
            self.reader = extension.StateReader(timeout=0.2)
            start = time.monotonic()
            path = str(self.mount / "here.txt")
            for _ in range(20):
                self.assertEqual(self.reader.states([(path, str(self.mount), False)]), {})
            self.assertLess(time.monotonic() - start, 5)
        finally:
            os.kill(daemon, signal.SIGCONT)
        self.eventually(lambda: self.state("here.txt"))
        self.yonder("unmount", "desktop")
        self.assertIsNone(self.mounts.mountpoint(path))

    def test_a_mount_without_a_daemon_has_no_states(self):
        self.assertIsNotNone(self.state("here.txt"))
        daemon = json.loads(self.yonder("status", "--json"))["daemon"]
        # The keeper would start another daemon.
        for process in (daemon["keeper"], daemon["worker"]):
            os.kill(process, signal.SIGKILL)
        path = str(self.mount / "here.txt")

        def error():
            try:
                return extension.read_attribute(path, "sync") and 0
            except OSError as error:
                return error.errno

        self.eventually(lambda: error() == errno.ENOTCONN)
        self.assertEqual(self.mounts.mountpoint(path), str(self.mount))
        self.assertEqual(self.reader.states([(path, str(self.mount), False)]), {})


if __name__ == "__main__":
    unittest.main()
