"""What a folder or a bucket holds: every path, with a file's bytes, a link's target after an arrow, or None for a directory."""

import json
import os
import shutil
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

# Before the target of a link.
LINK = b"-> "
# Objects that hold the targets of links, as rclone names them.
LINK_SUFFIX = ".rclonelink"


def tree(top):
    found = {}
    for folder, folders, files in os.walk(top):
        # Where Apache keeps properties.
        folders[:] = [name for name in folders if name != ".DAV"]
        relative = os.path.relpath(folder, top)
        for name in folders + files:
            # Left by an interrupted transfer.
            if name.startswith(".yonder-partial-"):
                continue
            path = os.path.join(folder, name)
            place = os.path.normpath(os.path.join(relative, name))
            if os.path.islink(path):
                found[place] = LINK + os.fsencode(os.readlink(path))
            elif name in folders:
                found[place] = None
            else:
                with open(path, "rb") as file:
                    found[place] = file.read()
    return found


def bucket_tree(address):
    """By the object store's own interface, which knows nothing of S3.

    address: http://HOST:PORT/BUCKET/PREFIX
    """
    url = urllib.parse.urlsplit(address)
    bucket, _, prefix = url.path.lstrip("/").partition("/")
    base = "http://%s" % url.netloc
    at = base + "/v1/AUTH_test/" + bucket
    fields = {}

    def log_in():
        login = urllib.request.Request(base + "/auth/v1.0", headers={"X-Auth-User": "test:tester", "X-Auth-Key": "testing"})
        with urllib.request.urlopen(login) as answer:
            fields["X-Auth-Token"] = answer.headers["X-Auth-Token"]

    def ask(address):
        for attempt in range(2):
            try:
                with urllib.request.urlopen(urllib.request.Request(address, headers=fields)) as answer:
                    return answer.read()
            except urllib.error.HTTPError as error:
                # What it gives to show holds for a minute.
                if error.code != 401 or attempt > 0:
                    raise
                log_in()

    found, marker = {}, ""
    while names := json.loads(ask("%s?format=json&limit=5000&prefix=%s/&marker=%s" % (
            at, urllib.parse.quote(prefix), urllib.parse.quote(marker))) or "[]"):
        for entry in names:
            marker = entry["name"]
            path = marker[len(prefix) + 1:]
            if ".yonder-partial-" in path or not path:
                continue
            parts = path.rstrip("/").split("/")
            try:
                content = ask(at + "/" + urllib.parse.quote(marker))
            except urllib.error.HTTPError as error:
                # When it is busy, its listings are older than its answers.
                if error.code != 404:
                    raise
                continue
            for count in range(1, len(parts)):
                found.setdefault("/".join(parts[:count]), None)
            if path.endswith(LINK_SUFFIX):
                found[path[:-len(LINK_SUFFIX)]] = LINK + content
                continue
            found[path.rstrip("/")] = None if path.endswith("/") else content
    return found


def compare(complain, what, found, wanted):
    for path in sorted(set(found) | set(wanted)):
        if path not in found:
            complain("%s lacks '%s'" % (what, path))
        elif path not in wanted:
            complain("%s has '%s' too much" % (what, path))
        elif found[path] != wanted[path]:
            complain("%s has '%s' with other content: %s bytes, expected %s" % (
                what, path, found[path] and len(found[path]), wanted[path] and len(wanted[path])))


class FaultLogs:
    """Files in the directory of YONDER_FAULT_LOGS that explain a failure; without that variable there are none."""

    def __init__(self, name):
        folder = os.environ.get("YONDER_FAULT_LOGS")
        self.folder = folder and os.path.join(folder, name)
        self.account = open(self.folder + ".account", "w", buffering=1) if self.folder else None

    def write(self, text):
        if self.account:
            self.account.write("%.3f %s\n" % (time.time(), text))

    def follow(self, yonder):
        """Writes what the daemon tells of its transfers."""
        if self.folder:
            with open(self.folder + ".events", "a") as file:
                subprocess.Popen([yonder, "events"], stdout=file, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)

    def keep(self):
        """Copies the state of the daemon, without contents."""
        if self.folder:
            shutil.copytree(os.environ["YONDER_STATE_DIR"], self.folder, ignore=shutil.ignore_patterns("contents"),
                            dirs_exist_ok=True)
