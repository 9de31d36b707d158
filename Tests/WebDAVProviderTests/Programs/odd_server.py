"""A WebDAV server with bad habits, one for each folder of its root.

usage: odd_server FILE
FILE has the port as soon as it listens.
"""

import http.server
import os
import sys

HEAD = '<?xml version="1.0" encoding="utf-8"?><D:multistatus xmlns:D="DAV:">'
TAIL = "</D:multistatus>"


def collection(href):
    return (
        f"<D:response><D:href>{href}</D:href><D:propstat><D:prop><D:resourcetype><D:collection/></D:resourcetype>"
        "<D:getlastmodified>Sun, 06 Nov 1994 08:49:37 GMT</D:getlastmodified></D:prop>"
        "<D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>"
    )


def file(href, size=5, etag='"one"'):
    return (
        f"<D:response><D:href>{href}</D:href><D:propstat><D:prop><D:resourcetype/>"
        f"<D:getcontentlength>{size}</D:getcontentlength><D:getetag>{etag}</D:getetag>"
        "<D:getlastmodified>Sun, 06 Nov 1994 08:49:37 GMT</D:getlastmodified></D:prop>"
        "<D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>"
    )


def missing(href):
    return f"<D:response><D:href>{href}</D:href><D:status>HTTP/1.1 404 Not Found</D:status></D:response>"


def refused(href, status):
    return f"<D:response><D:href>{href}</D:href><D:status>HTTP/1.1 {status} No</D:status></D:response>"


def unread(href):
    return (
        f"<D:response><D:href>{href}</D:href><D:propstat><D:prop><D:resourcetype/><D:getcontentlength/><D:getetag/>"
        "</D:prop><D:status>HTTP/1.1 403 Forbidden</D:status></D:propstat><D:propstat><D:prop><D:getlastmodified/>"
        "</D:prop><D:status>HTTP/1.1 404 Not Found</D:status></D:propstat></D:response>"
    )


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    portal = False
    deleted = []

    def log_message(self, *arguments):
        pass

    def answer(self, status, body=b"", fields=(), length=None):
        self.send_response(status)
        for name, value in fields:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)
        if length is not None and length != len(body):
            self.close_connection = True

    def multistatus(self, inner, **more):
        self.answer(207, (HEAD + inner + TAIL).encode(), [("Content-Type", "application/xml")], **more)

    def do_PROPFIND(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path = self.path
        depth = self.headers.get("Depth")
        if path == "/toggle":
            type(self).portal = not type(self).portal
            return self.answer(404)
        if path.rstrip("/") == "/leads/away":
            return self.answer(302, fields=[("Location", "/leads/")])
        if path.startswith(("/moved/", "/leads/out")):
            return self.answer(302, fields=[("Location", "https://other.example:8443/dav/?from=here")])
        if type(self).portal:
            return self.answer(200, b"<html><body>Welcome, please log in", [("Content-Type", "text/html")])
        name = path.strip("/").split("/")[0]
        own = collection(f"/{name}/" if name else "/")
        if depth == "0":
            if path.rstrip("/") == "/unshown/unshown":
                return self.multistatus(collection("/unshown/unshown/"))
            if path.rstrip("/").endswith("/file"):
                return self.multistatus(file(path))
            if path.rstrip("/").endswith("/gone"):
                return self.multistatus(missing(path))
            if path.rstrip("/") == "/refused/forbidden":
                return self.multistatus(refused(path, 403))
            if path.rstrip("/") == "/refused/busy":
                return self.multistatus(refused(path, 503))
            if path.rstrip("/") == "/refused/unread":
                return self.multistatus(unread(path))
            return self.multistatus(own)
        if path.rstrip("/") == "/refused/closed":
            return self.multistatus(refused(path, 403))
        if name == "refused":
            inner = refused("/refused/forbidden", 403) + refused("/refused/busy", 503) + unread("/refused/unread")
            return self.multistatus(own + file("/refused/file") + inner)
        if path.rstrip("/") == "/dots/dir":
            dots = collection("/dots/dir/%2e/") + collection("/dots/dir/%2e%2e/")
            return self.multistatus(collection("/dots/dir/") + dots + file("/dots/dir/member"))
        if name == "endless":
            return self.multistatus(collection(path.rstrip("/") + "/") + collection(path.rstrip("/") + "/d/"))
        if name == "elsewhere":
            inner = (
                file("http://other.example/elsewhere/one") + file("/outside/two") + file("/elsewhere/deep/three")
                + file("/elsewhere/%2e%2e") + file("/elsewhere/a%2Fb") + file("/elsewhere/nul%00") + file("/elsewhere/%FF")
                + file("/elsewhere/good") + file("/elsewhere/%zz") + file("/elsewhere/" + "n" * 300)
                + file("/elsewhere/good")
            )
            return self.multistatus(own + inner)
        if name == "forged":
            return self.multistatus(own + file("/outside&#10;forged line&#27;[31m") + file("/forged/good"))
        if name == "truncated":
            body = (HEAD + own + file("/truncated/file")).encode()
            return self.answer(207, body, [("Content-Type", "application/xml")], length=len(body) + 500)
        if name == "cut":
            # Whole as HTTP sees it, and no whole XML.
            return self.answer(207, (HEAD + own + file("/cut/file")).encode(), [("Content-Type", "application/xml")])
        if name == "partly":
            inner = "<D:response><D:href>/partly/</D:href><D:status>HTTP/1.1 507 Insufficient Storage</D:status></D:response>"
            return self.multistatus(own + file("/partly/file") + inner)
        if name == "unshown":
            if path.strip("/").count("/") == 0:
                return self.multistatus(own + collection("/unshown/unshown/"))
            return self.multistatus(collection("/unshown/unshown/") + file("/unshown/unshown/%FF"))
        if name == "empty":
            return self.multistatus("")
        if name == "nothing":
            return self.answer(207, b"")
        if name == "entities":
            body = '<!DOCTYPE x [<!ENTITY a "b">]>' + HEAD + own + file("/entities/&a;") + TAIL
            return self.answer(207, body.encode())
        if name == "inner404":
            return self.multistatus(own + file("/inner404/file") + missing("/inner404/gone"))
        self.multistatus(own + file(f"/{name}/file"))

    def do_DELETE(self):
        """The first request for /dots/dir/ deletes it only in part, and each one below /endless/."""
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        type(self).deleted.append(self.path)
        if type(self).deleted == ["/dots/dir/"] or self.path.startswith("/endless/"):
            return self.multistatus(
                "<D:response><D:href>/dots/dir/member</D:href><D:status>HTTP/1.1 500 No</D:status></D:response>")
        self.answer(204)

    def do_GET(self):
        name = self.path.strip("/").split("/")[0]
        if name == "deleted":
            return self.answer(200, " ".join(type(self).deleted).encode())
        if type(self).portal:
            return self.answer(200, b"<html>no", [("Content-Type", "text/html")])
        fields = [("ETag", '"one"'), ("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT")]
        if name == "anonymous":
            fields = []
        if name == "short":
            return self.answer(200, b"hel", fields)
        if name == "other":
            fields[0] = ("ETag", '"two"')
        # Ranges are not looked at.
        self.answer(200, b"hello", fields)


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
with open(sys.argv[1] + ".new", "w") as port_file:
    port_file.write(str(server.server_port))
os.rename(sys.argv[1] + ".new", sys.argv[1])
server.serve_forever()
