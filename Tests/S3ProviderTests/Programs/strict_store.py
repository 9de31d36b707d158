"""A small object store that knows conditions, as the large ones do; it does not look at signatures.

usage: strict_store.py PORTFILE [OPTION]...
expired=TOKEN: requests with this session token are refused.
region=REGION: those signed for another region are.
ignores: conditions are ignored.
ignores=deletes: those of deletions are; ignores=batches: those of deletions of many are; ignores=copies: that the key
of a copy must be free is; ignores=sources: those of what is copied are.
refuses=batches: deletions of many that have conditions are forbidden.
meanwhile=KEY: just before this is deleted for the first time, another client writes it anew.
overtakes=METHOD KEY: the first such request is refused as by a busy server, and another client writes the key then;
with POST it is a deletion of many.
arrives=KEY: just before something is written or copied to this key, or it is looked at by HEAD, another client
writes it.
follows=KEY: just after this was first copied, or copied to, another client writes it.
encrypts: every object has a tag that nothing else has, and another one when it is copied.
bare: listings have tags without quotes.
lists=other: listings show other tags than requests for the objects.
answers=other: the answer to a PUT has another tag than all later answers.
unquoted: a PUT compares If-Match with the tag without its quotes, and a DELETE ignores it, as Ceph's gateway does.
refuses=right: a PUT with If-Match is always refused; refuses=KEY: that of this key is, whatever its tag, and a DELETE.
fails=put: the first write of a hidden name that must be free is answered with 500; fails=copy: the first such copy is.
holds=KEY: once this is written, a hidden name that must be free is written, or copied to, when /release was asked for.
slow=KEY: its deletion takes a second, and is in the log before.
keeps=PREFIX: what begins so is not deleted; refusal=CODE: with this code, and status 400, instead of AccessDenied.
forgets=KEY: its first overwriting is answered as by a proxy, and not stored; forgets=copies: so is the first copy.
breaks=CODE: the first copy is answered with 200 and this error.
portal=KEY: what it is read as is a page of the same length without an ETag.
swift: answers say that it is OpenStack Swift.
ranges=ignored: whole objects are given where a range is requested; ranges=star: the answer has a star as the whole length.
controls=refused: a key with control characters cannot be written.
archived=KEY: its content cannot be read.
untagged=KEY: the answer to a HEAD has no ETag.
coded=KEY: it was written with a Content-Encoding, which is kept; coded=KEY and weak: a proxy weakens its ETag.
denies=KEY: its overwriting is answered with 404; denies=batches: deletions of many are answered with 200 and an error.
loses=KEY: the first copy to this key is made, and answered as by a busy server.
strays: listings have a key of another place besides.
sizeless=KEY: listings do not tell the size of this key.
truncated=TEXT: listings say this of whether they go on.
unlisted=KEY: listings do not show this key, as a busy server's do for a while after it was written.
outdated=KEY: listings show the first object of this key, as a busy server's do for a while after the next is written.
awaits=KEY: the first listing is sent as it is once this key is written, or after thirty seconds.
parts=endless: the list of an upload's parts has two pages that refer to each other; parts=new: it has ever new
parts.
delay=SECONDS: each request takes so long; busy=COUNT: those beyond so many at once are refused.
`/log` is what was asked, a line each; `/most` is how many requests there were at once, `/refused` how many were refused
because the store was busy.
"""

import hashlib
import http.server
import itertools
import os
import re
import sys
import threading
import time
import urllib.parse
import xml.sax.saxutils

