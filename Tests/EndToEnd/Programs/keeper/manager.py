"""What systemd does for the unit of yonder-keeper. Usage: manager.py DIRECTORY SOCKET PROGRAM [ARGUMENT...].

Listens on SOCKET for the program (`FileDescriptorName=activation`; not where SOCKET is empty), keeps the descriptors that it
stores, and writes each message as a line to DIRECTORY/messages. When the program has ended, the rest of its processes are killed
(`KillMode=mixed`). If DIRECTORY/again exists then, it is removed and the program started again; otherwise this exits with its status.
"""

import array
import os
import select
import signal
import socket
import sys


def start(program, descriptors, address):
    """The program, with the descriptors from number 3 on."""
    names = [name for name, _ in descriptors]
    numbers = [os.dup(number) for _, number in descriptors]

    def prepare():
        high = [os.dup(number) for number in numbers]
        while min(high, default=100) < 3 + len(high):
            high = [os.dup(number) for number in high]
        for index, number in enumerate(high):
            os.dup2(number, 3 + index)
        os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(len(names)), LISTEN_FDNAMES=":".join(names),
                          NOTIFY_SOCKET=address, WATCHDOG_PID=str(os.getpid()), WATCHDOG_USEC="400000")
        os.closerange(3 + len(high), 1000)
        os.execv(program[0], program)

    child = os.fork()
    if child == 0:
        os.setsid()
        prepare()
    for number in numbers:
        os.close(number)
    return child


def main(directory, path, *program):
    address = os.path.join(directory, "notify")
    receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    receiver.bind(address)
    listening = []
    if path:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(path)
        os.chmod(path, 0o600)
        listener.listen(128)
        listening = [("activation", listener.fileno())]
    stored = []
    child = start(program, stored + listening, address)
    signal.signal(signal.SIGTERM, lambda *_: os.kill(child, signal.SIGTERM))
    messages = open(os.path.join(directory, "messages"), "a", buffering=1)

    def receive():
        data, control, _, _ = receiver.recvmsg(4096, 4096)
        lines = dict(line.split("=", 1) for line in data.decode().split("\n") if "=" in line)
        numbers = array.array("i", control[0][2]) if control else []
        if lines.get("FDSTORE") == "1":
            stored.extend((lines["FDNAME"], number) for number in numbers)
        elif lines.get("FDSTOREREMOVE") == "1":
            stored[:] = [entry for entry in stored if entry[0] != lines["FDNAME"]]
        if "WATCHDOG" not in lines or "alive" not in seen:
            messages.write(" ".join(data.decode().split("\n")) + "\n")
        if "WATCHDOG" in lines:
            seen.add("alive")

    seen = set()
    while True:
        while select.select([receiver], [], [], 0.05)[0]:
            receive()
        ended, status = os.waitpid(child, os.WNOHANG)
        if not ended:
            continue
        while select.select([receiver], [], [], 0)[0]:
            receive()
        try:
            os.killpg(child, signal.SIGKILL)
        except ProcessLookupError:
            pass
        messages.write("end %d\n" % os.waitstatus_to_exitcode(status))
        try:
            os.unlink(os.path.join(directory, "again"))
        except FileNotFoundError:
            sys.exit(max(0, os.waitstatus_to_exitcode(status)))
        child = start(program, stored + listening, address)


if __name__ == "__main__":
    main(*sys.argv[1:])
