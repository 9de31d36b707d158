#!/usr/bin/env python3
"""Serves a folder by the paths level of Docs/Protocol.md, to read and write. For tests; its location is the folder.

Option `fault`: what is wrong with this program, see FAULTS.
"""
import json, os, shutil, stat, sys, time

root, options, faults = "", {}, set()
current = 0  # The id of the present call.


class Failure(Exception):
    def __init__(self, code, message, **data):
        super().__init__(message)
        self.data = {"code": code, **data}


def place(path):
    return os.path.join(root, path) if path else root


def entry(path):
    try:
        status = os.lstat(place(path))
    except (FileNotFoundError, NotADirectoryError):
        raise Failure("noSuchItem", f"no '{path}'")
    kind = {stat.S_IFDIR: "directory", stat.S_IFLNK: "symlink"}.get(stat.S_IFMT(status.st_mode), "file")
    result = {
        "name": os.path.basename(path), "kind": kind, "modified": status.st_mtime_ns // 1000 / 1e6,
        "permissions": stat.S_IMODE(status.st_mode),
    }
    if kind == "file":
        result["size"] = status.st_size
        result["tag"] = f"{status.st_mtime_ns}-{status.st_size}-{status.st_ino}"
        if "ctime-tags" in faults:
            result["tag"] += f"-{status.st_ctime_ns}"
        if "odd-tags" in faults:
            result["tag"] += "\x9b31m\u202e"
        if "size" in faults:
            result["size"] += 5
    if kind == "symlink":
        result["target"] = os.readlink(place(path))
    return result


def present(path):
    try:
        return entry(path)
    except Failure:
        return None


def require(params, path):
    """The conditions of a change."""
    if "overwrites" in faults:
        return
    found = present(path)
    if params.get("ifAbsent") and found:
        raise Failure("filenameCollision", f"'{path}' exists", entry=found)
    if "ifTag" in params and "no-if-tag" not in faults and (found or {}).get("tag") != params["ifTag"]:
        raise Failure("localVersionConflictingWithServer", f"'{path}' is another", **({"entry": found} if found else {}))
    hidden = ".yonder-partial-" if "no-hidden" not in faults else "/"
    if params.get("ifEmpty") and any(not n.startswith(hidden) for n in os.listdir(place(path))):
        raise Failure("directoryNotEmpty", f"'{path}' has items", entry=found)
    parent = os.path.dirname(path)
    if not os.path.isdir(place(parent)):
        raise Failure("noSuchItem", f"no '{parent}'")


def dress(path, params):
    if "forgets" in faults:
        return {"entry": entry(path)}
    if "permissions" in params and not os.path.islink(place(path)):
        os.chmod(place(path), params["permissions"])
    if "modified" in params:
        time = round(params["modified"] * 1e6) * 1000
        os.utime(place(path), ns=(time, time), follow_symlinks=False)
    return {"entry": entry(path)}


def initialize(params):
    global root, options
    root, options = params["location"], params["options"]
    faults.update(options.get("fault", "").split(","))
    if "dump" in faults:
        with open(root + ".dump", "a") as dump:
            print(dict(os.environ), sys.argv, params["readOnly"], json.dumps(params["secrets"]), sep="\n", file=dump)
    if os.path.exists(root + ".failure"):
        with open(root + ".failure") as failure:
            raise Failure(failure.read(), "not today")
    if "version" in faults:
        return {"version": 99, "level": "paths"}
    features = dict(
        writing="readonly" not in faults, ranges="whole" not in faults, conditions="unconditional" not in faults,
        symbolicLinks=True, modified=True, permissions=True, strongTags=True, thumbnails="no-thumbnails" not in faults,
        uploadProgress=bool({"tells-sent", "lies-about-sent"} & faults), quota=True, calls=8)
    return {"version": 1, "level": "paths", "features": features}


