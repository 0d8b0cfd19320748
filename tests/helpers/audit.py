"""Switches kernel audit on, writes down what Landlock records, and puts the switch back when its input ends.

`audit.py LOCK on|off RECORDS`: holds LOCK all the while, for the switch is the whole machine's. `off` leaves it alone and
only says where it is. Says `ready on`, `ready off`, or `refused ERRNO`. Whoever started it may be killed: its input ends
then, too. Where this one was killed itself, what it wrote beside LOCK lets the next one put the switch back.
"""
import errno
import fcntl
import os
import select
import signal
import socket
import struct
import sys
import time

NETLINK_AUDIT, READLOG = 9, 1
GET, SET, ERROR = 1000, 1001, 2
REQUEST, ACK = 1, 4


def ask(kind, payload, flags):
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_AUDIT) as control:
        control.bind((0, 0))
        control.settimeout(5)
        control.send(struct.pack("IHHII", 16 + len(payload), kind, REQUEST | flags, 1, 0) + payload)
        answer = control.recv(8192)
        told = struct.unpack("H", answer[4:6])[0]
        if told == ERROR:
            number = -struct.unpack("i", answer[16:20])[0]
            if number:
                raise OSError(number, os.strerror(number))
        return answer[16:]


def is_on():
    return struct.unpack("I", ask(GET, b"", 0)[4:8])[0] != 0


def switch(on):
    ask(SET, struct.pack("10I", 1, int(on), *[0] * 8), ACK)


def say(word):
    print(word, flush=True)


def main():
    lock, wanted, records = sys.argv[1:]
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    held = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(held, fcntl.LOCK_EX)
    ours = lock + ".on"
    try:
        if os.path.exists(ours):
            switch(False)
            os.unlink(ours)
        before = is_on()
        group = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_AUDIT)
        group.bind((0, READLOG))
    except OSError as error:
        say(f"refused {errno.errorcode.get(error.errno, error.errno)}")
        return
    try:
        if wanted == "on" and not before:
            os.close(os.open(ours, os.O_WRONLY | os.O_CREAT, 0o600))
            switch(True)
        say("ready on" if wanted == "on" or before else "ready off")
        group.setblocking(False)
        last = None
        with open(records, "ab", buffering=0) as out:
            while last is None or time.monotonic() < last:
                ready, _, _ = select.select([group] if last else [group, 0], [], [], 0.1)
                if group in ready:
                    try:
                        message = group.recv(16384)
                    except OSError:
                        continue
                    if struct.unpack("H", message[4:6])[0] in (1423, 1424):
                        out.write(message[16:] + b"\n")
                if 0 in ready and not os.read(0, 4096):
                    last = time.monotonic() + 0.3
    except OSError as error:
        say(f"refused {errno.errorcode.get(error.errno, error.errno)}")
    finally:
        if wanted == "on" and not before:
            switch(False)
            os.unlink(ours)


main()
