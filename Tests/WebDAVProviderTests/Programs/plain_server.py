"""A plain WebDAV server in memory that does one thing or another that servers of other makes do.

usage: plain_server FILE [HABIT...]
FILE has the port as soon as it listens.
HABITs:
  close       says `Connection: close` in every answer, and closes
  http10      speaks HTTP/1.0, and closes after every answer
  location    names the new place in the answer to MOVE as it is, a line's end in it too (Cyrus 3.6)
  breaks      closes the connection without an answer when a name has a % in it (Cyrus 3.6 at empty files)
  slow=MS     takes that long for every answer
  auth=KIND   offers Digest (MD5-sess) and Basic to user:word, and lets in with: basic, session (Digest with one client
              nonce for a session), none, stale (Basic; the nonce of a Digest is always too old)
  many=N      the folder /many has N files more, which are made up as they are listed
  hold=N      after N of them the listing goes on only when /.release was asked for
  late        makes what was broken off, a moment after it was
  unlisted=N  the first N listings fail, as WsgiDAV's do while a file in the directory disappears
  readonly    permits no PUT
  inner=PATH  is behind a proxy that changes the paths of requests alone: every reference begins with PATH
  pathtags    the ETag of a file depends on its path
  newtags     each PUT makes another ETag, also of the same content
  full=METHOD answers each such request without X-Room with 507, as where the disk is full
  puttags     the answer to PUT has the ETag
  sizetags    likewise, and the ETag depends on the path and the length alone (lighttpd, within a second)
  oldget      the first GET of a file that a PUT has replaced has the old content, without ETag and date (lighttpd, within a
              second)
  checks      refuses a DELETE or MOVE with an If about an ETag that the file in that place has not
After a GET of /.lose the next MOVE is done, and then its connection is closed without an answer when /.release was asked for.
After a GET of /.gateway=MS the next MOVE is answered with 504 at once, as by a proxy, and done MS milliseconds later, as a
server in Go does it: what has the target's name is removed first, and then the source may be missing. With 0 for MS it is done
when /.release was asked for. /.break=MS closes the connection in place of the 504, and /.hang=MS does so when the move is done.
After a GET of /.moves=STATUS each MOVE is answered with that status, until a GET of /.moves=0.
After a GET of /.foreign=TEXT another client writes over the next file that a PUT or MOVE brings to a name that is not
hidden, before that is answered: as many bytes, TEXT again and again. The file gets a date of its own.
After a GET of /.lock another client has locked the root with all in it: PUT, MKCOL, MOVE and DELETE are answered as by
Apache, with 207 and a 423 inside.
After a GET of /.overtake=METHOD,STATUS the next such request for what has no hidden name is refused with that status, and another
client writes a file there, or into the directory that is there.
After a GET of /.refuse=STATUS the first PROPFIND after the next MOVE is answered with that status.
GET /.state tells as JSON: the paths there are, how many connections are open, how many of them have a request, how many
there were at most, the schemes of credentials that were refused, and how many requests there were of each method.
"""

import base64
import email.utils
import hashlib
import http.server
import json
import os
import re
import sys
import threading
import time
import urllib.parse
import urllib.request
from xml.sax.saxutils import escape

habits = dict(word.partition("=")[::2] for word in sys.argv[2:])
lock = threading.Lock()
files = {"/": None}
if "many" in habits:
    files["/many"] = None