def listing(params):
    if not os.path.isdir(place(params["path"])) or os.path.islink(place(params["path"])):
        raise Failure("noSuchItem", "no such directory")
    names = sorted(os.listdir(place(params["path"])))
    if "conceals" in faults:
        names = [name for name in names if not name.startswith(".")]
    after = params.get("page")
    rest = [name for name in names if after is None or name > after]
    page = rest[: params["limit"]]
    entries = [found for name in page if (found := present(os.path.join(params["path"], name)))]
    if "repeats" in faults:
        entries += entries[:1]
    if "unusable" in faults:
        entries += [
            {"name": "a/b", "kind": "file", "size": 1}, {"name": "evil", "kind": "socket"},
            {"name": "negative", "kind": "file", "size": -1}, {"name": "mode", "kind": "directory", "permissions": 70000},
            {"name": "link", "kind": "symlink"}, {"kind": "directory"}, None]
    return {"entries": entries, **({"next": page[-1]} if len(rest) > len(page) else {})}


def read(params):
    found = entry(params["path"])
    if "tag" in params and found["tag"] != params["tag"] and "ignores-tag" not in faults:
        raise Failure("versionNoLongerAvailable", "another version")
    with open(place(params["path"]), "rb") as source, open(params["into"], "r+b") as into:
        source.seek(params["offset"])
        into.seek(params["offset"])
        into.write(source.read(params.get("length", -1)))
    return {"entry": entry(params["path"])}


first = {}


def thumbnail(params):
    """A picture is its own thumbnail, and no other file has one."""
    entry(params["path"])
    if "forbidden" in params["path"]:
        raise Failure("fileReadNoPermission", "its thumbnail is forbidden")
    with open(place(params["path"]), "rb") as source:
        image = source.read()
    if not image.startswith(b"\x89PNG"):
        return {}
    if "stale-thumbnails" in faults:
        image = first.setdefault(params["path"], image)
    into, size = params["into"], len(image)
    other = os.path.join(os.path.dirname(into), "other")
    if "hangs-at-thumbnails" in faults:
        time.sleep(3600)
    if "names-another-file" in faults:
        return {"size": size, "into": place(params["path"])}
    if "links-elsewhere" in faults:
        os.unlink(into)
        os.symlink(place(params["path"]), into)
        return {"size": size}
    if "replaces-file" in faults:
        shutil.copyfile(place(params["path"]), other)
        os.rename(other, into)
        return {"size": size}
    with open(into, "r+b") as target:
        target.write(image)
    if "large-thumbnails" in faults:
        size = (4 << 20) + 1
        os.truncate(into, size)
    if "cuts-thumbnails" in faults:
        os.truncate(into, size - 1)
    if "tells-no-size" in faults:
        return {}
    return {"size": str(size) if "tells-text" in faults else -size if "tells-negative" in faults else size}


def tell_sent(call, *numbers):
    for sent in numbers:
        print(json.dumps({"jsonrpc": "2.0", "method": "progress", "params": {"id": call, "sent": sent}}), flush=True)


