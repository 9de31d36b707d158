"""A WebDAV server in memory that does what the documentation of ownCloud and Nextcloud says of theirs: files have
identifiers that stay through moves, a directory's tag changes when anything below it does, and X-OC-MTime sets a date.
Below remote.php/dav/uploads/user it takes files in chunks, as Nextcloud documents its version 2 of that.
Below remote.php/dav/trashbin/user is its trash bin.
It is not one of them: what they do beside that documentation is not to be learned here.

usage: file_id_server FILE [LOG]
FILE has the port as soon as it listens.
LOG gets a line for each request: method, depth and path.
POST /faults/NAME/VALUE has it do something wrong from then on:
  lose/METHOD     the next request of this method is done and not answered; METHOD2 is the one after that
  refuse/METHOD   the next request of this method is not done and not answered; likewise
  bin/KIND        it has another trash bin: nextcloud, nested, owncloud, none
  limit/BYTES     the bin takes nothing that is so large
  odd/KIND        the bin lists something odd: names, places, identifiers, half
  letters/TEXT    the permissions of every file and folder
  foreign/TEXT    another client writes TEXT over the file of the next PUT, before that is answered
  overtake/TEXT   another client writes TEXT over the file that the next chunks are for, when their move arrives
  tagless/1       a condition on the file that chunks replace is refused, whatever its tag
"""

import email.utils
import http.server
import itertools
import os
import re
import secrets
import sys
import threading
import time
import urllib.parse
from xml.sax.saxutils import escape

# Nothing is left beside the sources.
sys.dont_write_bytecode = True
import trash_bin

HEAD = (
    '<?xml version="1.0"?><d:multistatus xmlns:d="DAV:" xmlns:s="http://sabredav.org/ns" '
    'xmlns:oc="http://owncloud.org/ns" xmlns:nc="http://nextcloud.org/ns">')
QUOTA = 1 << 30
identifiers = itertools.count(10)
lock = threading.Lock()


class Node:
    def __init__(self, children=None, content=b""):
        self.id, self.children, self.content = next(identifiers), children, content
        self.modified, self.tag = int(time.time()), secrets.token_hex(16)

    @property
    def is_folder(self):
        return self.children is not None

    def size(self):
        return sum(child.size() for child in self.children.values()) if self.is_folder else len(self.content)


root = Node({
    "remote.php": Node({"dav": Node({"files": Node({"user": Node({})})})}),
    "dav": Node({"files": Node({"guest": Node({})})})})
UPLOADS = ["remote.php", "dav", "uploads", "user"]
FILES = ["remote.php", "dav", "files", "user"]
LEAST_CHUNK = 5 << 20
uploads = {}
faults = {}


def user_files():
    return root.children["remote.php"].children["dav"].children["files"].children["user"]


