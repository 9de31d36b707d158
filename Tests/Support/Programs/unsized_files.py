"""A web server on loopback whose index has two files, and that tells the size of one of them only.

usage: unsized_files.py PORTFILE [SECONDS [reset]]
SECONDS is how long the index takes. With `reset`, connections for anything else are reset meanwhile.
"""

import http.server
import os
import socket
import struct
import sys
import threading
import time


is_indexing = threading.Event()


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *arguments):
        pass

    def do_GET(self):
        index = b'<html><body><a href="sized">sized</a> <a href="unsized">unsized</a></body></html>'
        body = index if self.path == "/" else b"content"
        if self.path != "/" and is_indexing.is_set() and sys.argv[3:] == ["reset"]:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
            return os.close(self.connection.detach())
        if self.path == "/" and self.command == "GET" and len(sys.argv) > 2:
            is_indexing.set()
            time.sleep(float(sys.argv[2]))
            is_indexing.clear()
        self.send_response(200)
        self.send_header("Content-Type", "text/html" if self.path == "/" else "text/plain")
        if self.path != "/unsized":
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_HEAD = do_GET


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
with open(sys.argv[1] + ".new", "w") as file:
    file.write(str(server.server_address[1]))
os.rename(sys.argv[1] + ".new", sys.argv[1])
parent = os.getppid()
threading.Thread(target=server.serve_forever, daemon=True).start()
while os.getppid() == parent:
    time.sleep(0.5)
