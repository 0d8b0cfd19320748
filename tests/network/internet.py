"""A small internet, and what else listens on the machine under test.

    internet.py internet FOLDER    every address there is: DNS, HTTP, HTTPS, a banner, an echo; records the wire
    internet.py machine FOLDER     the machine's own services, which no command may reach

In the first role it has a network namespace of its own, in which every address is local: whatever leaves the machine
is answered, private addresses included, so a hole shows as an answer and not as silence. It talks in lines of JSON:
one question on standard input, one answer on standard output. Its end is the end of its standard input.
FOLDER holds `server.pem`, `server.key`, `ca.pem` and `www`, the files that are served as `www/HOST/PATH`.
"""
import asyncio
import collections
import ipaddress
import json
import os
import socket
import ssl
import struct
import sys
import threading

ROLE, FOLDER = sys.argv[1:3]
# What the servers saw, in order.
EVENTS = []


def note(kind, **what):
    EVENTS.append({"kind": kind, **what})


# ---- The wire -------------------------------------------------------------------------------------------------------


class Wire:
    """Every packet that reaches the internet, but for those that look for neighbours."""

    PROTOCOLS = {1: "icmp", 6: "tcp", 17: "udp", 58: "icmp6"}

    def __init__(self, interface):
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        self.socket.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE
        self.socket.bind((interface, 0))
        self.lock = threading.Lock()
        self.seen = []
        self.known = set()
        self.thread = threading.Thread(target=self.watch, daemon=True)
        self.thread.start()

    def watch(self):
        import select

        while True:
            select.select([self.socket], [], [])
            self.drain()

    def drain(self):
        with self.lock:
            while True:
                try:
                    data, address = self.socket.recvfrom(2048, socket.MSG_DONTWAIT)
                except BlockingIOError:
                    return
                if address[2] == 4:  # our own answer
                    continue
                flow = self.flow(data)
                if flow is not None and flow not in self.known:
                    self.known.add(flow)
                    self.seen.append(flow)

    def flow(self, data):
        (ether,) = struct.unpack("!H", data[12:14])
        if ether == 0x0806:
            return None
        if ether == 0x0800:
            head = (data[14] & 15) * 4
            protocol, version = data[23], socket.AF_INET
            source, target, rest = data[26:30], data[30:34], data[14 + head:]
        elif ether == 0x86DD:
            protocol, version = data[20], socket.AF_INET6
            source, target, rest = data[22:38], data[38:54], data[54:]
            if protocol == 0:  # hop-by-hop options, with which multicast listeners report
                protocol, rest = rest[0], rest[8:]
            if protocol == 58 and rest[0] in (130, 131, 132, 133, 134, 135, 136, 137, 143):
                return None
        else:
            return ("frame", hex(ether), 0, "", 0)
        name = self.PROTOCOLS.get(protocol, str(protocol))
        ports = struct.unpack("!HH", rest[:4]) if protocol in (6, 17) else (0, 0)
        show = lambda raw: socket.inet_ntop(version, raw)
        return (name, show(target), ports[1], show(source), ports[0])

    def lost(self):
        _, drops = struct.unpack("II", self.socket.getsockopt(263, 6, 8))  # PACKET_STATISTICS
        return drops


# ---- Names ----------------------------------------------------------------------------------------------------------

PUBLIC, PUBLIC6 = "93.184.216.34", "2606:2800:220:1::34"
OTHER, OTHER6 = "93.184.216.66", "2606:2800:220:1::66"
OWN, OWN6 = "93.184.215.2", "2606:2800:220:2::2"
PRIVATE = "10.0.0.80"

