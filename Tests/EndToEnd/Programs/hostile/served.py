"""What both hostile servers share: a listener that a test finds, and the raw answers of a server that breaks HTTP."""

import http.server
import os
import re
import sys
import threading
import time

BIG = 1 << 20


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def body(self):
        """Reads the request's body, of a stated length or in chunks."""
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            parts = []
            while size := int(self.rfile.readline().split(b";")[0] or b"0", 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def answer(self, status, body=b"", fields=(), length=None):
        """Sends a whole answer. A `length` other than the body's is a lie, after which the connection is closed."""
        self.send_response(status)
        for name, value in fields:
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
        if length is not None and str(length) != str(len(body)):
            self.close_connection = True

    def raw(self, *pieces, pause=0.0):
        """Sends bytes as they are, then closes the connection. An endless generator ends when the client leaves."""
        self.close_connection = True
        for piece in pieces:
            for part in piece if not isinstance(piece, bytes) else (piece,):
                self.wfile.write(part)
                self.wfile.flush()
                if pause:
                    time.sleep(pause)

    # Answers to ranged reads of a file of 8 * BIG bytes with ETag "one"

    def range(self):
        found = re.match(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        return (int(found[1]), int(found[2] or 8 * BIG - 1)) if found else (0, 8 * BIG - 1)

    def part(self, data, content_range):
        self.answer(206, data, [("ETag", '"one"'), *([("Content-Range", content_range)] if content_range else [])])

    def range_one_byte(self):
        first, _ = self.range()
        self.part(b"x", f"bytes {first}-{first}/{8 * BIG}")

    def range_wrong(self):
        first, last = self.range()
        self.part(b"x" * (last - first + 1), f"bytes {first + 7}-{last + 7}/{8 * BIG}")

    def range_other_total(self):
        first, last = self.range()
        self.part(b"x" * (last - first + 1), f"bytes {first}-{last}/{2**63}")

    def range_no_field(self):
        first, last = self.range()
        self.part(b"x" * (last - first + 1), None)

    def range_ignored(self):
        self.answer(200, b"x" * (8 * BIG), [("ETag", '"one"')])

    def finish(self):
        try:
            super().finish()
        except OSError:
            pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


def drip(data, seconds):
    """Yields single bytes with a pause after each."""
    for index in range(len(data)):
        yield data[index:index + 1]
        time.sleep(seconds)


def serve(handler, scenarios):
    """Listens on loopback. FILE, the first argument, then has the port, FILE.scenarios the names, a line each.

    It ends with the process that started it.
    """
    server = Server(("127.0.0.1", 0), handler)
    handler.port = server.server_port
    with open(sys.argv[1] + ".scenarios", "w") as names:
        names.write("\n".join(scenarios))
    with open(sys.argv[1] + ".new", "w") as port:
        port.write(str(server.server_port))
    os.rename(sys.argv[1] + ".new", sys.argv[1])
    parent = os.getppid()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    while os.getppid() == parent:
        time.sleep(0.5)
