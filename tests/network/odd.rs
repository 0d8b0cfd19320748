//! What a hostile client says to the proxy: hosts in odd notations, names that lead elsewhere, requests of two meanings.

use crate::common::Actor;
use crate::inside::{Attempt, Inside, Nothing, TheAddress, TheProxy, TheTunnel, row};
use crate::lab::{Lab, WWW, in_the_lab};

in_the_lab! {
    a_host_in_an_odd_notation_is_no_listed_host ["python3"];
    a_name_that_leads_elsewhere_is_refused ["python3"];
    a_name_that_changes_its_mind_is_held_to_the_first_answer ["python3"];
    special_addresses_are_reached_by_number_only ["python3"];
    a_request_of_two_meanings_has_none ["python3"];
    what_is_in_the_tunnel_must_agree_with_its_name ["python3"];
    socks_is_no_way_around ["python3"];
}

/// What no list holds, or must not be read as what it holds.
const NOTATIONS: &[(&str, &str)] = &[
    ("an unlisted name", "'evil.example.net'"),
    ("an unlisted address", "'93.184.216.66'"),
    ("the listed host's address", "'93.184.216.34'"),
    ("loopback", "'127.0.0.1'"),
    ("loopback in octal", "'0177.0.0.1'"),
    ("loopback with zeros", "'127.000.000.001'"),
    ("loopback in hexadecimal", "'0x7f.0.0.1'"),
    ("loopback in one hexadecimal number", "'0x7f000001'"),
    ("loopback in one number", "'2130706433'"),
    ("loopback in one octal number", "'017700000001'"),
    ("loopback in two parts", "'127.1'"),
    ("loopback in three parts", "'127.0.1'"),
    ("zero", "'0'"),
    ("the unspecified address", "'0.0.0.0'"),
    ("a number beyond 32 bits", "'4294967296'"),
    ("five parts", "'127.0.0.1.1'"),
    ("loopback with a dot behind it", "'127.0.0.1.'"),
    ("loopback of six", "'[::1]'"),
    ("loopback of six, at length", "'[0:0:0:0:0:0:0:1]'"),
    ("the unspecified address of six", "'[::]'"),
    ("loopback as six", "'[::ffff:127.0.0.1]'"),
    ("loopback as six, in hexadecimal", "'[::ffff:7f00:1]'"),
    ("loopback as six, in the old form", "'[::127.0.0.1]'"),
    ("loopback translated", "'[64:ff9b::7f00:1]'"),
    ("loopback in a tunnel", "'[2002:7f00:1::]'"),
    ("an address with a zone", "'[fe80::1%25wan]'"),
    ("an address with a bare zone", "'[fe80::1%wan]'"),
    ("metadata", "'169.254.169.254'"),
    ("metadata in one number", "'2852039166'"),
    ("metadata as six", "'[::ffff:a9fe:a9fe]'"),
    ("percent-encoded", "'%77%77%77.example.org'"),
    ("percent-encoded digits", "'%31%32%37.0.0.1'"),
    ("an encoded NUL", "'evil.example.net%00.www.example.org'"),
    ("an encoded dot", "'evil.example.net%2e'"),
    ("a NUL behind another host", "b'evil.example.net\\0.www.example.org'"),
    ("a NUL behind the listed host", "b'www.example.org\\0.evil.example.net'"),
    ("a line end in it", "b'www.example.org\\r\\nHost: evil.example.net'"),
    ("a tab in it", "b'www.example.org\\tevil.example.net'"),
    ("wide digits", "'１２７.0.0.1'.encode()"),
    ("circled digits", "'①②⑦.⓪.⓪.①'.encode()"),
    ("wide dots", "'127。0。0。1'.encode()"),
    ("a letter that looks alike", "'www.exаmple.org'.encode()"),
    ("bytes that are no text", "b'www.example.org\\xff'"),
    (
        "another with the listed one before it",
        "'www.example.org.evil.example.net'",
    ),
    ("another with the listed one behind it", "'evil-www.example.org'"),
    ("the listed one without its dot", "'wwwxexample.org'"),
    ("its parent", "'example.org'"),
    ("a name below it", "'a.www.example.org'"),
    ("a user before the host", "'www.example.org@evil.example.net'"),
    ("a user and a password", "'www.example.org:443@evil.example.net'"),
    ("a fragment", "'evil.example.net#www.example.org'"),
    ("a path", "'evil.example.net/www.example.org'"),
    ("a backslash", "'evil.example.net\\\\@www.example.org'"),
    ("two dots behind it", "'www.example.org..'"),
    ("a dot before it", "'.www.example.org'"),
    ("nothing", "''"),
    ("a star", "'*'"),
    ("the star of a list", "'*.example.org'"),
    ("localhost", "'localhost'"),
    ("localhost with a dot", "'localhost.'"),
    ("localhost shouted", "'LOCALHOST'"),
    ("localhost's longer name", "'localhost.localdomain'"),
    ("another localhost", "'ip6-localhost'"),
    ("a name of the machine's", "'machine.example.org'"),
    ("brackets around a name", "'[www.example.org]'"),
    ("a bracket that is not closed", "'[::1'"),
];

