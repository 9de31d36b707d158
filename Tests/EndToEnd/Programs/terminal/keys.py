"""Runs a program on a terminal of its own, presses keys, and tells how it went as JSON.

usage: keys.py COLUMNS ROWS STEPS COMMAND...

STEPS is a JSON array of pairs: a text to wait for on the screen, and the keys to press then. The result has the exit status, the
screens (what the program wrote each time it began at the top), and whether the terminal is at the end as it was.
"""
import json
import os
import select
import sys
import time

sys.dont_write_bytecode = True

from pseudo import Terminal

columns, rows, steps = int(sys.argv[1]), int(sys.argv[2]), json.loads(sys.argv[3])
terminal = Terminal(sys.argv[4:], columns, rows)
text = b""
deadline = time.monotonic() + 50
while time.monotonic() < deadline:
    if select.select([terminal.master], [], [], 0.05)[0]:
        text += os.read(terminal.master, 65536)
    elif terminal.child.poll() is not None:
        break
    # The last screen, when all of it has come.
    screen = text.rsplit(b"\x1b[H", 1)[-1]
    if steps and screen.endswith(b"\x1b[J") and steps[0][0].encode() in screen:
        os.write(terminal.master, steps.pop(0)[1].encode())
else:
    terminal.child.kill()
status = terminal.child.wait()
screens = [
    screen.split(b"\x1b[J")[0].replace(b"\x1b[K", b"").decode().replace("\r", "").split("\n")
    for screen in text.split(b"\x1b[H")[1:]
]
print(json.dumps(
    {"status": status, "screens": screens, "restored": terminal.is_restored(), "end": text[-16:].decode()}))
