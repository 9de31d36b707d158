#!/usr/bin/env python3
"""Tests the notifications on the desktop.

usage: python3 Tests/Desktop/notifier_tests.py [-v]
       YONDER_BIN=DIRECTORY python3 Tests/Desktop/notifier_tests.py [-v]

DIRECTORY holds `yonder`, `yonderd` and `yonder-keeper`; with it, and with D-Bus and Debian's python3-gi, a conflict on a real mount is
told to a notification service. Without them that test is skipped.
"""

import fcntl
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import queue
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAM = ROOT / "Packaging/desktop/yonder-notifier"
SERVICE = pathlib.Path(__file__).with_name("notification_service.py")


def load():
    loader = importlib.machinery.SourceFileLoader("yonder_notifier", str(PROGRAM))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


notifier = load()


class CollectorTests(unittest.TestCase):
    def setUp(self):
        self.answers = {"pending": [], "status": {"domains": []}}
        self.asked = []
        self.collector = notifier.Collector(self.ask)

    def ask(self, command):
        self.asked.append(command)
        return self.answers[command]

    def refuse(self, *codes):
        self.answers["pending"] = [
            {"path": f"/m/{number}", "error": {"code": code, "message": f"says {code}"}} for number, code in enumerate(codes)]

    def test_conflicts_that_come_together_are_one_notice(self):
        for name in ("a", "b", "b", "c", "d", "e"):
            self.assertTrue(self.collector.add({"kind": "conflict", "path": f"/m/{name}.txt"}))
        (notice,), gone = self.collector.take()
        self.assertEqual(notice.title, "5 files were changed here and on the remote")
        self.assertEqual(notice.text, "Both versions are kept: a.txt, b.txt, c.txt and 2 more")
        self.assertEqual(len(notice.paths), 5)
        self.assertEqual(gone, [])
        self.assertEqual(self.collector.take(), ([], []))

    def test_a_lost_item_is_urgent(self):
        self.collector.add({"kind": "lost", "path": "/m/a"})
        (notice,), _ = self.collector.take()
        self.assertTrue(notice.is_urgent)

    def test_other_events_are_not_told(self):
        for kind in ("uploading", "uploaded", "downloaded", "evicted", "changed", "", None):
            self.assertFalse(self.collector.add({"kind": kind, "path": "/m/a"}), kind)
        self.assertEqual(self.asked, [])

    def test_what_passes_by_itself_is_not_told(self):
        self.refuse("serverUnreachable", "timedOut")
        self.collector.add({"kind": "failed", "path": "/m/0"})
        self.assertEqual(self.collector.take(), ([], []))

    def test_a_refusal_is_told_once_and_withdrawn_when_it_is_gone(self):
        self.refuse("insufficientQuota", "insufficientQuota", "serverUnreachable")
        self.collector.add({"kind": "failed", "path": "/m/0"})
        (notice,), _ = self.collector.take()
        self.assertEqual(notice.text, "0, 1: says insufficientQuota")
        self.collector.add({"kind": "failed", "path": "/m/0"})
        self.assertEqual(self.collector.take(), ([], []))
        self.refuse()
        self.assertTrue(self.collector.add({"kind": "uploaded", "path": "/m/0"}))
        self.assertEqual(self.collector.take(), ([], [notice.key]))
        self.refuse("insufficientQuota")
        self.collector.add({"kind": "failed", "path": "/m/0"})
        self.assertEqual(len(self.collector.take()[0]), 1)

    def test_rejected_credentials_are_told_until_the_remote_takes_others(self):
        self.answers["status"] = {"domains": [
            {"name": "cloud", "connection": "unauthenticated"}, {"name": "nas", "connection": "offline"}]}
        self.collector.add({"kind": "offline", "path": "x"})
        (notice,), _ = self.collector.take()
        self.assertEqual(notice.title, "'cloud' is not logged in")
        self.answers["status"] = {"domains": [{"name": "cloud", "connection": "online"}]}
        self.collector.add({"kind": "online", "path": "x"})
        self.assertEqual(self.collector.take(), ([], [notice.key]))

    def test_without_a_daemon_nothing_is_withdrawn(self):
        self.refuse("insufficientQuota")
        self.collector.look()
        self.collector.take()
        self.answers["pending"] = None
        self.collector.look()
        self.assertEqual(self.collector.take(), ([], []))

    def test_names_of_others_cannot_write_lines_or_control_characters(self):
        self.collector.add({"kind": "conflict", "path": "/m/a\n\x1b[31mb\U0010ffff"})
        (notice,), _ = self.collector.take()
        self.assertTrue(notice.text.isprintable(), repr(notice.text))

    def test_a_path_becomes_a_uri(self):
        self.assertEqual(notifier.uri("/m/a b\u00e9"), "file:///m/a%20b%C3%A9")

    def test_the_uri_of_a_name_that_is_not_utf_8_has_its_bytes(self):
        self.assertEqual(notifier.uri("/m/caf\U0010ffe9"), "file:///m/caf%E9")
        # A name with U+10FFE9 itself.
        self.assertEqual(notifier.uri("/m/\U0010fff4\U0010ff8f\U0010ffbf\U0010ffa9"), "file:///m/%F4%8F%BF%A9")
        self.assertEqual(notifier.printable("caf\U0010ffe9"), "caf\N{REPLACEMENT CHARACTER}")


