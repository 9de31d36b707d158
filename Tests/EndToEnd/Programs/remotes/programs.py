"""Lets programs that know nothing of Yonder work on the mount of a remote, and looks whether all of it arrives.

usage: programs.py MOUNT SCRATCH --yonder PROGRAM (--folder FOLDER | --store URL/BUCKET/PREFIX) [--files N] [--only WORD,...]

SCRATCH is an empty directory beside. Each program does its work, and `yonder wait` waits for what comes of it; then the
remote has to hold what the mount shows. At the end everything is evicted, and the mount has to be as it was: names, kinds,
every byte, targets of links, modes, and times but for what a server says of a file that was just sent. --files says how
large a source tree is; --only names some of the programs. Symbolic links may stay on this machine.
"""

import argparse
import os
import re
import shutil
import stat
import subprocess
import sys
import time

sys.dont_write_bytecode = True

from trees import LINK, bucket_tree, compare, tree

PROJECT = {
    "part.h": "int part(int);\n",
    "main.c": '#include <stdio.h>\n#include "part.h"\nint main(void) { printf("%d\\n", part(20)); return 0; }\n',
    "Makefile": "OBJECTS := main.o $(patsubst %.c,%.o,$(wildcard part*.c))\nprogram: $(OBJECTS)\n\t$(CC) -o $@ $^\n"
                "%.o: %.c part.h\n\t$(CC) -c -o $@ $<\n",
}

SQLITE = """
for mode in delete wal; do
    sqlite3 $mode.db "PRAGMA journal_mode=$mode; CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT);" > /dev/null
    for n in 1 2 3; do (for m in $(seq 10); do
        sqlite3 -cmd '.timeout 60000' $mode.db "INSERT INTO t (b) VALUES (hex(randomblob(500)));"
    done) & done; wait
    test "$(sqlite3 $mode.db 'SELECT COUNT(*) FROM t; PRAGMA integrity_check;' | tr '\\n' ' ')" = '30 ok '
done
"""

EDITING = """
printf 'first\\nsecond\\n' > text; printf '#!/bin/sh\\necho first\\n' > script; chmod 755 script
sed -i s/first/1st/ text script
vim -u NONE -N -es -c 'set backup writebackup backupcopy=no' -c '%s/second/2nd/' -c wq text
vim -u NONE -N -es -c 'set backupcopy=yes' -c '$s/1st/2nd/' -c wq script
test "$(./script)" = 2nd; test "$(tail -n 1 text)" = 2nd
"""

PYTHON = """
python3 -m venv --without-pip env; mkdir package; echo 'answer = 42' > package/__init__.py
test "$(env/bin/python -c 'import package; print(package.answer)')" = 42
"""