fn a_host_in_an_odd_notation_is_no_listed_host(lab: &Lab) {
    let mut table = vec![
        row("the twin", Nothing, "tls('www.example.org', name='www.example.org')"),
        row(
            "the twin, shouted",
            Nothing,
            "tls('WWW.EXAMPLE.ORG', name='www.example.org')",
        ),
        row(
            "the twin, with its dot",
            Nothing,
            "tls('www.example.org.', name='www.example.org')",
        ),
        row("the twin, whole", Nothing, "raw(absolute('http://www.example.org/'))"),
    ];
    for (name, host) in NOTATIONS {
        let bytes = format!("(lambda host: host if isinstance(host, bytes) else host.encode())({host})");
        let texts = [
            ("CONNECT", format!("ask_connect({bytes} + b':443')")),
            (
                "HTTP",
                format!("raw(b'GET http://' + {bytes} + b'/ HTTP/1.1\\r\\nHost: ' + {bytes} + b'\\r\\n\\r\\n')"),
            ),
            ("SOCKS", format!("socks(3, {bytes}.strip(b'[]'), 443)")),
        ];
        // Whoever runs the proxy, it reads alike: the user tries one way of three.
        let ways = if lab.world.actor == Actor::Root { 3 } else { 1 };
        for (way, does) in texts.into_iter().take(ways) {
            table.push(Attempt {
                name: format!("{name}, by {way}").leak(),
                does: does.leak(),
                meets: TheProxy,
            });
        }
    }
    // `[www.example.org]` without its brackets is what is listed.
    table.retain(|row| row.name != "brackets around a name, by SOCKS");
    Inside::new(lab, &["www.example.org"]).tries(&table);
}

const LEADS_ELSEWHERE: &[&str] = &[
    "private",
    "loopback",
    "loopback6",
    "zero",
    "zero6",
    "metadata",
    "carrier",
    "benchmark",
    "broadcast",
    "multicast",
    "unique",
    "link",
    "mapped",
    "mapped-loopback",
    "compatible",
    "nat64",
    "sixtofour",
    "teredo",
    "own",
    "own6",
    "cname-private",
    "cname-localhost",
    "hosts-private",
    "machine",
    "rebind-first",
];

fn a_name_that_leads_elsewhere_is_refused(lab: &Lab) {
    let mut table = vec![
        row(
            "the twin",
            Nothing,
            "tls('alias.example.org', name='alias.example.org')",
        ),
        row(
            "the twin, whole",
            Nothing,
            "raw(absolute('http://far.alias.example.org/'))",
        ),
        row(
            "mixed answers: only the public one",
            Nothing,
            "raw(absolute('http://mixed.example.org/'))",
        ),
        row(
            "mixed families: only the public one",
            Nothing,
            "raw(absolute('http://mixed-families.example.org/'))",
        ),
        row(
            "many answers: only the public one",
            Nothing,
            "raw(absolute('http://many.example.org/'))",
        ),
    ];
    for name in LEADS_ELSEWHERE {
        let texts = [
            ("CONNECT", format!("ask_connect('{name}.example.org:443')")),
            ("HTTP", format!("raw(absolute('http://{name}.example.org/'))")),
            ("SOCKS", format!("socks(3, b'{name}.example.org', 80)")),
        ];
        let ways = if lab.world.actor == Actor::Root { 3 } else { 1 };
        for (way, does) in texts.into_iter().take(ways) {
            if *name == "rebind-first" && way != "CONNECT" {
                continue;
            }
            table.push(Attempt {
                name: format!("{name}, by {way}").leak(),
                does: does.leak(),
                meets: TheAddress,
            });
        }
    }
    let recorded = Inside::new(lab, &["*.example.org"]).tries(&table);
    let said = recorded.lines().join("\n");
    for kind in ["private", "loopback", "metadata", "this machine"] {
        assert!(said.contains(kind), "{kind}: {said}");
    }
}

fn a_name_that_changes_its_mind_is_held_to_the_first_answer(lab: &Lab) {
    let mut inside = Inside::new(lab, &["*.example.org"]);
    lab.forget();
    let first = inside.does("raw(absolute('http://rebind.example.org/'))").unwrap();
    assert!(first.contains(&format!("reached {WWW}:80")), "{first}");
    // The next question is answered with a private address.
    let second = inside.does("raw(absolute('http://rebind.example.org/'))").unwrap();
    assert!(second.contains("private") && !second.contains("reached"), "{second}");
    lab.seen().only(&[&format!("tcp {WWW}:80")]);
    // In one connection, too.
    lab.forget();
    let both = inside
        .does("raw(absolute('http://rebind.example.org/one'), 0.5, absolute('http://rebind.example.org/two'))")
        .unwrap();
    assert_eq!(both.matches("reached").count(), 1, "{both}");
    lab.seen().only(&[&format!("tcp {WWW}:80")]);
    inside.end();
}

fn special_addresses_are_reached_by_number_only(lab: &Lab) {
    let mut inside = Inside::new(
        lab,
        &[
            "10.0.0.0/8",
            "127.0.0.1:8080",
            "93.184.215.2:8080",
            "[fd00::80]:80",
            "private.example.org:8080",
        ],
    );
    for (python, reached) in [
        ("raw(absolute('http://10.0.0.80/'))", "10.0.0.80:80"),
        ("raw(absolute('http://[fd00::80]/'))", "[fd00::80]:80"),
        ("raw(absolute('http://127.0.0.1:8080/'))", "127.0.0.1:8080"),
        ("raw(absolute('http://93.184.215.2:8080/'))", "93.184.215.2:8080"),
        (
            "socks(4, socket.inet_pton(10, '::ffff:10.0.0.80'), 80, says=get('10.0.0.80').encode())",
            "10.0.0.80:80",
        ),
    ] {
        let said = inside.does(python).unwrap_or_else(|why| why);
        assert!(said.contains(&format!("reached {reached}")), "{python}: {said}");
    }
    lab.forget();
    for python in [
        "raw(absolute('http://10.0.0.80:8080/'))",
        "raw(absolute('http://127.0.0.2:8080/'))",
        "raw(absolute('http://127.0.0.1/'))",
        "raw(absolute('http://[::1]:8080/'))",
        "raw(absolute('http://93.184.215.2/'))",
        "raw(absolute('http://192.168.7.7/'))",
        // A name is no number.
        "raw(absolute('http://private.example.org:8080/'))",
    ] {
        let said = inside.does(python).unwrap_or_else(|why| why);
        assert!(!said.contains("reached 1") && said.contains("403"), "{python}: {said}");
    }
    lab.seen().only(&[]);
    inside.end();
}

