"""Works in a directory as programs do, and ends with 1 as soon as a call fails or shows what was not written.

usage: unbroken.py DIRECTORY SECONDS [WORK...] [-WORK...]
DIRECTORY is a mount. YONDER in the environment is the command line. LARGE is the SHA-256 of the file DIRECTORY/large, which
the remote has from the beginning.
Each WORK (all, unless some are named, and none with a hyphen) runs in a process of its own until SECONDS have passed, and
then verifies what it left. A test kills the daemon meanwhile: no call may notice.
"""

import ctypes
import errno
import fcntl
import hashlib
import mmap
import multiprocessing
import os
import random
import sqlite3
import sys
import time
import traceback

sys.dont_write_bytecode = True

from helpers import content, refused, require
from programs import cloned, copied, listed, verified
from remotes import acknowledged, downloaded, evicted, trashed

RENAME_NOREPLACE, RENAME_EXCHANGE = 1, 2
AT_SYMLINK_FOLLOW = 0x400
libc = ctypes.CDLL(None, use_errno=True)


def rename(old, new, flags):
    if libc.renameat2(-100, old.encode(), -100, new.encode(), flags):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), old)


def name_file(file, name):
    """Gives a name to a file that was opened with O_TMPFILE."""
    if libc.linkat(-100, f"/proc/self/fd/{file}".encode(), -100, name.encode(), AT_SYMLINK_FOLLOW):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), name)


def names(place, ends):
    """Creates, links, renames, exchanges and removes: each call has one right answer."""
    turn = 0
    while turn == 0 or time.monotonic() < ends:
        turn += 1
        one, two, three = f"{place}/one", f"{place}/two", f"{place}/three"
        text = f"turn {turn}".encode()
        file = os.open(one, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o640)
        os.write(file, text)
        refused(errno.EEXIST, os.open, one, os.O_CREAT | os.O_EXCL | os.O_RDWR)
        os.link(one, two)
        require(os.fstat(file).st_nlink == 2, "a link was not counted")
        os.rename(two, three)
        refused(errno.ENOENT, os.stat, two)
        require(content(three) == text, "a renamed file has other content")
        os.symlink("one", two)
        rename(two, three, RENAME_EXCHANGE)
        require(os.readlink(three) == "one" and content(two) == text, "an exchange was not made once")
        refused(errno.EEXIST, rename, two, three, RENAME_NOREPLACE)
        os.unlink(three)
        os.unlink(one)
        require(os.fstat(file).st_nlink == 1, "a link was removed twice, or not at all")
        os.fchmod(file, 0o600)
        os.truncate(two, 4)
        require(os.fstat(file).st_size == 4 and os.fstat(file).st_mode & 0o777 == 0o600, "attributes were not set")
        os.unlink(two)
        os.close(file)
        os.mkdir(one)
        os.mkdir(f"{one}/below")
        refused(errno.ENOTEMPTY, os.rmdir, one)
        os.rename(f"{one}/below", two)
        os.rmdir(one)
        os.rmdir(two)
        require(os.listdir(place) == [], f"something stayed: {os.listdir(place)}")
    return turn


def nameless(place, ends):
    """Makes files without a name, and names them."""
    turn = 0
    while turn == 0 or time.monotonic() < ends:
        turn += 1
        file = os.open(place, os.O_TMPFILE | os.O_RDWR, 0o600)
        os.write(file, b"nameless")
        name_file(file, f"{place}/named")
        require(content(f"{place}/named") == b"nameless", "a named file has other content")
        os.unlink(f"{place}/named")
        require(os.pread(file, 20, 0) == b"nameless", "an unlinked file lost its content")
        os.close(file)
    return turn


def appended(place, ends):
    """Appends lines, with and without a sync, from one descriptor that stays open."""
    lines = 0
    with open(f"{place}/log", "ab", buffering=0) as log:
        while time.monotonic() < ends:
            log.write(b"line %d\n" % lines)
            lines += 1
            if lines % 16 == 0:
                os.fsync(log.fileno())
            if lines % 64 == 0:
                require(os.fstat(log.fileno()).st_size == os.path.getsize(f"{place}/log"), "two sizes of one file")
    require(content(f"{place}/log") == b"".join(b"line %d\n" % k for k in range(lines)), "the log differs")
    return lines


def mapped(place, ends):
    """Writes through a shared mapping, and reads it through another descriptor."""
    size, turn = 1 << 20, 0
    with open(f"{place}/map", "w+b") as file:
        file.truncate(size)
        with mmap.mmap(file.fileno(), size) as memory:
            while time.monotonic() < ends:
                turn += 1
                at = random.randrange(size - 8)
                memory[at : at + 8] = turn.to_bytes(8, "big")
                if turn % 50 == 0:
                    memory.flush()
                    with open(f"{place}/map", "rb") as other:
                        other.seek(at)
                        require(other.read(8) == turn.to_bytes(8, "big"), "a mapped write is not seen")
                time.sleep(0.001)
            expected = bytes(memory)
    require(content(f"{place}/map") == expected, "the mapped file differs")
    return turn


def held(place, ends):
    """Holds two hundred files open that have no name any more."""
    files, texts = [], []
    for number in range(200):
        file = os.open(f"{place}/{number}", os.O_CREAT | os.O_RDWR, 0o600)
        os.write(file, b"content %d" % number)
        files.append(file)
        texts.append(b"content %d" % number)
    for number in range(200):
        os.unlink(f"{place}/{number}")
    turn = 0
    while turn == 0 or time.monotonic() < ends:
        turn += 1
        number = random.randrange(200)
        require(os.pread(files[number], 100, 0) == texts[number], f"unlinked file {number} differs")
        texts[number] = b"content %d of turn %d" % (number, turn)
        os.ftruncate(files[number], 0)
        os.pwrite(files[number], texts[number], 0)
        require(os.fstat(files[number]).st_size == len(texts[number]), "the size of an unlinked file differs")
    for number in range(200):
        require(os.pread(files[number], 100, 0) == texts[number], f"unlinked file {number} differs in the end")
    require(os.listdir(place) == [], "an unlinked name came back")
    return turn


