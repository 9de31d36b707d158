"""A few names that two clients of one remote, and sometimes a third, restructure without hearing of each other.

usage: two_clients.py ONE OTHER PLAIN --yonder PROGRAM (--folder FOLDER | --store URL/BUCKET/PREFIX)
                      [--seed N] [--seconds N] [--kill] [--coarse] [--no-links]

Each sequence has a seed, the first one as given, and a directory of its own. Both mounts begin it with the same items. While
one domain or both are paused, calls are made in both, and in a plain directory for each, where they have to end in the same
way; with a folder, calls are sometimes made in it as well. Then the domains are resumed, one after the other or at once. With
--kill the daemon is killed in between. With --coarse no content is replaced by another of the same length, because dates of whole
seconds do not show that, and only one of them sends at a time (SFTP). With --no-links there are no symbolic links: where the remote has none they stay on the
machine (WebDAV).

In the end both mounts and the remote have to be the same. What a client wrote has to be in them, whole, under some name; so
does what was there before, unless a client replaced or removed it. Each of these has a text of its own.

With YONDER_FAULT_LOGS, a directory, an account of the calls is written there. After a failure the log and the databases of
the daemon are copied to it.
"""

import argparse
import os
import random
import shutil
import sys
import time

sys.dont_write_bytecode = True

from restructurings import ALONE, PATIENCE, PLACES, WITH_DATA, WITH_OTHER, Calls, Failure, Run, common_options
from trees import bucket_tree, compare, tree

# What is shorter may be in two places: it was truncated.
SHORTEST = 8


class Client:
    """One that makes calls, and what it knows: a plain directory in which it makes the same ones."""

    def __init__(self, name, places):
        self.name = name
        self.places = [Calls(place) for place in places]
        self.before = contents(self.places[0].top)

    def kept(self):
        """What it has written, and what it has left of what was there."""
        return contents(self.places[0].top)


def contents(top):
    return {data for data in tree(top).values() if data and len(data) >= SHORTEST}


