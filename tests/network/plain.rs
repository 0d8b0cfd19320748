//! The lab itself, with nothing confined: what is not seen here would prove nothing elsewhere.

use crate::lab::{Lab, OTHER, OWN, WWW, WWW6, in_the_lab};

in_the_lab! {
    a_name_leads_to_the_internet_and_the_wire_sees_it ["curl"];
    every_private_address_would_answer ["curl"];
    what_the_machine_serves_is_seen ["curl"];
    packets_of_every_kind_are_seen ["python3"];
    names_change_from_one_question_to_the_next ["python3"];
}

fn curl(lab: &Lab, args: &[&str]) -> String {
    let authority = lab.authority();
    let curl = lab.world.bare("/usr/bin/curl").env("CURL_CA_BUNDLE", authority);
    let curl = curl.args(["-sS", "--noproxy", "*", "--max-time", "5"]).args(args);
    lab.on_the_machine(|| curl.output()).ok()
}

fn a_name_leads_to_the_internet_and_the_wire_sees_it(lab: &Lab) {
    lab.forget();
    assert_eq!(
        curl(lab, &["-4", "http://www.example.org/"]),
        format!("reached {WWW}:80 as www.example.org\n")
    );
    let seen = lab.seen();
    seen.only(&[&format!("tcp {WWW}:80")]);
    assert_eq!(seen.names().into_iter().collect::<Vec<_>>(), ["www.example.org"]);
    assert_eq!(seen.requests(), [format!("{WWW}:80 www.example.org GET / HTTP/1.1")]);

    lab.forget();
    assert_eq!(
        curl(lab, &["-6", "https://www.example.org/"]),
        format!("reached [{WWW6}]:443 as www.example.org\n")
    );
    lab.seen().only(&[&format!("tcp [{WWW6}]:443")]);

    lab.forget();
    assert_eq!(
        curl(lab, &["https://evil.example.net:8443/", "-4"]),
        format!("reached {OTHER}:8443 as evil.example.net:8443\n")
    );
    lab.seen().only(&[&format!("tcp {OTHER}:8443")]);
}

fn every_private_address_would_answer(lab: &Lab) {
    for place in [
        "10.0.0.80",
        "169.254.169.254",
        "192.168.7.7",
        "[fd00::80]",
        "[64:ff9b::a00:50]",
        "8.8.8.8",
    ] {
        lab.forget();
        let said = curl(lab, &[&format!("http://{place}/")]);
        assert_eq!(said, format!("reached {place}:80 as {place}\n"));
        lab.seen().only(&[&format!("tcp {place}:80")]);
    }
}

fn what_the_machine_serves_is_seen(lab: &Lab) {
    for place in ["127.0.0.1", "[::1]", OWN, "127.8.8.8"] {
        lab.forget();
        curl(lab, &[&format!("http://{place}/")]);
        let seen = lab.seen();
        assert!(seen.wire.is_empty(), "{seen:?}");
        assert_eq!(seen.machine[0]["place"], format!("{place}:80"));
    }
    lab.forget();
    let program = "
import socket
with socket.socket(socket.AF_UNIX) as s:
    s.connect('\\0lab')
    print(s.recv(100))
";
    let python = lab.world.bare("/usr/bin/python3").args(["-c", program]);
    lab.on_the_machine(|| python.output()).ok();
    assert_eq!(lab.seen().machine[0]["place"], "unix");
}

fn packets_of_every_kind_are_seen(lab: &Lab) {
    let program = "
import socket
def to(family, kind, protocol, address):
    with socket.socket(family, kind, protocol) as s: s.sendto(b'x' * 16, address)
to(socket.AF_INET, socket.SOCK_DGRAM, 0, ('203.0.113.9', 4444))
to(socket.AF_INET6, socket.SOCK_DGRAM, 0, ('2001:db8::9', 4444))
to(socket.AF_INET, socket.SOCK_RAW, 1, ('198.51.100.7', 0))
to(socket.AF_INET, socket.SOCK_RAW, 132, ('198.51.100.8', 0))
";
    lab.forget();
    let python = crate::common::Invocation::new("/usr/bin/python3".as_ref(), None, lab.world.base());
    lab.on_the_machine(|| python.args(["-c", program]).output()).ok();
    lab.seen().only(&[
        "udp 203.0.113.9:4444",
        "udp [2001:db8::9]:4444",
        "icmp 198.51.100.7:0",
        "132 198.51.100.8:0",
    ]);
}

fn names_change_from_one_question_to_the_next(lab: &Lab) {
    let program = "
import socket
for name in ['rebind', 'rebind', 'cname-private', 'many', 'hosts-private', 'machine']:
    found = socket.getaddrinfo(name + '.example.org', 80, socket.AF_INET, socket.SOCK_STREAM)
    print(name, len(found), sorted(address[4][0] for address in found)[0])
";
    lab.forget();
    let python = lab.world.bare("/usr/bin/python3").args(["-c", program]);
    assert_eq!(
        lab.on_the_machine(|| python.output()).ok(),
        format!(
            "rebind 1 {WWW}\nrebind 1 10.0.0.80\ncname-private 1 10.0.0.80\nmany 31 10.0.1.1\n\
             hosts-private 1 10.0.0.80\nmachine 1 {OWN}\n"
        )
    );
}
