"""Two mounts of one remote on one machine, in which the same tree is changed at once.

usage: two_mounts.py ONE OTHER --yonder PROGRAM (--folder FOLDER | --store URL/BUCKET/PREFIX) [--rounds N] [--seed N]

In each round both do something to the same names at the same time. When both have sent all they had and heard all there
is, they and the remote have to be the same, byte for byte; each text that was written has to be there, whole, under its
name or as a conflict copy, unless the program that replaced it had read it.

With YONDER_FAULT_LOGS, a directory, an account of the rounds is written there. After a failure the log and the databases of
the daemon are copied to it.
"""

import argparse
import errno
import os
import random
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True

from trees import FaultLogs, bucket_tree, compare, tree

PATIENCE = 90


class Run:
    def __init__(self, options):
        self.options = options
        self.mounts = [options.one, options.other]
        self.choice = random.Random(options.seed)
        self.complaints = []
        self.kept = []
        self.serial = 0
        self.lock = threading.Lock()
        self.logs = FaultLogs("two-mounts-%s-%d" % ("s3" if options.store else "webdav", options.seed))

    def complain(self, text):
        self.complaints.append(text)
        self.logs.write("WRONG: " + text)
        print("WRONG: " + text, flush=True)

    def yonder(self, *words):
        return subprocess.run([self.options.yonder, *words], capture_output=True, text=True, timeout=200)

    def text(self, who):
        self.serial += 1
        return "%s wrote this as number %d\n" % ("one" if who == 0 else "other", self.serial) * self.choice.randrange(1, 400)

    def at_once(self, *bodies):
        """Each mount's own work, at the same time."""
        start = threading.Barrier(len(bodies))
        apart = self.choice.choice([1, 2, 3]) if self.options.store else 0
        failures = []

        def work(number, body):
            start.wait()
            # What two write in the same moment a server that checks no conditions cannot keep apart.
            time.sleep(number * apart)
            try:
                body()
            except OSError as error:
                # What the other has just taken away is not there.
                if error.errno not in (errno.ENOENT, errno.ESTALE, errno.EEXIST, errno.ENOTEMPTY):
                    failures.append(error)

        threads = [threading.Thread(target=work, args=pair) for pair in enumerate(bodies)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for failure in failures:
            self.complain("a call failed: %s" % failure)

    def path(self, who, name):
        return os.path.join(self.mounts[who], name)

    def write(self, who, name, text, mode="w"):
        """Expects the text to be kept from now on, and no longer the text that the writer has read."""
        self.logs.write("%d writes %s (%s): %r" % (who, name, mode, text[:40]))
        path = self.path(who, name)
        if mode == "a":
            with open(path, mode) as file:
                file.write(text)
            return
        # Truncated when it is opened, or later: then what is in it is what was opened.
        if self.choice.random() < 0.5:
            seen, version = self.look(path)
            with open(path, "w") as file:
                if self.version(file.fileno()) != version:
                    # It changed between reading and opening: which version was truncated is unknown.
                    seen = None
                file.write(text)
        else:
            with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o644), "r+") as file:
                seen = file.read()
                file.seek(0)
                file.truncate()
                file.write(text)
        with self.lock:
            self.kept = [] if seen is None else [other for other in self.kept if other != seen]
            self.kept.append(text)

    def version(self, place):
        try:
            return os.getxattr(place, "user.yonder.version")
        except OSError:
            return b""

    def look(self, path):
        """What a file holds, None where that cannot be known, and its version."""
        version = self.version(path)
        try:
            with open(path) as file:
                return file.read(), version
        except FileNotFoundError:
            return "", version
        except OSError:
            return None, version

    def remote(self):
        return tree(self.options.folder) if self.options.folder else bucket_tree(self.options.store)

    def settle(self):
        """Waits until the two mounts and the remote are the same."""
        end = time.monotonic() + PATIENCE
        while True:
            for mount in self.mounts:
                for words in (("wait", mount, "--timeout", "60"), ("signal", mount, "--wait")):
                    done = self.yonder(*words)
                    if done.returncode != 0:
                        self.complain("%s: %s" % (" ".join(words), done.stderr))
            try:
                trees = [tree(mount) for mount in self.mounts]
            except OSError as error:
                # What the other has just written is not always readable for a moment, and never for long.
                if error.errno not in (errno.ESTALE, errno.ENOENT) or time.monotonic() > end:
                    raise
                continue
            pending = [self.yonder("pending", mount).stdout for mount in self.mounts]
            if trees[0] == trees[1] and not any(pending) and self.remote() == trees[0]:
                return trees[0]
            if time.monotonic() > end:
                self.complain("they do not come to be the same; pending: %s" % pending)
                compare(self.complain, "the other", trees[1], trees[0])
                compare(self.complain, "the remote", self.remote(), trees[0])
                return trees[0]
            time.sleep(0.2)

    def expect(self, found, what):
        for text in self.kept:
            if text.encode() not in found.values():
                self.complain("%s: what %r says is lost" % (what, text[:40]))

    # Rounds. What was written in them has to be there in the end.

    def both_create(self, name):
        texts = [self.text(0), self.text(1)]
        self.at_once(lambda: self.write(0, name, texts[0]), lambda: self.write(1, name, texts[1]))

    def both_edit(self, name):
        self.write(0, name, self.text(0))
        self.settle()
        self.both_create(name)

    def one_removes(self, name):
        self.write(0, name, self.text(0))
        self.settle()
        text = self.text(1)
        self.kept = []
        self.at_once(lambda: os.unlink(self.path(0, name)), lambda: self.write(1, name, text))

    def one_renames(self, name):
        self.write(0, name, self.text(0))
        self.settle()
        text = self.text(1)
        self.at_once(
            lambda: os.rename(self.path(0, name), self.path(0, name + " renamed")), lambda: self.write(1, name, text))

    def both_rename(self, name):
        text = self.text(0)
        self.write(0, name, text)
        self.settle()
        self.at_once(lambda: os.rename(self.path(0, name), self.path(0, name + " here")),
                     lambda: os.rename(self.path(1, name), self.path(1, name + " there")))

    def both_make_directories(self, name):
        texts = [self.text(0), self.text(1)]

        def make(who):
            os.makedirs(self.path(who, name), exist_ok=True)
            self.write(who, "%s/of %d" % (name, who), texts[who])

        self.at_once(lambda: make(0), lambda: make(1))

    def directory_moves_away(self, name):
        os.mkdir(self.path(0, name))
        self.write(0, name + "/old", self.text(0))
        self.settle()
        text = self.text(1)
        self.at_once(lambda: os.rename(self.path(0, name), self.path(0, name + " moved")),
                     lambda: self.write(1, name + "/new", text))

    ROUNDS = [both_create, both_edit, one_removes, one_renames, both_rename, both_make_directories, directory_moves_away]

    def anything(self, who, names, choice):
        """Some of everything, without a word about what comes of it but that it is the same for both."""
        name = choice.choice(names)
        act = choice.randrange(6)
        if act <= 2:
            self.write(who, name, self.text(who), choice.choice(["w", "a"]))
        elif act == 3:
            os.rename(self.path(who, name), self.path(who, choice.choice(names)))
        elif act == 4:
            os.unlink(self.path(who, name))
        else:
            os.listdir(self.path(who, ""))

    def free_for_all(self, prefix, seconds):
        names = ["%s %d" % (prefix, number) for number in range(6)]
        end = time.monotonic() + seconds
        seeds = [self.choice.random(), self.choice.random()]

        def work(who):
            choice = random.Random(seeds[who])
            while time.monotonic() < end:
                try:
                    self.anything(who, names, choice)
                except OSError as error:
                    if error.errno not in (errno.ENOENT, errno.ESTALE):
                        raise
                time.sleep(choice.random() * 0.3)

        self.at_once(lambda: work(0), lambda: work(1))
        for path, data in self.settle().items():
            lines = set((data or b"").decode().splitlines())
            if any(" wrote this as number " not in line for line in lines):
                self.complain("'%s' has text that neither mount wrote" % path)

    def run(self):
        print("the seed is %d" % self.options.seed, flush=True)
        for mount in self.mounts:
            os.listdir(mount)
        for number in range(self.options.rounds):
            body = self.ROUNDS[number % len(self.ROUNDS)]
            self.kept = []
            self.logs.write("%s %d" % (body.__name__, number))
            body(self, "%s %d" % (body.__name__, number))
            self.expect(self.settle(), body.__name__)
        self.free_for_all("free", self.options.rounds)
        print("%d items in the end" % len(tree(self.mounts[0])), flush=True)
        if self.complaints:
            self.logs.keep()
        return 1 if self.complaints else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("one")
    parser.add_argument("other")
    parser.add_argument("--yonder", required=True)
    parser.add_argument("--folder")
    parser.add_argument("--store")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    sys.exit(Run(parser.parse_args()).run())


main()