/// Requests, with `www.example.org` listed.
const REQUESTS: &[Attempt] = &[
    row("the twin", Nothing, "raw(absolute('http://www.example.org/'))"),
    row(
        "two requests, the twin",
        Nothing,
        "raw(absolute('http://www.example.org/one'), absolute('http://www.example.org/two'))",
    ),
    row(
        "two hosts, the other first",
        TheProxy,
        "raw('GET http://www.example.org/ HTTP/1.1\\r\\nHost: evil.example.net\\r\\nHost: www.example.org\\r\\n\\r\\n')",
    ),
    row(
        "two hosts, the other last",
        TheProxy,
        "raw('GET http://www.example.org/ HTTP/1.1\\r\\nHost: www.example.org\\r\\nHost: evil.example.net\\r\\n\\r\\n')",
    ),
    row(
        "two hosts that agree",
        TheProxy,
        "raw('GET http://www.example.org/ HTTP/1.1\\r\\nHost: www.example.org\\r\\nHost: www.example.org\\r\\n\\r\\n')",
    ),
    row(
        "another host in the field",
        TheProxy,
        "raw(absolute('http://www.example.org/', host='evil.example.net'))",
    ),
    row(
        "another port in the field",
        TheProxy,
        "raw(absolute('http://www.example.org/', host='www.example.org:8080'))",
    ),
    row(
        "the other in the line",
        TheProxy,
        "raw(absolute('http://evil.example.net/', host='www.example.org'))",
    ),
    row(
        "no host",
        TheProxy,
        "raw('GET http://www.example.org/ HTTP/1.1\\r\\n\\r\\n')",
    ),
    row(
        "an empty host",
        TheProxy,
        "raw('GET http://www.example.org/ HTTP/1.1\\r\\nHost:\\r\\n\\r\\n')",
    ),
    row(
        "two hosts in one field",
        TheProxy,
        "raw('GET http://www.example.org/ HTTP/1.1\\r\\nHost: www.example.org, evil.example.net\\r\\n\\r\\n')",
    ),
    row("a request of its own form", TheProxy, "raw(get('www.example.org'))"),
    row(
        "a request for everything",
        TheProxy,
        "raw('OPTIONS * HTTP/1.1\\r\\nHost: www.example.org\\r\\n\\r\\n')",
    ),
    row(
        "HTTPS in the line",
        TheProxy,
        "raw(absolute('https://evil.example.net/'))",
    ),
    row("FTP in the line", TheProxy, "raw(absolute('ftp://www.example.org/'))"),
    row(
        "a file in the line",
        TheProxy,
        "raw('GET file:///etc/passwd HTTP/1.1\\r\\nHost: www.example.org\\r\\n\\r\\n')",
    ),
    row(
        "no scheme",
        TheProxy,
        "raw('GET //www.example.org/ HTTP/1.1\\r\\nHost: www.example.org\\r\\n\\r\\n')",
    ),
    row(
        "a user in the line",
        TheProxy,
        "raw(absolute('http://www.example.org@evil.example.net/', host='evil.example.net'))",
    ),
    row(
        "a user, for the listed host",
        TheProxy,
        "raw(absolute('http://evil.example.net@www.example.org/', host='www.example.org'))",
    ),
    row(
        "an unlisted port",
        TheProxy,
        "raw(absolute('http://www.example.org:8080/'))",
    ),
    row(
        "CONNECT at an unlisted port",
        TheProxy,
        "ask_connect('www.example.org:8443')",
    ),
    row(
        "CONNECT to the port of mail",
        TheProxy,
        "ask_connect('www.example.org:25')",
    ),
    row("CONNECT without a port", TheProxy, "ask_connect('www.example.org')"),
    row(
        "CONNECT with an empty port",
        TheProxy,
        "ask_connect('www.example.org:')",
    ),
    row("CONNECT to port 0", TheProxy, "ask_connect('www.example.org:0')"),
    row(
        "CONNECT beyond the last port",
        TheProxy,
        "ask_connect('www.example.org:65979')",
    ),
    row(
        "CONNECT to a port that wraps",
        TheProxy,
        "ask_connect('www.example.org:4294967739')",
    ),
    row(
        "CONNECT to a port with a sign",
        TheProxy,
        "ask_connect('www.example.org:+443')",
    ),
    row(
        "CONNECT to a port in words",
        TheProxy,
        "ask_connect('www.example.org:https')",
    ),
    row("CONNECT with a path", TheProxy, "ask_connect('www.example.org:443/')"),
    row(
        "CONNECT with a scheme",
        TheProxy,
        "ask_connect('https://www.example.org:443')",
    ),
    row(
        "CONNECT with another host in the field",
        TheProxy,
        "ask_connect('evil.example.net:443', host='www.example.org:443')",
    ),
    row(
        "CONNECT to the listed one with another in the field",
        TheProxy,
        "ask_connect('www.example.org:443', host='evil.example.net:443')",
    ),
    row(
        "connect in small letters",
        TheProxy,
        "raw('connect www.example.org:443 HTTP/1.1\\r\\nHost: www.example.org:443\\r\\n\\r\\n')",
    ),
    row(
        "CONNECT of HTTP/0.9",
        TheProxy,
        "raw('CONNECT www.example.org:443\\r\\n\\r\\n')",
    ),
    row(
        "GET of HTTP/0.9",
        TheProxy,
        "raw('GET http://www.example.org/\\r\\n\\r\\n')",
    ),
    row("HTTP/2", TheProxy, "raw('PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n')"),
    row(
        "a version that is none",
        TheProxy,
        "raw('GET http://www.example.org/ HTTP/1.2\\r\\nHost: www.example.org\\r\\n\\r\\n')",
    ),
    row(
        "a line that goes on in the next",
        TheProxy,
        "raw('GET http://www.example.org/ HTTP/1.1\\r\\nHost: www.example.org\\r\\n evil.example.net\\r\\n\\r\\n')",
    ),
    row(
        "a blank before the colon",
        TheProxy,
        "raw('GET http://www.example.org/ HTTP/1.1\\r\\nHost : evil.example.net\\r\\nHost: www.example.org\\r\\n\\r\\n')",
    ),
    row(
        "a blank before the first field",
        TheProxy,
        "raw('GET http://www.example.org/ HTTP/1.1\\r\\n Host: evil.example.net\\r\\nHost: www.example.org\\r\\n\\r\\n')",
    ),
    row(
        "lines that end in LF alone",
        TheProxy,
        "raw('GET http://www.example.org/ HTTP/1.1\\nHost: www.example.org\\n\\n')",
    ),
    row(
        "one line that ends in LF alone",
        TheProxy,
        "raw('GET http://www.example.org/ HTTP/1.1\\r\\nX: 1\\nHost: evil.example.net\\r\\nHost: www.example.org\\r\\n\\r\\n')",
    ),
    row(
        "a CR alone",
        TheProxy,
        "raw('GET http://www.example.org/ HTTP/1.1\\r\\nX: 1\\rHost: evil.example.net\\r\\nHost: www.example.org\\r\\n\\r\\n')",
    ),
    row(
        "a NUL in a field",
        TheProxy,
        "raw('GET http://www.example.org/ HTTP/1.1\\r\\nHost: www.example.org\\r\\nX: a\\0b\\r\\n\\r\\n')",
    ),
    row(
        "a NUL in the line",
        TheProxy,
        "raw('GET http://www.example.org/\\0 HTTP/1.1\\r\\nHost: www.example.org\\r\\n\\r\\n')",
    ),
    row(
        "two blanks in the line",
        TheProxy,
        "raw('GET  http://www.example.org/ HTTP/1.1\\r\\nHost: www.example.org\\r\\n\\r\\n')",
    ),
    row(
        "a tab in the line",
        TheProxy,
        "raw('GET\\thttp://www.example.org/\\tHTTP/1.1\\r\\nHost: www.example.org\\r\\n\\r\\n')",
    ),
    row(
        "a field without a colon",
        TheProxy,
        "raw('GET http://www.example.org/ HTTP/1.1\\r\\nHost: www.example.org\\r\\nodd\\r\\n\\r\\n')",
    ),
    row(
        "a head without end",
        TheProxy,
        "raw('GET http://www.example.org/ HTTP/1.1\\r\\nHost: www.example.org\\r\\nX: ' + 'a' * 200000)",
    ),
    row(
        "fields without end",
        TheProxy,
        "raw('GET http://www.example.org/ HTTP/1.1\\r\\nHost: www.example.org\\r\\n' + 'X: a\\r\\n' * 20000 + '\\r\\n')",
    ),
    row(
        "a length and chunks",
        TheProxy,
        "raw(absolute('http://www.example.org/', more='Content-Length: 5\\r\\nTransfer-Encoding: chunked\\r\\n', method='POST') + '0\\r\\n\\r\\nGET /smuggled HTTP/1.1\\r\\nHost: evil.example.net\\r\\n\\r\\n')",
    ),
    row(
        "chunks and a length",
        TheProxy,
        "raw(absolute('http://www.example.org/', more='Transfer-Encoding: chunked\\r\\nContent-Length: 60\\r\\n', method='POST') + '0\\r\\n\\r\\nGET /smuggled HTTP/1.1\\r\\nHost: evil.example.net\\r\\n\\r\\n')",
    ),
    row(
        "two codings",
        TheProxy,
        "raw(absolute('http://www.example.org/', more='Transfer-Encoding: chunked\\r\\nTransfer-Encoding: identity\\r\\n', method='POST') + '0\\r\\n\\r\\nGET /smuggled HTTP/1.1\\r\\nHost: evil.example.net\\r\\n\\r\\n')",
    ),
    row(
        "a coding that is none",
        TheProxy,
        "raw(absolute('http://www.example.org/', more='Transfer-Encoding: xchunked\\r\\n', method='POST') + '0\\r\\n\\r\\nGET /smuggled HTTP/1.1\\r\\nHost: evil.example.net\\r\\n\\r\\n')",
    ),
    row(
        "a coding with a tab before it",
        TheProxy,
        "raw(absolute('http://www.example.org/', more='Transfer-Encoding:\\x0bchunked\\r\\n', method='POST') + '0\\r\\n\\r\\nGET /smuggled HTTP/1.1\\r\\nHost: evil.example.net\\r\\n\\r\\n')",
    ),
    row(
        "a coding within another",
        TheProxy,
        "raw(absolute('http://www.example.org/', more='Transfer-Encoding: gzip, chunked\\r\\n', method='POST') + '0\\r\\n\\r\\nGET /smuggled HTTP/1.1\\r\\nHost: evil.example.net\\r\\n\\r\\n')",
    ),
    row(
        "two lengths",
        TheProxy,
        "raw(absolute('http://www.example.org/', more='Content-Length: 0\\r\\nContent-Length: 50\\r\\n', method='POST') + 'GET /smuggled HTTP/1.1\\r\\nHost: evil.example.net\\r\\n\\r\\n')",
    ),
    row(
        "a list of lengths",
        TheProxy,
        "raw(absolute('http://www.example.org/', more='Content-Length: 0, 50\\r\\n', method='POST') + 'GET /smuggled HTTP/1.1\\r\\nHost: evil.example.net\\r\\n\\r\\n')",
    ),
    row(
        "a length with a sign",
        TheProxy,
        "raw(absolute('http://www.example.org/', more='Content-Length: +5\\r\\n', method='POST') + 'GET /smuggled HTTP/1.1\\r\\n\\r\\n')",
    ),
    row(
        "a length below nothing",
        TheProxy,
        "raw(absolute('http://www.example.org/', more='Content-Length: -1\\r\\n', method='POST') + 'GET /smuggled HTTP/1.1\\r\\n\\r\\n')",
    ),
    row(
        "a length in hexadecimal",
        TheProxy,
        "raw(absolute('http://www.example.org/', more='Content-Length: 0x5\\r\\n', method='POST') + 'GET /smuggled HTTP/1.1\\r\\n\\r\\n')",
    ),
    row(
        "a length beyond all numbers",
        TheProxy,
        "raw(absolute('http://www.example.org/', more='Content-Length: 99999999999999999999999\\r\\n', method='POST'))",
    ),
    row(
        "the second request to another host",
        TheProxy,
        "raw(absolute('http://evil.example.net/one'), absolute('http://www.example.org/two', host='evil.example.net'))",
    ),
    row(
        "a body that hides a request",
        TheTunnel,
        "raw(absolute('http://www.example.org/two-answers', more='Content-Length: 0\\r\\n') + absolute('http://evil.example.net/smuggled')).replace(b'reached', b'').replace(b'nobody asked', b'reached 1')",
    ),
    row(
        "a second request to an unlisted host",
        TheTunnel,
        "raw(absolute('http://www.example.org/'), 0.3, absolute('http://evil.example.net/')).replace(b'reached 93.184.216.34', b'').replace(b'reached [2606:2800:220:1::34', b'')",
    ),
    row(
        "a second request with another host",
        TheTunnel,
        "raw(absolute('http://www.example.org/'), 0.3, absolute('http://www.example.org/', host='evil.example.net')).replace(b'reached 93.184.216.34', b'').replace(b'reached [2606:2800:220:1::34', b'')",
    ),
    row(
        "a CONNECT behind a request",
        TheTunnel,
        "raw(absolute('http://www.example.org/'), 0.3, 'CONNECT evil.example.net:443 HTTP/1.1\\r\\nHost: evil.example.net:443\\r\\n\\r\\n').replace(b'reached 93.184.216.34', b'').replace(b'reached [2606:2800:220:1::34', b'')",
    ),
    row("TLS to the proxy", TheProxy, "raw(hello('www.example.org'))"),
    row("nonsense", TheProxy, "raw(bytes(range(128, 256)))"),
    row("SSH", TheProxy, "raw('SSH-2.0-client\\r\\n\\r\\n')"),
    row(
        "the PROXY protocol",
        TheProxy,
        "raw('PROXY TCP4 10.0.0.80 93.184.216.66 1 443\\r\\n' + absolute('http://www.example.org/'))",
    ),
    row(
        "fields for other proxies go no further",
        Nothing,
        "raw(absolute('http://www.example.org/', more='Connection: Host, X-Evil\\r\\nX-Evil: evil\\r\\nProxy-Connection: evil\\r\\n'))",
    ),
    row("it still works", Nothing, "raw(absolute('http://www.example.org/'))"),
];