# Name: addresses and aliases, in the order in which they are given. A list of lists is given in turn, query by query.
NAMES = {
    "www.example.org": [PUBLIC, PUBLIC6],
    "files.example.org": [PUBLIC],
    "six.example.org": [PUBLIC6],
    "alias.example.org": ["www.example.org."],
    "far.alias.example.org": ["alias.example.org."],
    "evil.example.net": [OTHER, OTHER6],
    "xn--bcher-kva.example.org": [PUBLIC],
    # Where a list of hosts must not lead.
    "private.example.org": [PRIVATE],
    "loopback.example.org": ["127.0.0.1"],
    "loopback6.example.org": ["::1"],
    "zero.example.org": ["0.0.0.0"],
    "zero6.example.org": ["::"],
    "metadata.example.org": ["169.254.169.254"],
    "carrier.example.org": ["100.100.100.200"],
    "benchmark.example.org": ["198.18.0.1"],
    "broadcast.example.org": ["255.255.255.255"],
    "multicast.example.org": ["224.0.0.251"],
    "unique.example.org": ["fd00::80"],
    "link.example.org": ["fe80::80"],
    "mapped.example.org": ["::ffff:10.0.0.80"],
    "mapped-loopback.example.org": ["::ffff:127.0.0.1"],
    "compatible.example.org": ["::127.0.0.1"],
    "nat64.example.org": ["64:ff9b::a00:50"],
    "sixtofour.example.org": ["2002:a00:50::1"],
    "teredo.example.org": ["2001:0:a00:50::1"],
    "own.example.org": [OWN],
    "own6.example.org": [OWN6],
    "cname-private.example.org": ["host.internal."],
    "host.internal": [PRIVATE],
    "cname-localhost.example.org": ["localhost."],
    "localhost": ["127.0.0.1", "::1"],
    "mixed.example.org": [PRIVATE, PUBLIC],
    "mixed-families.example.org": ["::1", PUBLIC],
    "many.example.org": [f"10.0.1.{n}" for n in range(1, 31)] + [PUBLIC],
    "rebind.example.org": [[PUBLIC], [PRIVATE]],
    "rebind-first.example.org": [[PRIVATE], [PUBLIC]],
}
SILENT = "silent.example.org"
TURNS = collections.Counter()


def addresses(name, turn):
    known = NAMES.get(name)
    if known is None and (name.endswith(".example.org") or name.endswith(".example.net")):
        known = [OTHER if name.endswith(".net") else PUBLIC]
    if known and isinstance(known[0], list):
        known = known[turn % len(known)]
    return known


def encoded(name):
    return b"".join(bytes([len(part)]) + part.encode() for part in name.rstrip(".").split(".")) + b"\0"


def dns_answer(query):
    name, at = [], 12
    while query[at]:
        name.append(query[at + 1:at + 1 + query[at]].decode("latin-1"))
        at += query[at] + 1
    (kind,) = struct.unpack("!H", query[at + 1:at + 3])
    question, name = query[12:at + 5], ".".join(name).lower()
    note("dns", name=name, type={1: "A", 28: "AAAA"}.get(kind, str(kind)))
    if name == SILENT:
        return None
    TURNS[name, kind] += 1
    turn = TURNS[name, kind] - 1
    answers, owner = [], name
    while True:
        known = addresses(owner, turn)
        if known and known[0].endswith("."):
            answers.append(encoded(owner) + struct.pack("!HHIH", 5, 1, 0, len(encoded(known[0]))) + encoded(known[0]))
            owner = known[0].rstrip(".")
            continue
        break
    for text in known or []:
        raw = ipaddress.ip_address(text).packed
        if (kind, len(raw)) in ((1, 4), (28, 16)):
            answers.append(encoded(owner) + struct.pack("!HHIH", kind, 1, 0, len(raw)) + raw)
    code = 0x8580 | (0 if known or answers else 3)
    return query[:2] + struct.pack("!HHHHH", code, 1, len(answers), 0, 0) + question + b"".join(answers)


class Dns(asyncio.DatagramProtocol):
    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, address):
        answer = dns_answer(data)
        if answer is not None:
            # What does not fit is cut, and asked for again over TCP.
            if len(answer) > 512:
                answer = answer[:2] + struct.pack("!HHHHH", 0x8780, 1, 0, 0, 0) + data[12:]
            self.transport.sendto(answer, address)


async def dns_over_tcp(reader, writer):
    while True:
        (length,) = struct.unpack("!H", await reader.readexactly(2))
        answer = dns_answer(await reader.readexactly(length))
        if answer is not None:
            writer.write(struct.pack("!H", len(answer)) + answer)
            await writer.drain()


# ---- What is served -------------------------------------------------------------------------------------------------


class Head:
    """The head of a request, read generously: the proxy in between has to be strict, not this."""

    def __init__(self, raw):
        first, *rest = raw.decode("latin-1").split("\r\n")
        self.first = first
        self.method, _, target = first.partition(" ")
        self.target = target.rpartition(" ")[0]
        self.fields = [(n.strip().lower(), v.strip()) for n, _, v in (line.partition(":") for line in rest if line)]

    def get(self, name, default=""):
        return next((value for key, value in self.fields if key == name), default)


