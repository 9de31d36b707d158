"""A server for tests, whose answers are as bad as the path says. usage: server.py PORTFILE [CERTIFICATE KEY [VERSION]]

VERSION is the only one of TLS that it speaks, such as TLSv1_1."""

import hashlib
import http.server
import json
import os
import ssl
import sys
import threading
import time
import urllib.parse

CONTENT = bytes((i * 7 + i // 251) % 256 for i in range(1 << 20))
counts = {}
log = []
connections = {"now": 0, "most": 0}
lock = threading.Lock()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def setup(self):
        super().setup()
        with lock:
            connections["now"] += 1
            connections["most"] = max(connections["most"], connections["now"])

    def finish(self):
        with lock:
            connections["now"] -= 1
        try:
            super().finish()
        except OSError:
            pass

    def log_message(self, *arguments):
        pass

    def answer(self, status, body=b"", fields=()):
        self.send_response(status)
        for name, value in fields:
            self.send_header(name, value)
        # A response with 204 has no body: one would be read as the next response.
        if status == 204:
            return self.end_headers()
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def cut(self):
        self.close_connection = True
        self.connection.close()

    def handle_any(self):
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
        length = int(self.headers.get("Content-Length") or 0)
        if query.get("early"):
            self.close_connection = True
            return self.answer(int(query["early"]), b"no", [("Connection", "close")])
        digest, got = hashlib.sha256(), 0
        while got < length:
            piece = self.rfile.read(min(65536, length - got))
            if not piece:
                break
            digest.update(piece)
            got += len(piece)
        with lock:
            counts[url.path] = number = counts.get(url.path, 0) + 1
            log.append({"path": self.path, "method": self.command, "length": got, "whole": got == length,
                        "fields": {k.lower(): v for k, v in self.headers.items()}})
        if got < length:
            return self.cut()
        kind = url.path.strip("/").split("/")[0]
        getattr(self, "do_" + kind.replace("-", "_") + "_page", self.do_echo_page)(query, number, digest.hexdigest())

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = do_MOVE = do_PROPFIND = handle_any

    def do_echo_page(self, query, number, digest):
        body = {"method": self.command, "path": self.path, "digest": digest,
                "fields": {k.lower(): v for k, v in self.headers.items()}}
        self.answer(200, json.dumps(body).encode())

    def do_log_page(self, query, number, digest):
        with lock:
            self.answer(200, json.dumps({"log": log, "most": connections["most"]}).encode())

    def do_status_page(self, query, number, digest):
        """The first `times` requests are answered with `status` and a body of `length` bytes, then with 200."""
        if number > int(query.get("times", "1000000")):
            return self.answer(200, b"at last")
        fields = [("Retry-After", query["after"])] if "after" in query else []
        self.answer(int(query["status"]), b"not now".ljust(int(query.get("length", "0")), b"."), fields)

    def do_cut_page(self, query, number, digest):
        """The first `times` requests get no answer."""
        if number > int(query.get("times", "1000000")):
            return self.answer(200, b"at last")
        self.cut()

    def do_redirect_page(self, query, number, digest):
        self.answer(int(query.get("status", "302")), b"", [("Location", query["to"])])

    def do_stall_page(self, query, number, digest):
        self.send_response(200)
        self.send_header("Content-Length", "10")
        self.end_headers()
        self.wfile.write(b"begin")
        self.wfile.flush()
        time.sleep(float(query.get("seconds", "60")))
        self.wfile.write(b"end..")

    def do_think_page(self, query, number, digest):
        time.sleep(float(query.get("seconds", "60")))
        self.answer(200, b"done")

    def do_drip_page(self, query, number, digest):
        self.send_response(200)
        self.send_header("Content-Length", query["count"])
        self.end_headers()
        for _ in range(int(query["count"])):
            self.wfile.write(b".")
            self.wfile.flush()
            time.sleep(float(query["pause"]))

    def do_nonsense_page(self, query, number, digest):
        """The first `times` requests get what is no response."""
        if number > int(query.get("times", "1000000")):
            return self.answer(200, b"at last")
        self.wfile.write(b"This is not HTTP at all\r\n\r\n")
        self.cut()

    def do_file_page(self, query, number, digest):
        """CONTENT with ranges. cut=N: no more than N bytes an answer, then the connection breaks; times=N: only in the
        first N answers. short=N: no more than N bytes an answer, honestly. whole: ranges mean nothing. more=N: N bytes
        more on either side. changes: another ETag each time. settles: a weak ETag at first. shift: a wrong range.
        star: the length of the whole is not told with a part."""
        start, end, status = 0, len(CONTENT), 200
        asked = self.headers.get("Range")
        if asked and "whole" not in query:
            first, last = asked.split("=")[1].split("-")
            start, end, status = int(first), min(int(last or len(CONTENT)) + 1, len(CONTENT)), 206
            more = int(query.get("more", "0"))
            start, end = max(0, start - more), min(end + more, len(CONTENT))
        if "short" in query:
            end, status = min(end, start + int(query["short"])), 206
        self.send_response(status)
        weak = "W/" if "settles" in query and start == 0 else ""
        self.send_header("ETag", f'"{number}"' if "changes" in query else weak + '"one"')
        if status == 206:
            told = start + int(query.get("shift", "0"))
            total = "*" if "star" in query else len(CONTENT)
            self.send_header("Content-Range", f"bytes {told}-{end - 1}/{total}")
        if "gzip" in query:
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(end - start))
        self.end_headers()
        body = CONTENT[start:end]
        cuts = "cut" in query and number <= int(query.get("times", "1000000"))
        if cuts and len(body) > int(query["cut"]):
            self.wfile.write(body[:int(query["cut"])])
            self.wfile.flush()
            return self.cut()
        self.wfile.write(body)

    def do_xml_page(self, query, number, digest):
        body = b"".join([b'<?xml version="1.0"?><d:many xmlns:d="DAV:">',
                         *(b"<d:one><d:href>/item/%d</d:href></d:one>" % i for i in range(int(query["count"]))),
                         b"<d:last>&amp;</d:last></d:many>"])
        # The first `times` responses end early, correctly as HTTP has it.
        isCut = "length" in query and number <= int(query.get("times", "1000000"))
        self.answer(207, body[:int(query["length"])] if isCut else body)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        pass


def main():
    server = Server(("127.0.0.1", 0), Handler)
    if len(sys.argv) > 3:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[2], sys.argv[3])
        if len(sys.argv) > 4:
            # Old versions sign with SHA-1, which OpenSSL refuses without this.
            context.set_ciphers("ALL:@SECLEVEL=0")
            context.minimum_version = context.maximum_version = ssl.TLSVersion[sys.argv[4]]
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    with open(sys.argv[1] + ".new", "w") as file:
        file.write(str(server.server_address[1]))
    os.rename(sys.argv[1] + ".new", sys.argv[1])
    parent = os.getppid()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    while os.getppid() == parent:
        time.sleep(0.5)


main()
