#!/usr/bin/env python3
"""Answers as the examples of Docs/Protocol.md do, and complains on standard error about a request that is not as theirs."""
import json, os, sys

examples = []
for line in open(os.environ["PROTOCOL"], encoding="utf-8"):
    if line.startswith(("→ {", "← {")):
        if '"method":"initialize"' in line:  # Each level has a conversation of its own.
            examples.append([])
        examples[-1].append(line)
examples = next(e for e in examples if f'"level":"{os.environ["LEVEL"]}"' in e[1])
# Of a request, what differs from run to run.
FREE = {"directory", "source", "location", "options", "into", "from"}


def fixed(message):
    params = {k: v for k, v in message.get("params", {}).items() if k not in FREE}
    return {**message, "params": params}


place = 0
for line in sys.stdin:
    request = json.loads(line)
    with open(os.environ["REPLAY_LOG"], "a") as log:
        expected = json.loads(examples[place][2:])
        place += 1
        names = set(request.get("params", {})) == set(expected.get("params", {}))
        log.write("same\n" if names and fixed(request) == fixed(expected) else f"{line}differs from\n{examples[place - 1]}")
    if "into" in request.get("params", {}) and '"result":{}' not in examples[place] and '"error"' not in examples[place]:
        with open(request["params"]["into"], "r+b") as into:
            into.write(b"hello")
    while place < len(examples) and examples[place].startswith("←"):
        answer = examples[place][2:]
        place += 1
        print(answer.strip(), flush=True)
