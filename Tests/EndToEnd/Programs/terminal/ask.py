"""Runs a program on a terminal of its own, answers its question, and tells how it went as JSON.

usage: ask.py ANSWER COMMAND...

ANSWER is typed when the program has turned the echo off, or has asked for y or N; TERM sends SIGTERM instead. The result has the
exit status, the text on the terminal, whether a question came, and whether the terminal is at the end as it was.
"""
import fcntl
import json
import os
import select
import signal
import subprocess
import sys
import termios
import time

answer, command = sys.argv[1], sys.argv[2:]
master, slave = os.openpty()
before = termios.tcgetattr(slave)


def take_terminal():
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)


child = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, preexec_fn=take_terminal)
text = b""
asked = False
deadline = time.monotonic() + 50
while time.monotonic() < deadline:
    if select.select([master], [], [], 0.05)[0]:
        text += os.read(master, 4096)
    elif child.poll() is not None:
        break
    elif not asked and (
        text.endswith(b"[y/N] ") or text.endswith(b": ") and not termios.tcgetattr(slave)[3] & termios.ECHO
    ):
        asked = True
        if answer == "TERM":
            child.send_signal(signal.SIGTERM)
        else:
            os.write(master, answer.encode())
else:
    child.kill()
status = child.wait()
# A flag of the kernel says that input waits; a program cannot set it.
pending = getattr(termios, "PENDIN", 0)
after = termios.tcgetattr(slave)
before[3] &= ~pending
after[3] &= ~pending
print(json.dumps({"status": status, "text": text.decode(), "asked": asked, "restored": before == after}))
