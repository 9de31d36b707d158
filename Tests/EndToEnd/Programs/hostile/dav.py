"""A WebDAV server that is hostile in one way per folder of its root, and honest about the rest of that folder.

usage: dav.py FILE
/NAME/ has the honest files `good` and `later`, and the collection `evil`, in which the scenario NAME happens.
"""

import itertools
import os
import random
import re
import socket
import time
import urllib.parse

import served

HEAD = '<?xml version="1.0" encoding="utf-8"?><D:multistatus xmlns:D="DAV:">'
TAIL = "</D:multistatus>"
DATE = "Sun, 06 Nov 1994 08:49:37 GMT"
XML = [("Content-Type", "application/xml; charset=utf-8")]
BIG = served.BIG


def response(href, properties, status="HTTP/1.1 200 OK"):
    return (f"<D:response><D:href>{href}</D:href><D:propstat><D:prop>{properties}</D:prop>"
            f"<D:status>{status}</D:status></D:propstat></D:response>")


def folder(href):
    return response(href, f"<D:resourcetype><D:collection/></D:resourcetype><D:getlastmodified>{DATE}</D:getlastmodified>")


def file(href, size=5, etag='"one"', date=DATE):
    length = "" if size is None else f"<D:getcontentlength>{size}</D:getcontentlength>"
    return response(href, f"<D:resourcetype/>{length}<D:getetag>{etag}</D:getetag><D:getlastmodified>{date}</D:getlastmodified>")


def nested(at, depth):
    return HEAD + folder(at) + "<D:a>" * depth + "</D:a>" * depth + TAIL


# What lies in `evil`, as responses of a listing; the collection itself is put before it.
ENTRIES = {
    "name-dot-dot": lambda at: file(at + "..") + file(at + "%2e%2e") + file(at + "%2e"),
    "name-slash": lambda at: file(at + "a%2Fb") + file(at + "%2Fetc%2Fpasswd"),
    "name-nul": lambda at: file(at + "nul%00byte"),
    "name-too-long": lambda at: file(at + "n" * 300) + file(at + "%C3%A4" * 200),
    "name-not-utf8": lambda at: file(at + "%FF%FE") + file(at + "%C3%28"),
    "name-control": lambda at: file(at + "a%0Ayonderd%20error%20forged") + file(at + "b%1B%5B2J%1B%5D0;x%07"),
    "name-twice": lambda at: file(at + "same") + folder(at + "same/") + file(at + "same", 9, '"two"'),
    "name-twins": lambda at: file(at + "%C3%A9") + file(at + "e%CC%81") + file(at + "A") + file(at + "a"),
    "name-ours": lambda at: "".join(file(at + name) for name in (
        ".yonder-partial-1", ".yonder-check-1", "%yonder-1", ".Trash-0", ".fuse_hidden01", "x%20(conflicted%20copy%20of%20h,%20d)")),
    "name-empty": lambda at: file(at + "/") + file(at + "//x") + file("") + file(" "),
    "name-bad-percent": lambda at: file(at + "%zz") + file(at + "%") + file(at + "%4"),
    "href-elsewhere": lambda at: file("http://other.example" + at + "x") + file("/outside/x") + file(at + "deep/er/x")
    + file("//other.example/x") + file("http://[::bad/x") + file("javascript:alert(1)") + folder("/"),
    "size-2-63": lambda at: file(at + "file", 2**63 - 1) + file(at + "more", 2**63 - 1),
    "size-2-64": lambda at: file(at + "file", 2**64) + file(at + "more", "9" * 400),
    "size-2-62": lambda at: file(at + "file", 2**62) + file(at + "more", 2**62 + 1),
    "size-negative": lambda at: file(at + "file", -1) + file(at + "more", -(2**63)),
    "size-no-number": lambda at: file(at + "file", "1e3") + file(at + "more", "0x10") + file(at + "plus", "+5") + file(at + "empty", ""),
    "size-missing": lambda at: file(at + "file", None),
    "size-not-zero": lambda at: file(at + "file", 0),
    "date-far": lambda at: file(at + "a", date="Sun, 06 Nov 999999999 08:49:37 GMT") + file(at + "b", date="Sun, 06 Nov 0000 08:49:37 GMT")
    + file(at + "c", date="Sun, 06 Nov -5 08:49:37 GMT") + file(at + "d", date="Sun, 99 Nov 1994 99:99:99 GMT"),
    "date-no-date": lambda at: file(at + "a", date="yesterday") + file(at + "b", date="") + file(at + "c", date="9" * 100_000),
    "etag-empty": lambda at: file(at + "file", etag=""),
    "etag-huge": lambda at: file(at + "file", etag='"' + "e" * BIG + '"'),
    "etag-odd": lambda at: file(at + "file", etag='W/"a&#10;b') + file(at + "more", etag="no quotes, &amp; a comma"),
    "status-inside": lambda at: response(at + "file", "<D:getcontentlength>5</D:getcontentlength>", "HTTP/1.1 99999999999999999999 No")
    + response(at + "more", "", "") + "<D:response/><D:response><D:status>HTTP/1.1 200 OK</D:status></D:response>",
    "type-both": lambda at: response(at + "x", "<D:resourcetype><D:collection/></D:resourcetype><D:getcontentlength>5</D:getcontentlength>")
    + response(at + "y/", "<D:resourcetype/><D:getcontentlength>5</D:getcontentlength>"),
    "depth-endless": lambda at: folder(at + "evil/"),
    "many-names": lambda at: "".join(file(f"{at}{number}") for number in range(20_000)),
    # Contents: the listing is honest, GET of `file` is not.
    **dict.fromkeys((
        "length-longer", "length-shorter", "length-none", "length-huge", "length-negative", "chunks-broken", "chunk-huge", "gzip-bomb",
        "body-reset", "body-html", "status-204", "status-999", "status-401", "status-403", "status-500", "status-1xx",
        "header-huge", "header-folded", "redirect-loop", "redirect-file", "redirect-closed", "redirect-chain", "redirect-nowhere", "etag-changes",
        "body-never", "body-drips", "header-drips", "not-http"), lambda at: file(at + "file")),
    **dict.fromkeys((
        "range-one-byte", "range-wrong", "range-other-total", "range-ignored", "range-416", "range-multipart", "range-no-field"),
        lambda at: file(at + "file", 8 * BIG)),
    **dict.fromkeys((
        "put-forgets", "put-500", "put-early", "put-redirects", "put-507", "put-other-etag", "put-long-answer", "move-500",
        "write-405"), lambda at: file(at + "file")),
}

