#!/usr/bin/env python3
"""The item store of the examples, with a fault between it and the daemon: option `fault`, see below. For tests."""
import json, os, subprocess, sys, threading

example = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../../Examples/Programs/yonder-provider-store")
store = subprocess.Popen([sys.executable, example], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
fault, methods = "", {}


def change_request(request):
    params = request.get("params", {})
    if fault == "half" and "from" in params:  # Half of each content is stored.
        os.truncate(params["from"], os.path.getsize(params["from"]) // 2)
    if fault == "ignores-version" and request["method"] == "fetchContents":  # Any version is read.
        params.pop("contentVersion", None)
    if fault == "keeps" and request["method"] == "deleteItem":  # Deletions succeed, and delete nothing.
        params["itemIdentifier"] = "999999"
    if fault == "forgets" and "fields" in params:  # Modes are not stored, and not said to be pending.
        params["fields"] = [name for name in params["fields"] if name != "permissions"]


def unusable_items():
    """Nine items that cannot be used, and one that can."""
    fine = {"itemIdentifier": "900", "parentItemIdentifier": "yonder.root", "filename": "fine", "kind": "directory"}
    wrong = [
        {"kind": "socket"}, {"permissions": -1}, {"owner": 1 << 33}, {"capabilities": ["allowsFlying"]}, {"tagData": "!"},
        {"itemIdentifier": "yonder.trash"}, {"itemIdentifier": 5}]
    return [{**fine, **fields} for fields in wrong] + [{"itemIdentifier": "901", "filename": "poor"}, 5, fine]


def change_response(method, response):
    result = response.get("result")
    if fault == "unusable" and method in ("enumerateItems", "enumerateChanges") and result:
        result["items" if method == "enumerateItems" else "updated"] += unusable_items()
    if fault == "no-thumbnails" and method == "initialize":  # They are made, and not announced.
        result["features"].pop("thumbnails")
    if fault == "blind" and method == "fetchThumbnail":  # Also a file that is not there has just no thumbnail.
        response.pop("error", None)
        response["result"] = {}
    if fault == "silent" and method == "enumerateChanges" and result:  # Changes are not told.
        result["updated"] = []
    if fault == "repeats" and method == "enumerateItems" and result:  # An item is listed twice.
        result["items"] += result["items"][:1]
    if fault == "nameless" and method == "enumerateItems" and result:
        for item in result["items"]:
            item["filename"] = item["filename"].removeprefix("nothing")
    if fault == "renames" and method == "modifyItem" and result and "item" in result:  # Identifiers do not stay.
        result["item"]["itemIdentifier"] += "0"
    if fault == "size" and result and result.get("item", {}).get("kind") == "file":
        result["item"]["documentSize"] += 5
    if fault == "conceals" and response.get("error", {}).get("data", {}).get("item"):  # Conflicts are told as successes.
        response["result"] = {"item": response.pop("error")["data"]["item"]}
    if fault == "unnamed" and "error" in response:  # Errors come without the item.
        response["error"]["data"].pop("item", None)


def pass_requests():
    global fault
    for line in sys.stdin:
        request = json.loads(line)
        if request["method"] == "initialize":
            fault = request["params"]["options"].get("fault", "")
        if "id" in request:
            methods[request["id"]] = request["method"]
            change_request(request)
        store.stdin.write(json.dumps(request).encode() + b"\n")
        store.stdin.flush()
    store.stdin.close()


threading.Thread(target=pass_requests, daemon=True).start()
for line in store.stdout:
    response = json.loads(line)
    change_response(methods.pop(response.get("id"), ""), response)
    print(json.dumps(response), flush=True)
