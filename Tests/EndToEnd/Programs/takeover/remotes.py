"""Works of unbroken.py that need the remote."""

import contextlib
import errno
import hashlib
import os
import random
import subprocess
import threading
import time

from helpers import content, evict, refused, require, run


def yonder(*words):
    """Runs the command line and returns its exit status. No command may fail to reach a daemon."""
    done = subprocess.run([os.environ["YONDER"], *words], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    require(
        done.returncode in (0, 1) or "may have been executed" in done.stderr,
        f"{words}: {done.returncode}: {done.stdout[-1000:]}{done.stderr[-1000:]}")
    return done.returncode


def until_evicted(path, attempt):
    """Repeats what is refused because a process has the file open, or the daemon was killed before it closed it."""
    deadline = time.monotonic() + 120
    while not attempt(path):
        state = [os.getxattr(path, f"user.yonder.{name}") for name in ("sync", "content")]
        require(time.monotonic() < deadline, f"{path} cannot be evicted: {state}")
        time.sleep(0.02)


def upload(path):
    """Returns when the remote has the file, also if the daemon is killed meanwhile."""
    try:
        os.setxattr(path, "user.yonder.upload", b"1")
    except OSError as error:
        why = subprocess.run([os.environ["YONDER"], "why", path], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        raise AssertionError(f"{path} is not uploaded: {error}: {why.stdout}{why.stderr}") from error


def evicted(place, ends):
    """Evicts files as soon as they are uploaded, by the attribute and by the command, and reads them again."""
    turn, texts = 0, {}
    while turn == 0 or time.monotonic() < ends:
        turn += 1
        paths = [f"{place}/{(5 * turn + number) % 20}" for number in range(5)]
        for path in paths:
            texts[path] = os.urandom(random.randrange(1, 200_000))
            with open(path, "wb") as file:
                file.write(texts[path])
        for path in paths:
            upload(path)
            if path != paths[0]:
                until_evicted(path, lambda path: evict(path, errno.EINPROGRESS, errno.EBUSY))
            else:
                until_evicted(path, lambda path: yonder("evict", path) == 0)
            require(os.stat(path).st_size == len(texts[path]), "an evicted file has another size")
            require(content(path) == texts[path], "an evicted file has other content")
    for path, text in texts.items():
        require(content(path) == text, "an evicted file has other content in the end")
    return turn


def move(old, new, *command):
    """Runs a command of the trash. Without its answer it may have been carried out, or not."""
    if yonder("trash", *command):
        with contextlib.suppress(FileNotFoundError):
            os.rename(old, new)


def trashed(place, ends):
    """Trashes, restores and deletes files as file managers do, and with the command line."""
    trash, turn = f"{os.path.dirname(place)}/.Trash-{os.getuid()}", 0
    for directory in (trash, f"{trash}/files", f"{trash}/info"):
        os.makedirs(directory, 0o700, exist_ok=True)
    while turn == 0 or time.monotonic() < ends:
        turn += 1
        name = f"file {turn % 7}"
        path, text = f"{place}/{name}", b"text of turn %d" % turn
        there, info = f"{trash}/files/{name}", f"{trash}/info/{name}.trashinfo"
        with open(path, "wb") as file:
            file.write(text)
        if turn % 3:
            with open(info, "x") as file:
                file.write(f"[Trash Info]\nPath=trashed/{name}\nDeletionDate=2026-01-01T00:00:00\n")
            os.rename(path, there)
        else:
            move(path, there, "put", path)
        refused(errno.ENOENT, os.stat, path)
        require(content(there) == text, "a trashed file has other content")
        if turn % 2:
            os.unlink(there)
            if os.path.exists(info):
                os.unlink(info)
            continue
        if turn % 4:
            os.rename(there, path)
        else:
            move(there, path, "restore", there)
        # Who moves a file out of the trash by hand removes what says where it was.
        if os.path.exists(info):
            os.unlink(info)
        refused(errno.ENOENT, os.stat, there)
        require(content(path) == text, "a restored file has other content")
    require(os.listdir(f"{trash}/files") == [], "something stayed in the trash")
    return turn


def acknowledged(place, ends):
    """Four writers, each of whose files has to be there once fsync has returned."""
    written, failures = [{}, {}, {}, {}], []

    def write(number):
        try:
            os.mkdir(f"{place}/{number}")
            while time.monotonic() < ends:
                path = f"{place}/{number}/{len(written[number])}"
                text = os.urandom(random.randrange(50_000))
                with open(path, "xb") as file:
                    file.write(text)
                    file.flush()
                    os.fsync(file.fileno())
                written[number][path] = hashlib.sha256(text).digest()
                time.sleep(random.uniform(0.1, 0.4))
        except BaseException as error:
            failures.append(error)

    writers = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    if failures:
        raise failures[0]
    for number in range(4):
        names = {f"{place}/{number}/{name}" for name in os.listdir(f"{place}/{number}")}
        require(names == set(written[number]), "an acknowledged file is missing")
        for path, digest in written[number].items():
            require(hashlib.sha256(content(path)).digest() == digest, f"{path} differs from what was acknowledged")
    return sum(map(len, written)) // 4


def downloaded(place, ends):
    """Reads a large file while it is downloaded, evicts it, and reads it again."""
    path, turn = f"{os.path.dirname(place)}/large", 0
    while turn == 0 or time.monotonic() < ends:
        turn += 1
        found = run("sha256sum", path).split()[0]
        require(found == os.environ["LARGE"], f"the large file differs: {found}")
        until_evicted(path, lambda path: evict(path, errno.EBUSY))
    return turn
