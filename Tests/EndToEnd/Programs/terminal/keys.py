"""Runs a program on a terminal of its own, presses keys, and tells how it went as JSON.

usage: keys.py COLUMNS ROWS STEPS COMMAND...

STEPS is a JSON array of pairs: a text to wait for on the screen, and the keys to press then. The result has the exit status, the
screens (what the program wrote each time it began at the top), and whether the terminal is at the end as it was.
"""
import fcntl
import json
import os
import select
import struct
import subprocess
import sys
import termios
import time

columns, rows, steps = int(sys.argv[1]), int(sys.argv[2]), json.loads(sys.argv[3])
command = sys.argv[4:]
master, slave = os.openpty()
fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
before = termios.tcgetattr(slave)


def take_terminal():
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)


child = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, preexec_fn=take_terminal)
text = b""
deadline = time.monotonic() + 50
while time.monotonic() < deadline:
    if select.select([master], [], [], 0.05)[0]:
        text += os.read(master, 65536)
    elif child.poll() is not None:
        break
    # The last screen, when all of it has come.
    screen = text.rsplit(b"\x1b[H", 1)[-1]
    if steps and screen.endswith(b"\x1b[J") and steps[0][0].encode() in screen:
        os.write(master, steps.pop(0)[1].encode())
else:
    child.kill()
status = child.wait()
# A flag of the kernel says that input waits; a program cannot set it.
pending = getattr(termios, "PENDIN", 0)
after = termios.tcgetattr(slave)
before[3] &= ~pending
after[3] &= ~pending
screens = [
    screen.split(b"\x1b[J")[0].replace(b"\x1b[K", b"").decode().replace("\r", "").split("\n") for screen in text.split(b"\x1b[H")[1:]
]
print(json.dumps({"status": status, "screens": screens, "restored": before == after, "end": text[-16:].decode()}))
