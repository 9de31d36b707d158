"""A line to a server that can be made as bad as lines are: a TCP relay on loopback.

usage: relay.py TO FOLDER [ROUND-TRIP-MS]
FOLDER/relay has its two ports when it listens: the one to connect to, and one that takes commands, a line each, and
answers each with a line:
    delay MS    how long a round trip takes
    cut         nothing passes any more, and neither end is told
    refuse      every connection is reset, and every new one at once
    reset       every connection is reset, once
    break N     connections end after N more bytes of answers, each
    lose WORDS  requests with these methods arrive, and their answers do not
    page        each request is answered by a login page, with status 200
    heal        as in the beginning, but for the delay
    bytes       how many bytes have passed: up, down
Ends with the process that started it. With YONDER_FAULT_LOGS, a directory, it writes there which requests and answers passed.
"""

import asyncio
import os
import re
import socket
import struct
import sys
import time

PAGE = b"<!DOCTYPE html><html><head><title>Welcome</title></head><body><form>Please log in<br></form></body></html>"


class RequestLog:
    """The first lines of requests and answers, as far as they begin a chunk, with the number of their connection."""

    FIRST = {"up": re.compile(rb"[A-Z]+ [^\r\n]* HTTP/1\.1\r\n"), "down": re.compile(rb"HTTP/1\.1 [^\r\n]*\r\n")}

    def __init__(self):
        folder = os.environ.get("YONDER_FAULT_LOGS")
        self.file = open(os.path.join(folder, "requests-%d" % os.getpid()), "w", buffering=1) if folder else None

    def write(self, connection, way, text):
        if self.file:
            self.file.write("%.3f %d %s %s\n" % (time.time(), connection, ">" if way == "up" else "<", text))

    def chunk(self, connection, way, chunk, suffix=""):
        if self.file and (first := self.FIRST[way].match(chunk)):
            self.write(connection, way, first.group().decode(errors="replace").strip() + suffix)


class Line:
    def __init__(self, to, delay):
        self.log = RequestLog()
        self.connections = 0
        self.to, self.delay = to, delay
        self.passes = asyncio.Event()
        self.passes.set()
        self.mode = None
        self.left = None
        self.lost = None
        self.writers = set()
        self.bytes = {"up": 0, "down": 0}

    def reset(self):
        for writer in list(self.writers):
            connection = writer.get_extra_info("socket")
            try:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            except OSError:
                pass
            writer.transport.abort()

    def command(self, words):
        verb = words[0]
        if verb != "bytes":
            self.log.write(0, "up", "line: " + " ".join(words))
        if verb == "delay":
            self.delay = float(words[1]) / 2000
        elif verb == "cut":
            self.passes.clear()
        elif verb in ("refuse", "page"):
            self.mode = verb
            self.reset()
        elif verb == "reset":
            self.reset()
        elif verb == "break":
            self.left = int(words[1])
        elif verb == "lose":
            self.lost = tuple(word.encode() + b" " for word in words[1:])
        elif verb == "heal":
            self.mode = self.left = self.lost = None
            self.passes.set()
        elif verb == "bytes":
            return "%d %d" % (self.bytes["up"], self.bytes["down"])
        else:
            return "unknown: " + verb
        return "done"

    async def carry(self, reader, writer, way, state):
        """Each chunk is late by the delay, and none holds up another."""
        queue = asyncio.Queue(64)
        loop = asyncio.get_running_loop()

        async def deliver():
            passed = 0
            while True:
                due, chunk = await queue.get()
                await asyncio.sleep(max(0, due - loop.time()))
                await self.passes.wait()
                if not chunk:
                    writer.write_eof()
                    return
                if way == "down" and state["isLost"]:
                    self.log.chunk(state["number"], way, chunk, " (lost)")
                    raise ConnectionAbortedError
                if way == "down" and self.left is not None and passed + len(chunk) > self.left:
                    writer.write(chunk[: max(0, self.left - passed)])
                    await writer.drain()
                    self.log.chunk(state["number"], way, chunk, " (broken off)")
                    raise ConnectionAbortedError
                writer.write(chunk)
                await writer.drain()
                self.log.chunk(state["number"], way, chunk)
                passed += len(chunk)
                self.bytes[way] += len(chunk)

        async def take():
            while True:
                chunk = await reader.read(65536)
                if way == "up" and self.lost and chunk.startswith(self.lost):
                    state["isLost"] = True
                await queue.put((loop.time() + self.delay, chunk))
                if not chunk:
                    return

        await asyncio.gather(take(), deliver())

    async def connect(self, reader, writer):
        self.writers.add(writer)
        other = None
        try:
            if self.mode == "refuse":
                return self.reset()
            if self.mode == "page":
                await reader.readuntil(b"\r\n\r\n")
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n"
                             b"Connection: close\r\n\r\n%s" % (len(PAGE), PAGE))
                await writer.drain()
                # An end that comes before all is read would be a reset.
                writer.write_eof()
                while await reader.read(65536):
                    pass
                return
            await asyncio.sleep(2 * self.delay)
            await self.passes.wait()
            back, other = await asyncio.open_connection("127.0.0.1", self.to)
            self.writers.add(other)
            self.connections += 1
            state = {"isLost": False, "number": self.connections}
            async with asyncio.TaskGroup() as group:
                group.create_task(self.carry(reader, other, "up", state))
                group.create_task(self.carry(back, writer, "down", state))
        except* (OSError, asyncio.IncompleteReadError, RuntimeError):
            pass
        finally:
            for one in (writer, other):
                if one is not None:
                    self.writers.discard(one)
                    one.close()

    async def control(self, reader, writer):
        while words := (await reader.readline()).decode().split():
            writer.write((self.command(words) + "\n").encode())
            await writer.drain()
        writer.close()


async def main():
    parent = os.getppid()
    folder = sys.argv[2]
    line = Line(int(sys.argv[1]), float(sys.argv[3] if len(sys.argv) > 3 else 0) / 2000)
    ports = []
    for serve in (line.connect, line.control):
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        ports.append(str(server.sockets[0].getsockname()[1]))
    with open(os.path.join(folder, "relay.new"), "w") as file:
        file.write(" ".join(ports))
    os.rename(os.path.join(folder, "relay.new"), os.path.join(folder, "relay"))
    while os.getppid() == parent:
        await asyncio.sleep(0.5)


asyncio.run(main())
