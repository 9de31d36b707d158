"""Does in a mount what a curious person would, and believes nothing.

usage: visit.py MOUNT [NAME]
Lists, looks at, reads and writes below MOUNT/evil; each step may fail, but only with an errno, and ends within its time: a step that takes
longer is interrupted, as Ctrl-C would. Then the honest file NAME (usually `later`, never read before) must be readable.
Prints a line for each thing that must not be, and exits with 1 when there was one.
"""

import os
import signal
import sys
import time

mount, honest = sys.argv[1], (sys.argv[2:] or ["later"])[0]
evil = os.path.join(mount, "evil")
wrong = []


class Late(Exception):
    pass


def ring(*_):
    raise Late()


signal.signal(signal.SIGALRM, ring)


def attempt(seconds, step, *arguments):
    """Returns what the step returns; None when it failed or took too long."""
    signal.setitimer(signal.ITIMER_REAL, seconds)
    begin = time.monotonic()
    try:
        return step(*arguments)
    except Late:
        return None
    except OSError as error:
        if error.errno is None or error.errno == 107:
            wrong.append(f"{step.__name__} {arguments[0]!r:.80}: {error}")
        return None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        if time.monotonic() - begin > seconds + 5:
            wrong.append(f"{step.__name__} {arguments[0]!r:.80}: cannot be interrupted")


def read(path):
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        data = file.read(1 << 20)
        if len(data) != min(size, 1 << 20):
            wrong.append(f"{path!r:.80} has {size} bytes and gave {len(data)}")
        return data


def write(path):
    with open(path, "wb") as file:
        file.write(b"written here\n")
    return True


def walk(path, depth):
    for name in (attempt(4, os.listdir, path) or [])[:30]:
        inner = os.path.join(path, name)
        found = attempt(2, os.lstat, inner)
        if found is None:
            continue
        if found.st_size < 0 or found.st_size > 1 << 62:
            wrong.append(f"{inner!r:.80} has {found.st_size} bytes")
        if found.st_mode & 0o170000 == 0o040000:
            if depth < 12:
                walk(inner, depth + 1)
        elif found.st_mode & 0o170000 == 0o120000:
            attempt(4, os.readlink, inner)
        else:
            attempt(4, read, inner)


walk(evil, 0)
new = os.path.join(evil, "new")
if attempt(4, write, new):
    if attempt(4, read, new) != b"written here\n":
        wrong.append("what was written here cannot be read")
    attempt(4, os.rename, new, new + "er")
    attempt(4, write, os.path.join(evil, "file"))
    attempt(4, os.unlink, os.path.join(evil, "file"))
if attempt(20, read, os.path.join(mount, honest)) != f"{honest}\n".encode():
    wrong.append(f"the honest file {honest} cannot be read")
print("\n".join(wrong))
sys.exit(bool(wrong))
