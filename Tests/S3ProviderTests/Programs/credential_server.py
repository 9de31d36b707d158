"""Plays the services that give credentials, on loopback: STS, SSO, a container's host and the metadata service of EC2.

usage: credential_server.py FOLDER ACCESS_KEY SECRET_KEY

FOLDER/port is written with the port, and FOLDER/log gets a line for each request. FOLDER/mode has words that change the answers:
malformed, silent, status=N, lifetime=SECONDS, number (each answer has another session token).
"""
import datetime
import hashlib
import hmac
import http.server
import json
import os
import sys
import threading
import time
import urllib.parse

folder, access_key, secret_key = sys.argv[1:4]
lock = threading.Lock()
count = 0


def mode():
    try:
        words = open(folder + "/mode").read().split()
    except OSError:
        words = []
    return dict(word.partition("=")[::2] for word in words)


def digest(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def is_signed(handler, body):
    """Whether a request has the signature of AWS (version 4) of the key that the server gives, for STS."""
    kind, _, rest = handler.headers.get("Authorization", "").partition(" ")
    parts = dict(part.strip().split("=", 1) for part in rest.split(",") if "=" in part)
    scope = parts.get("Credential", "").partition("/")[2]
    if kind != "AWS4-HMAC-SHA256" or scope.split("/")[2:] != ["sts", "aws4_request"]:
        return False
    names = parts["SignedHeaders"].split(";")
    fields = "".join("%s:%s\n" % (name, handler.headers[name].strip()) for name in names)
    canonical = "\n".join(["POST", handler.path, "", fields, ";".join(names), hashlib.sha256(body).hexdigest()])
    text = "\n".join([kind, handler.headers["x-amz-date"], scope, hashlib.sha256(canonical.encode()).hexdigest()])
    key = ("AWS4" + secret_key).encode()
    for part in scope.split("/"):
        key = digest(key, part)
    return digest(key, text).hex() == parts["Signature"]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *words):
        pass

    def answer(self, status, body, kind="application/json"):
        if isinstance(body, dict):
            body = json.dumps(body)
        words = mode()
        if "malformed" in words:
            body = "<html>sign in"
        status = int(words.get("status", status))
        body = body.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def note(self, text):
        global count
        with lock:
            count += 1
            with open(folder + "/log", "a") as log:
                log.write(text + "\n")
        if "silent" in mode():
            time.sleep(60)

    def end(self):
        return int(time.time()) + int(mode().get("lifetime", 3600))

    def date(self):
        return datetime.datetime.fromtimestamp(self.end(), datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")

    def token(self):
        return "session %d" % count if "number" in mode() else "session"

    def document(self):
        return {"Code": "Success", "AccessKeyId": access_key, "SecretAccessKey": secret_key, "Token": self.token(),
                "Expiration": self.date()}

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/token":
            self.note("POST /token")
            wanted = {"clientId": "client", "clientSecret": "client secret", "grantType": "refresh_token",
                      "refreshToken": "refresh"}
            if json.loads(body) != wanted:
                return self.answer(400, {"error": "invalid_grant"})
            return self.answer(200, {"accessToken": "bearer", "expiresIn": 3600, "refreshToken": "refresh 2",
                                     "tokenType": "Bearer"})
        form = dict(urllib.parse.parse_qsl(body.decode()))
        action = form.get("Action", "")
        self.note("%s %s %s" % (action, form.get("RoleArn"), form.get("RoleSessionName")))
        if action == "AssumeRole":
            isGood = is_signed(self, body) and form.get("ExternalId", "outside") == "outside"
        else:
            isGood = action == "AssumeRoleWithWebIdentity" and form.get("WebIdentityToken") == "the/identity=="
        if not isGood:
            return self.answer(403, '<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error>'
                               "<Code>AccessDenied</Code></Error></ErrorResponse>", "text/xml")
        self.answer(200, '<%sResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><%sResult><Credentials>'
                    "<AccessKeyId>%s</AccessKeyId><SecretAccessKey>%s</SecretAccessKey><SessionToken>%s</SessionToken>"
                    "<Expiration>%s</Expiration></Credentials></%sResult></%sResponse>"
                    % (action, action, access_key, secret_key, self.token(), self.date(), action, action), "text/xml")

    def do_PUT(self):
        self.note("PUT " + self.path)
        if self.path != "/latest/api/token" or not self.headers.get("X-aws-ec2-metadata-token-ttl-seconds"):
            return self.answer(400, "")
        self.answer(200, "metadata-token", "text/plain")

    def do_GET(self):
        self.note("GET " + self.path)
        roles = "/latest/meta-data/iam/security-credentials/"
        if self.path.startswith(roles):
            if self.headers.get("X-aws-ec2-metadata-token") != "metadata-token":
                return self.answer(401, "")
            if self.path == roles:
                return self.answer(200, "the-role", "text/plain")
            return self.answer(200, self.document()) if self.path == roles + "the-role" else self.answer(404, "")
        if self.path.startswith("/federation/credentials?"):
            query = dict(urllib.parse.parse_qsl(self.path.partition("?")[2]))
            if self.headers.get("x-amz-sso_bearer_token") != "bearer":
                return self.answer(401, "{}")
            if query != {"role_name": "the role", "account_id": "123456789012"}:
                return self.answer(403, "{}")
            return self.answer(200, {"roleCredentials": {
                "accessKeyId": access_key, "secretAccessKey": secret_key, "sessionToken": self.token(),
                "expiration": self.end() * 1000}})
        if self.path == "/role":
            isGood = self.headers.get("Authorization") == "the token"
            return self.answer(200 if isGood else 403, self.document() if isGood else "{}")
        self.answer(404, "")


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
with open(folder + "/port.new", "w") as port:
    port.write(str(server.server_address[1]))
os.rename(folder + "/port.new", folder + "/port")
server.serve_forever()
