#!/usr/bin/env python3
"""Runs the program RECORDED, and appends what it gets and sends to the file RECORD, for validate.py."""
import os, subprocess, sys, threading

program = subprocess.Popen([os.environ["RECORDED"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
record, writing = open(os.environ["RECORD"], "a", encoding="utf-8"), threading.Lock()


def pass_on(arrow, source, target):
    for line in source:
        with writing:
            print(arrow, line.decode().rstrip("\n"), file=record, flush=True)
        target.write(line)
        target.flush()


def pass_requests():
    pass_on("→", sys.stdin.buffer, program.stdin)
    program.stdin.close()


threading.Thread(target=pass_requests, daemon=True).start()
pass_on("←", program.stdout, sys.stdout.buffer)
