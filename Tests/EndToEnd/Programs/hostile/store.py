"""An S3 store that is hostile in one way per bucket, and honest about the rest of that bucket.

usage: store.py FILE
The bucket NAME has the honest objects `good` and `later`, and below the prefix `evil/` the scenario NAME happens. Signatures are not checked.
"""

import hashlib
import itertools
import random
import re
import time
import urllib.parse
from xml.sax.saxutils import escape

import served

DATE = "2020-01-01T00:00:00.000Z"
BIG = served.BIG


def key(name, size=5, etag='"one"', date=DATE):
    length = "" if size is None else f"<Size>{size}</Size>"
    return f"<Contents><Key>{name}</Key><LastModified>{date}</LastModified><ETag>{escape(etag)}</ETag>{length}</Contents>"


def prefix(name):
    return f"<CommonPrefixes><Prefix>{name}</Prefix></CommonPrefixes>"


def result(inner, more="<IsTruncated>false</IsTruncated>"):
    return f"<ListBucketResult><EncodingType>url</EncodingType>{more}{inner}</ListBucketResult>"


# What lies below `evil/`, as parts of an otherwise honest listing.
ENTRIES = {
    "key-dot-dot": key("evil/..") + key("evil/../../x") + key("evil/.") + prefix("evil/../"),
    "key-slashes": key("evil//x") + prefix("evil//") + key("/etc/passwd") + key("evil/"),
    "key-nul": key("evil/nul%00byte"),
    "key-too-long": key("evil/" + "n" * 300) + key("evil/" + "n/" * 600 + "x"),
    "key-not-utf8": key("evil/%FF%FE") + prefix("evil/%C3%28/"),
    "key-control": key("evil/a%0Ayonderd%20error%20forged") + key("evil/b%1B%5B2J%07") + key("evil/a&#10;b"),
    "key-twice": key("evil/same") + key("evil/same", 9, '"two"') + prefix("evil/same/"),
    "key-twins": key("evil/%C3%A9") + key("evil/e%CC%81") + key("evil/A") + key("evil/a"),
    "key-ours": "".join(key("evil/" + name) for name in (
        ".yonder-partial-1", "%25yonder-1", ".Trash-0", "x.rclonelink", "x%20(conflicted%20copy%20of%20h,%20d)")),
    "key-empty": key("") + prefix("") + key(" "),
    "key-bad-percent": key("evil/%zz") + key("evil/%"),
    "key-elsewhere": key("outside/x") + key("evilx") + prefix("outside/") + prefix("evil") + key("good"),
    "size-2-63": key("evil/file", 2**63 - 1),
    "size-2-64": key("evil/file", 2**64) + key("evil/more", "9" * 400),
    "size-2-62": key("evil/file", 2**62) + key("evil/more", 2**62 + 1),
    "size-negative": key("evil/file", -1),
    "size-no-number": key("evil/file", "five") + key("evil/more", ""),
    "size-missing": key("evil/file", None),
    "size-not-zero": key("evil/file", 0),
    "date-far": key("evil/a", date="999999999-01-01T00:00:00Z") + key("evil/b", date="0000-00-00T00:00:00Z") + key("evil/c", date="-9-01-01T00:00:00Z"),
    "date-no-date": key("evil/a", date="yesterday") + key("evil/b", date="") + key("evil/c", date="9" * 100_000),
    "etag-empty": key("evil/file", etag=""),
    "etag-odd": key("evil/file", etag='W/"a\nb') + key("evil/more", etag="&,;"),
    "link-hostile": key("evil/link.rclonelink", 14) + key("evil/other.rclonelink", 1 << 40),
    "many-keys": "".join(key(f"evil/{number:06}") for number in range(20_000)),
    "order-none": key("evil/z") + key("evil/a") + prefix("evil/m/") + key("evil/b"),
    **dict.fromkeys((
        "length-longer", "length-shorter", "length-none", "length-huge", "length-negative", "chunks-broken", "gzip-bomb", "body-xml-error",
        "body-never", "body-drips", "status-204", "status-401", "status-403", "status-500", "status-503", "status-1xx", "header-huge", "redirect-loop",
        "redirect-closed", "redirect-region", "etag-changes", "not-http", "gone"), key("evil/file")),
    **dict.fromkeys((
        "range-one-byte", "range-wrong", "range-other-total", "range-ignored", "range-416", "range-no-field"), key("evil/file", 8 * BIG)),
    **dict.fromkeys((
        "put-forgets", "put-500", "put-503", "put-early", "put-other-etag", "put-denied", "put-conditions-wrong", "put-conditions-always-412",
        "delete-denied"), key("evil/file")),
}
LISTINGS = {
    "xml-cut": lambda: result(key("evil/file"))[:-30],
    "xml-entities": lambda: '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>' + result(key("evil/&b;")),
    "xml-external": lambda: '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>' + result(key("evil/&a;")),
    "xml-attributes": lambda: result("<Contents " + " ".join(f'a{n}="1"' for n in range(100_000)) + "/>"),
    "xml-deep": lambda: result("<a>" * 100_000 + "</a>" * 100_000),
    "xml-long-text": lambda: result(key("evil/" + "x" * (32 * BIG))),
    "xml-nul-reference": lambda: result(key("evil/a&#0;b")),
    "etag-huge": lambda: result(key("evil/file", etag='"' + "e" * BIG + '"')),
    "xml-html": lambda: "<html>log in",
    "xml-nothing": lambda: "",
    "xml-no-truth": lambda: result(key("evil/file"), ""),
    "xml-error-in-200": lambda: "<Error><Code>InternalError</Code><Message>no</Message></Error>",
    "token-missing": lambda: result(key("evil/file"), "<IsTruncated>true</IsTruncated>"),
    "token-empty": lambda: result(key("evil/file"), "<IsTruncated>true</IsTruncated><NextContinuationToken/>"),
    "token-same": lambda: result(key("evil/file"), "<IsTruncated>true</IsTruncated><NextContinuationToken>A</NextContinuationToken>"),
    "token-new-forever": lambda: result(key("evil/file"), f"<IsTruncated>true</IsTruncated><NextContinuationToken>{random.random()}</NextContinuationToken>"),
    "token-huge": lambda: result(key("evil/file"), f"<IsTruncated>true</IsTruncated><NextContinuationToken>{'t' * BIG}</NextContinuationToken>"),
}
ANSWERS = {"token-cycle", "listing-never", "listing-drips", "listing-500", "listing-403", "listing-endless", "listing-reset"}
SCENARIOS = [*ENTRIES, *LISTINGS, *sorted(ANSWERS)]
XML = [("Content-Type", "application/xml")]
OK = b'HTTP/1.1 200 OK\r\nETag: "one"\r\n'


