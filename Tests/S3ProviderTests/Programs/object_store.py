"""OpenStack Swift with its S3 API, in one process: an object store that checks signatures.

usage: object_store.py FOLDER REGION   (with the system's python3, which has Debian's packages)
Everything is below FOLDER; its file `port` is there when it answers. Access key test:tester, secret testing.
Ends with the process that started it.
"""

import eventlet

eventlet.patcher.monkey_patch(all=False, socket=True, select=True, thread=True)

import json
import logging
import os
import socket
import sys
import time

from eventlet import wsgi
from swift.common import utils
from swift.common.ring import RingBuilder

folder, region = os.path.abspath(sys.argv[1]), sys.argv[2]
devices = os.path.join(folder, "devices")
os.makedirs(os.path.join(devices, "one"), exist_ok=True)
utils.HASH_PATH_PREFIX, utils.HASH_PATH_SUFFIX = b"", b"yonder"
with open(os.path.join(folder, "swift.conf"), "w") as file:
    file.write("[swift-hash]\nswift_hash_path_suffix = yonder\n[storage-policy:0]\nname = one\ndefault = yes\n")
utils.SWIFT_CONF_FILE = os.path.join(folder, "swift.conf")
logging.disable(logging.CRITICAL)

from swift.common import storage_policy, wsgi as swift_wsgi
from swift.obj.updater import ObjectUpdater

storage_policy.reload_storage_policies()

COMMON = f"""[DEFAULT]
swift_dir = {folder}
devices = {devices}
mount_check = false
bind_ip = 127.0.0.1
log_level = ERROR
fallocate_reserve = 0
disable_fallocate = true
"""


class Cache:
    """In the place of memcached, which the S3 API asks for."""

    def __init__(self):
        self.values = {}

    def get(self, key, raise_on_error=False):
        text, end = self.values.get(key, (None, 0))
        return json.loads(text) if text is not None and end > time.time() else None

    def set(self, key, value, serialize=True, time=0, min_compress_len=0, raise_on_error=False):
        self.values[key] = (json.dumps(value), __import__("time").time() + min(time or 60, 60))

    def delete(self, key, server_key=None):
        self.values.pop(key, None)

    def incr(self, key, delta=1, time=0):
        value = int(self.get(key) or 0) + delta
        self.set(key, value, time=time)
        return value

    def decr(self, key, delta=1, time=0):
        return self.incr(key, -delta, time)


def cached(app, cache):
    def answer(environment, start_response):
        environment["swift.cache"] = cache
        return app(environment, start_response)
    return answer


def listen():
    listener = eventlet.listen(("127.0.0.1", 0), backlog=256)
    # As Swift's own servers do: else the end of each chunked body waits for the acknowledgement of its beginning.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def serve(name, socket, text):
    path = os.path.join(folder, f"{name}-server.conf")
    with open(path, "w") as file:
        file.write(COMMON + text)
    app = swift_wsgi.loadapp(path, global_conf={"log_name": name})
    if name == "proxy":
        app = cached(app, Cache())
    pool = eventlet.GreenPool(512)
    eventlet.spawn(wsgi.server, socket, app, logging.getLogger("silent"), custom_pool=pool, log_output=False,
                   capitalize_response_headers=False, protocol=swift_wsgi.SwiftHttpProtocol)


sockets = {name: listen() for name in ("account", "container", "object", "proxy")}
for name in ("account", "container", "object"):
    builder = RingBuilder(2, 1, 0)
    builder.add_dev({"region": 1, "zone": 1, "ip": "127.0.0.1", "port": sockets[name].getsockname()[1], "device": "one",
                     "weight": 1, "replication_ip": "127.0.0.1", "replication_port": sockets[name].getsockname()[1]})
    builder.rebalance()
    builder.get_ring().save(os.path.join(folder, f"{name}.ring.gz"))
for name in ("account", "container", "object"):
    serve(name, sockets[name], f"[pipeline:main]\npipeline = {name}-server\n[app:{name}-server]\nuse = egg:swift#{name}\n")
serve("proxy", sockets["proxy"], f"""
[pipeline:main]
pipeline = catch_errors gatekeeper s3api tempauth slo dlo proxy-server
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:gatekeeper]
use = egg:swift#gatekeeper
[filter:s3api]
use = egg:swift#s3api
location = {region}
min_segment_size = 1024
max_upload_part_num = 10000
[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = testing .admin
user_test_stranger = stranger
[filter:slo]
use = egg:swift#slo
[filter:dlo]
use = egg:swift#dlo
""")
with open(os.path.join(folder, "port.new"), "w") as file:
    file.write(str(sockets["proxy"].getsockname()[1]))
os.rename(os.path.join(folder, "port.new"), os.path.join(folder, "port"))
# As beside every Swift, but sooner: without it listings never show some objects, and others for ever, whose containers could
# not be told of them within a few seconds.
updater = ObjectUpdater({"swift_dir": folder, "devices": devices, "mount_check": "false", "recon_cache_path": folder})
due = time.time() + 5
parent = os.getppid()
while os.getppid() == parent:
    eventlet.sleep(0.5)
    if time.time() > due:
        updater.run_once()
        due = time.time() + 5
