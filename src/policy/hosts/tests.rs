//! The canonical form of hosts, and the laws of lists.

use super::{Destination, Host, HostAccess, HostList, HostRule};
use crate::policy::Origin;

fn list(free: &[&str], asked: &[&str]) -> HostList {
    let rule = |access| {
        move |text: &&str| HostRule {
            destination: Destination::parse(text).unwrap(),
            access,
            origin: Origin::Builtin("a test"),
        }
    };
    let free = free.iter().map(rule(HostAccess::Free));
    HostList::new(free.chain(asked.iter().map(rule(HostAccess::Asked))))
}

#[test]
fn a_host_has_one_form_however_it_is_written() {
    for (text, form) in [
        ("API.Example.ORG.", "api.example.org"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("BÜCHER.example", "xn--bcher-kva.example"),
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("[::FFFF:c000:0201]", "192.0.2.1"),
        ("[2001:DB8:0::1]", "[2001:db8::1]"),
    ] {
        assert_eq!(Host::parse(text).unwrap().to_string(), form, "{text}");
    }
}

#[test]
fn what_some_program_reads_as_another_address_is_no_host() {
    for text in [
        "",
        ".",
        "a..b",
        "0x7f.1",
        "0177.0.0.1",
        "127.1",
        "2130706433",
        "127.0.0.1.",
        "1.2.3.4.5",
        "0x7f000001",
        "a b",
        "a\0b",
        "a/b",
        "a%00b",
        "[::1",
        "::1]",
        "fe80::1%eth0",
        "a:80",
        "xn--",
        "xn--a",
        "\u{202e}a.example",
        "*",
        "a,b",
    ] {
        assert!(Host::parse(text).is_err(), "{text:?}");
    }
}

#[test]
fn one_list_is_within_another_or_a_witness_says_why_not() {
    let wide = list(&["*.example.org:443", "10.0.0.0/8:*"], &["*:*"]);
    let tight = list(&["a.example.org:443", "10.1.0.0/16:22"], &[]);
    tight.within(&wide).unwrap();
    assert_eq!(
        list(&["b.example.net"], &[]).within(&wide).unwrap_err().to_string(),
        "connect b.example.net:80 without a question"
    );
    assert!(wide.within(&tight).is_err());
    assert_eq!(wide.and(&tight), tight);
}

#[test]
fn what_a_list_gives_is_this_table() {
    use HostAccess::{Asked, Denied, Free};
    let list = list(
        &[
            "api.example.org:443",
            "*.example.net",
            "10.0.0.0/8:22",
            "[2001:db8::1]:*",
        ],
        &["*:80", "*.example.org:1-1024"],
    );
    for (host, port, access) in [
        ("api.example.org", 443, Free),
        ("API.example.org.", 443, Free),
        ("api.example.org", 80, Asked),
        ("api.example.org", 8080, Denied),
        ("x.api.example.org", 443, Asked),
        ("example.org", 443, Denied),
        ("example.org", 80, Asked),
        ("a.example.net", 80, Free),
        ("a.b.example.net", 443, Free),
        ("example.net", 443, Denied),
        ("example.net", 80, Asked),
        ("notexample.net", 443, Denied),
        ("a.example.net.evil", 443, Denied),
        ("10.1.2.3", 22, Free),
        // Not public, so no `*` names it.
        ("10.1.2.3", 80, Denied),
        ("11.1.2.3", 22, Denied),
        ("11.1.2.3", 80, Asked),
        ("::ffff:10.1.2.3", 22, Free),
        ("2001:db8::1", 1, Free),
        ("2001:db8::2", 80, Denied),
        ("127.0.0.1", 80, Denied),
        ("169.254.169.254", 80, Denied),
        ("0.0.0.0", 80, Denied),
        ("224.0.0.1", 80, Denied),
        ("localhost", 80, Asked),
        ("localhost", 443, Denied),
    ] {
        assert_eq!(list.access(&Host::parse(host).unwrap(), port), access, "{host}:{port}");
    }
}

#[test]
fn what_is_left_of_a_network_under_a_star_is_its_public_part() {
    let everything = list(&["*:*"], &[]);
    let of = |entry: &str| list(&[entry], &[]).and(&everything).to_string();
    assert_eq!(of("8.8.8.0/24:53"), "8.8.8.0/24:53");
    assert_eq!(of("8.0.0.0/5:53"), "the public part of 8.0.0.0/5:53");
    assert_eq!(of("10.0.0.0/8:53"), "nothing");
}

#[test]
fn a_network_of_no_host_is_no_entry() {
    for text in [
        "0.0.0.0/8",
        "224.0.0.0/4",
        "239.1.0.0/16:80",
        "[ff00::/8]",
        "255.255.255.255",
    ] {
        assert!(Destination::parse(text).is_err(), "{text}");
    }
    for text in ["0.0.0.0/0", "224.0.0.0/3", "[::/0]"] {
        assert!(Destination::parse(text).is_ok(), "{text}");
    }
}

#[test]
fn an_entry_that_may_be_read_in_two_ways_is_refused_with_both() {
    for (text, advice) in [
        ("example.com:0443", "write `443`"),
        ("example.com:80,00443", "write `443`"),
        ("example.com:08000-8010", "write `8000`"),
        ("192.0.2.1:080", "write `80`"),
        ("[2001:db8::1]:0443", "write `443`"),
        ("2001:db8::1:443", "write `[2001:db8::1:443]`, or `[2001:db8::1]:443`"),
        ("::5:80", "`[::5]:80`"),
        ("fe80::1:2:8080", "`[fe80::1:2]:8080`"),
    ] {
        let error = Destination::parse(text).unwrap_err().to_string();
        assert!(error.contains(advice), "{text}: {error}");
    }
    for (text, form) in [
        ("example.com:443", "example.com:443"),
        ("2001:db8::1", "[2001:db8::1]:80,443"),
        ("[2001:db8::1]:443", "[2001:db8::1]:443"),
        ("[2001:db8::1:443]", "[2001:db8::1:443]:80,443"),
        ("2001:db8::a:b", "[2001:db8::a:b]:80,443"),
        ("1:2:3:4:5:6:7:80", "[1:2:3:4:5:6:7:80]:80,443"),
    ] {
        assert_eq!(Destination::parse(text).unwrap().to_string(), form);
    }
}