class Handler(served.Handler):
    stored = {}
    port = 0

    def refuse(self, status, code):
        self.answer(status, f"<Error><Code>{code}</Code><Message>no</Message></Error>".encode(), XML)

    def split(self):
        url = urllib.parse.urlsplit(self.path)
        bucket, _, name = urllib.parse.unquote(url.path).lstrip("/").partition("/")
        return bucket, name, dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))

    def tag(self, place):
        if place[0] == "put-other-etag":
            return f'"{random.random()}"'
        return '"' + hashlib.md5(self.stored[place]).hexdigest() + '"'

    # Listings

    def list(self, bucket, query):
        wanted = query.get("prefix", "")
        if not wanted.startswith("evil"):
            inner = key("good") + key("later", 6)
            inner = "".join(one for one in (key("good"), key("later", 6)) if f"<Key>{wanted}" in one)
            if query.get("delimiter"):
                inner += prefix("evil/") if "evil/".startswith(wanted) else ""
            elif bucket in ENTRIES:
                inner = ENTRIES[bucket] + inner
            return self.answer(200, result(inner + self.kept(bucket, wanted, query)).encode(), XML)
        if bucket in LISTINGS:
            return self.answer(200, LISTINGS[bucket]().encode(), XML)
        if bucket in ANSWERS:
            return getattr(self, bucket.replace("-", "_"))(query)
        inner = ENTRIES[bucket]
        if "/" in wanted[5:]:
            inner = ""
        elif wanted != "evil/":
            inner = "".join(one for one in re.findall("<Contents>.*?</Contents>", inner) if f"<Key>{wanted}" in one)
        self.answer(200, result(inner + self.kept(bucket, wanted, query)).encode(), XML)

    def kept(self, bucket, wanted, query):
        return "".join(
            key(urllib.parse.quote(name), len(body), self.tag((bucket, name))) for (at, name), body in sorted(self.stored.items())
            if at == bucket and name.startswith(wanted) and not (query.get("delimiter") and "/" in name[len(wanted):]))

    def token_cycle(self, query):
        following = "B" if query.get("continuation-token") == "A" else "A"
        self.answer(200, result(
            key("evil/file"), f"<IsTruncated>true</IsTruncated><NextContinuationToken>{following}</NextContinuationToken>").encode(), XML)

    def listing_never(self, query): time.sleep(600)
    def listing_500(self, query): self.refuse(500, "InternalError")
    def listing_403(self, query): self.refuse(403, "AccessDenied")
    def listing_reset(self, query): self.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n<ListBucketResult>")

    def listing_drips(self, query):
        self.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", served.drip(b"<ListBucketResult>".ljust(100_000), 0.5))

    def listing_endless(self, query):
        keys = (key(f"evil/{n:08}").encode() for n in itertools.count())
        self.raw(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n<ListBucketResult>", itertools.islice(keys, 300_000))

    # Objects

    def do_GET(self):
        self.body()
        bucket, name, query = self.split()
        if bucket not in SCENARIOS:
            return self.refuse(404, "NoSuchBucket")
        if "uploads" in query:
            return self.answer(200, b"<ListMultipartUploadsResult/>", XML)
        if not name:
            return self.list(bucket, query)
        if name in ("good", "later"):
            return self.answer(200, f"{name}\n".encode(), [("ETag", '"one"')])
        if (bucket, name) in self.stored:
            return self.conditional(bucket, name)
        hook = getattr(self, bucket.replace("-", "_"), None)
        if hook and name.startswith("evil/"):
            return hook()
        if not name.startswith("evil/") or f"<Key>{name}</Key>" not in ENTRIES.get(bucket, ""):
            return self.refuse(404, "NoSuchKey")
        self.answer(200, b"hello", [("ETag", '"one"')])

    def conditional(self, bucket, name):
        tag = self.tag((bucket, name))
        if self.headers.get("If-Match", tag) != tag:
            return self.refuse(412, "PreconditionFailed")
        self.answer(200, self.stored[bucket, name], [("ETag", tag)])

    def do_HEAD(self):
        bucket, name, _ = self.split()
        if name in ("good", "later"):
            return self.answer(200, f"{name}\n".encode(), [("ETag", '"one"')])
        if (bucket, name) in self.stored:
            return self.conditional(bucket, name)
        if name and f"<Key>{name}</Key>" not in ENTRIES.get(bucket, ""):
            return self.answer(404)
        self.answer(200, b"hello", [("ETag", '"one"')])

    def length_longer(self): self.answer(200, b"hel", [("ETag", '"one"')], length=5)
    def length_shorter(self): self.raw(OK + b"Content-Length: 3\r\n\r\nhello and more")
    def length_none(self): self.raw(OK + b"\r\nhel")
    def length_huge(self): self.raw(OK + b"Content-Length: 9223372036854775807\r\n\r\nhello")
    def length_negative(self): self.raw(OK + b"Content-Length: -5\r\n\r\nhello")
    def chunks_broken(self): self.raw(OK + b"Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\nzz\r\nlo\r\n0\r\n\r\n")
    def body_xml_error(self): self.refuse(200, "InternalError")
    def body_never(self): time.sleep(600)
    def body_drips(self): self.raw(OK + b"Content-Length: 5\r\n\r\n", served.drip(b"hello", 20))
    def status_204(self): self.answer(204)
    def status_401(self): self.refuse(401, "Unauthorized")
    def status_403(self): self.refuse(403, "AccessDenied")
    def status_500(self): self.refuse(500, "InternalError" * 100_000)
    def status_503(self): self.answer(503, b"<Error><Code>SlowDown</Code></Error>", [("Retry-After", "99999999999999999999")])
    def status_1xx(self): self.raw((b"HTTP/1.1 103 Early Hints\r\n\r\n" for _ in range(100_000)), OK + b"Content-Length: 5\r\n\r\nhello")
    def header_huge(self): self.raw(OK, (b"X-%d: " % n + b"x" * 1000 + b"\r\n" for n in range(20_000)), b"\r\n")
    def redirect_loop(self): self.answer(307, fields=[("Location", self.path)])
    def redirect_closed(self): self.answer(307, fields=[("Location", "http://127.0.0.1:1/")])
    def redirect_region(self):
        self.answer(301, b"<Error><Code>PermanentRedirect</Code><Endpoint>127.0.0.1:1</Endpoint></Error>",
                    [("x-amz-bucket-region", "evil\x1b[2J-1")])
    def etag_changes(self): self.answer(200, b"hello", [("ETag", f'"{random.random()}"')])
    def size_not_zero(self): self.answer(200, b"hello", [("ETag", '"one"')])
    def link_hostile(self): self.answer(200, b"/etc/\0passwd\n\n", [("ETag", '"one"')])
    def not_http(self): self.raw(b"SSH-2.0-OpenSSH_9.2\r\n" * 100)
    def gone(self): self.refuse(404, "NoSuchKey")

    def gzip_bomb(self):
        import zlib
        press = zlib.compressobj(9, zlib.DEFLATED, 31)
        bomb = b"".join(press.compress(bytes(BIG)) for _ in range(200)) + press.flush()
        self.answer(200, bomb, [("ETag", '"one"'), ("Content-Encoding", "gzip")])

    def range_416(self): self.answer(416, fields=[("Content-Range", "bytes */0")])

    # Changes

    def do_PUT(self):
        bucket, name, query = self.split()
        if bucket == "put-early":
            return self.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        body = self.body()
        if bucket in ("put-500", "put-503", "put-denied"):
            return self.refuse(int(bucket[4:]) if bucket != "put-denied" else 403, "No")
        if self.headers.get("x-amz-copy-source"):
            return self.refuse(501, "NotImplemented")
        there = self.stored.get((bucket, name))
        if bucket == "put-conditions-always-412" and self.headers.get("If-Match"):
            return self.refuse(412, "PreconditionFailed")
        if bucket != "put-conditions-wrong":
            if self.headers.get("If-None-Match") == "*" and there is not None:
                return self.refuse(412, "PreconditionFailed")
            if self.headers.get("If-Match") and (there is None or self.headers["If-Match"] != self.tag((bucket, name))):
                return self.refuse(412, "PreconditionFailed")
        if bucket == "put-forgets":
            return self.answer(200, fields=[("ETag", '"lost"')])
        self.stored[bucket, name] = body
        self.answer(200, fields=[("ETag", self.tag((bucket, name)))])

    def do_DELETE(self):
        self.body()
        bucket, name, _ = self.split()
        if bucket == "delete-denied":
            return self.refuse(403, "AccessDenied")
        self.stored.pop((bucket, name), None)
        self.answer(204)

    def do_POST(self):
        self.body()
        self.refuse(501, "NotImplemented")


served.serve(Handler, SCENARIOS)
