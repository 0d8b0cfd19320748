use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use tokio::net::TcpListener;

use super::stage::PATIENCE;
use crate::policy::hosts::kind;
use crate::policy::{Host, HostName};
use crate::proxy::connect::{Rejected, connect, judge};
use crate::proxy::{Addresses, Attempt, Bounds, ConnectRequest, Decision, Failure, Gate, Refusal, Resolve, Verdict};

/// Reaches these addresses, beside the public ones.
struct Reaches(Vec<IpAddr>);

impl Gate for Reaches {
    fn decide(&self, _wanted: ConnectRequest) -> Decision<'_> {
        Box::pin(async { Verdict::Refused(Refusal::Denied) })
    }

    fn reaches(&self, address: IpAddr, port: u16) -> bool {
        port != 9 && self.0.contains(&address)
    }

    fn attempted(&self, _attempt: Attempt) {}
}

/// Knows these addresses, whatever the name; tells the others on a second call.
struct Leads(Result<Vec<IpAddr>, Failure>);

impl Resolve for Leads {
    fn resolve<'a>(&'a self, _name: &'a HostName) -> Addresses<'a> {
        Box::pin(async { self.0.clone() })
    }
}

fn addresses(text: &str) -> Vec<IpAddr> {
    text.split_whitespace()
        .map(|address| address.parse().unwrap())
        .collect()
}

#[test]
fn every_address_is_judged() {
    let own = || {
        Ok(BTreeSet::from([
            "11.1.1.1".parse().unwrap(),
            "2600::1".parse().unwrap(),
        ]))
    };
    let refused = |text: &str| {
        let address: IpAddr = text.parse().unwrap();
        Err(Rejected::Refused(Refusal::Address {
            address,
            kind: kind(address),
        }))
    };
    let mine = |text: &str| Err(Rejected::Refused(Refusal::OwnAddress(text.parse().unwrap())));
    // What a name leads to, what rules name, and what is left.
    let rows: Vec<(&str, &str, Result<&str, Rejected>)> = vec![
        ("1.1.1.1", "", Ok("1.1.1.1")),
        ("1.1.1.1 2600::2", "", Ok("1.1.1.1 2600::2")),
        ("2600::2 1.1.1.1", "", Ok("2600::2 1.1.1.1")),
        ("1.1.1.1 1.1.1.1 ::ffff:1.1.1.1", "", Ok("1.1.1.1")),
        ("", "", Err(Rejected::Failed(Failure::NoAddress))),
        ("10.0.0.1", "", refused("10.0.0.1")),
        ("172.16.0.1", "", refused("172.16.0.1")),
        ("192.168.1.1", "", refused("192.168.1.1")),
        ("127.0.0.1", "", refused("127.0.0.1")),
        ("127.9.9.9", "", refused("127.9.9.9")),
        ("169.254.169.254", "", refused("169.254.169.254")),
        ("100.64.0.1", "", refused("100.64.0.1")),
        ("0.0.0.0", "", refused("0.0.0.0")),
        ("::", "", refused("::")),
        ("::1", "", refused("::1")),
        ("fe80::1", "", refused("fe80::1")),
        ("fd00:ec2::254", "", refused("fd00:ec2::254")),
        ("64:ff9b::a00:1", "", refused("64:ff9b::a00:1")),
        ("2002:a00:1::", "", refused("2002:a00:1::")),
        ("::10.0.0.1", "", refused("::10.0.0.1")),
        ("::ffff:10.0.0.1", "", refused("10.0.0.1")),
        ("::ffff:127.0.0.1", "", refused("127.0.0.1")),
        ("224.0.0.1", "", refused("224.0.0.1")),
        ("255.255.255.255", "", refused("255.255.255.255")),
        ("ff02::1", "", refused("ff02::1")),
        // Rules name them by number.
        ("10.0.0.1", "10.0.0.1", Ok("10.0.0.1")),
        ("::ffff:10.0.0.1", "10.0.0.1", Ok("10.0.0.1")),
        ("10.0.0.1", "10.0.0.2", refused("10.0.0.1")),
        ("0.0.0.0", "0.0.0.0", refused("0.0.0.0")),
        ("224.0.0.1", "224.0.0.1", refused("224.0.0.1")),
        // Of mixed answers, what may be reached is left; the first of the others is told.
        ("10.0.0.1 1.1.1.1", "", Ok("1.1.1.1")),
        ("1.1.1.1 10.0.0.1", "", Ok("1.1.1.1")),
        ("10.0.0.1 127.0.0.1", "", refused("10.0.0.1")),
        ("10.0.0.1 127.0.0.1", "127.0.0.1", Ok("127.0.0.1")),
        // This machine's own.
        ("11.1.1.1", "", mine("11.1.1.1")),
        ("::ffff:11.1.1.1", "", mine("11.1.1.1")),
        ("2600::1", "", mine("2600::1")),
        ("11.1.1.1", "11.1.1.1", Ok("11.1.1.1")),
        ("11.1.1.1 11.1.1.2", "", Ok("11.1.1.2")),
    ];
    for (found, reached, expected) in rows {
        let gate = Reaches(addresses(reached));
        let left = judge(&gate, own, &addresses(found), 443);
        assert_eq!(left, expected.map(addresses), "{found}; rules name `{reached}`");
        if !reached.is_empty() {
            assert_eq!(
                judge(&gate, own, &addresses(found), 9),
                judge(&Reaches(vec![]), own, &addresses(found), 9)
            );
        }
    }
}

