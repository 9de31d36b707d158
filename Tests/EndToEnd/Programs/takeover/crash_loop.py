"""Uses a mount while its daemon crashes in a loop, and ends with 1 as soon as a call differs from what is promised.

usage: crash_loop.py DIRECTORY FLAG DAEMON YONDER
As long as the file FLAG exists, the daemon ends at its start. DAEMON is the process to kill, YONDER the command line.
"""

import errno
import os
import signal
import subprocess
import sys
import time

directory, flag, daemon, yonder = sys.argv[1:]


def outcome(call, *arguments):
    try:
        call(*arguments)
    except OSError as error:
        return error.errno
    return 0


def wait_for(expected, call, *arguments):
    deadline = time.monotonic() + 30
    while (found := outcome(call, *arguments)) != expected:
        assert time.monotonic() < deadline, f"{call.__name__}{arguments}: {found} and not {expected}"
        time.sleep(0.05)


held = os.open(f"{directory}/held", os.O_CREAT | os.O_RDWR)
closed = os.open(f"{directory}/closed", os.O_CREAT | os.O_RDWR)
written = os.open(f"{directory}/written", os.O_CREAT | os.O_WRONLY)
for file in (held, closed, written):
    os.write(file, b"before")
os.unlink(f"{directory}/held")
os.unlink(f"{directory}/closed")

open(flag, "w").close()
os.kill(int(daemon), signal.SIGKILL)
# A call that the daemon had received before it ended would wait for the next one.
while os.path.exists(f"/proc/{daemon}"):
    time.sleep(0.01)
wait_for(errno.EIO, os.mkdir, f"{directory}/new")
os.close(closed)
os.close(written)
if os.environ.get("HAS_PASSTHROUGH"):
    assert os.pread(held, 10, 0) == b"before", "a file that the kernel reads itself does not go on"
status = subprocess.run([yonder, "status"], capture_output=True, text=True, timeout=20)
assert status.returncode == 69 and "crashed" in status.stderr and "EIO" in status.stderr, f"{status}"
os.unlink(flag)
wait_for(0, os.stat, f"{directory}/written")
assert outcome(os.mkdir, f"{directory}/new") in (0, errno.EEXIST)
assert os.pread(held, 10, 0) == b"before", "an open file lost its content"
with open(f"{directory}/written", "rb") as file:
    assert file.read() == b"before"
os.close(held)