async def read_head(reader):
    """As generous servers do: empty lines before it, lines that end in LF alone."""
    raw = b""
    while not raw.endswith(b"\r\n\r\n"):
        line = await reader.readline()
        if not line:
            raise ConnectionError
        line = line.rstrip(b"\r\n") + b"\r\n"
        if raw or line != b"\r\n":
            raw += line
    return raw[:-4]


async def read_body(reader, head):
    if "chunked" in head.get("transfer-encoding"):
        body = b""
        while True:
            length = int((await reader.readline()).split(b";")[0], 16)
            body += (await reader.readexactly(length + 2))[:-2]
            if length == 0:
                return body
    return await reader.readexactly(int(head.get("content-length", "0") or "0"))


def response(status, body, fields=()):
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}"] + [f"{name}: {value}" for name, value in fields]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


async def git(head, path, query, body):
    env = {
        "PATH": os.environ["PATH"],
        "GIT_PROJECT_ROOT": FOLDER + "/git",
        "GIT_HTTP_EXPORT_ALL": "1",
        "GIT_CONFIG_NOSYSTEM": "1",
        "HOME": FOLDER,
        "PATH_INFO": path.removeprefix("/git"),
        "QUERY_STRING": query,
        "REQUEST_METHOD": head.method,
        "CONTENT_TYPE": head.get("content-type"),
        "HTTP_CONTENT_ENCODING": head.get("content-encoding"),
        "HTTP_GIT_PROTOCOL": head.get("git-protocol"),
        "GIT_PROTOCOL": head.get("git-protocol"),
        "CONTENT_LENGTH": str(len(body)),
        "REMOTE_USER": "somebody",
        "REMOTE_ADDR": "0.0.0.0",
    }
    backend = await asyncio.create_subprocess_exec(
        "git", "http-backend", env=env, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await backend.communicate(body)
    fields, _, rest = out.partition(b"\r\n\r\n")
    fields = [line.split(": ", 1) for line in fields.decode().split("\r\n")]
    status = next((value for name, value in fields if name == "Status"), "200 OK")
    return response(status, rest, [(name, value) for name, value in fields if name != "Status"])


async def answer(reader, writer, head, place):
    path, _, query = head.target.partition("?")
    if head.target.startswith("http://"):
        path = "/" + path.split("/", 3)[3]
    host = head.get("host").split(":")[0].lower()
    body = await read_body(reader, head)
    file = os.path.normpath(f"{FOLDER}/www/{host}{path}")
    if path.startswith("/git/"):
        writer.write(await git(head, path, query, body))
    elif path == "/redirect":
        writer.write(response("302 Found", b"", [("Location", query)]))
    elif path.startswith("/bytes/"):
        left = int(path.split("/")[2])
        writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {left}\r\n\r\n".encode())
        while left:
            writer.write(bytes(min(left, 65536)))
            left -= min(left, 65536)
            await writer.drain()
    elif path == "/echo":
        writer.write(response("200 OK", body))
    elif path == "/slow":
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
        for letter in b"slow\n":
            await writer.drain()
            await asyncio.sleep(0.2)
            writer.write(bytes([letter]))
    elif path == "/two-answers":
        # A server that says more than it was asked for.
        writer.write(response("200 OK", b"one\n") + response("200 OK", b"two, which nobody asked for\n"))
    elif path == "/never":
        await asyncio.sleep(3600)
    elif file.startswith(FOLDER + "/www/") and os.path.isfile(file + "/index.html"):
        writer.write(response("200 OK", open(file + "/index.html", "rb").read(), [("Content-Type", "text/html")]))
    elif file.startswith(FOLDER + "/www/") and os.path.isfile(file):
        writer.write(response("200 OK", open(file, "rb").read()))
    elif os.path.isdir(f"{FOLDER}/www/{host}"):
        writer.write(response("404 Not Found", b"no such file\n"))
    else:
        writer.write(response("200 OK", f"reached {place} as {head.get('host')}\n".encode()))
    await writer.drain()


async def serve_http(reader, writer, place):
    name = writer.get_extra_info("ssl_object")
    while True:
        raw = await read_head(reader)
        head = Head(raw)
        note("request", place=place, host=head.get("host"), line=head.first, head=raw.decode("latin-1"), tls=name is not None)
        await answer(reader, writer, head, place)
        if head.get("connection").lower() == "close":
            return


async def serve_banner(reader, writer, place):
    """A server that speaks first, as SSH does."""
    writer.write(f"SSH-2.0-lab reached {place}\r\n".encode())
    while data := await reader.read(65536):
        note("bytes", place=place, count=len(data))
        writer.write(data)
        await writer.drain()


async def serve_echo(reader, writer, place):
    while data := await reader.read(65536):
        note("bytes", place=place, count=len(data))
        writer.write(b"reached " + place.encode() + b": " + data)
        await writer.drain()


def server(serves):
    async def connected(reader, writer):
        address = writer.get_extra_info("sockname")
        place = f"[{address[0]}]:{address[1]}" if ":" in address[0] else f"{address[0]}:{address[1]}"
        note("connection", place=place)
        try:
            await serves(reader, writer, place)
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError, ValueError, OSError, ssl.SSLError):
            pass
        finally:
            writer.close()

    return connected


