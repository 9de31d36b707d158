"""A few names that are made, renamed, exchanged, replaced and removed in random order, in a mount and in a plain directory.

usage: restructurings.py MOUNT PLAIN --yonder PROGRAM (--folder FOLDER | --store URL/BUCKET/PREFIX)
                         [--seed N] [--seconds N] [--kill]

Each sequence has a seed, the first one as given, and a directory of its own, with content that has arrived. While the domain is paused, or while its changes are
sent, the same calls are made in both places and have to end in the same way. With --kill the daemon is killed in between; its
mount has to outlive it. When all is sent, the plain directory, the mount and the remote have to be the same, and there has to
be no conflict copy: only one client changes anything.

With YONDER_FAULT_LOGS, a directory, an account of the calls is written there. After a failure the log and the databases of
the daemon are copied to it.
"""

import argparse
import ctypes
import errno
import os
import random
import shutil
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True

from trees import FaultLogs, bucket_tree, compare, tree

PATIENCE = 90
NAMES = ["a", "b", "c"]
# Every path of at most three names: few enough that the calls meet.
PLACES = [*NAMES, *("%s/%s" % (x, y) for x in NAMES for y in NAMES), "a/b/c", "b/a/c", "c/c/a"]
EXCHANGE = 2


class Failure(Exception):
    pass


class Calls:
    """The calls, below one directory."""

    libc = ctypes.CDLL(None, use_errno=True)

    def __init__(self, top):
        self.top = top

    def at(self, name):
        return os.path.join(self.top, name)

    def make(self, name):
        os.mkdir(self.at(name))

    def write(self, name, data):
        with open(self.at(name), "wb") as file:
            file.write(data)

    def append(self, name, data):
        with open(self.at(name), "ab") as file:
            file.write(data)

    def change(self, name, data):
        """The same length, another beginning."""
        with open(self.at(name), "r+b") as file:
            file.write(data[:4])

    def save(self, name, data):
        """As editors do."""
        self.write(name + ".new", data)
        os.rename(self.at(name + ".new"), self.at(name))

    def truncate(self, name):
        os.truncate(self.at(name), 3)

    def rename(self, name, other):
        os.rename(self.at(name), self.at(other))

    def exchange(self, name, other):
        if self.libc.renameat2(-100, os.fsencode(self.at(name)), -100, os.fsencode(self.at(other)), EXCHANGE) != 0:
            raise OSError(ctypes.get_errno(), "exchange")

    def rotate(self, name, other):
        """The second takes the place of the first, and the first goes below it or becomes it."""
        os.rename(self.at(name), self.at("away"))
        os.rename(self.at(other), self.at(name))
        os.rename(self.at("away"), self.at(other))

    def refill(self, name, other):
        """What was there goes below a new directory of its name."""
        os.rename(self.at(name), self.at("away"))
        os.mkdir(self.at(name))
        os.rename(self.at("away"), self.at(name + "/" + other.split("/")[-1]))

    def link(self, name, target):
        os.symlink(target, self.at(name))

    def unlink(self, name):
        os.unlink(self.at(name))

    def rmdir(self, name):
        os.rmdir(self.at(name))

    def remove(self, name):
        os.lstat(self.at(name))
        shutil.rmtree(self.at(name))

    def remake(self, name):
        """Gone, and there again at once, with nothing in it."""
        shutil.rmtree(self.at(name))
        os.mkdir(self.at(name))


WITH_DATA = ["write", "write", "append", "change", "save"]
WITH_OTHER = ["rename", "rename", "rename", "exchange", "rotate", "refill"]
ALONE = ["make", "make", "truncate", "unlink", "rmdir", "remove", "remake"]


