#!/usr/bin/env python3
"""Runs a command on a pseudo-terminal and plays a person at it.

    terminal.py STEPS -- ARGV...

STEPS is a JSON list: ["expect", TEXT] waits until TEXT is shown; ["send", KEYS]; ["resize", ROWS, COLUMNS];
["sleep", SECONDS]; ["shell", LINE] runs a line beside the command; ["signal", NAME] signals it. Prints one JSON object: `shown` (everything the terminal showed), `code` (the exit code, 128+N for
a signal), `restored` (whether the terminal's settings are what they were), `failed` (the step that never came true).
"""

import fcntl
import json
import os
import pty
import select
import signal
import struct
import sys
import termios
import time

PATIENCE = 30


def main():
    steps, argv = json.loads(sys.argv[1]), sys.argv[3:]
    master, slave = pty.openpty()
    resize(slave, 24, 80)
    before = termios.tcgetattr(slave)
    child = os.fork()
    if child == 0:
        os.setsid()
        fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
        for stream in range(3):
            os.dup2(slave, stream)
        os.closerange(3, 256)
        os.execvp(argv[0], argv)
    shown, failed, seen = b"", None, 0

    def read(seconds):
        nonlocal shown
        # The slave is open here too, so the end of the command shows as silence and never as end of file.
        if select.select([master], [], [], seconds)[0]:
            shown += os.read(master, 65536)

    for step in steps:
        deadline = time.monotonic() + PATIENCE
        if step[0] == "expect":
            wanted = step[1].encode()
            while wanted not in shown[seen:] and time.monotonic() < deadline:
                ended = os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT)
                before_read = len(shown)
                read(0.1)
                if ended and len(shown) == before_read:
                    break
            if wanted not in shown[seen:]:
                failed = step
                break
            seen = shown.index(wanted, seen) + len(wanted)
        elif step[0] == "send":
            os.write(master, step[1].encode())
        elif step[0] == "resize":
            resize(slave, step[1], step[2])
        elif step[0] == "signal":
            os.kill(child, getattr(signal, step[1]))
        elif step[0] == "shell":
            os.system(step[1])
        elif step[0] == "sleep":
            end = time.monotonic() + step[1]
            while time.monotonic() < end:
                read(0.05)
    status, deadline = None, time.monotonic() + PATIENCE
    while status is None:
        read(0.05)
        pid, waited = os.waitpid(child, os.WNOHANG)
        if pid:
            status = waited
        elif failed or time.monotonic() > deadline:
            failed = failed or ["exit"]
            os.kill(child, signal.SIGKILL)
            status = os.waitpid(child, 0)[1]
    length = -1
    while length != len(shown):
        length = len(shown)
        read(0.1)
    code = os.waitstatus_to_exitcode(status)
    print(json.dumps({
        "shown": shown.decode("utf-8", "backslashreplace"),
        "code": code if code >= 0 else 128 - code,
        "restored": termios.tcgetattr(slave) == before,
        "failed": failed,
    }))


def resize(terminal, rows, columns):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


main()