def inside(place, ends):
    """Works by relative names, in a directory that is renamed, and in one that was removed."""
    os.mkdir(f"{place}/home")
    os.chdir(f"{place}/home")
    turn = 0
    while turn == 0 or time.monotonic() < ends:
        turn += 1
        old, new = (f"{place}/home", f"{place}/moved") if turn % 2 else (f"{place}/moved", f"{place}/home")
        os.rename(old, new)
        require(os.getcwd() == new, f"the working directory is {os.getcwd()}, not {new}")
        with open("file", "w") as file:
            file.write(str(turn))
        require(content("../" + os.path.basename(new) + "/file") == str(turn).encode(), "a relative name differs")
        os.unlink("file")
        time.sleep(0.005)
    os.mkdir("lost")
    os.chdir("lost")
    os.rmdir("../lost")
    require(os.listdir(".") == [], "a removed directory has entries")
    refused(errno.ENOENT, os.open, "x", os.O_CREAT | os.O_WRONLY)
    return turn


def walked(place, ends):
    """Lists a tree again and again, also from the middle of a directory."""
    for directory in range(5):
        os.mkdir(f"{place}/{directory}")
        for number in range(100):
            os.close(os.open(f"{place}/{directory}/file {number:03}", os.O_CREAT | os.O_WRONLY))
    wanted = sorted(f"file {number:03}" for number in range(100))
    turn = 0
    while turn == 0 or time.monotonic() < ends:
        for directory in range(5):
            turn += 1
            found = []
            with os.scandir(f"{place}/{directory}") as entries:
                for entry in entries:
                    found.append(entry.name)
                    if len(found) % 30 == 0:
                        time.sleep(0.01)
            require(sorted(found) == wanted, f"listing {directory} has {len(found)} entries")
            os.stat(f"{place}/{directory}/file {turn % 100:03}")
    return turn


def locked(place, ends):
    """Holds a lock that another process asks for."""
    path = f"{place}/lock"
    holder = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    fcntl.lockf(holder, fcntl.LOCK_EX)
    turn = 0
    while turn == 0 or time.monotonic() < ends:
        turn += 1
        child = os.fork()
        if child == 0:
            other = os.open(path, os.O_RDWR)
            try:
                fcntl.lockf(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os._exit(1)
            except BlockingIOError:
                os._exit(0)
        require(os.waitpid(child, 0)[1] == 0, "a lock was lost")
        time.sleep(0.02)
    return turn


def recorded(place, ends):
    """Commits to a database of SQLite."""
    database = sqlite3.connect(f"{place}/db", timeout=60, isolation_level=None)
    database.execute("CREATE TABLE fact (number INTEGER PRIMARY KEY, text TEXT)")
    turn = 0
    while turn == 0 or time.monotonic() < ends:
        turn += 1
        database.execute("INSERT INTO fact VALUES (?, ?)", (turn, "x" * (turn % 2000)))
    require(database.execute("PRAGMA integrity_check").fetchone() == ("ok",), "the database is damaged")
    require(database.execute("SELECT COUNT(*), MAX(number) FROM fact").fetchone() == (turn, turn), "a commit was lost")
    return turn


def saved(place, ends):
    """Saves a file as editors do, and closes many small files."""
    turn = 0
    while turn == 0 or time.monotonic() < ends:
        turn += 1
        text = hashlib.sha256(str(turn).encode()).hexdigest().encode()
        with open(f"{place}/.file.tmp", "wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.rename(f"{place}/.file.tmp", f"{place}/file")
        with open(f"{place}/small {turn % 50}", "wb") as file:
            file.write(text)
        require(content(f"{place}/file") == text and content(f"{place}/small {turn % 50}") == text, "a saved file differs")
    return turn


WORKS = [
    names, nameless, appended, mapped, held, inside, walked, locked, recorded, saved, copied, cloned,
    verified, listed, evicted, trashed, acknowledged, downloaded]


def perform(work, place, ends, results):
    try:
        results.put((work.__name__, work(place, ends), None))
    except BaseException:
        try:
            there = sorted(os.listdir(place))
        except OSError as error:
            there = error
        results.put((work.__name__, 0, f"{traceback.format_exc()}in the directory: {there}"))


def main():
    directory, seconds, chosen = sys.argv[1], float(sys.argv[2]), sys.argv[3:]
    wanted = {name for name in chosen if name[0] != "-"} or {work.__name__ for work in WORKS}
    works = [work for work in WORKS if work.__name__ in wanted and f"-{work.__name__}" not in chosen]
    results = multiprocessing.Queue()
    ends = time.monotonic() + seconds
    processes = []
    for work in works:
        place = f"{directory}/{work.__name__}"
        os.mkdir(place)
        process = multiprocessing.Process(target=perform, args=(work, place, ends, results), daemon=True)
        process.start()
        processes.append(process)
    failures = 0
    for _ in works:
        name, turns, failure = results.get(timeout=seconds + 240)
        print(f"{name}: {turns} turns" if failure is None else f"{name}: {failure}", flush=True)
        # A work that did nothing has proved nothing.
        failures += failure is not None or turns < 1
    sys.exit(1 if failures else 0)


main()
