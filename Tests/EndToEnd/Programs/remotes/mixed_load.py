"""Works on the mount of a remote while the line to it is cut, stalled, reset and refused at random, and keeps account.

usage: mixed_load.py MOUNT MIRROR --yonder PROGRAM --control PORT (--folder FOLDER | --store URL/BUCKET/PREFIX)
                     [--seconds N] [--seed N] [--limit SECONDS] [--quiet-line] [--page] [--kill]

MIRROR is an empty directory: what the mount has acknowledged is done there, too. At the end the line is healed, all that is
pending is waited for, and the remote, the mount, and the mount once more after everything was evicted have to be as the
mirror: names, kinds and every byte. Only the mount changes the remote, so nothing may ever be a conflict. A call that needs
the remote may fail with EHOSTUNREACH or ETIMEDOUT, and no other way; none may take longer than the limit. With
--page a login page answers now and then in place of the remote. With --kill the daemon is killed once, halfway, between two
calls of each worker and while changes are pending; then the domain is mounted again.

With YONDER_FAULT_LOGS, a directory, an account of each call and its path is written there. After a failure the log and the
database of the daemon are copied to it.
"""

import argparse
import collections
import contextlib
import errno
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True

from trees import FaultLogs, bucket_tree, compare, tree

AWAY = {errno.EHOSTUNREACH, errno.ETIMEDOUT}
REFUSALS = {errno.EINPROGRESS, errno.EBUSY, errno.ENOTEMPTY, errno.EPERM}


class Wrong(Exception):
    pass


def content(choice):
    size = choice.choices([0, choice.randrange(1, 200), choice.randrange(200, 60_000), choice.randrange(60_000, 900_000),
                           choice.randrange(3_000_000, 9_000_000)], [2, 20, 50, 20, 1])[0]
    return choice.randbytes(size)


class Worker(threading.Thread):
    """Works below its own directory, so that it knows the expected state."""

    def __init__(self, run, number):
        super().__init__(daemon=True)
        self.run_, self.choice = run, random.Random(run.seed * 1000 + number)
        self.top = "w%d" % number
        # Held during each call.
        self.call = threading.Lock()
        self.began = None
        self.doing = ""
        self.counts = collections.Counter()
        self.slowest = (0, "")
        self.next = 0

    def mount(self, path):
        return os.path.join(self.run_.mount, path)

    def mirror(self, path):
        return os.path.join(self.run_.mirror, path)

    def items(self, wanted):
        found = [self.top] if wanted == "directory" else []
        for folder, folders, files in os.walk(self.mirror(self.top)):
            relative = os.path.relpath(folder, self.run_.mirror)
            found += [os.path.join(relative, name) for name in (folders if wanted == "directory" else files)]
        return sorted(found)

    def one(self, kind):
        items = self.items(kind)
        return self.choice.choice(items) if items else None

    def account(self, path, new=""):
        self.run_.account("%s %s: %s %s" % (self.top, self.doing, path, new))

    def fresh(self, folder):
        self.next += 1
        return os.path.join(folder, "%s %d" % (self.choice.choice(["note", "bild äöü", "x&y", "very " * 10]), self.next))

    def write(self, path, data, mode="wb"):
        self.account(path, "(%d bytes)" % len(data))
        with open(self.mount(path), mode, buffering=0) as file:
            file.write(data)
        with open(self.mirror(path), mode) as file:
            file.write(data)

    # What is done. Each does it on the mount, and then on the mirror.

    def create(self):
        self.write(self.fresh(self.one("directory")), content(self.choice), "xb")

    def rewrite(self):
        if path := self.one("file"):
            self.write(path, content(self.choice))

    def append(self):
        if path := self.one("file"):
            self.write(path, content(self.choice)[:5000], "ab")

    def save(self):
        if path := self.one("file"):
            new = self.fresh(os.path.dirname(path))
            self.write(new, content(self.choice), "xb")
            self.account(new, "-> " + path)
            os.replace(self.mount(new), self.mount(path))
            os.replace(self.mirror(new), self.mirror(path))

    def rename(self):
        path = self.one(self.choice.choice(["file", "file", "directory"]))
        folder = self.one("directory")
        if not path or path == self.top or (folder + "/").startswith(path + "/"):
            return
        new = self.fresh(folder)
        self.account(path, "-> " + new)
        os.rename(self.mount(path), self.mount(new))
        os.rename(self.mirror(path), self.mirror(new))

    def remove(self):
        if path := self.one("file"):
            self.account(path)
            os.unlink(self.mount(path))
            os.unlink(self.mirror(path))

    def make(self):
        path = self.fresh(self.one("directory"))
        self.account(path)
        os.mkdir(self.mount(path))
        os.mkdir(self.mirror(path))

    def remove_tree(self):
        folder = self.one("directory")
        if folder == self.top or self.choice.random() < 0.7:
            return
        self.account(folder)
        for inner, folders, files in os.walk(self.mirror(folder), topdown=False):
            relative = os.path.relpath(inner, self.run_.mirror)
            for name in files:
                os.unlink(self.mount(os.path.join(relative, name)))
                os.unlink(self.mirror(os.path.join(relative, name)))
            os.rmdir(self.mount(relative))
            os.rmdir(self.mirror(relative))

    def read(self):
        if path := self.one("file"):
            self.account(path)
            with open(self.mount(path), "rb", buffering=0) as file:
                data = file.readall()
            with open(self.mirror(path), "rb") as file:
                wanted = file.read()
            if data != wanted:
                other = [at for at, (one, two) in enumerate(zip(data, wanted)) if one != two]
                raise Wrong("'%s' was read with %d bytes of other content, %d expected: %d from %s to %s differ, %d zero" % (
                    path, len(data), len(wanted), len(other), other[:1], other[-1:], sum(data[at] == 0 for at in other)))

    def list(self):
        path = self.one("directory")
        self.account(path)
        there, wanted = sorted(os.listdir(self.mount(path))), sorted(os.listdir(self.mirror(path)))
        if there != wanted:
            raise Wrong("'%s' is listed with %s, expected %s" % (path, there, wanted))

    def stat(self):
        if path := self.one("file"):
            if os.stat(self.mount(path)).st_size != os.stat(self.mirror(path)).st_size:
                raise Wrong("'%s' has another size" % path)

    def evict(self):
        path = self.one(self.choice.choice(["file", "file", "file", "directory"]))
        if path:
            self.account(path)
            try:
                os.setxattr(self.mount(path), "user.yonder.evict", b"1")
            except OSError as error:
                if error.errno not in REFUSALS:
                    raise

    WEIGHTS = {create: 14, rewrite: 8, append: 5, save: 6, rename: 8, remove: 7, make: 4, remove_tree: 2, read: 25, list: 8,
               stat: 5, evict: 25}

    def run(self):
        # Where nothing is listed yet, nothing can be made without the remote.
        while not self.run_.over.is_set():
            try:
                os.mkdir(self.mount(self.top))
                break
            except OSError as error:
                if error.errno not in AWAY:
                    self.run_.complain("%s cannot be made: %s" % (self.top, error))
                time.sleep(0.2)
        os.mkdir(self.mirror(self.top))
        calls, weights = list(self.WEIGHTS), list(self.WEIGHTS.values())
        while not self.run_.over.is_set():
            with self.call:
                self.make_call(self.choice.choices(calls, weights)[0])
            time.sleep(self.choice.random() * 0.1)

    def make_call(self, call):
        self.doing, self.began = call.__name__, time.monotonic()
        result = "done"
        try:
            call(self)
        except OSError as error:
            result = errno.errorcode.get(error.errno, str(error))
            self.account("%s %s failed: %s" % (self.top, self.doing, error))
            if error.errno not in AWAY and not (error.errno == errno.EINTR and self.run_.was_stopped()):
                self.run_.complain("%s: %s failed with %s" % (self.top, self.doing, error))
        except Wrong as wrong:
            self.run_.complain("%s: %s" % (self.top, wrong))
        took, self.began = time.monotonic() - self.began, None
        self.slowest = max(self.slowest, (took, self.doing))
        self.counts[self.doing, result] += 1