trash = trash_bin.TrashBin(user_files())


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def parse_request(self):
        is_one = super().parse_request()
        if is_one and self.is_hit("refuse"):
            self.close_connection = True
            return False
        if is_one and len(sys.argv) > 2:
            with open(sys.argv[2], "a") as log:
                log.write("%s %s %s\n" % (self.command, self.headers.get("Depth", "-"), self.path))
        return is_one

    def upload(self):
        """The names below the user's uploads; None for any other address."""
        names = self.names(self.path)
        return names[len(UPLOADS):] if names[:len(UPLOADS)] == UPLOADS else None

    def in_bin(self):
        """The names below the user's trash bin; None for any other address."""
        top = {None: None, "owncloud": ["trash-bin", "user"]}.get(trash.kind, ["trashbin", "user"])
        names = self.names(self.path)
        if not top or names[:4] != FILES[:2] + top:
            return None
        return names[4:]

    def described_in_bin(self, names, found):
        if not found:
            return (
                "<d:response><d:href>/remote.php/dav/trashbin/user/trash/%s/</d:href><d:propstat><d:prop>"
                "<d:resourcetype><d:collection/></d:resourcetype><nc:trashbin-filename>%s</nc:trashbin-filename>"
                "<nc:trashbin-original-location>%s</nc:trashbin-original-location>"
                "<nc:trashbin-deletion-time>0</nc:trashbin-deletion-time><oc:fileid>1</oc:fileid></d:prop>"
                "<d:status>HTTP/1.1 200 OK</d:status></d:propstat></d:response>") % (
                    "/".join(urllib.parse.quote(name) for name in names), escape(names[-1]), escape(names[-1]))
        key, nodes, below = found
        node, trashed = nodes[-1], trash.entries[key]
        top = "trash-bin/user" if trash.kind == "owncloud" else "trashbin/user/trash"
        href = "/remote.php/dav/" + top + "/" + "/".join(
            urllib.parse.quote(name, safe="", errors="surrogateescape") for name in names)
        kind = "<d:resourcetype><d:collection/></d:resourcetype>" if node.is_folder else (
            "<d:resourcetype/><d:getcontentlength>%d</d:getcontentlength>" % len(node.content))
        name = below[-1] if below else trash.name(key)
        location = "/".join([trash.original(key)] + below)
        if faults.get("odd") == "names":
            name = {"up": "..", "slash": "a/b", "long": "n" * 300}.get(name, name)
        if trash.kind != "owncloud":
            own = ("<nc:trashbin-filename>%s</nc:trashbin-filename>"
                   "<nc:trashbin-original-location>%s</nc:trashbin-original-location>"
                   "<nc:trashbin-deletion-time>%d</nc:trashbin-deletion-time><d:getetag>%d</d:getetag>") % (
                       escape(name), escape(location), trashed.time, trashed.time)
            if faults.get("odd") != "identifiers":
                own += "<oc:fileid>%d</oc:fileid><oc:permissions>GD</oc:permissions>" % node.id
        else:
            own = ("<oc:trashbin-original-filename>%s</oc:trashbin-original-filename>"
                   "<oc:trashbin-original-location>%s</oc:trashbin-original-location>"
                   "<oc:trashbin-delete-timestamp>%d</oc:trashbin-delete-timestamp>"
                   "<d:getetag>&quot;%s&quot;</d:getetag>") % (escape(name), escape(location), trashed.time, node.tag)
        return (
            "<d:response><d:href>%s</d:href><d:propstat><d:prop>%s%s<d:getlastmodified>%s</d:getlastmodified></d:prop>"
            "<d:status>HTTP/1.1 200 OK</d:status></d:propstat></d:response>") % (
                escape(href + ("/" if node.is_folder else "")), kind, own,
                email.utils.formatdate(trashed.time, usegmt=True))

    def answer_bin(self, names):
        self.body()
        with lock:
            if trash.kind != "owncloud":
                if names[:1] != ["trash"]:
                    return self.answer(404 if names[:1] != ["restore"] else 403)
                names = names[1:]
            found = trash.find(names) if names else None
            if names and not found and (self.command != "PROPFIND" or not trash.listed(names)):
                return self.answer(404)
            if self.command == "PROPFIND":
                if not names:
                    top = self.path if self.path.endswith("/") else self.path + "/"
                    parts = ["<d:response><d:href>%s</d:href><d:propstat><d:prop><d:resourcetype><d:collection/>"
                             "</d:resourcetype></d:prop><d:status>HTTP/1.1 200 OK</d:status></d:propstat></d:response>"
                             % escape(top)]
                else:
                    parts = [self.described_in_bin(names, found)]
                children = found[1][-1].children or {} if found else {}
                keys = trash.listed(names) + list(children)
                if trash.kind == "owncloud":
                    keys = [str(node.id) for node in children.values()]
                    keys += [str(trashed.node.id) for trashed in trash.entries.values() if not names]
                if self.headers.get("Depth") == "1":
                    parts += [self.described_in_bin(names + [key], trash.find(names + [key])) for key in keys]
                    if faults.get("odd") == "places":
                        known = self.described_in_bin(names + keys[:1], trash.find(names + keys[:1]))
                        for place in ("..", ".", "%2e%2e", "a%2Fb", "a%00b", "%FF", "deep/one", "/elsewhere", "../x"):
                            parts.append(known.replace("/trash/" + urllib.parse.quote(keys[0]), "/trash/" + place))
                body = (HEAD + "".join(parts) + "</d:multistatus>").encode(errors="surrogateescape")
                if faults.get("odd") == "half" and self.headers.get("Depth") == "1":
                    body = body[:len(body) * 2 // 3]
                return self.answer(207, body, Content_Type="application/xml")
            if self.command == "DELETE":
                if names:
                    trash.remove(found)
                else:
                    trash.entries.clear()
                return self.answer(204)
            if self.command == "MOVE" and names:
                target = self.names(self.headers["Destination"])
                if trash.kind == "owncloud":
                    parents, there = self.find(target[:-1]), self.find(target)
                    if there:
                        return self.answer(403)
                    if not parents:
                        return self.answer(409)
                    trash.remove(found)
                    parents[-1].children[target[-1]] = found[1][-1]
                    self.touch(parents)
                    return self.answer(201)
                if target[:5] != FILES[:2] + ["trashbin", "user", "restore"]:
                    return self.answer(403)
                trash.restore(found)
                self.touch_all()
                return self.answer(201)
            if self.command in ("GET", "HEAD") and names and not found[1][-1].is_folder:
                if trash.kind == "owncloud":
                    return self.answer(403)
                return self.answer_content(found[1][-1].content, {"ETag": str(trash.entries[found[0]].time)})
            return self.answer(403)

    @staticmethod
    def touch_all():
        """Something has come somewhere: other tags from there up, for which all folders will do."""
        def touch(node):
            if node.is_folder:
                node.tag = secrets.token_hex(16)
                for child in node.children.values():
                    touch(child)
        touch(root)

    def answer_upload(self, names):
        content = self.body()
        if self.command in ("MKCOL", "PUT", "MOVE") and "Destination" not in self.headers:
            return self.answer(400)
        with lock:
            chunks = uploads.get(names[0]) if names else None
            if self.command == "MKCOL":
                if chunks is not None:
                    return self.answer(405)
                uploads[names[0]] = {}
                return self.answer(201)
            if chunks is None:
                return self.answer(404)
            if self.command == "PUT":
                if not names[1].isdigit() or not 1 <= int(names[1]) <= 10000:
                    return self.answer(400)
                chunks[names[1]] = content
                return self.answer(201)
            if self.command == "DELETE":
                del uploads[names[0]]
                return self.answer(204)
            if self.command == "PROPFIND":
                parts = [self.described(UPLOADS + names, Node({}))]
                parts += [self.described(UPLOADS + names + [name], Node(content=part)) for name, part in chunks.items()]
                body = (HEAD + "".join(parts) + "</d:multistatus>").encode()
                return self.answer(207, body, Content_Type="application/xml")
            whole = [chunks[name] for name in sorted(chunks)]
            if names[1:] != [".file"] or any(len(part) < LEAST_CHUNK for part in whole[:-1]):
                return self.answer(400)
            content = b"".join(whole)
            if len(content) != int(self.headers.get("OC-Total-Length", -1)):
                return self.answer(400)
            target = self.names(self.headers["Destination"])
            if "overtake" in faults:
                self.put(target, faults.pop("overtake").encode())
            there = self.find(target)
            if there and self.headers.get("Overwrite", "T") == "F":
                return self.answer(412)
            wanted = re.search(r'\(\["(.*?)"\]\)', self.headers.get("If", ""))
            if wanted and ("tagless" in faults or not there or there[-1].tag != wanted[1]):
                return self.answer(412)
            status = self.put(target, content)
            if status < 300:
                del uploads[names[0]]
            return self.answer(status)

    def put(self, names, content):
        """Gives a file new content, and says with which status."""
        parents, nodes = self.find(names[:-1]), self.find(names)
        if not parents or not parents[-1].is_folder:
            return 409
        if nodes and nodes[-1].is_folder:
            return 405
        if root.size() + len(content) > QUOTA:
            return 507
        if self.is_too_early():
            return 500
        node = nodes[-1] if nodes else parents[-1].children.setdefault(names[-1], Node())
        node.content, node.modified = content, int(self.headers.get("X-OC-MTime", time.time()))
        self.touch(parents + [node])
        return 204 if nodes else 201

    def is_too_early(self):
        """Whether Nextcloud's MtimeSanitizer refuses the date."""
        return int(self.headers.get("X-OC-MTime", time.time())) <= 24 * 60 * 60

    def is_hit(self, fault):
        """Whether a fault is meant for this request, and from then on for no other."""
        if faults.get(fault) == self.command + "2":
            faults[fault] = self.command
            return False
        if faults.get(fault) != self.command:
            return False
        del faults[fault]
        return True

    def do_POST(self):
        self.body()
        _, name, value = self.names(self.path)
        if name == "bin":
            trash.kind = None if value == "none" else value
        elif name == "limit":
            trash.limit = int(value)
        else:
            faults[name] = value
        self.answer(204)

    def answer(self, status, body=b"", **fields):
        if self.is_hit("lose"):
            self.close_connection = True
            return
        self.send_response(status)
        for name, value in fields.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    @staticmethod
    def names(path):
        path = urllib.parse.urlsplit(path).path
        return [urllib.parse.unquote(part, errors="surrogateescape") for part in path.split("/") if part]

    def find(self, names):
        """The nodes from the root down to a name; None where there is no such thing."""
        nodes = [root]
        for name in names:
            if not nodes[-1].is_folder or name not in nodes[-1].children:
                return None
            nodes.append(nodes[-1].children[name])
        return nodes

    @staticmethod
    def touch(nodes):
        for node in nodes:
            node.tag = secrets.token_hex(16)
            if node.is_folder:
                node.modified = int(time.time())

    def is_refused(self, node):
        """Whether a condition does not hold."""
        wanted, unwanted = self.headers.get("If-Match"), self.headers.get("If-None-Match")
        if wanted and (node is None or wanted not in ("*", '"%s"' % node.tag)):
            return True
        return bool(unwanted) and node is not None and unwanted in ("*", '"%s"' % node.tag)

    def body(self):
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            parts = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)
        count = int(self.headers.get("Content-Length", 0))
        content = self.rfile.read(count)
        if len(content) != count:
            raise ConnectionError("broken off")
        return content

    def described(self, names, node):
        href = "/" + "/".join(urllib.parse.quote(name, safe="", errors="surrogateescape") for name in names)
        href += "/" if node.is_folder and names else ""
        kind = "<d:resourcetype><d:collection/></d:resourcetype>" if node.is_folder else (
            "<d:resourcetype/><d:getcontentlength>%d</d:getcontentlength>" % len(node.content))
        room = "" if not node.is_folder else (
            "<d:quota-used-bytes>%d</d:quota-used-bytes><d:quota-available-bytes>%d</d:quota-available-bytes>"
            % (node.size(), QUOTA - root.size()))
        return (
            "<d:response><d:href>%s</d:href><d:propstat><d:prop>%s%s<d:getetag>&quot;%s&quot;</d:getetag>"
            "<d:getlastmodified>%s</d:getlastmodified><oc:fileid>%d</oc:fileid><oc:permissions>%s</oc:permissions>"
            "</d:prop><d:status>HTTP/1.1 200 OK</d:status></d:propstat></d:response>") % (
                escape(href), kind, room, node.tag, email.utils.formatdate(node.modified, usegmt=True), node.id,
                faults.get("letters") or ("RGDNVCK" if node.is_folder else "RGDNVW"))

    def do_PROPFIND(self):
        if (names := self.in_bin()) is not None:
            return self.answer_bin(names)
        if (upload := self.upload()) is not None:
            return self.answer_upload(upload)
        self.body()
        names = self.names(self.path)
        nodes = self.find(names)
        if not nodes:
            return self.answer(404)
        parts = [self.described(names, nodes[-1])]
        if self.headers.get("Depth") == "1" and nodes[-1].is_folder:
            parts += [self.described(names + [name], node) for name, node in nodes[-1].children.items()]
        self.answer(207, (HEAD + "".join(parts) + "</d:multistatus>").encode(), Content_Type="application/xml")

    def preview(self):
        """As Nextcloud's core/preview.png, and ownCloud's GET with preview=1: of files called *.jpg only."""
        path, _, query = self.path.partition("?")
        wanted = dict(urllib.parse.parse_qsl(query))
        if path == "/index.php/core/preview.png":
            names = FILES + [name for name in wanted.get("file", "").split("/") if name]
        elif wanted.get("preview") == "1":
            names = self.names(path)
        else:
            return False
        nodes = self.find(names)
        if not nodes or nodes[-1].is_folder or not names[-1].endswith(".jpg"):
            self.answer(404)
        else:
            text = "preview of %s, %s by %s" % (names[-1], wanted.get("x"), wanted.get("y"))
            self.answer(200, text.encode(), Content_Type="image/jpeg")
        return True

    def do_GET(self):
        if self.preview():
            return
        if (names := self.in_bin()) is not None:
            return self.answer_bin(names)
        nodes = self.find(self.names(self.path))
        if not nodes or nodes[-1].is_folder:
            return self.answer(404 if not nodes else 405)
        node = nodes[-1]
        fields = {"ETag": '"%s"' % node.tag, "Last_Modified": email.utils.formatdate(node.modified, usegmt=True)}
        self.answer_content(node.content, fields)

    def answer_content(self, content, fields):
        wanted = self.headers.get("Range", "")
        if not wanted.startswith("bytes="):
            return self.answer(200, content, **fields)
        first, last = wanted[6:].split("-")
        first, last = int(first), min(int(last or len(content) - 1), len(content) - 1)
        if first > last:
            return self.answer(416, Content_Range="bytes */%d" % len(content))
        fields["Content_Range"] = "bytes %d-%d/%d" % (first, last, len(content))
        self.answer(206, content[first:last + 1], **fields)

    do_HEAD = do_GET

    def do_PUT(self):
        if (names := self.in_bin()) is not None:
            return self.answer_bin(names)
        if (upload := self.upload()) is not None:
            return self.answer_upload(upload)
        content, names = self.body(), self.names(self.path)
        with lock:
            parents, nodes = self.find(names[:-1]), self.find(names)
            if not parents or not parents[-1].is_folder:
                return self.answer(409)
            if nodes and nodes[-1].is_folder:
                return self.answer(405)
            if self.is_refused(nodes[-1] if nodes else None):
                return self.answer(412)
            if root.size() + len(content) > QUOTA:
                return self.answer(507)
            if self.is_too_early():
                return self.answer(500)
            node = nodes[-1] if nodes else parents[-1].children.setdefault(names[-1], Node())
            node.content, node.modified = content, int(time.time())
            fields = {}
            if "X-OC-MTime" in self.headers:
                node.modified, fields["X_OC_MTime"] = int(self.headers["X-OC-MTime"]), "accepted"
            self.touch(parents + [node])
            fields.update(ETag='"%s"' % node.tag, OC_ETag='"%s"' % node.tag, OC_FileId="%08doc" % node.id)
            if "foreign" in faults:
                node.content = faults.pop("foreign").encode()
                self.touch([node])
            self.answer(204 if nodes else 201, **fields)

    def do_MKCOL(self):
        if (names := self.in_bin()) is not None:
            return self.answer_bin(names)
        if (upload := self.upload()) is not None:
            return self.answer_upload(upload)
        self.body()
        names = self.names(self.path)
        with lock:
            parents = self.find(names[:-1])
            if not parents:
                return self.answer(409)
            if self.find(names):
                return self.answer(405)
            parents[-1].children[names[-1]] = Node({})
            self.touch(parents)
            self.answer(201)

    def do_DELETE(self):
        if (names := self.in_bin()) is not None:
            return self.answer_bin(names)
        if (upload := self.upload()) is not None:
            return self.answer_upload(upload)
        names = self.names(self.path)
        with lock:
            nodes = self.find(names)
            if not nodes or not names:
                return self.answer(404)
            if self.is_refused(nodes[-1]):
                return self.answer(412)
            del nodes[-2].children[names[-1]]
            self.touch(nodes[:-1])
            if names[:4] == FILES and len(names) > 4:
                trash.take(names[4:], nodes[-1])
            self.answer(204)

    def do_MOVE(self):
        if (names := self.in_bin()) is not None:
            return self.answer_bin(names)
        if (upload := self.upload()) is not None:
            return self.answer_upload(upload)
        names, target = self.names(self.path), self.names(self.headers["Destination"])
        with lock:
            nodes, parents, there = self.find(names), self.find(target[:-1]), self.find(target)
            if not nodes:
                return self.answer(404)
            if not parents or not parents[-1].is_folder:
                return self.answer(409)
            if nodes[-1] in parents:
                return self.answer(403)
            if there and self.headers.get("Overwrite", "T") == "F":
                return self.answer(412)
            del nodes[-2].children[names[-1]]
            parents[-1].children[target[-1]] = nodes[-1]
            self.touch(nodes[:-1])
            self.touch(parents)
            self.answer(204 if there else 201)

    def do_PROPPATCH(self):
        self.body()
        self.answer(403)


# All connections of a client may come at once.
http.server.ThreadingHTTPServer.request_queue_size = 256
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
with open(sys.argv[1] + ".new", "w") as port_file:
    port_file.write(str(server.server_port))
os.rename(sys.argv[1] + ".new", sys.argv[1])
server.serve_forever()