fn a_request_of_two_meanings_has_none(lab: &Lab) {
    Inside::new(lab, &["www.example.org"]).tries(REQUESTS);
}

/// In tunnels, with `www.example.org` listed at its ports and at 9999.
const TUNNELS: &[Attempt] = &[
    row(
        "TLS, the twin",
        Nothing,
        "tls('www.example.org', name='www.example.org')",
    ),
    row(
        "TLS in small records, the twin",
        Nothing,
        "tunnel('www.example.org', 443, fragments(hello('www.example.org'), 20)) and tls('www.example.org', name='www.example.org')",
    ),
    row(
        "TLS in single bytes, the twin",
        Nothing,
        "tunnel('www.example.org', 443, *sum(([bytes([b]), 0.0005] for b in hello('www.example.org')), []))[:1] == b'\\x16' and 'reached 93.184.216.34'",
    ),
    row(
        "TLS shouted, the twin",
        Nothing,
        "tunnel('www.example.org', 443, hello('WWW.Example.ORG'))[:1] == b'\\x16' and 'reached 93.184.216.34'",
    ),
    row("TLS without a name", Nothing, "tls('www.example.org', name=None)"),
    row(
        "HTTP, the twin",
        Nothing,
        "tunnel('www.example.org', 80, get('www.example.org'))",
    ),
    row(
        "another name in TLS",
        TheTunnel,
        "tls('www.example.org', name='evil.example.net')",
    ),
    row(
        "another name in TLS, in small records",
        TheTunnel,
        "tunnel('www.example.org', 443, fragments(hello('evil.example.net'), 7))",
    ),
    row(
        "another name in TLS, byte by byte",
        TheTunnel,
        "tunnel('www.example.org', 443, *sum(([bytes([b]), 0.0005] for b in hello('evil.example.net')), []))",
    ),
    row(
        "another name in TLS, after a pause",
        TheTunnel,
        "tunnel('www.example.org', 443, hello('evil.example.net')[:3], 1, hello('evil.example.net')[3:])",
    ),
    row(
        "a longer name in TLS",
        TheTunnel,
        "tls('www.example.org', name='www.example.org.evil.example.net')",
    ),
    row(
        "a name below it in TLS",
        TheTunnel,
        "tls('www.example.org', name='a.www.example.org')",
    ),
    row(
        "its parent in TLS",
        TheTunnel,
        "tls('www.example.org', name='example.org')",
    ),
    row(
        "two names in TLS",
        TheTunnel,
        "tunnel('www.example.org', 443, named_twice('www.example.org', 'evil.example.net'))",
    ),
    row(
        "a NUL in the name in TLS",
        TheTunnel,
        "tunnel('www.example.org', 443, hello('www.example.org.evil').replace(b'www.example.org.evil', b'www.example.org\\0evil'))",
    ),
    row(
        "a number as the name in TLS",
        TheTunnel,
        "tunnel('www.example.org', 443, hello('xx.184.216.66').replace(b'xx.184.216.66', b'93.184.216.66'))",
    ),
    row(
        "a hello with an alert before it",
        TheTunnel,
        "tunnel('www.example.org', 443, b'\\x15\\3\\1\\0\\2\\1\\0' + hello('evil.example.net'))",
    ),
    row(
        "a hello with a change of cipher before it",
        TheTunnel,
        "tunnel('www.example.org', 443, b'\\x14\\3\\3\\0\\1\\1' + hello('evil.example.net'))",
    ),
    row(
        "a hello with an empty record before it",
        TheTunnel,
        "tunnel('www.example.org', 443, b'\\x16\\3\\1\\0\\0' + hello('evil.example.net'))",
    ),
    row(
        "a hello of an odd version",
        TheTunnel,
        "tunnel('www.example.org', 443, b'\\x16\\7\\7' + hello('evil.example.net')[3:])",
    ),
    row(
        "a hello of the oldest form",
        TheTunnel,
        "tunnel('www.example.org', 443, b'\\x80\\x2e\\1\\3\\1\\0\\x15\\0\\0\\0\\x10' + bytes(37))",
    ),
    row(
        "two hellos in one flight",
        TheTunnel,
        "tunnel('www.example.org', 443, hello('www.example.org') + hello('evil.example.net'))[:1] == b'\\x16' and tunnel('www.example.org', 443, hello('evil.example.net'))",
    ),
    row(
        "another host in HTTP",
        TheTunnel,
        "tunnel('www.example.org', 80, get('evil.example.net'))",
    ),
    row(
        "another host in HTTP, byte by byte",
        TheTunnel,
        "tunnel('www.example.org', 80, *sum(([c, 0.0005] for c in get('evil.example.net')), []))",
    ),
    row(
        "two hosts in HTTP",
        TheTunnel,
        "tunnel('www.example.org', 80, get('www.example.org', more='Host: evil.example.net\\r\\n'))",
    ),
    row(
        "the whole address in HTTP",
        TheTunnel,
        "tunnel('www.example.org', 80, absolute('http://evil.example.net/', host='www.example.org'))",
    ),
    row(
        "another host in the second request",
        TheTunnel,
        "tunnel('www.example.org', 80, get('www.example.org'), 0.3, get('evil.example.net')).replace(b'reached 93.184.216.34', b'').replace(b'reached [2606:2800:220:1::34', b'')",
    ),
    row(
        "another host in the second request of one flight",
        TheTunnel,
        "tunnel('www.example.org', 80, get('www.example.org') + get('evil.example.net')).replace(b'reached 93.184.216.34', b'').replace(b'reached [2606:2800:220:1::34', b'')",
    ),
    row(
        "another host behind a body",
        TheTunnel,
        "tunnel('www.example.org', 80, 'POST / HTTP/1.1\\r\\nHost: www.example.org\\r\\nContent-Length: 5\\r\\n\\r\\n12345' + get('evil.example.net')).replace(b'reached 93.184.216.34', b'').replace(b'reached [2606:2800:220:1::34', b'')",
    ),
    row(
        "another host behind chunks",
        TheTunnel,
        "tunnel('www.example.org', 80, 'POST / HTTP/1.1\\r\\nHost: www.example.org\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n5\\r\\n12345\\r\\n0\\r\\n\\r\\n' + get('evil.example.net')).replace(b'reached 93.184.216.34', b'').replace(b'reached [2606:2800:220:1::34', b'')",
    ),
    row(
        "another host behind an upgrade that is not made",
        TheTunnel,
        "tunnel('www.example.org', 80, get('www.example.org', more='Connection: Upgrade\\r\\nUpgrade: x\\r\\n'), 0.3, get('evil.example.net')).replace(b'reached 93.184.216.34', b'').replace(b'reached [2606:2800:220:1::34', b'')",
    ),
    row(
        "another host behind an empty line",
        TheTunnel,
        "tunnel('www.example.org', 80, '\\r\\n' + get('evil.example.net'))",
    ),
    row(
        "another host behind many empty lines",
        TheTunnel,
        "tunnel('www.example.org', 80, '\\n' * 5, 0.3, '\\r\\n\\n' + get('evil.example.net'))",
    ),
    row(
        "another host with lines that end in LF alone",
        TheTunnel,
        "tunnel('www.example.org', 80, 'GET / HTTP/1.1\\nHost: evil.example.net\\n\\n')",
    ),
    row(
        "another host with a method of its own",
        TheTunnel,
        "tunnel('www.example.org', 80, 'FOO / HTTP/1.1\\r\\nHost: evil.example.net\\r\\n\\r\\n')",
    ),
    row(
        "another host with a method in small letters",
        TheTunnel,
        "tunnel('www.example.org', 80, 'get / HTTP/1.1\\r\\nHost: evil.example.net\\r\\n\\r\\n')",
    ),
    row(
        "another host with a method of odd letters",
        TheTunnel,
        "tunnel('www.example.org', 80, \"!#$%&'*+-.^_`|~ / HTTP/1.1\\r\\nHost: evil.example.net\\r\\n\\r\\n\")",
    ),
    row(
        "another host with a long method",
        TheTunnel,
        "tunnel('www.example.org', 80, 'A' * 5000 + ' / HTTP/1.1\\r\\nHost: evil.example.net\\r\\n\\r\\n')",
    ),
    row(
        "another host behind a tab",
        TheTunnel,
        "tunnel('www.example.org', 80, 'GET\\t/\\tHTTP/1.1\\r\\nHost: evil.example.net\\r\\n\\r\\n')",
    ),
    row(
        "another host behind a blank",
        TheTunnel,
        "tunnel('www.example.org', 80, ' GET / HTTP/1.1\\r\\nHost: evil.example.net\\r\\n\\r\\n')",
    ),
    row(
        "another host apart by a vertical tab",
        TheTunnel,
        "tunnel('www.example.org', 80, 'GET\\x0b/\\x0bHTTP/1.1\\r\\nHost: evil.example.net\\r\\n\\r\\n'.encode('latin-1'))",
    ),
    row(
        "another host apart by a form feed",
        TheTunnel,
        "tunnel('www.example.org', 80, 'GET\\x0c/\\x0cHTTP/1.1\\r\\nHost: evil.example.net\\r\\n\\r\\n'.encode('latin-1'))",
    ),
    row(
        "another host apart by a separator",
        TheTunnel,
        "tunnel('www.example.org', 80, 'GET\\x1c/\\x1fHTTP/1.1\\r\\nHost: evil.example.net\\r\\n\\r\\n'.encode('latin-1'))",
    ),
    row(
        "another host apart by a blank of Latin-1",
        TheTunnel,
        "tunnel('www.example.org', 80, 'GET\\x85/\\xa0HTTP/1.1\\r\\nHost: evil.example.net\\r\\n\\r\\n'.encode('latin-1'))",
    ),
    row(
        "another host apart by a bare CR",
        TheTunnel,
        "tunnel('www.example.org', 80, 'GET\\r/\\rHTTP/1.1\\r\\nHost: evil.example.net\\r\\n\\r\\n'.encode('latin-1'))",
    ),
    row(
        "another host behind a control byte",
        TheTunnel,
        "tunnel('www.example.org', 80, '\\x01GET / HTTP/1.1\\r\\nHost: evil.example.net\\r\\n\\r\\n'.encode('latin-1'))",
    ),
    row(
        "another host behind control bytes and an empty line",
        TheTunnel,
        "tunnel('www.example.org', 80, '\\0\\x02\\r\\n\\x0b\\nGET / HTTP/1.1\\r\\nHost: evil.example.net\\r\\n\\r\\n'.encode('latin-1'))",
    ),
    row(
        "another host behind a PROXY line",
        TheTunnel,
        "tunnel('www.example.org', 80, 'PROXY TCP4 192.0.2.1 192.0.2.2 1 2\\r\\nGET / HTTP/1.1\\r\\nHost: evil.example.net\\r\\n\\r\\n'.encode('latin-1'))",
    ),
    row(
        "another host behind the binary form of a PROXY line",
        TheTunnel,
        "tunnel('www.example.org', 80, b'\\r\\n\\r\\n\\0\\r\\nQUIT\\n\\x21\\x11\\0\\x0c' + bytes(12) + get('evil.example.net').encode())",
    ),
    row(
        "another host in a line without a version",
        TheTunnel,
        "tunnel('www.example.org', 80, 'GET SECRET\\r\\nHost: evil.example.net\\r\\n\\r\\n')",
    ),
    row(
        "another host as a star without a version",
        TheTunnel,
        "tunnel('www.example.org', 80, 'GET *\\r\\nHost: evil.example.net\\r\\n\\r\\n')",
    ),
    row(
        "another host behind a request of RTSP",
        TheTunnel,
        "tunnel('www.example.org', 80, 'GET * RTSP/1.1\\r\\nHost: www.example.org\\r\\n\\r\\n' + get('evil.example.net'))",
    ),
    row(
        "another host as ICE",
        TheTunnel,
        "tunnel('www.example.org', 80, 'SOURCE / ICE/1.1\\r\\nHost: evil.example.net\\r\\n\\r\\n')",
    ),
    row(
        "another host in the body of a GET",
        TheTunnel,
        "tunnel('www.example.org', 80, 'GET / HTTP/1.1\\r\\nHost: www.example.org\\r\\nContent-Length: 99\\r\\n\\r\\n' + get('evil.example.net').ljust(99))",
    ),
    row(
        "another host in HTTP/1.0",
        TheTunnel,
        "tunnel('www.example.org', 80, 'GET / HTTP/1.0\\r\\nHost: evil.example.net\\r\\n\\r\\n')",
    ),
    row(
        "another host behind a large head",
        TheTunnel,
        "tunnel('www.example.org', 80, 'GET / HTTP/1.1\\r\\n' + 'X: a\\r\\n' * 50 + 'Y: ' + 'y' * 30000 + '\\r\\nHost: evil.example.net\\r\\n\\r\\n')",
    ),
    row(
        "a length and chunks in HTTP",
        TheTunnel,
        "tunnel('www.example.org', 80, 'POST / HTTP/1.1\\r\\nHost: www.example.org\\r\\nContent-Length: 5\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n0\\r\\n\\r\\n' + get('evil.example.net', '/smuggled'))",
    ),
    row(
        "a CONNECT in the tunnel",
        TheTunnel,
        "tunnel('www.example.org', 80, 'CONNECT evil.example.net:443 HTTP/1.1\\r\\nHost: evil.example.net:443\\r\\n\\r\\n')",
    ),
    row(
        "HTTP/2 with another authority",
        TheTunnel,
        "tunnel('www.example.org', 80, b'PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n\\0\\0\\0\\4\\0\\0\\0\\0\\0')",
    ),
    row(
        "neither TLS nor HTTP, the twin",
        Nothing,
        "tunnel('www.example.org', 9999, b'\\1\\2\\3')",
    ),
    row(
        "bytes sent with the CONNECT, the twin",
        Nothing,
        "raw('CONNECT www.example.org:80 HTTP/1.1\\r\\nHost: www.example.org:80\\r\\n\\r\\n' + get('www.example.org'))",
    ),
    row(
        "bytes sent with the CONNECT, to another",
        TheTunnel,
        "raw('CONNECT www.example.org:80 HTTP/1.1\\r\\nHost: www.example.org:80\\r\\n\\r\\n' + get('evil.example.net'))",
    ),
    row(
        "bytes sent with a CONNECT that is refused",
        TheProxy,
        "raw('CONNECT evil.example.net:80 HTTP/1.1\\r\\nHost: evil.example.net:80\\r\\n\\r\\n' + absolute('http://www.example.org/')).replace(b'reached 93.184.216.34', b'').replace(b'reached [2606:2800:220:1::34', b'')",
    ),
    row(
        "a CONNECT with a body",
        TheProxy,
        "raw('CONNECT www.example.org:80 HTTP/1.1\\r\\nHost: www.example.org:80\\r\\nContent-Length: 5\\r\\n\\r\\n12345')",
    ),
];

