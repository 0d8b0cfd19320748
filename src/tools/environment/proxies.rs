//! The variables that lead programs to the proxy.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::policy::{Host, HostList};

/// What is reached without the proxy, the command's own loopback, where the list does not speak of the machine's.
fn own(list: &HostList) -> Vec<IpAddr> {
    let loopback: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
    let listed = |address: IpAddr| {
        let host = Host::address(address);
        list.rules().iter().any(|rule| rule.destination.hosts.holds(&host))
    };
    loopback.into_iter().filter(|address| !listed(*address)).collect()
}

/// The same for most programs: a list with commas.
fn no_proxy(own: &[IpAddr]) -> String {
    let own = own.iter().map(IpAddr::to_string);
    std::iter::once("localhost".to_owned())
        .chain(own)
        .collect::<Vec<_>>()
        .join(",")
}

/// The same for Java: patterns with bars.
fn non_proxy_hosts(own: &[IpAddr]) -> String {
    let own = own.iter().map(|address| match address {
        IpAddr::V4(_) => "127.*",
        IpAddr::V6(_) => "[::1]",
    });
    std::iter::once("localhost").chain(own).collect::<Vec<_>>().join("|")
}

/// The variables for a proxy on this port of the command's own loopback, each with who reads it.
///
/// All of them name HTTP: the port speaks SOCKS5 too, but many programs that read `ALL_PROXY` do not.
pub(super) fn variables(port: u16, list: &HostList) -> Vec<(OsString, OsString)> {
    let own = own(list);
    let java_own = non_proxy_hosts(&own);
    let own = no_proxy(&own);
    let proxy = format!("http://127.0.0.1:{port}");
    let java = format!(
        "-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort={port} -Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort={port} \
         -Dhttp.nonProxyHosts={java_own}"
    );
    let lead = [
        // curl, git, wget, Go, Rust, Ruby, and much else; curl takes the first only in lower case.
        "http_proxy",
        "HTTP_PROXY",
        "https_proxy",
        "HTTPS_PROXY",
        "all_proxy",
        "ALL_PROXY",
        // A setting in the program's own files would otherwise win over the variables above.
        "CARGO_HTTP_PROXY",
        "PIP_PROXY",
        "npm_config_proxy",
        "npm_config_https_proxy",
        "YARN_HTTP_PROXY",
        "YARN_HTTPS_PROXY",
    ];
    let mut all: Vec<(OsString, OsString)> = lead.map(|name| (name.into(), proxy.clone().into())).into();
    all.extend([
        ("no_proxy".into(), own.clone().into()),
        ("NO_PROXY".into(), own.clone().into()),
        ("npm_config_noproxy".into(), own.into()),
        // fetch() of Node.js from version 24 on.
        ("NODE_USE_ENV_PROXY".into(), "1".into()),
        ("JAVA_TOOL_OPTIONS".into(), java.into()),
    ]);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Destination, HostRule, Origin};

    #[test]
    fn each_variable_is_set_once_and_leads_to_the_port() {
        let all = variables(4711, &HostList::default());
        let names: std::collections::BTreeSet<_> = all.iter().map(|(name, _)| name).collect();
        assert_eq!(names.len(), all.len());
        let leads = |value: &OsString| value.to_str().unwrap().contains("4711");
        assert_eq!(all.iter().filter(|(_, value)| leads(value)).count(), 13);
    }

    #[test]
    fn a_loopback_that_the_list_names_is_reached_through_the_proxy() {
        let rule = |text| HostRule::free(Destination::parse(text).unwrap(), Origin::Builtin("a test"));
        for (listed, without, java) in [
            ("example.org:443", "localhost,127.0.0.1,::1", "localhost|127.*|[::1]"),
            ("*:443", "localhost,127.0.0.1,::1", "localhost|127.*|[::1]"),
            ("127.0.0.1:8080", "localhost,::1", "localhost|[::1]"),
            ("[::1]:8080", "localhost,127.0.0.1", "localhost|127.*"),
        ] {
            let own = own(&HostList::new([rule(listed)]));
            assert_eq!(
                (no_proxy(&own), non_proxy_hosts(&own)),
                (without.to_owned(), java.to_owned()),
                "{listed}"
            );
        }
    }
}