class TwoClients(Run):
    called = "two-clients"
    may_conflict = True

    def __init__(self, options):
        super().__init__(options)
        self.mounts = [options.one, options.other]
        self.names = WITH_DATA + WITH_OTHER + ALONE + ([] if options.no_links else ["link", "link"])
        if options.coarse:
            self.names = [name for name in self.names if name != "change"]

    def data(self, choice):
        # Of a length of its own, and with a beginning of its own, which `change` writes over another one.
        self.serial += 1
        return b"%04d is the content\n" % self.serial * choice.choice([1, 1, 1, 1500]) + b"." * (self.serial % 977)

    def step(self, choice, client):
        name = choice.choice(self.names)
        # A conflict copy is not copied once more: what both have changed of one waits for the user.
        there = sorted(path for path in tree(client.places[0].top) if "conflicted copy" not in path)
        words = [choice.choice(there if there and choice.random() < 0.7 else PLACES)]
        if name in WITH_DATA:
            words.append(self.data(choice))
        elif name in WITH_OTHER:
            words.append(choice.choice(there if there and choice.random() < 0.5 else PLACES))
        elif name == "link":
            self.serial += 1
            words.append("target %04d" % self.serial + "." * (self.serial % 97))
        return self.call(name, words, client.places, client.name)

    def remote(self, top):
        if self.options.folder:
            return tree(os.path.join(self.options.folder, top))
        return bucket_tree(self.options.store + "/" + top)

    def settle_both(self, top):
        """Waits until both mounts and the remote are the same, and gives what they have."""
        end = time.monotonic() + PATIENCE
        while True:
            for mount in self.mounts:
                self.yonder("wait", mount, "--timeout", str(PATIENCE))
                self.yonder("signal", mount, "--wait")
            try:
                trees = [tree(os.path.join(mount, top)) for mount in self.mounts] + [self.remote(top)]
            except OSError:
                # What the other has just replaced is not always readable for a moment, and never for long.
                if time.monotonic() > end:
                    raise
                continue
            pending = [self.yonder("pending", mount) for mount in self.mounts]
            if trees[0] == trees[1] == trees[2] and not any(pending):
                return trees[0]
            if time.monotonic() > end:
                self.complain("they do not come to be the same; pending: %s" % pending)
                compare(self.complain, "the other", trees[1], trees[0])
                compare(self.complain, "the remote", trees[2], trees[0])
                return trees[0]
            time.sleep(0.2)

    def clients(self, choice, top, has_third):
        found = []
        for who, mount in zip(["one", "other"], self.mounts):
            plain = os.path.join(self.options.plain, who, top)
            shutil.copytree(os.path.join(self.options.folder or mount, top), plain, symlinks=True,
                            ignore=shutil.ignore_patterns(".DAV"))
            found.append(Client(who, [plain, os.path.join(mount, top)]))
        if has_third:
            found.append(Client("third", [os.path.join(self.options.folder, top)]))
        return found

    def sequence(self, seed):
        choice = random.Random(seed)
        top = "sequence-%d" % seed
        self.account = []
        begins = Client("begins", [os.path.join(self.options.plain, top), os.path.join(self.options.one, top)])
        for place in begins.places:
            os.mkdir(place.top)
        for _ in range(choice.randrange(4, 20)):
            self.step(choice, begins)
        before = len(self.complaints)
        try:
            self.settle_both(top)
            for _ in range(choice.choice([1, 1, 2])):
                self.round(choice, top)
        except Failure as failure:
            self.complain(str(failure))
            for mount in self.mounts:
                self.complain(self.yonder("pending", mount))
        if len(self.complaints) > before:
            print("sequence %d was:\n  %s" % (seed, "\n  ".join(self.account)), flush=True)

    def round(self, choice, top):
        # What is live hears of nothing: the other one is paused.
        live = choice.choice([None, None, 0, 1])
        clients = self.clients(choice, top, live is None and self.options.folder and choice.random() < 0.4)
        if live is not None and choice.random() < 0.4:
            self.note("evicted")
            self.yonder("evict", os.path.join(self.mounts[live], top))
        for who in [0, 1]:
            if who != live:
                self.note("%s paused" % clients[who].name)
                self.yonder("pause", self.mounts[who])
        count = choice.randrange(2, 16)
        kills = choice.randrange(2 * count) if self.options.kill else -1
        for number in range(count):
            client = choice.choice(clients)
            while not self.step(choice, client):
                pass
            if number == kills:
                self.kill()
            if live is not None and choice.random() < 0.2:
                time.sleep(choice.random() * 0.5)
        paused = [who for who in [0, 1] if who != live]
        choice.shuffle(paused)
        for who in paused:
            if self.options.coarse and (live is not None or who != paused[0]):
                # Such a server checks no conditions: what both write in the same moment may be lost.
                self.yonder("wait", self.mounts[1 - who], "--timeout", str(PATIENCE))
            self.note("%s resumed" % clients[who].name)
            self.yonder("resume", self.mounts[who])
            if choice.random() < 0.4:
                self.yonder("wait", self.mounts[who], "--timeout", str(PATIENCE))
            elif choice.random() < 0.5:
                time.sleep(choice.random() * 0.5)
            if self.options.kill and choice.random() < 0.1:
                self.kill()
        self.note("settled")
        found = self.settle_both(top)
        gone = set.union(*(client.before - client.kept() for client in clients))
        for data in set.union(*(client.kept() for client in clients)) - gone:
            if data not in found.values():
                self.complain("%r is lost" % data[:30])
        for client in clients[:2]:
            shutil.rmtree(client.places[0].top)


def main():
    parser = argparse.ArgumentParser(parents=[common_options()])
    parser.add_argument("one")
    parser.add_argument("other")
    parser.add_argument("plain")
    parser.add_argument("--coarse", action="store_true")
    parser.add_argument("--no-links", action="store_true")
    return TwoClients(parser.parse_args()).run()


if __name__ == "__main__":
    sys.exit(main())
