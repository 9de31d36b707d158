"""A worker for the tests of yonder-keeper. Usage: worker.py DIRECTORY PLAN.

Writes what it is given to DIRECTORY/NUMBER.json, where NUMBER counts the starts from 0, then executes the plan for this start: PLAN is
a list of texts in JSON, and the last one is for all further starts. A text is a list of words:
ready, last (no worker is to follow), start (see there), store NAME TEXT, remove NAME, alive SECONDS (reports life during that time,
and writes the time of each report to NUMBER.alive), barrier (makes PID.barrier when it is passed), broken, strangers, sleep SECONDS,
exit STATUS, die SIGNAL.
"""

import array
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time


def notify(*lines, descriptors=()):
    raw("\n".join(lines).encode(), descriptors)


def raw(data, descriptors=()):
    address = os.environ["NOTIFY_SOCKET"]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
        sender.sendmsg([data], rights, 0, "\0" + address[1:])


def store(name, text):
    with tempfile.TemporaryFile() as file:
        file.write(text.encode())
        file.flush()
        notify("FDSTORE=1", "FDNAME=" + name, descriptors=[file.fileno()])


def barrier():
    """Returns when the keeper has handled all messages."""
    reading, writing = os.pipe()
    notify("BARRIER=1", descriptors=[writing])
    os.close(writing)
    os.read(reading, 1)
    os.close(reading)


def broken():
    """What a keeper must survive."""
    with open("/dev/null") as null:
        for data in (b"", b"\0", b"FDSTORE=1\nFDNAME=a:b", b"FDSTORE=1\nFDNAME=" + b"n" * 300, b"\xff" * 4000, b"x" * 20000,
                     b"MAINPID=1", b"WATCHDOG_USEC=1"):
            raw(data, [null.fileno()])
        for _ in range(1500):
            notify("FDSTORE=1", "FDNAME=many", descriptors=[null.fileno()])
        raw(b"READY=0", [null.fileno()] * 250)
    notify("FDSTOREREMOVE=1", "FDNAME=many")


def strangers():
    """Another process sends what only the worker may send."""
    code = "import sys; sys.path.insert(0, sys.argv[1]); import worker; worker.store('foreign', 'x'); " \
        "worker.notify('FDSTOREREMOVE=1', 'FDNAME=kept'); worker.notify('WATCHDOG=trigger')"
    subprocess.run([sys.executable, "-c", code, os.path.dirname(os.path.abspath(__file__))], check=True)


def start(directory):
    """Starts a group of two processes, and a process with a session of its own; writes their numbers to DIRECTORY/started."""
    group = subprocess.Popen(["sh", "-c", "sleep 600 & echo $!; wait"], stdout=subprocess.PIPE, preexec_fn=os.setpgrp)
    member = int(group.stdout.readline())
    other = subprocess.Popen(["sleep", "600"], start_new_session=True)
    write(directory, "started", "%d %d %d" % (group.pid, member, other.pid))


def write(directory, name, text):
    """Writes a file that another process finds whole."""
    with open(os.path.join(directory, "new"), "w") as file:
        file.write(text)
    os.rename(os.path.join(directory, "new"), os.path.join(directory, name))


def started_at():
    """When the process was made, in seconds since the machine was started: the interpreter's own start takes longer or shorter."""
    with open("/proc/self/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return int(fields[19]) / os.sysconf("SC_CLK_TCK")


def inherited():
    names = [name for name in os.environ.get("LISTEN_FDNAMES", "").split(":") if name]
    found = []
    for index, name in enumerate(names):
        size = os.fstat(3 + index).st_size
        found.append([name, os.pread(3 + index, size, 0).decode()])
    return found


def main(directory, plan):
    number = len([name for name in os.listdir(directory) if name.endswith(".json")])
    open_numbers = sorted(int(name) for name in os.listdir("/proc/self/fd"))
    report = {
        "pid": os.getpid(), "parent": os.getppid(), "inherited": inherited(), "open": len(open_numbers),
        "isForMe": os.environ.get("LISTEN_PID") == str(os.getpid()), "time": started_at(),
        "watchdog": os.environ.get("WATCHDOG_USEC") if os.environ.get("WATCHDOG_PID") == str(os.getpid()) else None,
        "restarts": os.environ["YONDER_RESTARTS"],
    }
    write(directory, "%d.json" % number, json.dumps(report))
    words = iter(plan[min(number, len(plan) - 1)].split())
    for word in words:
        if word == "ready":
            notify("READY=1", "STATUS=ready")
        elif word == "last":
            notify("STOPPING=1", "X_LAST=1")
        elif word == "start":
            start(directory)
        elif word == "store":
            store(next(words), next(words))
        elif word == "remove":
            notify("FDSTOREREMOVE=1", "FDNAME=" + next(words))
        elif word == "alive":
            end = time.monotonic() + float(next(words))
            while time.monotonic() < end:
                now = time.clock_gettime(time.CLOCK_BOOTTIME)
                notify("WATCHDOG=1")
                write(directory, "%d.alive" % number, repr(now))
                time.sleep(0.05)
        elif word == "barrier":
            barrier()
            open(os.path.join(directory, "%d.barrier" % os.getpid()), "w").close()
        elif word == "broken":
            broken()
        elif word == "strangers":
            strangers()
        elif word == "sleep":
            time.sleep(float(next(words)))
        elif word == "exit":
            sys.exit(int(next(words)))
        elif word == "die":
            os.kill(os.getpid(), getattr(signal, next(words)))


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
