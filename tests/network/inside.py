"""What runs inside the sandbox: does what it is told, one attempt after the other, and says what came of each.

    inside.py FOLDER

Each FOLDER/ask-N is Python. What its last expression gives, or how it failed, goes to FOLDER/answer-N as JSON. It ends
at an empty one. The names below are what attempts are written with; `way` is where the proxy is.
"""
import ast
import ctypes
import errno
import fcntl
import glob
import json
import os
import signal
import socket
import ssl
import struct
import subprocess
import sys
import time
import urllib.parse

FOLDER = sys.argv[1]
proxy_url = urllib.parse.urlsplit(os.environ.get("http_proxy", ""))
way = (proxy_url.hostname, proxy_url.port)
# The sockets that it was left, before it makes any.
left = [fd for fd in range(1024) if os.path.exists(f"/proc/self/fd/{fd}") and os.readlink(f"/proc/self/fd/{fd}").startswith("socket:")]
libc = ctypes.CDLL(None, use_errno=True)
# How long a word may take. A busy machine must not reach it: it ends a hang. It is shorter for attempts that nobody
# answers: then a busy machine only gives them less time to come to something.
PATIENCE = 200.0
# How long somebody who has answered may say nothing before they are told that nobody asks any more.
QUIET = 0.08


def call(number, *args):
    """A system call by its number; an error is raised."""
    libc.syscall.restype = ctypes.c_long
    done = libc.syscall(number, *args)
    if done < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return done


def listen_to(sock):
    """All that comes until the end. Who stays on after an answer is told that nothing more will be asked."""
    said, patience, asks = b"", PATIENCE, True
    while True:
        sock.settimeout(patience)
        try:
            part = sock.recv(65536)
        except TimeoutError:
            if not said or not asks or isinstance(sock, ssl.SSLSocket):
                return said + (b"" if said else b"(silence)")
            try:
                sock.shutdown(socket.SHUT_WR)
            except OSError:
                return said
            asks, patience = False, PATIENCE
            continue
        except ConnectionError as broken:
            return said + f"({broken.strerror})".encode()
        if not part:
            return said
        said += part
        patience = QUIET if asks and is_whole(said) else PATIENCE