class DocumentTests(unittest.TestCase):
    def test_the_commands_that_switch_it_off_work_in_an_empty_home(self):
        text = (ROOT / "Docs/Desktop.md").read_text()
        commands = text.partition("To switch it off:\n\n")[2].partition("\n\n")[0]
        self.assertIn("Hidden=true", commands)
        with tempfile.TemporaryDirectory() as home:
            subprocess.run(
                ["sh", "-ec", commands.replace("/etc/xdg/autostart", str(PROGRAM.parent))], env=os.environ | {"HOME": home}, check=True)
            lines = (pathlib.Path(home) / ".config/autostart/yonder-notifier.desktop").read_text().splitlines()
        self.assertEqual((lines[0], lines[-1]), ("[Desktop Entry]", "Hidden=true"))


class DaemonTests(unittest.TestCase):
    """What is asked while a daemon runs, and while none does. A script stands for the commands."""

    class End(Exception):
        pass

    def setUp(self):
        directory = pathlib.Path(tempfile.mkdtemp(prefix="yonder-notifier."))
        self.addCleanup(shutil.rmtree, directory, ignore_errors=True)
        self.lock, self.calls, self.yonder = directory / "state/yonderd.lock", directory / "calls", directory / "yonder"
        self.lock.parent.mkdir()
        self.calls.touch()
        self.yonder.write_text(f"#!/bin/sh\necho $1 >>'{self.calls}'\necho '{{\"kind\": \"conflict\"}}'\n")
        self.yonder.chmod(0o755)
        environment = {"HOME": str(directory), "XDG_STATE_HOME": "", "YONDER_STATE_DIR": str(self.lock.parent)}
        patch = unittest.mock.patch.dict(os.environ, environment)
        patch.start()
        self.addCleanup(patch.stop)

    def follow(self, pauses):
        """Follows the events until the last pause. Returns what was followed."""
        events = queue.SimpleQueue()
        with unittest.mock.patch.object(notifier.time, "sleep", side_effect=[None] * (pauses - 1) + [self.End]) as sleep:
            with self.assertRaises(self.End):
                notifier.follow(str(self.yonder), events, pause=7)
        self.assertEqual(sleep.mock_calls, [unittest.mock.call(7)] * pauses)
        return [events.get() for _ in range(events.qsize())]

    def test_without_a_daemon_no_command_is_run_that_would_start_one(self):
        for _ in range(2):
            self.assertEqual(self.follow(pauses=3), [])
            self.assertIsNone(notifier.ask(str(self.yonder), "status"))
            self.assertEqual(self.calls.read_text(), "")
            # That of a daemon that has ended.
            self.lock.touch()

    def test_a_daemon_is_followed_and_asked(self):
        with open(self.lock, "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            self.assertEqual(self.follow(pauses=2), [None, {"kind": "conflict"}] * 2)
            self.assertEqual(notifier.ask(str(self.yonder), "status"), {"kind": "conflict"})
        self.assertEqual(self.calls.read_text(), "events\nevents\nstatus\n")

    def test_a_daemon_without_the_variables_of_the_session_is_found(self):
        lock = self.lock.parent.parent / ".local/state/yonder/yonderd.lock"
        lock.parent.mkdir(parents=True)
        with open(lock, "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            self.assertTrue(notifier.is_daemon_running())
        self.assertFalse(notifier.is_daemon_running())


def obstacle():
    if "YONDER_BIN" not in os.environ:
        return "YONDER_BIN is not set"
    if not shutil.which("dbus-run-session"):
        return "there is no dbus-run-session"
    if subprocess.run(["/usr/bin/python3", "-c", "import gi"], capture_output=True).returncode != 0:
        return "Debian's python3-gi is not installed"
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "nothing can be mounted here"
    return None


@unittest.skipIf(obstacle(), obstacle())
class SessionTests(unittest.TestCase):
    """The program in a session, with a mount and a notification service."""

    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="yonder-notifier."))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        self.source, self.mount = self.directory / "source", self.directory / "mount"
        self.source.mkdir()
        self.environment = os.environ | {
            "YONDER_STATE_DIR": str(self.directory / "state"), "YONDER_SOCKET": str(self.directory / "socket"),
            "YONDER_CONFIG": str(self.directory / "none"), "PATH": f"{os.environ['YONDER_BIN']}:{os.environ['PATH']}"}
        self.addCleanup(self.yonder, "shutdown", check=False)

    def yonder(self, *arguments, check=True):
        return subprocess.run(
            [f"{os.environ['YONDER_BIN']}/yonder", *arguments], env=self.environment, capture_output=True, text=True, check=check,
            timeout=60)

    def test_a_conflict_is_told_and_shown_in_the_file_manager(self):
        (self.source / "letter.txt").write_text("first")
        self.yonder("mount", str(self.source), str(self.mount))
        (self.mount / "letter.txt").read_text()
        log = self.directory / "calls"
        session = subprocess.Popen(
            ["dbus-run-session", "--", "sh", "-c", '/usr/bin/python3 "$1" "$2" & "$3"', "sh", SERVICE, log, PROGRAM],
            env=self.environment, start_new_session=True)
        self.addCleanup(self.end, session)
        self.until(lambda: "ready" in self.calls(log))
        # The notifier listens soon after.
        time.sleep(2)
        self.yonder("pause", "mount")
        (self.mount / "letter.txt").write_text("here")
        (self.source / "letter.txt").write_text("there, and longer")
        self.yonder("resume", "mount")
        self.until(lambda: "Notify" in self.calls(log))
        call = self.calls(log)["Notify"]
        self.assertEqual(call[3], "A file was changed here and on the remote")
        self.assertIn("letter", call[4])
        # The service clicks on each notification.
        self.until(lambda: "ShowItems" in self.calls(log))
        (shown,), _ = self.calls(log)["ShowItems"]
        self.assertTrue(shown.startswith(f"file://{self.mount}/letter"), shown)

    @staticmethod
    def calls(log):
        try:
            return {name: arguments for name, arguments in map(json.loads, log.read_text().splitlines())}
        except OSError:
            return {}

    def until(self, condition):
        deadline = time.monotonic() + 40
        while not condition():
            self.assertLess(time.monotonic(), deadline, "it does not happen")
            time.sleep(0.1)

    @staticmethod
    def end(session):
        os.killpg(session.pid, 15)
        session.wait()


if __name__ == "__main__":
    unittest.main()