def write(params):
    path = params["path"]
    if "tells-sent" in faults or "not-announced" in faults:
        tell_sent(current, params["size"] // 4, params["size"] // 2)
    if "lies-about-sent" in faults:
        tell_sent(4711, params["size"])
        tell_sent(current - 1, params["size"])
        tell_sent(current, -5, 3, 1, 3.5, 1 << 70, -(1 << 70), 2)
    require(params, path)
    hidden = os.path.join(os.path.dirname(place(path)), f".yonder-partial-{os.getpid()}-{time.monotonic_ns():x}")
    shutil.copyfile(params["from"], hidden)
    if "half" in faults:
        os.truncate(hidden, params["size"] // 2)
    if "permissions" in params:
        os.chmod(hidden, params["permissions"])
    os.rename(hidden, place(path))
    return dress(path, params)


def make_directory(params):
    require(params, params["path"])
    os.mkdir(place(params["path"]))
    return dress(params["path"], params)


def make_link(params):
    require(params, params["path"])
    os.symlink(params["target"], place(params["path"]))
    return dress(params["path"], params)


def move(params):
    entry(params["path"])
    require(params, params["to"])
    os.rename(place(params["path"]), place(params["to"]))
    return {"entry": entry(params["to"])}


def delete(params):
    if not present(params["path"]):
        return {}
    require(params, params["path"])
    if params["kind"] == "directory":
        shutil.rmtree(place(params["path"]))
    else:
        os.unlink(place(params["path"]))
    return {}


def quota(params):
    usage = shutil.disk_usage(root)
    return {"free": usage.free, "total": usage.total}


METHODS = dict(
    initialize=initialize, stat=lambda p: {"entry": entry(p["path"])}, list=listing, read=read, thumbnail=thumbnail, write=write,
    makeDirectory=make_directory, makeLink=make_link, move=move, delete=delete, quota=quota,
    setAttributes=lambda p: (entry(p["path"]), dress(p["path"], p))[1])


def misbehave(request):
    """The faults, each but those of an entry or of the start once per marker file in the folder."""
    for fault in faults - {""}:
        if request["method"] != "list" or fault in ("readonly", "whole", "unconditional", "size", "dump", "version", "overwrites", "half"):
            continue
        if fault == "crash":
            marker = root + ".crashed"
            if not os.path.exists(marker):
                open(marker, "w").close()
                os.kill(os.getpid(), 9)
        elif fault == "crashes":
            os._exit(3)
        elif fault == "hang":
            with open(root + ".hangs", "w") as file: file.write(str(os.getpid()))
            time.sleep(3600)
        elif fault == "long-line":
            piece = "x" * (1 << 20)
            while True:
                sys.stdout.write(piece)
        elif fault == "garbage":
            print("Traceback (most recent call last):", flush=True)
        elif fault == "unknown-id":
            print(json.dumps({"jsonrpc": "2.0", "id": 4711, "result": {}}), flush=True)
        elif fault == "wrong-type":
            print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": {"entries": 5}}), flush=True)
            return True
        elif fault == "text-id":
            print(json.dumps({"jsonrpc": "2.0", "id": str(request["id"]), "result": {"entries": []}}), flush=True)
            return True
        elif fault == "bad-code":
            print(json.dumps({"jsonrpc": "2.0", "id": request["id"],
                              "error": {"code": 1, "message": "oops", "data": {"code": "posix"}}}), flush=True)
            return True
        elif fault == "late-code":
            code = "filenameCollision" if os.path.exists(root + ".late") else "providerDomainTemporarilyUnavailable"
            open(root + ".late", "w").close()
            print(json.dumps({"jsonrpc": "2.0", "id": request["id"],
                              "error": {"code": 1, "message": "oops", "data": {"code": code}}}), flush=True)
            return True
        elif fault == "cancelled":
            print(json.dumps({"jsonrpc": "2.0", "id": request["id"],
                              "error": {"code": 1, "message": "given up", "data": {"code": "userCancelled"}}}), flush=True)
            return True
        elif fault == "slow":
            for _ in range(5):
                time.sleep(1.2)
                print(json.dumps({"jsonrpc": "2.0", "method": "progress", "params": {"id": request["id"]}}), flush=True)
        elif fault == "retry" and not os.path.exists(root + ".retried"):
            open(root + ".retried", "w").close()
            print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": {
                "code": 1, "message": "busy", "data": {"code": "serverUnreachable", "retryAfter": 0.1}}}), flush=True)
            return True
    return False


for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request or misbehave(request):
        continue
    current = request["id"]
    answer = {"jsonrpc": "2.0", "id": current}
    try:
        answer["result"] = METHODS[request["method"]](request["params"])
    except Failure as failure:
        answer["error"] = {"code": 1, "message": str(failure), "data": failure.data}
    except OSError as error:
        answer["error"] = {"code": 1, "message": str(error), "data": {"code": "cannotSynchronize"}}
    print(json.dumps(answer), flush=True)