def listener(family, port):
    made = socket.socket(family)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.setsockopt(socket.IPPROTO_IPV6, 75, 1)  # IPV6_TRANSPARENT: it answers as any address
    else:
        made.setsockopt(socket.IPPROTO_IP, 19, 1)  # IP_TRANSPARENT
    made.bind(("", port))
    return made


def certified():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(FOLDER + "/server.pem", FOLDER + "/server.key")
    context.sni_callback = lambda tls, name, _: note("hello", name=name)
    return context


# ---- Being asked ----------------------------------------------------------------------------------------------------


async def converse(wire):
    loop = asyncio.get_running_loop()
    asked = asyncio.StreamReader(limit=1 << 20)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(asked), sys.stdin)
    while line := await asked.readline():
        asks = json.loads(line)
        if wire is not None:
            wire.drain()
        if asks["do"] == "mark":
            if wire is not None:
                with wire.lock:
                    wire.seen = []
                    # A later packet of an old connection is no new flow; what has no ports is nobody's connection.
                    wire.known = {flow for flow in wire.known if flow[2]}
            EVENTS.clear()
            TURNS.clear()
            told = {}
        else:
            # What is in the air arrives.
            await asyncio.sleep(asks.get("after", 0))
            if wire is not None:
                wire.drain()
            told = {"events": list(EVENTS), "flows": list(wire.seen) if wire else [], "lost": wire.lost() if wire else 0}
        print(json.dumps(told), flush=True)


async def main():
    tls = certified()
    loop = asyncio.get_running_loop()
    wire = None
    if ROLE == "internet":
        wire = Wire("wire")
        for family, address in ((socket.AF_INET, "93.184.216.53"), (socket.AF_INET6, "2606:2800:220:1::53")):
            udp = socket.socket(family, socket.SOCK_DGRAM)
            # Answers come from the address that was asked, which only a socket of that address gives.
            udp.bind((address, 53))
            await loop.create_datagram_endpoint(Dns, sock=udp)
        listens = [(53, dns_only, None), (80, serve_http, None), (443, serve_http, tls), (8080, serve_http, None),
                   (8443, serve_http, tls), (22, serve_banner, None), (9999, serve_echo, None)]
    else:
        listens = [(80, serve_http, None), (443, serve_http, tls), (3128, serve_http, None), (8080, serve_http, None),
                   (9999, serve_echo, None)]
        abstract = socket.socket(socket.AF_UNIX)
        abstract.bind("\0lab")
        await asyncio.start_unix_server(abstract_reached, sock=abstract, backlog=100)
        by_name = socket.socket(socket.AF_UNIX)
        by_name.bind(FOLDER + "/socket")
        os.chmod(FOLDER + "/socket", 0o777)
        await asyncio.start_unix_server(abstract_reached, sock=by_name, backlog=100)
    for port, serves, context in listens:
        for family in (socket.AF_INET, socket.AF_INET6):
            await asyncio.start_server(server(serves), sock=listener(family, port), ssl=context, backlog=2000)
    print(json.dumps({"ready": True}), flush=True)
    await converse(wire)


async def dns_only(reader, writer, _place):
    await dns_over_tcp(reader, writer)


async def abstract_reached(_reader, writer):
    note("connection", place="unix")
    writer.write(b"reached a Unix socket of the machine\n")
    writer.close()


# The addresses come after the namespace.
sys.stdin = os.fdopen(0, "rb", buffering=0)
sys.stdin.readline()
asyncio.run(main())
os._exit(0)
