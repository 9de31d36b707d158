"""Runs a program on a terminal of its own, answers its question, and tells how it went as JSON.

usage: ask.py ANSWER COMMAND...

ANSWER is typed when the program has turned the echo off, or has asked for y or N; TERM sends SIGTERM instead. The result has the
exit status, the text on the terminal, whether a question came, and whether the terminal is at the end as it was.
"""
import json
import os
import select
import signal
import sys
import time

sys.dont_write_bytecode = True

from pseudo import Terminal

answer = sys.argv[1]
terminal = Terminal(sys.argv[2:])
text = b""
asked = False
deadline = time.monotonic() + 50
while time.monotonic() < deadline:
    if select.select([terminal.master], [], [], 0.05)[0]:
        text += os.read(terminal.master, 4096)
    elif terminal.child.poll() is not None:
        break
    elif not asked and (b"[y/N] " in text or text.endswith(b": ") and not terminal.has_echo()):
        asked = True
        if answer == "TERM":
            terminal.child.send_signal(signal.SIGTERM)
        else:
            os.write(terminal.master, answer.encode())
else:
    terminal.child.kill()
status = terminal.child.wait()
print(json.dumps({"status": status, "text": text.decode(), "asked": asked, "restored": terminal.is_restored()}))