# Answers to a listing of `evil` that no listing is.
LISTINGS = {
    "xml-cut": lambda at: HEAD + folder(at) + file(at + "file"),
    "xml-entities": lambda at: '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">' + "".join(
        f'<!ENTITY {chr(98 + level)} "{f"&{chr(97 + level)};" * 10}">' for level in range(9)) + "]>" + HEAD + file(at + "&j;") + TAIL,
    "xml-external": lambda at: '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>' + HEAD + file(at + "&a;") + TAIL,
    "xml-attributes": lambda at: HEAD + "<D:response " + " ".join(f'a{n}="1"' for n in range(100_000)) + "/>" + TAIL,
    "xml-deep": lambda at: nested(at, 100_000),
    "xml-long-text": lambda at: HEAD + folder(at) + file(at + "x" * (32 * BIG)) + TAIL,
    "xml-latin": lambda at: '<?xml version="1.0" encoding="iso-8859-7"?>' + HEAD[38:] + folder(at) + TAIL,
    "xml-namespaces": lambda at: HEAD.replace("DAV:", "dav:") + folder(at) + file(at + "file") + TAIL,
    "xml-unbound": lambda at: HEAD + "<Q:response/>" + "</D:wrong>" + TAIL,
    "xml-html": lambda at: "<html><body>Welcome, please <b>log in",
    "xml-nothing": lambda at: "",
    "xml-only-others": lambda at: HEAD + folder("/another/") + TAIL,
    "xml-long-comment": lambda at: HEAD + "<!--" + "-x" * (8 * BIG) + "-->" + folder(at) + TAIL,
}
ANSWERS = {"listing-never", "listing-drips", "listing-500", "listing-401", "listing-redirects", "listing-reset", "listing-endless"}
SCENARIOS = [*ENTRIES, *LISTINGS, *sorted(ANSWERS)]