#[test]
fn nothing_is_connected_where_the_own_addresses_cannot_be_told() {
    let own = || Err(Refusal::Other("cannot be told".into()));
    let refused = judge(&Reaches(vec![]), own, &addresses("1.1.1.1"), 443);
    assert_eq!(refused, Err(Rejected::Refused(Refusal::Other("cannot be told".into()))));
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

async fn to(leads: Result<&str, Failure>, reached: &str, host: &str, port: u16) -> Result<SocketAddr, Rejected> {
    let bounds = Bounds {
        addresses: 3,
        connect_time: PATIENCE,
        ..Bounds::default()
    };
    let resolver = Leads(leads.map(addresses));
    let host = Host::parse(host).unwrap();
    let connected = connect(&Reaches(addresses(reached)), &resolver, &bounds, &host, port).await?;
    assert_eq!(connected.stream.peer_addr().unwrap(), connected.address);
    Ok(connected.address)
}

#[test]
fn the_address_that_was_judged_is_the_one_that_is_connected() {
    runtime().block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let here = SocketAddr::from(([127, 0, 0, 1], port));
        let refused = |text: &str| {
            let address: IpAddr = text.parse().unwrap();
            Err(Rejected::Refused(Refusal::Address {
                address,
                kind: kind(address),
            }))
        };
        let name = "a.example.org";
        assert_eq!(to(Ok("127.0.0.1"), "127.0.0.1", name, port).await, Ok(here));
        assert_eq!(to(Ok("::ffff:127.0.0.1"), "127.0.0.1", name, port).await, Ok(here));
        assert_eq!(to(Ok("10.9.9.9 127.0.0.1"), "127.0.0.1", name, port).await, Ok(here));
        assert_eq!(to(Ok(""), "127.0.0.1", "127.0.0.1", port).await, Ok(here));
        // The next one is tried where one takes no connection.
        assert_eq!(
            to(Ok("127.0.0.2 127.0.0.1"), "127.0.0.1 127.0.0.2", name, port).await,
            Ok(here)
        );
        assert_eq!(to(Ok("127.0.0.1"), "", name, port).await, refused("127.0.0.1"));
        assert_eq!(to(Ok(""), "", "127.0.0.1", port).await, refused("127.0.0.1"));
        assert_eq!(to(Ok("127.0.0.1"), "", "::1", port).await, refused("::1"));
    });
}

#[test]
fn what_does_not_come_about_says_why() {
    runtime().block_on(async {
        let name = "a.example.org";
        let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let failed = |why| Err(Rejected::Failed(why));
        let port = gone.port();
        assert_eq!(
            to(Ok("127.0.0.1"), "127.0.0.1", name, port).await,
            failed(Failure::ConnectionRefused(gone))
        );
        assert_eq!(
            to(Err(Failure::NoAddress), "", name, port).await,
            failed(Failure::NoAddress)
        );
        assert_eq!(
            to(Err(Failure::ResolveTime), "", name, port).await,
            failed(Failure::ResolveTime)
        );
        assert_eq!(to(Ok(""), "", name, port).await, failed(Failure::NoAddress));
        // No more than three are tried, so the one that listens is not reached.
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let many = "127.0.0.2 127.0.0.3 127.0.0.4 127.0.0.1";
        let last = SocketAddr::from(([127, 0, 0, 4], port));
        assert_eq!(
            to(Ok(many), many, name, port).await,
            failed(Failure::ConnectionRefused(last))
        );
    });
}