def is_whole(said):
    """Whether an answer of HTTP has all that it announced; anything else has."""
    if not said.startswith(b"HTTP/"):
        return True
    head, end, body = said.partition(b"\r\n\r\n")
    length = [line.split(b":")[1] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    return bool(end) and (not length or len(body) >= int(length[0]))


def tcp(host, port, *says):
    """Straight to an address."""
    with socket.create_connection((host, port), timeout=1.0) as sock:
        for part in says or (b"GET / HTTP/1.1\r\nHost: evil.example.net\r\nConnection: close\r\n\r\n",):
            sock.sendall(part)
        return listen_to(sock)


def raw(*parts):
    """These bytes to the proxy, and what it says. A number is a pause."""
    with socket.create_connection(way, timeout=PATIENCE) as sock:
        send(sock, parts)
        return listen_to(sock)


def send(sock, parts):
    try:
        for part in parts:
            if isinstance(part, (int, float)):
                time.sleep(part)
            else:
                sock.sendall(part if isinstance(part, bytes) else part.encode("latin-1"))
    except ConnectionError:
        pass


def until(sock, end):
    said = b""
    sock.settimeout(PATIENCE)
    while end not in said and (part := sock.recv(1)):
        said += part
    return said


def connect(host, port=443):
    """A tunnel, and what was said about it."""
    sock = socket.create_connection(way, timeout=PATIENCE)
    name = host if isinstance(host, bytes) else host.encode()
    sock.sendall(b"CONNECT %s:%d HTTP/1.1\r\nHost: %s:%d\r\n\r\n" % (name, port, name, port))
    said = until(sock, b"\r\n\r\n")
    if b" 200 " not in said:
        raise ConnectionRefusedError(said + listen_to(sock))
    return sock


def tunnel(host, port, *parts):
    """A tunnel, these bytes in it, and what comes back."""
    with connect(host, port) as sock:
        send(sock, parts)
        return listen_to(sock)


def get(host, path="/", more=""):
    return f"GET {path} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n"


def absolute(target, host=None, more="", method="GET"):
    """A request for the proxy itself, with the whole address in it."""
    host = host or target.split("://")[1].split("/")[0]
    return f"{method} {target} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n"


def ask_connect(authority, host=None):
    """CONNECT and nothing else; bytes as they are."""
    name = authority if isinstance(authority, bytes) else authority.encode()
    return raw(b"CONNECT " + name + b" HTTP/1.1\r\nHost: " + (host.encode() if host else name) + b"\r\n\r\n")


def socks(kind, address, port, command=1, methods=b"\0", version=5, says=b""):
    with socket.create_connection(way, timeout=PATIENCE) as sock:
        sock.sendall(bytes([version, len(methods)]) + methods)
        said = sock.recv(2)
        if said == b"\5\0":
            body = bytes([len(address)]) + address if kind == 3 else address
            sock.sendall(bytes([5, command, 0, kind]) + body + struct.pack("!H", port))
            said += listen_to(sock) if not says else sock.recv(100)
            sock.sendall(says)
        return said + (listen_to(sock) if says else b"")


def hello(name):
    """A ClientHello."""
    context = ssl.create_default_context()
    context.check_hostname = False
    sent = ssl.MemoryBIO()
    tls = context.wrap_bio(ssl.MemoryBIO(), sent, server_hostname=name)
    try:
        tls.do_handshake()
    except ssl.SSLWantReadError:
        return sent.read()


def fragments(record, size):
    """The same handshake in records of this many bytes."""
    body = record[5:]
    return b"".join(
        record[:3] + struct.pack("!H", len(body[at:at + size])) + body[at:at + size] for at in range(0, len(body), size)
    )


def named_twice(first, second):
    """A ClientHello whose server_name extension has two names."""
    record = bytearray(hello(first))
    entry = b"\0" + struct.pack("!H", len(first)) + first.encode()
    at = bytes(record).index(entry)
    more = b"\0" + struct.pack("!H", len(second)) + second.encode()
    record[at + len(entry):at + len(entry)] = more
    # Of the list, the extension, all extensions, the handshake and the record.
    extensions = 43 + 1 + record[43]
    extensions += 2 + struct.unpack("!H", record[extensions:extensions + 2])[0]
    extensions += 1 + record[extensions]
    for place in (at - 2, at - 4, extensions, 3):
        (was,) = struct.unpack("!H", record[place:place + 2])
        record[place:place + 2] = struct.pack("!H", was + len(more))
    record[7:9] = struct.pack("!H", struct.unpack("!H", record[7:9])[0] + len(more))
    return bytes(record)


def tls(host, port=443, name=None, path="/", says=None, via=None):
    """A whole TLS session in a tunnel."""
    context = ssl.create_default_context(cafile=os.environ["SSL_CERT_FILE"])
    context.check_hostname = False
    with context.wrap_socket(via or connect(host, port), server_hostname=name) as sock:
        sock.sendall((says or get(name or host, path, "Connection: close\r\n")).encode())
        return listen_to(sock)


def shell(line):
    done = subprocess.run(["/bin/sh", "-c", line], capture_output=True, timeout=200)
    return done.stdout + done.stderr


def evaluate(text):
    *before, last = ast.parse(text).body
    space = globals()
    exec(compile(ast.Module(before, []), "attempt", "exec"), space)
    if isinstance(last, ast.Expr):
        return eval(compile(ast.Expression(last.value), "attempt", "eval"), space)
    exec(compile(ast.Module([last], []), "attempt", "exec"), space)


def main():
    count = 0
    while True:
        ask = f"{FOLDER}/ask-{count}"
        while not os.path.exists(ask):
            time.sleep(0.002)
        with open(ask) as file:
            text = file.read()
        if not text:
            return
        try:
            given = evaluate(text)
            told = {"gave": given.decode("latin-1") if isinstance(given, bytes) else str(given)}
        except BaseException as failed:
            told = {"failed": f"{type(failed).__name__}: {failed}"}
        with open(f"{FOLDER}/answer-{count}.part", "w") as file:
            json.dump(told, file)
        os.rename(f"{FOLDER}/answer-{count}.part", f"{FOLDER}/answer-{count}")
        count += 1


if __name__ == "__main__":
    main()