class Run:
    def __init__(self, options):
        self.mount, self.mirror, self.seed = options.mount, options.mirror, options.seed
        self.options = options
        self.over = threading.Event()
        self.stopped = -1e9
        self.was_killed = False
        self.complaints = []
        self.logs = FaultLogs("faults-%s-%d" % ("s3" if options.store else "webdav", self.seed))

    def account(self, text):
        self.logs.write(text)

    def complain(self, text):
        self.complaints.append(text)
        self.account("WRONG: " + text)
        print("WRONG: " + text, flush=True)

    def line(self, command):
        with socket.create_connection(("127.0.0.1", self.options.control), 10) as connection:
            connection.sendall((command + "\n").encode())
            return connection.recv(200).decode().strip()

    def kill(self, workers):
        """Kills the daemon while changes are pending and no worker is in a call, and mounts the domain again."""
        while not self.over.is_set():
            with contextlib.ExitStack() as calls:
                for worker in workers:
                    calls.enter_context(worker.call)
                pending = json.loads(self.yonder("pending", self.mount, "--json").stdout or "[]")
                if pending:
                    self.account("kill, with %d pending" % len(pending))
                    print("SIGKILL with %d items pending" % len(pending), flush=True)
                    self.kill_and_mount()
                    self.was_killed = True
                    return
            time.sleep(0.2)

    def kill_and_mount(self):
        domain = next(domain for domain in json.loads(self.yonder("domains", "--json").stdout)
                      if domain["mountpoint"] == self.mount)
        with open(os.path.join(os.environ["YONDER_STATE_DIR"], "yonderd.lock")) as file:
            process = int(file.read())
        with open("/proc/%d/stat" % process) as file:
            keeper = int(file.read().rpartition(")")[2].split()[1])
        with open("/proc/%d/comm" % keeper) as file:
            if file.read() == "yonder-keeper\n":
                os.kill(keeper, signal.SIGKILL)
        os.kill(process, signal.SIGKILL)
        while os.path.exists("/proc/%d/stat" % process):
            time.sleep(0.01)
        mounted = self.yonder("mount", domain["name"], seconds=self.options.limit)
        self.logs.follow(self.options.yonder)
        if mounted.returncode != 0:
            self.complain("it cannot be mounted again: " + mounted.stderr)
            self.give_up()

    def give_up(self):
        self.logs.keep()
        os._exit(1)

    def yonder(self, *words, seconds=900):
        return subprocess.run([self.options.yonder, *words], capture_output=True, text=True, timeout=seconds)

    def disturb(self, choice, end):
        """Makes the line bad again and again, until the end; a third of the time it is good."""
        faults = collections.Counter()
        is_long = self.options.seconds > 200
        while time.monotonic() < end:
            fault = choice.choice(
                ["cut", "cut", "refuse", "reset", "reset", "break %d" % choice.randrange(0, 300_000)]
                + ["page"] * self.options.page)
            self.account("line: " + self.line(fault) + " " + fault)
            faults[fault.split()[0]] += 1
            longest = 45 if is_long and choice.random() < 0.1 else 6
            self.pause(choice.uniform(0.05, longest), end)
            self.account("line: heal " + self.line("heal"))
            if fault == "cut" and choice.random() < 0.5:
                self.line("reset")
            self.pause(choice.uniform(0.5, 5), end)
        self.line("heal")
        return faults

    def pause(self, seconds, end):
        time.sleep(max(0, min(seconds, end - time.monotonic())))

    def was_stopped(self):
        """Whether this process did not run just now: a machine that is stopped and goes on interrupts calls."""
        time.sleep(2)
        return time.monotonic() - self.stopped < 60

    def watch(self, workers):
        while True:
            before = time.monotonic()
            time.sleep(1)
            if time.monotonic() - before > 3:
                self.stopped = time.monotonic()
            for worker in workers:
                began = worker.began
                if began is not None and time.monotonic() - began > self.options.limit:
                    self.complain("%s: %s has taken longer than %d seconds" % (
                        worker.top, worker.doing, self.options.limit))
                    self.give_up()

    # The end.

    def settle(self):
        started = time.monotonic()
        waited = self.yonder("wait", self.mount, "--timeout", "600")
        print("everything was sent after %.1f s" % (time.monotonic() - started), flush=True)
        pending = self.yonder("pending", self.mount).stdout
        if waited.returncode != 0 or pending:
            self.complain("still pending: %s%s" % (waited.stderr, pending))
        conflicts = self.yonder("conflicts", self.mount).stdout
        if conflicts:
            self.complain("conflicts: " + conflicts)
        wanted = tree(self.mirror)
        compare(self.complain, "the mount", tree(self.mount), wanted)
        remote = tree(self.options.folder) if self.options.folder else bucket_tree(self.options.store)
        compare(self.complain, "the remote", remote, wanted)
        if self.yonder("evict", self.mount).returncode != 0:
            self.complain("not everything can be evicted")
        compare(self.complain, "the mount, after everything was evicted,", tree(self.mount), wanted)
        if (signalled := self.yonder("signal", self.mount, "--wait")).returncode != 0:
            self.complain("no news can be had: " + signalled.stderr)
        compare(self.complain, "the mount, after news,", tree(self.mount), wanted)
        print("%d items, %d bytes" % (len(wanted), sum(len(data or b"") for data in wanted.values())), flush=True)

    def run(self):
        print("the seed is %d" % self.seed, flush=True)
        self.logs.follow(self.options.yonder)
        workers = [Worker(self, number) for number in range(4)]
        for worker in workers:
            worker.start()
        threading.Thread(target=self.watch, args=(workers,), daemon=True).start()
        if self.options.kill:
            killer = threading.Timer(self.options.seconds / 2, self.kill, [workers])
            killer.daemon = True
            killer.start()
        end = time.monotonic() + self.options.seconds
        if self.options.quiet_line:
            self.pause(self.options.seconds, end)
            faults = {}
        else:
            faults = self.disturb(random.Random(self.seed), end)
        self.over.set()
        for worker in workers:
            worker.join()
        if self.options.kill:
            killer.join()
            if not self.was_killed:
                self.complain("nothing was pending when the daemon was to be killed")
        counts = sum((worker.counts for worker in workers), collections.Counter())
        for (call, result), count in sorted(counts.items()):
            print("%6d %s: %s" % (count, call, result))
        print("faults: %s; slowest call: %.1f s, %s" % ((dict(faults),) + max(worker.slowest for worker in workers)),
              flush=True)
        done = sum(count for (call, result), count in counts.items() if result == "done")
        if done < 20 or not self.options.quiet_line and sum(faults.values()) < 3:
            self.complain("too little was done to mean anything")
        self.settle()
        if self.complaints:
            self.logs.keep()
        return 1 if self.complaints else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mount")
    parser.add_argument("mirror")
    parser.add_argument("--yonder", required=True)
    parser.add_argument("--control", type=int, required=True)
    parser.add_argument("--folder")
    parser.add_argument("--store")
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--limit", type=float, default=100)
    parser.add_argument("--quiet-line", action="store_true")
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--kill", action="store_true")
    sys.exit(Run(parser.parse_args()).run())


main()