class Run:
    def __init__(self, options):
        self.options = options
        self.complaints = []

    def complain(self, text):
        self.complaints.append(text)
        print("WRONG: " + text, flush=True)

    def yonder(self, *words):
        return subprocess.run([self.options.yonder, *words], capture_output=True, text=True, timeout=1000)

    def shell(self, line, at, *words):
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", line, "bash", *words], cwd=at, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError("%s%s" % (done.stdout[-2000:], done.stderr[-2000:]))
        return done.stdout

    # What the programs work on, and what they do with it.

    def source(self):
        """A tree as sources are: many small files, a few large ones, in directories of all depths, with old times."""
        top = os.path.join(self.options.scratch, "tree")
        if os.path.exists(top):
            return top
        for number in range(self.options.files):
            folder = os.path.join(top, "d%d" % (number % 17), *(["e%d" % (number % 7)] * (number % 4)))
            os.makedirs(folder, exist_ok=True)
            path = os.path.join(folder, "file %d.c" % number)
            with open(path, "wb") as file:
                file.write(b"line %d of many\n" % number * (1 + number * 7919 % (4000 if number % 97 == 0 else 90)))
            os.chmod(path, 0o755 if number % 29 == 0 else 0o644)
            os.utime(path, ns=(0, (1_500_000_000 + number) * 10**9 + number * 1001))
        for folder, _, _ in os.walk(top, topdown=False):
            os.utime(folder, (1_400_000_000, 1_400_000_000))
        return top

    def git(self, at):
        origin = os.path.join(self.options.scratch, "origin")
        self.shell("""
            cp -a "$1" "$2"; cd "$2"; git init -q; git config user.name one; git config user.email one@example.org
            for d in d*; do git add $d; git commit -qm $d; done""", self.options.scratch, self.source(), origin)
        self.shell("""
            git clone -q "$1" work; cd work; git config user.name one; git config user.email one@example.org
            git checkout -qb other; echo more >> "d1/e1/file 1.c"; git mv d2 moved; git commit -qam more
            git checkout -q -; git merge -q other; git gc -q; git fsck --strict; test -z "$(git status --porcelain)"
            """, at, origin)

    def make(self, at):
        for name, text in PROJECT.items():
            with open(os.path.join(at, name), "w") as file:
                file.write(text)
        for number in range(21):
            with open(os.path.join(at, "part%d.c" % number), "w") as file:
                called = "part%d(n) + 1" % (number - 1) if number else "n"
                declared = "int part%d(int);\n" % (number - 1) if number else ""
                name = "part" if number == 20 else "part%d" % number
                file.write('#include "part.h"\n%sint %s(int n) { return %s; }\n' % (declared, name, called))
        self.shell('make -s -j2; test "$(./program)" = 40; test -n "$(make -q && echo done)"', at)
        self.shell('touch part.h; make -s -j2; make -q; mkdir installed; install -m 755 program installed/', at)

    def sqlite(self, at):
        self.shell(SQLITE, at)

    def rsync(self, at):
        copy = ["rsync", "-a", "--itemize-changes", "--modify-window=-1", self.source() + "/", at + "/"]
        subprocess.run(copy, check=True, stdout=subprocess.DEVNULL)
        for when in ["at once", "after everything was sent"]:
            moved = subprocess.run(copy, check=True, capture_output=True, text=True).stdout
            if moved:
                self.complain("rsync moves something again, %s: %s" % (when, moved[:500]))
            self.wait()

    def tar(self, at):
        archive = os.path.join(self.options.scratch, "tree.tar")
        self.shell('tar -cf "$2" -C "$1" .', self.options.scratch, self.source(), archive)
        self.shell('tar -xpf "$1"; tar -df "$1"', at, archive)

    def edit(self, at):
        self.shell(EDITING, at)

    def python(self, at):
        self.shell(PYTHON, at)

    PROGRAMS = {"git": git, "make": make, "sqlite": sqlite, "rsync": rsync, "tar": tar, "edit": edit, "python": python}

    # The end.

    def looks(self, top):
        """Every path with its mode and time; a link's target in their place."""
        found = {}
        for folder, folders, files in os.walk(top):
            for name in folders + files:
                path = os.path.join(folder, name)
                status = os.lstat(path)
                relative = os.path.relpath(path, top)
                if stat.S_ISLNK(status.st_mode):
                    found[relative] = os.readlink(path)
                else:
                    found[relative] = (status.st_mode, status.st_mtime_ns)
        return found

    def without_links(self, found):
        """What a tree has beside links, which a remote may not be able to hold."""
        return {path: data for path, data in found.items() if not (data or b"").startswith(LINK)}

    def remote(self):
        return tree(self.options.folder) if self.options.folder else bucket_tree(self.options.store)

    def wait(self):
        """Waits until all is sent."""
        waited = self.yonder("wait", self.options.mount, "--timeout", "900")
        if waited.returncode != 0:
            self.complain("still pending: " + self.yonder("pending", self.options.mount).stdout[:2000])

    def compare(self):
        self.wait()
        here = tree(self.options.mount)
        wanted = self.without_links(here)
        found = self.remote()
        # Those that the remote cannot hold stay here, and with them the directories that they are in.
        links = [path for path, data in here.items() if path not in wanted and found.get(path) != data]
        compare(self.complain, "the remote", self.without_links(found), wanted)
        before = self.looks(self.options.mount)
        evicted = self.yonder("evict", self.options.mount)
        if evicted.returncode != 0 and not links:
            self.complain("not everything can be evicted: " + evicted.stderr[:500])
        compare(self.complain, "the mount, after everything was evicted,", self.without_links(tree(self.options.mount)), wanted)
        after = self.looks(self.options.mount)
        for path in sorted(set(before) | set(after)):
            if before.get(path) != after.get(path):
                self.complain("'%s' was %s, and is %s" % (path, before.get(path), after.get(path)))
        print("%d items, %d bytes, %d links that stay here" % (
            len(wanted), sum(len(data or b"") for data in wanted.values()), len(links)), flush=True)

    def run(self):
        for name, program in self.PROGRAMS.items():
            if self.options.only and name not in self.options.only.split(","):
                continue
            if not shutil.which({"edit": "vim", "sqlite": "sqlite3", "python": "python3"}.get(name, name)):
                print("%s is not installed" % name)
                continue
            at = os.path.join(self.options.mount, name)
            os.mkdir(at)
            started = time.monotonic()
            try:
                program(self, at)
            except (RuntimeError, OSError, subprocess.CalledProcessError) as error:
                self.complain("%s: %s" % (name, error))
            worked = time.monotonic()
            self.wait()
            print("%s: %.1f s, and %.1f s until all was sent" % (name, worked - started, time.monotonic() - worked), flush=True)
        self.compare()
        return 1 if self.complaints else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mount")
    parser.add_argument("scratch")
    parser.add_argument("--yonder", required=True)
    parser.add_argument("--folder")
    parser.add_argument("--store")
    parser.add_argument("--files", type=int, default=3000)
    parser.add_argument("--only")
    sys.exit(Run(parser.parse_args()).run())


main()
