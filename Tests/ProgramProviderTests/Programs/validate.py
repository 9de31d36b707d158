#!/usr/bin/env python3
"""Validates messages against Docs/Protocol.schema.json. Arguments: the schema; `Protocol.md`, or a record of a program with its lines
in both directions (the requests begin with `→ `, what the program sends with `← `). Prints what is wrong, and the number of lines."""
import json, sys

from jsonschema import Draft202012Validator

schema = json.load(open(sys.argv[1], encoding="utf-8"))
Draft202012Validator.check_schema(schema)
validators, methods, count = {}, {}, 0


def errors(place, message):
    if place not in validators:
        validators[place] = Draft202012Validator({**schema, "anyOf": [{"$ref": "#/$defs/" + place}]})
    return validators[place].iter_errors(message)


for line in open(sys.argv[2], encoding="utf-8"):
    if not line.startswith(("→ {", "← {")):
        continue
    message, count = json.loads(line[2:]), count + 1
    if "id" not in message:
        place = "notifications/" + message["method"]
    elif "method" in message:
        place = "requests/" + message["method"]
        methods[message["id"]] = message["method"]
    else:
        place = "responses/" + methods[message["id"]]
    for error in errors(place, message):
        print(f"{place}: {line.strip()[:300]}", *(f"    {cause.json_path}: {cause.message[:200]}" for cause in error.context or [error]), sep="\n")
print(count)