fn what_is_in_the_tunnel_must_agree_with_its_name(lab: &Lab) {
    Inside::new(lab, &["www.example.org:80,443,9999"]).tries(TUNNELS);
}

const SOCKS: &[Attempt] = &[
    row(
        "the twin",
        Nothing,
        "socks(3, b'www.example.org', 80, says=get('www.example.org').encode())",
    ),
    row(
        "TLS, the twin",
        Nothing,
        "socks(3, b'www.example.org', 443, says=hello('www.example.org'))[12:13] == b'\\x16' and 'reached 93.184.216.34'",
    ),
    row(
        "an unlisted name",
        TheProxy,
        "socks(3, b'evil.example.net', 80, says=get('evil.example.net').encode())",
    ),
    row(
        "an unlisted address",
        TheProxy,
        "socks(1, socket.inet_aton('93.184.216.66'), 80, says=get('x').encode())",
    ),
    row(
        "loopback",
        TheProxy,
        "socks(1, socket.inet_aton('127.0.0.1'), 8080, says=get('x').encode())",
    ),
    row(
        "the unspecified address",
        TheProxy,
        "socks(1, bytes(4), 8080, says=get('x').encode())",
    ),
    row(
        "an unlisted address of six",
        TheProxy,
        "socks(4, socket.inet_pton(10, '2606:2800:220:1::66'), 80, says=get('x').encode())",
    ),
    row(
        "loopback as six",
        TheProxy,
        "socks(4, socket.inet_pton(10, '::ffff:127.0.0.1'), 8080, says=get('x').encode())",
    ),
    row(
        "an unlisted port",
        TheProxy,
        "socks(3, b'www.example.org', 8080, says=get('www.example.org').encode())",
    ),
    row("port 0", TheProxy, "socks(3, b'www.example.org', 0)"),
    row(
        "a name with a NUL",
        TheProxy,
        "socks(3, b'www.example.org\\0.evil.example.net', 80)",
    ),
    row("a name of nothing", TheProxy, "socks(3, b'', 80)"),
    row("a type of address that is none", TheProxy, "socks(2, bytes(4), 80)"),
    row("a socket for others", TheProxy, "socks(1, bytes(4), 0, command=2)"),
    row("UDP", TheProxy, "socks(1, bytes(4), 0, command=3)"),
    row("a lookup", TheProxy, "socks(3, b'evil.example.net', 0, command=0xf0)"),
    row(
        "no method that is known",
        TheProxy,
        "socks(3, b'www.example.org', 80, methods=b'\\2')",
    ),
    row(
        "no method at all",
        TheProxy,
        "socks(3, b'www.example.org', 80, methods=b'')",
    ),
    row(
        "the fourth version",
        TheProxy,
        "raw(b'\\4\\1\\0\\x50\\x5d\\xb8\\xd8\\x42nobody\\0')",
    ),
    row(
        "the fourth version with a name",
        TheProxy,
        "raw(b'\\4\\1\\0\\x50\\0\\0\\0\\1nobody\\0evil.example.net\\0')",
    ),
    row(
        "another name in TLS",
        TheTunnel,
        "socks(3, b'www.example.org', 443, says=hello('evil.example.net'))",
    ),
    row(
        "another host in HTTP",
        TheTunnel,
        "socks(3, b'www.example.org', 80, says=get('evil.example.net').encode())",
    ),
    row(
        "a name that resolves elsewhere, by its number in a name",
        TheProxy,
        "socks(3, b'127.0.0.1', 8080, says=get('x').encode())",
    ),
];

fn socks_is_no_way_around(lab: &Lab) {
    Inside::new(lab, &["www.example.org"]).tries(SOCKS);
}
