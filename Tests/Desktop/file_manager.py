#!/usr/bin/python3
"""Tries the extension in one file manager, as a user does: by the pointer and the menu. scripts/desktop-check runs it.

usage: file_manager.py nautilus|nemo|caja SCRATCH SCREENSHOTS

Needs a display without other windows, a session bus, and the extension installed for this user. The emblems are found on the screen
by their colours, the menu by AT-SPI, and YONDER_EXTENSION_LOG says what the extension has answered. Prints a line for each check, and
ends with 1 at the first that fails.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import time

import gi

gi.require_version("Atspi", "2.0")
from gi.repository import Atspi  # noqa: E402

COMMANDS = {"nautilus": ["nautilus", "--new-window"], "nemo": ["nemo"], "caja": ["caja", "--no-desktop"]}
ICONS = pathlib.Path(__file__).resolve().parent.parent.parent / "Packaging/desktop/icons/hicolor/scalable/emblems"
# A busy machine starts a file manager slowly.
SECONDS = 60


class Failure(Exception):
    pass


def colour(emblem):
    """Returns the colour of an emblem; no two have the same, and no icon of Adwaita has one of them."""
    return re.search(r'r="6\.8" fill="(#[0-9a-f]{6})"', (ICONS / f"emblem-yonder-{emblem}.svg").read_text())[1]


class Session:
    def __init__(self, manager, scratch, screenshots):
        self.manager = manager
        self.screenshots = pathlib.Path(screenshots)
        self.source = pathlib.Path(scratch) / f"{manager} source"
        self.mount = pathlib.Path(scratch) / f"{manager} mount"
        self.log = self.screenshots / f"{manager}.log"
        self.log.unlink(missing_ok=True)
        self.shots = 0
        self.processes = []

    def start(self, *command, **environment):
        process = subprocess.Popen(command, stdout=sys.stderr, env={**os.environ, **environment})
        self.processes.append(process)
        return process

    def end(self):
        for process in reversed(self.processes):
            process.kill()
            process.wait()
        subprocess.run(["yonder", "unmount", self.manager], stdout=sys.stderr, check=False)

    def yonder(self, *arguments):
        subprocess.run(["yonder", *map(str, arguments)], check=True, stdout=sys.stderr)

    def content(self, name):
        return os.getxattr(self.mount / name, "user.yonder.content").decode()

    def prepare(self):
        (self.source / "folder").mkdir(parents=True)
        for name in ("dataless.txt", "here.txt", "kept.txt", "folder/inner.txt"):
            (self.source / name).write_text(f"content of {name}\n")
        self.yonder("mount", self.source, self.mount, "--name", self.manager)
        (self.mount / "here.txt").read_bytes()
        self.yonder("pin", "--", self.mount / "kept.txt")
        self.eventually("the kept file is here", lambda: self.content("kept.txt") == "materialized")
        self.yonder("pause", self.manager)
        (self.mount / "new.txt").write_text("new\n")

    # Checks

    def eventually(self, what, condition):
        deadline = time.monotonic() + SECONDS
        while True:
            value = condition()
            if value:
                print(f"ok  {what}", flush=True)
                return value
            if self.processes and self.processes[-1].poll() is not None:
                raise Failure(f"{self.manager} has ended, before: {what}")
            if time.monotonic() > deadline:
                raise Failure(what)
            time.sleep(0.5)

    def events(self, kind):
        if not self.log.exists():
            return []
        # The last line may not be complete.
        lines = self.log.read_text(encoding="utf-8").split("\n")[:-1]
        return [event for event in map(json.loads, lines) if event["event"] == kind]

    def emblems(self):
        """Returns the emblems that the extension has added last, by name of the item."""
        return {pathlib.Path(event["path"]).name: event["emblems"] for event in self.events("emblems")
                if pathlib.Path(event["path"]).parent == self.mount}

    # The screen

    def screenshot(self, name):
        path = self.screenshots / f"{self.manager}-{name}.png"
        subprocess.run(["import", "-window", "root", path], check=True)
        return path

    def keep_screenshot(self, name):
        self.shots += 1
        self.screenshot(f"{self.shots}-{name}")

    def place(self, emblem):
        """Returns the centre of the emblem on the screen, or None."""
        path = self.screenshot("now")
        found = subprocess.run(
            ["convert", path, "-fill", "black", "+opaque", colour(emblem), "-fill", "white", "-opaque", colour(emblem),
             "-format", "%[fx:mean*w*h] %@", "info:"], check=True, capture_output=True, text=True).stdout
        path.unlink()
        count, width, height, left, top = map(float, re.fullmatch(r"([\d.e+]+) (\d+)x(\d+)\+(\d+)\+(\d+)", found).groups())
        # Some pixels, and not the whole screen.
        if count < 10 or width > 64 or height > 64:
            return None
        return round(left + width / 2), round(top + height / 2)

    def menu_items(self):
        """Returns the items of the popup menu that is on the screen, by label."""
        items = {}

        def visit(node):
            try:
                if node.get_role() == Atspi.Role.MENU_BAR:
                    return
                if node.get_role() == Atspi.Role.MENU_ITEM and node.get_name():
                    items[node.get_name()] = node
                for index in range(node.get_child_count()):
                    child = node.get_child_at_index(index)
                    if child:
                        visit(child)
            except gi.repository.GLib.Error:
                # The object went away meanwhile.
                pass

        desktop = Atspi.get_desktop(0)
        for index in range(desktop.get_child_count()):
            application = desktop.get_child_at_index(index)
            if application and self.manager in application.get_name().lower():
                visit(application)
        return items

    def choose(self, emblem, labels, missing, label):
        """Opens the menu of the item with the emblem, checks its labels, and activates one of them."""
        x, y = self.eventually(f"the emblem '{emblem}' is on the screen", lambda: self.place(emblem))

        def opened():
            subprocess.run(["xdotool", "mousemove", str(x), str(y), "sleep", "0.5", "click", "3"], check=True)
            # GTK 4 uses a click to dismiss a menu whose item was activated through AT-SPI, so the next try opens one.
            deadline = time.monotonic() + 5
            while time.monotonic() < deadline:
                items = self.menu_items()
                if set(labels) <= set(items):
                    return items
                time.sleep(0.5)
            return None

        items = self.eventually(f"the menu has {', '.join(labels)}", opened)
        if set(missing) & set(items):
            raise Failure(f"the menu must not have {', '.join(missing)}")
        # The menu is drawn after AT-SPI knows it.
        time.sleep(1)
        self.keep_screenshot("menu")
        items[label].do_action(0)

    def dialog(self, what, text):
        """Waits for the dialog or the notification with a text, and closes it."""
        shown = self.eventually(what, lambda: [event for event in self.events("shown") if re.search(text, event["text"])])
        print(f"    shown by a {shown[-1]['by']}: {shown[-1]['title']}")
        if shown[-1]["by"] == "dialog":
            self.eventually("the dialog is on the screen", lambda: self.windows() > 1)
            time.sleep(1)
            self.keep_screenshot("dialog")
            subprocess.run(["xdotool", "key", "Escape"], check=True)
            self.eventually("the dialog is closed", lambda: self.windows() == 1)

    def windows(self):
        """Returns the number of windows that the window manager has."""
        clients = subprocess.run(["xprop", "-root", "_NET_CLIENT_LIST"], check=True, capture_output=True, text=True).stdout
        return len(re.findall("0x", clients))

    # The story

    def run(self):
        self.prepare()
        self.start("openbox")
        self.start(*COMMANDS[self.manager], str(self.mount), YONDER_EXTENSION_LOG=str(self.log))
        expected = {
            "dataless.txt": ["yonder-dataless"], "here.txt": ["yonder-materialized"], "kept.txt": ["yonder-kept"],
            "new.txt": ["yonder-pending", "yonder-materialized"], "folder": []}
        self.eventually("the extension has added the emblems", lambda: self.emblems() == expected)
        for emblem in ("dataless", "kept", "pending"):
            self.eventually(f"the emblem '{emblem}' is on the screen", lambda emblem=emblem: self.place(emblem))
        self.keep_screenshot("emblems")

        self.choose("dataless", ["Download", "Keep downloaded", "Why…"], ["Free up space", "Do not keep downloaded"], "Why…")
        self.dialog("Why is explained", "Its content is not here")

        self.choose("pending", ["Free up space", "Keep downloaded", "Why…"], ["Download"], "Free up space")
        self.eventually("evicting a pending file fails", lambda: [
            event for event in self.events("ended") if event["command"] == "evict" and event["status"] == 1])
        self.dialog("the reason is shown", "new.txt: ")

        if self.content("dataless.txt") != "dataless" or self.content("folder") != "dataless":
            raise Failure(f"{self.manager} has downloaded what it only shows")
        print("ok  nothing was downloaded")

        self.yonder("resume", self.manager)
        self.eventually("an upload refreshes its emblem", lambda: self.emblems()["new.txt"] == ["yonder-materialized"])
        subprocess.run(["xdotool", "key", "ctrl+a"], check=True)
        self.choose(
            "dataless", ["Download", "Keep downloaded", "Do not keep downloaded", "Free up space"], ["Why…"],
            "Keep downloaded")
        self.eventually("all selected items are kept downloaded", lambda: all(
            self.content(name) == "materialized" for name in ("dataless.txt", "folder", "folder/inner.txt")))
        self.eventually("the command refreshes the emblems", lambda: set(map(tuple, self.emblems().values())) == {("yonder-kept",)})
        self.eventually("the new emblems are on the screen", lambda: not self.place("dataless"))
        self.keep_screenshot("kept")


def main():
    session = Session(*sys.argv[1:])
    try:
        session.run()
    except Failure as failure:
        print(f"FAILED: {failure}", flush=True)
        session.keep_screenshot("failure")
        return 1
    finally:
        session.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
