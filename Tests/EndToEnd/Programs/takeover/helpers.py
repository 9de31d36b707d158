"""What the works of unbroken.py share."""

import os
import subprocess


def content(path):
    with open(path, "rb") as file:
        return file.read()


def require(condition, message):
    if not condition:
        raise AssertionError(message)


def refused(code, call, *arguments):
    try:
        call(*arguments)
    except OSError as error:
        require(error.errno == code, f"{call.__name__}{arguments}: {error}")
    else:
        raise AssertionError(f"{call.__name__}{arguments} succeeded")


def run(*words, **options):
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, **options)
    require(done.returncode == 0, f"{words}: {done.stdout[-1000:]}{done.stderr[-1000:]}")
    return done.stdout


def evict(path, *refusals):
    """Evicts an item by its attribute. Returns whether it was done, and not refused for one of these reasons."""
    try:
        os.setxattr(path, "user.yonder.evict", b"1")
    except OSError as error:
        if error.errno in refusals:
            return False
        raise
    return True
