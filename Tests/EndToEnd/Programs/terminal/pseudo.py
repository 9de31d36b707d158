"""A program on a terminal of its own."""
import fcntl
import os
import struct
import subprocess
import termios


class Terminal:
    def __init__(self, command, columns=0, rows=0):
        self.master, self.slave = os.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self._before = termios.tcgetattr(self.slave)
        self.child = subprocess.Popen(
            command, stdin=self.slave, stdout=self.slave, stderr=self.slave, preexec_fn=self._take)

    def _take(self):
        os.setsid()
        fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)

    def has_echo(self):
        return bool(termios.tcgetattr(self.slave)[3] & termios.ECHO)

    def is_restored(self):
        # A flag of the kernel says that input waits; a program cannot set it.
        pending = getattr(termios, "PENDIN", 0)
        before, after = list(self._before), termios.tcgetattr(self.slave)
        before[3] &= ~pending
        after[3] &= ~pending
        return before == after