class Run:
    called = "restructurings"
    may_conflict = False

    def __init__(self, options):
        self.options = options
        self.complaints = []
        self.account = []
        self.serial = 0
        self.logs = FaultLogs("%s-%s-%d" % (self.called, "s3" if options.store else "folder", options.seed))

    def complain(self, text):
        self.complaints.append(text)
        self.logs.write("WRONG: " + text)
        print("WRONG: " + text, flush=True)

    def note(self, text):
        self.account.append(text)
        self.logs.write(text)

    def yonder(self, *words):
        done = subprocess.run([self.options.yonder, *words], capture_output=True, text=True, timeout=200)
        if done.returncode != 0:
            raise Failure("yonder %s: %s" % (" ".join(words), done.stderr.strip() or done.stdout.strip()))
        return done.stdout

    def settle(self):
        self.yonder("wait", self.options.mount, "--timeout", str(PATIENCE))

    def data(self, choice):
        self.serial += 1
        return b"content %d\n" % self.serial * choice.choice([1, 1, 1, 30000])

    def kill(self):
        lock = os.path.join(os.environ["YONDER_STATE_DIR"], "yonderd.lock")
        with open(lock) as file:
            daemon = int(file.read())
        self.note("kill -9")
        os.kill(daemon, signal.SIGKILL)

    def step(self, choice, places):
        name = choice.choice(WITH_DATA + WITH_OTHER + ALONE)
        there = sorted(tree(places[0].top))
        words = [choice.choice(there if there and choice.random() < 0.7 else PLACES)]
        if name in WITH_DATA:
            words.append(self.data(choice))
        elif name in WITH_OTHER:
            words.append(choice.choice(there if there and choice.random() < 0.5 else PLACES))
        return self.call(name, words, places)

    def call(self, name, words, places, who=None):
        """Makes a call in all places. Says whether it succeeded."""
        ends = []
        for calls in places:
            try:
                getattr(calls, name)(*words)
                ends.append("done")
            except OSError as error:
                ends.append(errno.errorcode.get(error.errno, str(error)))
        said = "%s %s: %s" % (name, " ".join(word if isinstance(word, str) else repr(word[:12]) for word in words), ends[0])
        if who:
            said = "%s: %s" % (who, said)
        # What fails halfway does so in both places.
        if ends[-1] != ends[0]:
            self.complain("%s in a directory, %s in the mount" % (said, ends[-1]))
        if ends[0] == "done" or name in ("rotate", "refill"):
            self.note(said)
        return ends[0] == "done"

    def steps(self, choice, places, count):
        """Makes calls until so many have succeeded. Gives the number of each."""
        done = 0
        while done < count:
            if self.step(choice, places):
                done += 1
                yield done

    def sequence(self, seed):
        choice = random.Random(seed)
        top = "sequence-%d" % seed
        places = [Calls(os.path.join(self.options.plain, top)), Calls(os.path.join(self.options.mount, top))]
        self.account = []
        for calls in places:
            os.mkdir(calls.top)
        list(self.steps(choice, places, choice.randrange(3, 16)))
        self.note("settled")
        self.settle()
        if choice.random() < 0.4:
            time.sleep(choice.random() * 3)
        for _ in range(choice.choice([1, 1, 2])):
            pauses = choice.random() < 0.6
            if pauses:
                self.note("paused")
                self.yonder("pause", self.options.mount)
            kills = choice.randrange(12) if self.options.kill else -1
            for done in self.steps(choice, places, choice.randrange(2, 12)):
                if done == kills:
                    self.kill()
                if not pauses and choice.random() < 0.3:
                    time.sleep(choice.random() * 0.5)
            if pauses:
                self.note("resumed")
                self.yonder("resume", self.options.mount)
            elif choice.random() < 0.3:
                time.sleep(choice.random() * 0.2)
        before = len(self.complaints)
        try:
            self.settle()
        except Failure as failure:
            self.complain(str(failure))
            self.complain(self.yonder("pending", self.options.mount))
        wanted = tree(places[0].top)
        compare(self.complain, "the mount", tree(places[1].top), wanted)
        if self.options.folder:
            compare(self.complain, "the remote", tree(os.path.join(self.options.folder, top)), wanted)
        else:
            compare(self.complain, "the remote", bucket_tree(self.options.store + "/" + top), wanted)
        if len(self.complaints) > before:
            print("sequence %d was:\n  %s" % (seed, "\n  ".join(self.account)), flush=True)

    def run(self):
        end = time.monotonic() + self.options.seconds
        seed = self.options.seed
        while not self.complaints and time.monotonic() < end:
            self.sequence(seed)
            seed += 1
        print("%d sequences from seed %d" % (seed - self.options.seed, self.options.seed), flush=True)
        conflicts = self.yonder("conflicts")
        if conflicts and not self.may_conflict:
            self.complain("conflicts: " + conflicts)
        if self.complaints:
            self.logs.keep()
        return 1 if self.complaints else 0


def common_options():
    """What all runs are told besides the directories."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--yonder", required=True)
    parser.add_argument("--folder")
    parser.add_argument("--store")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--kill", action="store_true")
    return parser


def main():
    parser = argparse.ArgumentParser(parents=[common_options()])
    parser.add_argument("mount")
    parser.add_argument("plain")
    return Run(parser.parse_args()).run()


if __name__ == "__main__":
    sys.exit(main())
