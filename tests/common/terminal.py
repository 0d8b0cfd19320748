#!/usr/bin/env python3
"""Runs a command on a pseudo-terminal and plays a person at it.

    terminal.py STEPS -- ARGV...

STEPS is a JSON list: ["expect", TEXT] waits until TEXT is shown; ["send", KEYS]; ["offer", KEYS, TEXT] sends them again
every two seconds until TEXT is shown; ["resize", ROWS, COLUMNS]; ["sleep", SECONDS]; ["shell", LINE] runs a line beside
the command; ["until", LINE] does so again and again until the line succeeds; ["signal", NAME] signals the command;
["unread", SECONDS, KEYS] presses each of these keys a moment after the other and reads nothing before the command has ended,
for so long at most. Prints one JSON object: `shown` (everything the terminal showed), `code`
(the exit code, 128+N for a signal), `restored` (whether the terminal's settings are what they were), `failed` (the step
that never came true).
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
import threading
import time

# How long all of it may take. A busy machine must not reach it: it ends a hang, before whoever waits for this script does.
PATIENCE = 200
# Put behind what the command has written, to know when all of that was read.
MARK = b"\x00all of it\x00"


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
    shown, failed, seen, deadline = b"", None, 0, time.monotonic() + PATIENCE

    def read(seconds):
        nonlocal shown
        # The slave is open here too, so the end of the command shows as silence and never as end of file.
        if select.select([master], [], [], seconds)[0]:
            shown += os.read(master, 65536)

    def read_all():
        """Reads what was written before now: however late the kernel hands it over, it comes before the mark."""
        nonlocal shown
        # A terminal that is full takes the mark when some of it was read.
        threading.Thread(target=os.write, args=(slave, MARK), daemon=True).start()
        while MARK not in shown and time.monotonic() < deadline + 5:
            read(0.1)
        shown = shown.replace(MARK, b"")

    for step in steps:
        if step[0] == "expect":
            wanted = step[1].encode()
            while wanted not in shown[seen:] and time.monotonic() < deadline:
                if os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                    read_all()
                    break
                read(0.1)
            if wanted not in shown[seen:]:
                failed = step
                break
            seen = shown.index(wanted, seen) + len(wanted)
        elif step[0] == "offer":
            wanted, again = step[2].encode(), 0.0
            while wanted not in shown[seen:] and time.monotonic() < deadline:
                if time.monotonic() >= again:
                    os.write(master, step[1].encode())
                    again = time.monotonic() + 2
                read(0.1)
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
        elif step[0] == "until":
            while os.system(step[1]) and time.monotonic() < deadline:
                read(0.1)
            if time.monotonic() >= deadline:
                failed = step
                break
        elif step[0] == "unread":
            # The terminal is full by then.
            for key in " " + step[2]:
                time.sleep(0.2 if key != " " else 1)
                os.write(master, key.encode() if key != " " else b"")
            end = time.monotonic() + step[1]
            has_ended = lambda: os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            while not has_ended() and time.monotonic() < end:
                time.sleep(0.05)
            if not has_ended():
                failed = step
                break
        elif step[0] == "sleep":
            end = time.monotonic() + step[1]
            while time.monotonic() < end:
                read(0.05)
    status = None
    while status is None:
        read(0.05)
        pid, waited = os.waitpid(child, os.WNOHANG)
        if pid:
            status = waited
        elif failed or time.monotonic() > deadline:
            failed = failed or ["exit"]
            os.kill(child, signal.SIGKILL)
            status = os.waitpid(child, 0)[1]
    read_all()
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