released = threading.Event()
losing = threading.Event()
refusals = {"armed": None, "due": None}
gateway = {"pause": None, "kind": "gateway"}
moves = {"status": 0}
foreign = {"text": None}
counts = {}
locked = threading.Event()
overtaking = {"method": None, "status": 503}
dates = {}
writes = {}
replaced = {}
refused = []
sessions = {}
connections = {"open": 0, "busy": 0, "most": 0, "all": 0}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.0" if "http10" in habits else "HTTP/1.1"

    def setup(self):
        super().setup()
        with lock:
            connections["open"] += 1
            connections["all"] += 1
            connections["most"] = max(connections["most"], connections["open"])

    def finish(self):
        with lock:
            connections["open"] -= 1
        super().finish()

    def log_message(self, *arguments):
        pass

    def parse_request(self):
        if not super().parse_request():
            return False
        with lock:
            connections["busy"] += 1
            counts[self.command] = counts.get(self.command, 0) + 1
        self.is_busy = True
        if "slow" in habits:
            time.sleep(int(habits["slow"]) / 1000)
        self.place = urllib.parse.unquote(self.path).rstrip("/") or "/"
        if "auth" in habits and self.path != "/.state" and not self.is_admitted():
            stale = ", stale=true" if habits["auth"] == "stale" and "Authorization" in self.headers else ""
            self.body()
            self.answer(401, fields=[
                ("WWW-Authenticate", 'Digest realm="r", nonce="%s", qop="auth", algorithm=MD5-sess%s' % (
                    os.urandom(8).hex(), stale)), ("WWW-Authenticate", 'Basic realm="r"')])
            return False
        if locked.is_set() and self.command in ("PUT", "MKCOL", "MOVE", "DELETE"):
            self.body()
            self.answer(207, (
                '<?xml version="1.0"?><D:multistatus xmlns:D="DAV:"><D:response><D:href>/</D:href>'
                "<D:status>HTTP/1.1 423 Locked</D:status></D:response></D:multistatus>").encode(),
                [("Content-Type", "text/xml")])
            return False
        if overtaking["method"] == self.command and self.is_overtaken():
            return False
        if habits.get("full") == self.command and "X-Room" not in self.headers:
            self.body()
            self.answer(507)
            return False
        if "breaks" in habits and "%25" in self.path:
            self.close_connection = True
            return False
        return True

    def is_overtaken(self):
        place = self.place
        if self.command == "MOVE":
            place = urllib.parse.unquote(urllib.parse.urlsplit(self.headers["Destination"]).path).rstrip("/")
        if "/.yonder" in place:
            return False
        self.body()
        overtaking["method"] = None
        with lock:
            if place in files and files[place] is None:
                place += "/theirs"
            files[place], dates[place], writes[place] = b"theirs", time.time(), 0
        self.answer(overtaking["status"], fields=[("Retry-After", "0")])
        return True

    def is_admitted(self):
        scheme, _, rest = self.headers.get("Authorization", "").partition(" ")
        with lock:
            refused.append(scheme)
        if scheme == "Basic":
            is_right = rest == base64.b64encode(b"user:word").decode() and habits["auth"] in ("basic", "stale")
        elif scheme == "Digest" and habits["auth"] == "session":
            parts = urllib.request.parse_keqv_list(urllib.request.parse_http_list(rest))
            with lock:
                first = sessions.setdefault(parts["nonce"], parts["cnonce"])

            def digest(*words):
                return hashlib.md5(":".join(words).encode()).hexdigest()

            secret = digest(digest("user", "r", "word"), parts["nonce"], first)
            is_right = parts["response"] == digest(
                secret, parts["nonce"], parts["nc"], parts["cnonce"], "auth", digest(self.command, self.path))
        else:
            is_right = False
        if is_right:
            with lock:
                refused.pop()
        return is_right

    def body(self):
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            data = b""
            while True:
                line = self.rfile.readline()
                if not line:
                    raise EOFError
                size = int(line, 16)
                part = self.rfile.read(size + 2)[:-2]
                data += part
                if size == 0:
                    return data
        wanted = int(self.headers.get("Content-Length", 0))
        data = self.rfile.read(wanted)
        if len(data) < wanted:
            if "late" in habits and self.command == "PUT":
                time.sleep(0.1)
                self.put(data)
            raise EOFError
        return data

    def answer(self, status, body=b"", fields=()):
        self.send_response(status)
        for name, value in fields:
            self.wfile_field(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        if "close" in habits:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
        if "close" in habits:
            self.close_connection = True

    def wfile_field(self, name, value):
        # As it is: `send_header` refuses some values in newer versions of Python.
        self._headers_buffer.append(("%s: %s\r\n" % (name, value)).encode("utf-8"))

    def handle_one_request(self):
        self.is_busy = False
        try:
            super().handle_one_request()
        except (EOFError, OSError):
            self.close_connection = True
        finally:
            if self.is_busy:
                with lock:
                    connections["busy"] -= 1

    def fields(self, place):
        return [("ETag", self.tag(place)), ("Last-Modified", email.utils.formatdate(dates[place], usegmt=True))]

    @staticmethod
    def tag(place):
        place_part = place.encode() if "pathtags" in habits else b""
        if "sizetags" in habits:
            return '"%s"' % hashlib.sha1(place.encode() + b"%d" % len(files[place])).hexdigest()
        write_part = str(writes[place]).encode() if "newtags" in habits else b""
        return '"%s"' % hashlib.sha1(place_part + write_part + files[place]).hexdigest()

    def described(self, place):
        href = habits.get("inner", "") + urllib.parse.quote(place)
        content = files[place]
        if content is None:
            own = "<D:resourcetype><D:collection/></D:resourcetype>"
            href = href.rstrip("/") + "/"
        else:
            own = "<D:resourcetype/><D:getcontentlength>%d</D:getcontentlength><D:getetag>%s</D:getetag>" % (
                len(content), escape(self.tag(place)))
            own += "<D:getlastmodified>%s</D:getlastmodified>" % email.utils.formatdate(dates[place], usegmt=True)
        return (
            "<D:response><D:href>%s</D:href><D:propstat><D:prop>%s</D:prop><D:status>HTTP/1.1 200 OK</D:status>"
            "</D:propstat></D:response>") % (escape(href), own)

    @staticmethod
    def parent(place):
        return place.rpartition("/")[0] or "/"

    def do_PROPFIND(self):
        self.body()
        with lock:
            status, refusals["due"] = refusals["due"], None
        if status:
            return self.answer(status)
        if self.place == "/many" and self.headers.get("Depth") != "0":
            return self.list_many()
        with lock:
            if self.place not in files:
                return self.answer(404)
            places = [self.place]
            if self.headers.get("Depth") != "0":
                if int(habits.get("unlisted", 0)) > 0:
                    habits["unlisted"] = int(habits["unlisted"]) - 1
                    return self.answer(500)
                places += [one for one in files if one != "/" and self.parent(one) == self.place]
            inner = "".join(self.described(one) for one in places)
        text = '<?xml version="1.0"?><D:multistatus xmlns:D="DAV:">%s</D:multistatus>' % inner
        self.answer(207, text.encode(), [("Content-Type", "application/xml")])

    def list_many(self):
        self.send_response(207)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

        def send(text):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(text), text))

        send(b'<?xml version="1.0"?><D:multistatus xmlns:D="DAV:">' + self.described("/many").encode())
        form = (
            b"<D:response><D:href>/many/file%%20%07d</D:href><D:propstat><D:prop><D:resourcetype/><D:getcontentlength>5"
            b'</D:getcontentlength><D:getetag>"%x"</D:getetag><D:getlastmodified>Sun, 06 Nov 1994 08:49:37 GMT'
            b"</D:getlastmodified></D:prop><D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>")
        count, hold, step = int(habits.get("many", 0)), int(habits.get("hold", -1)), 100
        for start in range(0, count, step):
            if start == hold:
                self.wfile.flush()
                released.wait()
            send(b"".join(form % (n, n) for n in range(start, min(start + step, count))))
        send(b"</D:multistatus>")
        self.wfile.write(b"0\r\n\r\n")

    def do_GET(self):
        if self.path == "/.release":
            released.set()
            return self.answer(204)
        if self.path.startswith("/.refuse="):
            with lock:
                refusals["armed"] = int(self.path.partition("=")[2])
            return self.answer(204)
        if self.path.startswith(("/.gateway=", "/.break=", "/.hang=")):
            kind, _, pause = self.path[2:].partition("=")
            with lock:
                gateway["kind"], gateway["pause"] = kind, int(pause)
            if gateway["pause"] == 0:
                released.clear()
            return self.answer(204)
        if self.path.startswith("/.moves="):
            moves["status"] = int(self.path.partition("=")[2])
            return self.answer(204)
        if self.path.startswith("/.foreign="):
            foreign["text"] = self.path.partition("=")[2].encode()
            return self.answer(204)
        if self.path.startswith("/.overtake="):
            overtaking["method"], _, status = self.path.partition("=")[2].partition(",")
            overtaking["status"] = int(status)
            return self.answer(204)
        if self.path == "/.lock":
            locked.set()
            return self.answer(204)
        if self.path == "/.lose":
            released.clear()
            losing.set()
            return self.answer(204)
        if self.path == "/.state":
            with lock:
                state = {"paths": sorted(files), "connections": dict(connections), "refused": refused,
                         "isLosing": losing.is_set(), "counts": dict(counts)}
            return self.answer(200, json.dumps(state).encode())
        with lock:
            content = files.get(self.place)
            if content is None:
                return self.answer(404)
            fields = self.fields(self.place)
            if self.place in replaced:
                content, fields = replaced.pop(self.place), []
        self.answer(200, content, fields)

    do_HEAD = do_GET

    def put(self, content):
        with lock:
            is_new = self.place not in files
            if "oldget" in habits and not is_new:
                replaced[self.place] = files[self.place]
            files[self.place], dates[self.place] = content, time.time()
            writes[self.place] = counts["PUT"]
        return is_new

    def do_PUT(self):
        content = self.body()
        if "readonly" in habits:
            return self.answer(403)
        with lock:
            if self.headers.get("If-None-Match") == "*" and self.place in files:
                return self.answer(412)
            if files.get(self.parent(self.place), b"") is not None:
                return self.answer(409)
        is_new = self.put(content)
        with lock:
            fields = [("ETag", self.tag(self.place))] if "puttags" in habits or "sizetags" in habits else []
            self.write_over(self.place)
        self.answer(201 if is_new else 204, fields=fields)

    @staticmethod
    def write_over(place):
        if foreign["text"] is not None and "/.yonder-partial-" not in place:
            size = len(files[place])
            files[place] = (foreign["text"] * size)[:size]
            dates[place], writes[place], foreign["text"] = 1_500_000_000, -1, None

    def do_MKCOL(self):
        self.body()
        with lock:
            if self.place in files:
                return self.answer(405)
            files[self.place] = None
        self.answer(201)

    def is_unmet(self, place):
        wanted = re.search(r'\(\[("[^"]*")\]\)', self.headers.get("If", ""))
        if "checks" not in habits or not wanted:
            return False
        return files.get(place) is None or self.tag(place) != wanted[1]

    def do_DELETE(self):
        self.body()
        with lock:
            if self.is_unmet(self.place):
                return self.answer(412)
            gone = [one for one in files if one == self.place or one.startswith(self.place + "/")]
            for one in gone:
                del files[one]
        self.answer(204 if gone else 404)

    def do_MOVE(self):
        self.body()
        if moves["status"]:
            return self.answer(moves["status"])
        raw = urllib.parse.urlsplit(self.headers["Destination"]).path
        target = urllib.parse.unquote(raw).rstrip("/")
        with lock:
            pause, gateway["pause"] = gateway["pause"], None
            if pause is None:
                if self.place not in files:
                    return self.answer(404)
                if target in files and self.headers.get("Overwrite") == "F":
                    return self.answer(412)
                if self.is_unmet(target):
                    return self.answer(412)
                is_new = target not in files
                self.move(self.place, target)
                self.write_over(target)
                refusals["due"], refusals["armed"] = refusals["armed"], None
        if pause is not None:
            late = threading.Thread(target=self.move_later, args=(self.place, target, pause / 1000), daemon=True)
            late.start()
            if gateway["kind"] == "gateway":
                return self.answer(504)
            if gateway["kind"] == "hang":
                late.join()
            raise EOFError
        if losing.is_set():
            losing.clear()
            released.wait()
            raise EOFError
        self.answer(201 if is_new else 204, fields=[("Location", target)] if "location" in habits else [])

    @staticmethod
    def move(place, target):
        for one in [one for one in files if one == place or one.startswith(place + "/")]:
            moved = target + one[len(place):]
            files[moved] = files.pop(one)
            dates[moved] = dates.pop(one, 0)
            writes[moved] = writes.pop(one, 0)

    @classmethod
    def move_later(cls, place, target, pause):
        if pause == 0:
            released.wait()
        time.sleep(pause)
        with lock:
            files.pop(target, None)
            cls.move(place, target)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


server = Server(("127.0.0.1", 0), Handler)
with open(sys.argv[1] + ".new", "w") as port_file:
    port_file.write(str(server.server_port))
os.rename(sys.argv[1] + ".new", sys.argv[1])
server.serve_forever()
