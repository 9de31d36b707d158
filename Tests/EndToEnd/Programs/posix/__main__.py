#!/usr/bin/env python3
"""Compares a mount with a plain directory, call by call: whatever POSIX asks of the one, it asks of the other.

usage: posix MOUNT PLAIN [--part 1|2] [--only TEXT] [--calls N] [--seed N] [--evict N]

MOUNT and PLAIN are empty directories; PLAIN lies on ext4 or tmpfs. Run as root, because calls are made under several
users. Part 1 are cases: every errno of every call, every kind of file, every user. Part 2 is a random sequence of
calls; when it finds a difference it looks for the shortest sequence that shows it. Prints what differs, and ends with 1
when anything does that pair.py does not explain.
"""

import argparse
import os
import sys
import time

sys.dont_write_bytecode = True

import cases
import contents  # noqa: F401  declares cases
import names  # noqa: F401
import permissions  # noqa: F401
import random_calls
from calls import Side
from pair import Difference, Pair


def show(trail):
    def brief(value):
        return "%r * %d" % (value[:1], len(value)) if isinstance(value, bytes) and len(value) > 48 else repr(value)

    return "".join("    %-5s %s(%s)\n" % (user, name, ", ".join(map(brief, args))) for user, name, args in trail)


def run_cases(pair, only):
    failures = 0
    chosen = [(body, values) for body, values in cases.CASES if only in cases.title(body, values)]
    for number, (body, values) in enumerate(chosen):
        try:
            pair.begin("case%d" % number)
            body(pair, **values)
        except Difference as difference:
            failures += 1
            print("DIFFERENCE in %s\n%s  %s\n" % (cases.title(body, values), show(pair.trail), difference), flush=True)
        pair.end()
    print("%d cases" % len(chosen))
    return failures


def main():
    parser = argparse.ArgumentParser(prog="posix")
    parser.add_argument("mount")
    parser.add_argument("plain")
    parser.add_argument("--part", type=int)
    parser.add_argument("--only", default="", help="cases whose title has this in it")
    parser.add_argument("--calls", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--evict", type=int, default=0, metavar="N", help="make all dataless after each N random calls")
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("calls are made under several users: run as root")
    pair = Pair(options.mount, options.plain)
    pair.evicts_every, Side.counts_directories = options.evict, not options.evict
    failures, began = 0, time.monotonic()
    if options.part != 2:
        failures += run_cases(pair, options.only)
    if options.part != 1 and not options.only:
        seed = options.seed if options.seed is not None else int.from_bytes(os.urandom(4), "big")
        print("seed %d, %d calls" % (seed, options.calls), flush=True)
        failures += random_calls.run(pair, seed, options.calls, show)
    for reason in sorted(pair.explained):
        print("explained: " + reason)
    if pair.evictions:
        print("%d times everything was evicted" % pair.evictions)
    print("%d comparisons, %d differences, %.0f s" % (pair.checks, failures, time.monotonic() - began))
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