options = dict(word.partition("=")[::2] for word in sys.argv[2:])
# By key, the bytes, what tells apart those that are alike, and the metadata.
objects, log, lock, numbers = {}, [], threading.RLock(), itertools.count()
state = {"now": 0, "most": 0, "refused": 0}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Fields and content of an answer are two segments: the second must not wait for the first one's acknowledgement.
    disable_nagle_algorithm = True

    def log_message(self, *arguments):
        pass

    def answer(self, status, body=b"", **fields):
        self.send_response(status)
        for name, value in fields.items():
            self.send_header(name.replace("_", "-"), value)
        if "swift" in options:
            self.send_header("X-Openstack-Request-Id", "one")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def refuse(self, status, code, more=""):
        self.answer(status, f"<Error><Code>{code}</Code><Message>no</Message>{more}</Error>".encode())

    def handle_any(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        url = urllib.parse.urlsplit(self.path)
        if url.path == "/log":
            return self.answer(200, "\n".join(log).encode())
        if url.path == "/release":
            options.pop("holds", None)
            return self.answer(200)
        if url.path in ("/most", "/refused"):
            return self.answer(200, str(state[url.path[1:]]).encode())
        query = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
        key = urllib.parse.unquote(url.path.lstrip("/")).partition("/")[2]
        with lock:
            state["now"] += 1
            state["most"] = max(state["most"], state["now"])
            isBusy = state["now"] > int(options.get("busy", 1 << 30))
        try:
            time.sleep(float(options.get("delay", 0)))
            if self.command == "DELETE" and options.get("slow") == key:
                log.append(f"slow {key}")
                time.sleep(1)
            if isBusy:
                state["refused"] += 1
                return self.refuse(503, "SlowDown")
            self.handle_alone(key, query, body)
        finally:
            with lock:
                state["now"] -= 1

    def handle_alone(self, key, query, body):
        with lock:
            condition = self.headers.get("If-Match") or self.headers.get("If-None-Match") or ""
            log.append(f"{self.command} {key} {condition}".strip())
            if "expired" in options and self.headers.get("x-amz-security-token") == options["expired"]:
                return self.refuse(400, "ExpiredToken")
            scope = self.headers.get("Authorization", "").split("/")
            if "region" in options and scope[2:3] != [options["region"]]:
                return self.refuse(400, "AuthorizationHeaderMalformed", f"<Region>{options['region']}</Region>")
            if self.command == "DELETE" and condition and options.get("refuses") == key:
                return self.refuse(412, "PreconditionFailed")
            method, _, place = options.get("overtakes", "").partition(" ")
            if method == self.command and (place == key or "delete" in query and place.encode() in body):
                del options["overtakes"]
                objects[place] = made(b"theirs")
                return self.refuse(503, "SlowDown")
            getattr(self, "do_" + self.command.lower() + "_object")(key, query, body)

    do_GET = do_HEAD = do_PUT = do_DELETE = do_POST = handle_any

    def do_put_object(self, key, query, body):
        if "controls" in options and re.search("[\x00-\x1f\x7f]", key):
            return self.refuse(400, "InvalidArgument")
        self.let_arrive(key)
        source = self.headers.get("x-amz-copy-source")
        isProbe = self.headers.get("If-None-Match") and re.search(r"/\.yonder", key)
        while isProbe and options.get("holds") in objects:
            lock.release()
            time.sleep(0.01)
            lock.acquire()
        there = objects.get(key)
        if isProbe and options.get("fails") == ("copy" if source else "put"):
            del options["fails"]
            return self.refuse(500, "InternalError")
        isCopied = source and not re.search(r"/\.yonder", key)
        if isCopied and options.get("forgets") == "copies" or there is not None and options.get("forgets") == key:
            options.pop("forgets")
            return self.answer(200, b"<html>welcome</html>")
        if isCopied and "breaks" in options:
            return self.refuse(200, options.pop("breaks"))
        if there is not None and options.get("denies") == key:
            return self.refuse(404, "NoSuchUpload")
        if source:
            place = urllib.parse.unquote(source).lstrip("/").partition("/")[2]
            original = objects.get(place)
            if original is None:
                return self.refuse(404, "NoSuchKey")
            wanted = self.headers.get("x-amz-copy-source-if-match", tag(original))
            if wanted != tag(original) and options.get("ignores") != "sources":
                return self.refuse(412, "PreconditionFailed")
            looks = options.get("ignores", "deletes") not in ("", "copies")
            if looks and self.headers.get("If-None-Match") == "*" and key in objects:
                return self.refuse(412, "PreconditionFailed")
            replaces = self.headers.get("x-amz-metadata-directive") == "REPLACE"
            objects[key] = made(original[0], self.metadata() if replaces else original[2])
            if options.get("loses") == key:
                del options["loses"]
                return self.refuse(503, "SlowDown")
            copy = objects[key]
            if options.get("follows") in (key, place):
                objects[options.pop("follows")] = made(b"theirs")
            text = f"<CopyObjectResult><ETag>{xml.sax.saxutils.escape(tag(copy))}</ETag></CopyObjectResult>"
            return self.answer(200, text.encode())
        if options.get("ignores") != "":
            if self.headers.get("If-None-Match") == "*" and there is not None:
                return self.refuse(412, "PreconditionFailed")
            wanted = self.headers.get("If-Match")
            if wanted and there is None:
                return self.refuse(404, "NoSuchKey")
            if wanted and wanted != tag(there).strip('"' if "unquoted" in options else ""):
                return self.refuse(412, "PreconditionFailed")
            if wanted and options.get("refuses") in ("right", key):
                return self.refuse(412, "PreconditionFailed")
        objects[key] = made(body, self.metadata())
        self.answer(200, ETag=tag(objects[key], b"answered" if "answers" in options else b""))

    def metadata(self):
        kept = ("content-type", "content-encoding", "content-language", "content-disposition", "cache-control", "expires")
        return {name.lower(): value for name, value in self.headers.items()
                if name.lower().startswith("x-amz-meta-") or name.lower() in kept}

    def let_arrive(self, key):
        if options.get("arrives") == key:
            del options["arrives"]
            objects[key] = made(b"theirs")

    def do_delete_object(self, key, query, body):
        if "keeps" in options and key.startswith(options["keeps"]):
            return self.refuse(400 if "refusal" in options else 403, options.get("refusal", "AccessDenied"))
        looks = options.get("ignores", "batches") in ("batches", "sources") and "unquoted" not in options
        if not deletes(key, self.headers.get("If-Match") if looks else None):
            return self.refuse(412, "PreconditionFailed")
        self.answer(204)

    def do_post_object(self, key, query, body):
        if options.get("denies") == "batches":
            return self.refuse(200, "InternalError")
        refused = ""
        for listed in re.findall("<Object>(.*?)</Object>", body.decode()):
            key, wanted = (re.search(f"<{name}>(.*?)</{name}>", listed) for name in ("Key", "ETag"))
            wanted = wanted and options.get("ignores", "sources") == "sources" and xml.sax.saxutils.unescape(wanted[1], {"&quot;": '"'})
            isKept = "keeps" in options and key[1].startswith(options["keeps"])
            if isKept or wanted and options.get("refuses") == "batches":
                code = options.get("refusal", "AccessDenied")
                refused += f"<Error><Key>{key[1]}</Key><Code>{code}</Code></Error>"
            elif not deletes(xml.sax.saxutils.unescape(key[1]), wanted):
                refused += f"<Error><Key>{key[1]}</Key><Code>PreconditionFailed</Code></Error>"
        self.answer(200, f"<DeleteResult>{refused}</DeleteResult>".encode())

    def do_head_object(self, key, query, body):
        self.let_arrive(key)
        self.do_get_object(key, query, body)

    def do_get_object(self, key, query, body):
        if "list-type" in query:
            return self.list(query)
        if "uploadId" in query and options.get("parts"):
            last = int(query.get("part-number-marker", 0))
            number = last + 1 if options["parts"] == "new" or last == 1 else 1
            return self.answer(200, (
                "<ListPartsResult><IsTruncated>true</IsTruncated>"
                f"<NextPartNumberMarker>{number}</NextPartNumberMarker><Part><PartNumber>{number}</PartNumber>"
                "<ETag>tag</ETag></Part></ListPartsResult>").encode())
        if key not in objects:
            return self.refuse(404, "NoSuchKey")
        if options.get("archived") == key and self.command == "GET":
            return self.refuse(403, "InvalidObjectState")
        if options.get("portal") == key and self.command == "GET":
            return self.answer(200, b"<html>".ljust(len(objects[key][0]))[:len(objects[key][0])])
        wanted = self.headers.get("If-Match")
        if wanted and wanted != tag(objects[key]):
            return self.refuse(412, "PreconditionFailed")
        date = {"Last-Modified": "Wed, 01 Jan 2020 00:00:00 GMT" if objects[key] == listed(key) else
                "Thu, 02 Jan 2020 00:00:00 GMT"}
        if self.headers.get("Range") == "bytes=0-0" and options.get("ranges") != "ignored":
            if not objects[key][0]:
                return self.refuse(416, "InvalidRange")
            total = "*" if "ranges" in options else len(objects[key][0])
            date["Content-Range"] = f"bytes 0-0/{total}"
            return self.answer(206, objects[key][0][:1], ETag=tag(objects[key]), **date, **objects[key][2])
        fields = {"ETag": tag(objects[key]), **date, **objects[key][2]}
        if options.get("coded") == key:
            fields["Content-Encoding"] = "gzip"
            fields["ETag"] = ("W/" if "weak" in options else "") + fields["ETag"]
        if options.get("untagged") == key and self.command == "HEAD":
            del fields["ETag"]
        self.answer(200, objects[key][0], **fields)

    def list(self, query):
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter")
        parts, below = [], []
        for key in sorted(objects, key=str.encode):
            if not key.startswith(prefix) and not ("strays" in options and key == "elsewhere"):
                continue
            if key == options.get("unlisted"):
                continue
            rest = key[len(prefix):]
            if delimiter and delimiter in rest:
                folder = prefix + rest.split(delimiter)[0] + delimiter
                if folder not in below:
                    below.append(folder)
                continue
            shown = tag(listed(key), b"listed" if "lists" in options else b"").strip('"' if "bare" in options else "")
            size = "" if key == options.get("sizeless") else len(listed(key)[0])
            parts.append(f"<Contents><Key>{urllib.parse.quote(key)}</Key><Size>{size}</Size><ETag>"
                         f"{shown}</ETag><LastModified>2020-01-01T00:00:00.000Z</LastModified></Contents>")
        awaited, until = options.pop("awaits", None), time.time() + 30
        while awaited and awaited not in objects and time.time() < until:
            lock.release()
            time.sleep(0.01)
            lock.acquire()
        parts += [f"<CommonPrefixes><Prefix>{urllib.parse.quote(p)}</Prefix></CommonPrefixes>" for p in below]
        self.answer(200, ("<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>"
                          + options.get("truncated", "false") + "</IsTruncated>"
                          + "".join(parts) + "</ListBucketResult>").encode())


def listed(key):
    return state.setdefault("first", objects[key]) if key == options.get("outdated") else objects[key]


def made(body, metadata={}):
    return body, next(numbers) if "encrypts" in options else 0, metadata


def tag(there, other=b""):
    return '"' + hashlib.md5(other + there[0] + (b"#%d" % there[1] if there[1] else b"")).hexdigest() + '"'


def deletes(key, wanted):
    if key == options.get("meanwhile") and key in objects:
        del options["meanwhile"]
        objects[key] = made(b"theirs")
    if wanted and key in objects and wanted != tag(objects[key]):
        return False
    objects.pop(key, None)
    return True


# Of more connections at once the system drops some, and tries again after a second.
http.server.ThreadingHTTPServer.request_queue_size = 128
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
with open(sys.argv[1] + ".new", "w") as file:
    file.write(str(server.server_address[1]))
os.rename(sys.argv[1] + ".new", sys.argv[1])
parent = os.getppid()
threading.Thread(target=server.serve_forever, daemon=True).start()
while os.getppid() == parent:
    time.sleep(0.5)
