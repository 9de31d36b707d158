"""Works of unbroken.py that run programs."""

import errno
import os
import random
import tempfile
import time

from helpers import evict, require, run


def copied(place, ends):
    """Copies a tree in, archives it through two pipes, and copies it out. FILES is how many files it has."""
    turn = 0
    with tempfile.TemporaryDirectory() as scratch:
        for number in range(int(os.environ.get("FILES", "200"))):
            directory = f"{scratch}/tree/{number % 10}"
            os.makedirs(directory, exist_ok=True)
            with open(f"{directory}/{number}", "wb") as file:
                file.write(os.urandom(number % 200 * 97))
        while turn == 0 or time.monotonic() < ends:
            turn += 1
            run("cp", "-a", f"{scratch}/tree", f"{place}/in")
            os.mkdir(f"{place}/unpacked")
            run("sh", "-ec", 'tar cC "$1" in | tar xC "$2"', "sh", place, f"{place}/unpacked")
            run("cp", "-a", f"{place}/unpacked/in", f"{scratch}/out")
            run("diff", "-r", f"{scratch}/tree", f"{scratch}/out")
            run("rm", "-r", f"{place}/in", f"{place}/unpacked", f"{scratch}/out")
    return turn


def cloned(place, ends):
    """Commits to a repository, clones it and verifies the clone."""
    environment = os.environ | {
        "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@b"}
    turn = 0
    run("git", "init", "-q", f"{place}/origin", env=environment)
    while turn == 0 or time.monotonic() < ends:
        turn += 1
        for number in range(10):
            with open(f"{place}/origin/{number}", "w") as file:
                file.write(f"{turn} {number}\n" * 50)
        run("git", "-C", f"{place}/origin", "add", "-A", env=environment)
        run("git", "-C", f"{place}/origin", "commit", "-qm", str(turn), env=environment)
        if turn % 5 == 1:
            run("git", "clone", "-q", f"{place}/origin", f"{place}/clone", env=environment)
            run("git", "-C", f"{place}/clone", "fsck", "--full", "--strict", env=environment)
            run("rm", "-rf", f"{place}/clone")
    run("git", "-C", f"{place}/origin", "fsck", "--full", "--strict", env=environment)
    return turn


def verified(place, ends):
    """Writes a file with fio, which reads each block again and compares its checksum."""
    turn = 0
    while turn == 0 or time.monotonic() < ends:
        engine = ["psync", "mmap"][turn % 2]
        turn += 1
        run(
            "fio", "--name=verify", f"--filename={place}/file", "--size=4m", "--rw=randwrite", "--bsrange=4k-64k",
            f"--ioengine={engine}", "--fsync=50", "--verify=sha256", "--verify_fatal=1", "--verify_state_save=0",
            cwd=place)
        os.unlink(f"{place}/file")
    return turn


def listed(place, ends):
    """Lists a tree with ls -R, whose listings are evicted now and then."""
    for number in range(300):
        directory = f"{place}/{number % 10}/{number % 3}"
        os.makedirs(directory, exist_ok=True)
        os.close(os.open(f"{directory}/file {number}", os.O_CREAT | os.O_WRONLY))
    wanted, turn = run("ls", "-R", place), 0
    require(wanted.count("file ") == 300, "the first listing is not complete")
    while turn == 0 or time.monotonic() < ends:
        turn += 1
        if turn % 5 == 0:
            # Refused while something below is uploaded or listed.
            evict(f"{place}/{random.randrange(10)}", errno.EINPROGRESS, errno.EBUSY, errno.ENOTEMPTY)
        require(run("ls", "-R", place) == wanted, "two listings differ")
    return turn