class Handler(served.Handler):
    stored = {}
    port = 0

    def split(self):
        path = urllib.parse.unquote(urllib.parse.urlsplit(self.path).path)
        name, _, rest = path.lstrip("/").partition("/")
        return name, rest

    def multistatus(self, text):
        self.answer(207, text.encode("utf-8", "surrogateescape"), XML)

    def do_OPTIONS(self):
        self.body()
        self.answer(200, fields=[("DAV", "1, 2"), ("Allow", "OPTIONS, GET, PUT, PROPFIND, MKCOL, MOVE, DELETE")])

    def do_PROPFIND(self):
        self.body()
        name, rest = self.split()
        at = f"/{name}/evil/"
        if rest.startswith("evil") and self.headers.get("Depth") != "0" and (rest.strip("/") == "evil" or name == "depth-endless"):
            return self.list_evil(name, urllib.parse.quote(self.split_path()))
        if rest.startswith("evil"):
            inner = rest.rstrip("/")[5:]
            if self.path in self.stored:
                return self.multistatus(HEAD + file(self.path, len(self.stored[self.path]), self.tag(self.path)) + TAIL)
            if not inner or name == "depth-endless":
                return self.multistatus(HEAD + folder(self.path.rstrip("/") + "/") + TAIL)
            shown = re.findall(r"<D:response>.*?</D:response>", ENTRIES.get(name, lambda at: "")(at), re.S)
            found = [one for one in shown if f"<D:href>{self.path}</D:href>" in one]
            return self.multistatus(HEAD + found[0] + TAIL) if found else self.answer(404)
        if rest in ("good", "later"):
            return self.multistatus(HEAD + file(self.path, len(rest) + 1) + TAIL)
        if rest.strip("/"):
            known = self.stored.get(self.path)
            return self.answer(404) if known is None else self.multistatus(HEAD + file(self.path, len(known), self.tag(self.path)) + TAIL)
        text = folder(f"/{name}/") if name else folder("/")
        if self.headers.get("Depth") != "0":
            text += file(f"/{name}/good") + file(f"/{name}/later", 6) + folder(at)
        self.multistatus(HEAD + text + TAIL)

    def split_path(self):
        return urllib.parse.unquote(urllib.parse.urlsplit(self.path).path).rstrip("/") + "/"

    def list_evil(self, name, at):
        if name in LISTINGS:
            return self.multistatus(LISTINGS[name](at))
        if name in ANSWERS:
            return getattr(self, name.replace("-", "_"))(at)
        text = ENTRIES[name](at)
        text += "".join(file(path, len(body), self.tag(path)) for path, body in list(self.stored.items()) if path.startswith(at))
        self.multistatus(HEAD + folder(at) + text + TAIL)

    # Listings

    def listing_never(self, at):
        time.sleep(600)

    def listing_drips(self, at):
        head = b"HTTP/1.1 207 Multi-Status\r\nContent-Length: 100000\r\n\r\n"
        self.raw(head, served.drip(HEAD.encode().ljust(100_000), 0.5))

    def listing_500(self, at):
        self.answer(500, b"no")

    def listing_401(self, at):
        self.answer(401, b"no", [("WWW-Authenticate", 'Basic realm="x"')])

    def listing_redirects(self, at):
        self.answer(302, fields=[("Location", self.path)])

    def listing_reset(self, at):
        self.reset(b"HTTP/1.1 207 Multi-Status\r\nContent-Length: 5000\r\n\r\n" + HEAD.encode())

    def listing_endless(self, at):
        names = ((file(f"{at}{n}") * 1).encode() for n in itertools.count())
        self.raw(b"HTTP/1.1 207 Multi-Status\r\nConnection: close\r\n\r\n" + HEAD.encode() + folder(at).encode(),
                 itertools.islice(names, 300_000))

    # Contents

    def do_GET(self):
        name, rest = self.split()
        if rest in ("good", "later"):
            return self.answer(200, f"{rest}\n".encode(), [("ETag", '"one"')])
        if self.path in self.stored:
            return self.answer(200, self.stored[self.path], [("ETag", self.tag(self.path))])
        get = getattr(self, name.replace("-", "_"), None)
        if rest == "evil/file" and get:
            return get()
        self.answer(200, b"hello", [("ETag", '"one"')])

    def do_HEAD(self):
        self.answer(200, b"hello", [("ETag", '"one"')])

    OK = b'HTTP/1.1 200 OK\r\nETag: "one"\r\n'

    def reset(self, data):
        self.raw(data)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.connection.close()

    def length_longer(self): self.answer(200, b"hel", length=5)
    def length_shorter(self): self.raw(self.OK + b"Content-Length: 3\r\n\r\nhello and more")
    def length_none(self): self.raw(self.OK + b"\r\nhel")
    def length_huge(self): self.raw(self.OK + b"Content-Length: 9223372036854775807\r\n\r\nhello")
    def length_negative(self): self.raw(self.OK + b"Content-Length: -5\r\n\r\nhello")
    def chunks_broken(self): self.raw(self.OK + b"Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\nzz\r\nlo\r\n0\r\n\r\n")
    def chunk_huge(self): self.raw(self.OK + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nhello")
    def body_reset(self): self.reset(self.OK + b"Content-Length: 5\r\n\r\nhe")
    def body_html(self): self.answer(200, b"<html>log in</html>", [("Content-Type", "text/html")])
    def status_204(self): self.answer(204)
    def status_999(self): self.raw(b"HTTP/1.1 999 What\r\nContent-Length: 0\r\n\r\n")
    def status_401(self): self.answer(401, b"no", [("WWW-Authenticate", 'Basic realm="x"')])
    def status_403(self): self.answer(403, b"no")
    def status_500(self): self.answer(500, b"no" * BIG)
    def status_1xx(self): self.raw((b"HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n" for _ in range(100_000)), self.OK + b"Content-Length: 5\r\n\r\nhello")
    def header_huge(self): self.raw(self.OK, (b"X-%d: " % n + b"x" * 1000 + b"\r\n" for n in range(20_000)), b"\r\n")
    def header_folded(self): self.raw(b"HTTP/1.1 200 OK\r\nETag:\r\n \"one\"\r\n\tx\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello")
    def redirect_loop(self): self.answer(302, fields=[("Location", self.path)])
    def redirect_file(self): self.answer(302, fields=[("Location", "file:///etc/passwd")])
    def redirect_closed(self): self.answer(302, fields=[("Location", "http://127.0.0.1:1/")])
    def redirect_chain(self): self.answer(307, fields=[("Location", f"{self.path}?{random.random()}")])
    def redirect_nowhere(self): self.answer(302, fields=[("Location", "http://[bad:\x7f")])
    def etag_changes(self): self.answer(200, b"hello", [("ETag", f'"{random.random()}"')])
    def etag_huge(self): self.answer(200, b"hello", [("ETag", '"' + "e" * 10_000 + '"')])
    def size_not_zero(self): self.answer(200, b"hello", [("ETag", '"one"')])
    def body_never(self): time.sleep(600)
    def body_drips(self): self.raw(self.OK + b"Content-Length: 5\r\n\r\n", served.drip(b"hello", 20))
    def header_drips(self): self.raw(served.drip(self.OK + b"X: " + b"x" * 600, 1))
    def not_http(self): self.raw(b"SSH-2.0-OpenSSH_9.2\r\n" * 100)

    def gzip_bomb(self):
        import zlib
        press = zlib.compressobj(9, zlib.DEFLATED, 31)
        bomb = b"".join(press.compress(bytes(BIG)) for _ in range(200)) + press.flush()
        self.answer(200, bomb, [("ETag", '"one"'), ("Content-Encoding", "gzip")])

    def range_416(self): self.answer(416, fields=[("Content-Range", "bytes */0")])
    def range_multipart(self):
        self.answer(206, b"--x\r\nContent-Range: bytes 0-4/5\r\n\r\nhello\r\n--x--", [("Content-Type", "multipart/byteranges; boundary=x")])

    # Changes

    def tag(self, path):
        return f'"{random.random()}"' if self.split()[0] == "put-other-etag" else f'"{hash(self.stored[path])}"'

    def do_PUT(self):
        name, rest = self.split()
        if name == "put-early":
            return self.raw(b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        body = self.body()
        if name == "put-500":
            return self.answer(500)
        if name == "put-507":
            return self.answer(507)
        if name == "write-405":
            return self.answer(405)
        if name == "put-redirects":
            return self.answer(307, fields=[("Location", f"http://127.0.0.1:1{self.path}")])
        if name != "put-forgets":
            self.stored[self.path] = body
        if name == "put-long-answer":
            return self.raw(b"HTTP/1.1 201 Created\r\nConnection: close\r\n\r\n", (bytes(BIG) for _ in range(100)))
        self.answer(201, fields=[("ETag", self.tag(self.path))] if self.path in self.stored else [])

    def do_MOVE(self):
        name, _ = self.split()
        target = urllib.parse.urlsplit(self.headers["Destination"]).path
        if name in ("move-500", "write-405"):
            return self.answer(500 if name == "move-500" else 405)
        if self.path not in self.stored:
            return self.answer(404)
        self.stored[target] = self.stored.pop(self.path)
        self.answer(201)

    def do_DELETE(self):
        self.answer(204 if self.stored.pop(self.path, None) is not None else 404)

    def do_other(self):
        self.body()
        self.answer(405)

    do_MKCOL = do_PROPPATCH = do_REPORT = do_LOCK = do_UNLOCK = do_COPY = do_other


served.serve(Handler, SCENARIOS)
