//! Lists of hosts, from text to policy.

use super::Fixture;
use crate::config::Loaded;
use crate::policy::{Host, HostAccess, Network};
use insta::assert_snapshot;

/// What becomes of a connection under a network.
fn access(network: &Network, host: &str, port: u16) -> HostAccess {
    network.access(&Host::parse(host).unwrap(), port)
}

fn notes(loaded: &Loaded) -> String {
    let notes: Vec<&str> = loaded.notes.iter().map(|note| note.message.as_str()).collect();
    notes.join("\n")
}

#[test]
fn a_network_is_nothing_everything_or_the_hosts_that_are_named() {
    let world = Fixture::new();
    let network = |text: &str| world.ok(&format!("shell: {{network: {text}}}\n")).policy.network;
    assert_eq!(network("false"), Network::Off);
    assert_eq!(network("true"), Network::Full);
    for empty in ["{allow: []}", "{allow: [], ask: false}", "{ask: false}"] {
        assert_eq!(network(empty), Network::Off, "{empty}");
    }
    assert_eq!(
        network("{allow: [API.example.org:443, '*.example.net', '[2001:db8::1]:22', 10.0.0.0/8:*]}").to_string(),
        "*.example.net:80,443, api.example.org:443, 10.0.0.0/8:*, [2001:db8::1]:22"
    );
    let asks = network("{allow: [a.example], ask: true}");
    assert_eq!(access(&asks, "a.example", 443), HostAccess::Free);
    assert_eq!(access(&asks, "b.example", 22), HostAccess::Asked);
    assert_eq!(access(&asks.free_only(), "b.example", 22), HostAccess::Denied);
    // Not even a question leads to an address that is not public.
    assert_eq!(access(&asks, "127.0.0.1", 22), HostAccess::Denied);
    assert_eq!(access(&network("{ask: true}"), "a.example", 1), HostAccess::Asked);
}

#[test]
fn every_host_knows_its_line() {
    let world = Fixture::new();
    let policy = world
        .ok("shell:\n  network:\n    allow:\n      - a.example\n      - b.example\n    ask: true\n")
        .policy;
    let Network::Hosts(list) = policy.network else {
        panic!("a list");
    };
    let lines: Vec<String> = list
        .rules()
        .iter()
        .map(|rule| world.shown(&rule.origin.to_string()))
        .collect();
    let line = |number: u8| format!("/dir/project/stockade.yaml:{number}");
    assert_eq!(lines, [line(6), line(4), line(5)]);
}

#[test]
fn the_first_layer_that_speaks_of_the_network_says_all_of_it() {
    let world = Fixture::new();
    let network = |own: &str| {
        world
            .ok(&format!("extends: [workspace-write]\nshell: {{{own}}}\n"))
            .policy
            .network
    };
    assert_eq!(network("network: {allow: [a.example:1]}").to_string(), "a.example:1");
    assert_eq!(network("home: private"), Network::Off);
}

#[test]
fn rules_and_tools_may_have_a_network_of_their_own() {
    let world = Fixture::new();
    let policy = world
        .ok("shell:\n  network: true\n  rules:\n    - {pattern: npm ci, network: {allow: [a.example]}}\n    - {pattern: ls, network: false}\n    - {pattern: cat}\ncustom_tools:\n  fetch: {description: d, command: [curl], network: {ask: true}}\n  lint: {description: d, command: [ruff]}\n")
        .policy;
    let own: Vec<String> = policy
        .own_networks()
        .map(|(whose, own)| format!("{whose}: {}", own.network))
        .collect();
    assert_eq!(
        own,
        [
            "command `npm ci`: a.example:80,443",
            "command `ls`: off",
            "tool `fetch`: asks for other hosts"
        ]
    );
    assert_eq!(policy.network, Network::Full);
}

#[test]
fn a_rule_that_blocks_gives_no_network() {
    let world = Fixture::new();
    assert_snapshot!(world.error("shell:\n  rules:\n    - {pattern: rm, allowed: false, network: {allow: [a.example]}}\n"), @"
    error: a rule that blocks gives no network
     --> /dir/project/stockade.yaml:3:46
      |
    3 |     - {pattern: rm, allowed: false, network: {allow: [a.example]}}
      |                                              ^ nothing runs that could reach it
      |
      = help: drop one of the two
    ");
}

#[test]
fn a_wrong_entry_is_told_with_what_would_do() {
    let world = Fixture::new();
    let error = |entry: &str| world.error(format!("shell:\n  network:\n    allow: [ok.example, {entry}]\n"));
    assert_snapshot!(error("https://user@api.example.org/v1"), @"
    error: write HOST:PORTS, without a scheme, a user or a path
     --> /dir/project/stockade.yaml:3:25
      |
    3 |     allow: [ok.example, https://user@api.example.org/v1]
      |                         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ not HOST:PORTS
      |
      = help: write `api.example.org:443`
    ");
    assert_snapshot!(error("10.1.0.0/8:443"), @"
    error: `10.1.0.0/8` has bits behind its prefix; the network is `10.0.0.0/8`
     --> /dir/project/stockade.yaml:3:25
      |
    3 |     allow: [ok.example, 10.1.0.0/8:443]
      |                         ^^^^^^^^^^^^^^ not HOST:PORTS
      |
      = help: write `10.0.0.0/8`, or the one address without a prefix
    ");
    for (entry, said) in [
        ("'*x.example'", "stands alone, or in front of a name"),
        ("a.*.example", "stands alone, or in front of a name"),
        ("a.example:0", "from 1 to 65535"),
        ("a.example:65536", "from 1 to 65535"),
        ("a.example:http", "from 1 to 65535"),
        ("a.example:90-80", "the smaller one"),
        ("10.0.0.0/33", "0 to 32"),
        ("0177.0.0.1", "four decimal numbers"),
        ("0x7f000001", "four decimal numbers"),
        ("127.1", "four decimal numbers"),
        ("a.example:80,443", "unless it is quoted"),
        ("224.0.0.1", "multicast"),
        ("0.0.0.0", "unspecified"),
        ("a..b", "is empty"),
        ("''", "is empty"),
        ("\"a\\0b\"", "no host name has"),
    ] {
        let message = error(entry);
        assert!(
            message.contains(said) && message.contains("stockade.yaml:3:"),
            "{entry}: {message}"
        );
    }
    for (network, said) in [
        ("{}", "says nothing"),
        ("{alow: []}", "did you mean `allow`?"),
        ("{ask: yes}", "`true` or `false`"),
        ("[a.example]", "`true`, `false` or `{allow: [HOST:PORTS]}`"),
        ("off", "`true` or `false`"),
        ("a.example", "`{allow: [HOST:PORTS]}`"),
    ] {
        let message = world.error(format!("shell: {{network: {network}}}\n"));
        assert!(message.contains(said), "{network}: {message}");
    }
}

#[test]
fn an_entry_that_is_listed_twice_is_warned_about() {
    let world = Fixture::new();
    let loaded = world.ok("shell:\n  network:\n    allow: [a.example, \"A.example.:443,80\", b.example]\n");
    assert_eq!(loaded.warnings.len(), 1);
    assert_snapshot!(world.shown(&loaded.warnings[0].to_string()), @r#"
    warning: `a.example:80,443` is listed twice
     --> /dir/project/stockade.yaml:3:24
      |
    3 |     allow: [a.example, "A.example.:443,80", b.example]
      |             ---------  ^^^^^^^^^^^^^^^^^^^ says nothing new
      |             |
      |             listed here
    "#);
}

#[test]
fn what_an_entry_opens_besides_is_told_to_whoever_looks() {
    let world = Fixture::new();
    let of = |entry: &str| notes(&world.ok(&format!("shell: {{network: {{allow: [{entry}]}}}}\n")));
    for (entry, said) in [
        ("'*'", "every host of the internet"),
        ("'*.com:443'", "anybody registers below `com`"),
        ("0.0.0.0/0", "every address of its kind"),
        ("10.0.0.0/8", "private"),
        ("127.0.0.1:8080", "loopback"),
        ("169.254.169.254", "metadata"),
        ("192.0.0.0/6", "private"),
        ("'[fc00::/7]'", "private"),
        ("localhost:8080", "leads to this machine"),
    ] {
        assert!(of(entry).contains(said), "{entry}: {}", of(entry));
    }
    for entry in ["a.example", "'*.example.org'", "9.9.9.9", "'[2620:fe::fe]:443'"] {
        assert_eq!(of(entry), "");
    }
}

#[test]
fn a_question_that_some_commands_never_come_to_is_told() {
    let world = Fixture::new();
    let text = |rule: &str| format!("shell:\n  network: {{ask: true}}\n  rules:\n    - {{pattern: npm, {rule}}}\n");
    let message = |rule: &str| notes(&world.ok(&text(rule)));
    assert!(message("approval: none").contains("approved commands only"));
    assert_eq!(message("approval: required"), "");
    assert_eq!(message("approval: none, network: false"), "");
    assert!(message("approval: none, network: {ask: true}").contains("approved commands only"));
}

#[test]
fn an_override_that_keeps_a_list_from_asking_is_warned_about_with_both_lines() {
    let world = Fixture::new();
    let loaded = world.ok("shell:\n  default: {approval: none}\n  network:\n    allow: [a.example]\n    ask: true\ntools:\n  shell: {pre_approved: true}\n");
    let [warning] = loaded.warnings.as_slice() else {
        panic!("{:?}", loaded.warnings);
    };
    assert_snapshot!(world.shown(&warning.to_string()), @"
    warning: `tools: shell` (/dir/project/stockade.yaml:7) switches off what `ask: true` (/dir/project/stockade.yaml:5) demands
     --> /dir/project/stockade.yaml:7:3
      |
    5 |     ask: true
      |     --------- demands approval
    6 | tools:
    7 |   shell: {pre_approved: true}
      |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^ asks nobody
      |
      = help: what nobody is asked about reaches what `allow` lists, and no more
    ");
    assert_eq!(notes(&loaded), "", "told once");
}

#[test]
fn each_list_that_an_override_keeps_from_asking_is_warned_about() {
    let world = Fixture::new();
    let asked = |text: &str| {
        let loaded = world.ok(text);
        let message = loaded
            .warnings
            .iter()
            .filter(|warning| warning.message.contains("`ask: true`"));
        message.map(|warning| world.shown(&warning.message)).collect::<Vec<_>>()
    };
    let config = |shell: &str, lint: &str| {
        format!(
            "shell:\n  network: {{ask: true}}\n  rules:\n    - {{pattern: a, network: {{ask: true}}}}\n    - {{pattern: b, network: {{allow: [b.example]}}}}\ncustom_tools:\n  lint: {{description: d, command: [lint]}}\n  push:\n    description: d\n    command: [push]\n    network: {{ask: true}}\ntools:\n  read_file: {{approval: none}}\n  shell: {{approval: {shell}}}\n  lint: {{approval: {lint}}}\n  push: {{approval: none}}\n"
        )
    };
    assert_eq!(
        asked(&config("none", "required")),
        [
            "`tools: push` (/dir/project/stockade.yaml:16) switches off what `ask: true` (/dir/project/stockade.yaml:11) demands",
            "`tools: shell` (/dir/project/stockade.yaml:14) switches off what `ask: true` (/dir/project/stockade.yaml:2) demands",
            "`tools: shell` (/dir/project/stockade.yaml:14) switches off what `ask: true` (/dir/project/stockade.yaml:4) demands",
        ]
    );
    assert_eq!(
        asked(&config("once_per_session", "none")).len(),
        2,
        "of `lint` and `push`"
    );
}

#[test]
fn an_override_that_demands_a_yes_lets_a_list_ask() {
    let world = Fixture::new();
    let text = |tools: &str| {
        format!("shell:\n  network: {{ask: true}}\n  rules:\n    - {{pattern: npm, approval: none}}\n{tools}")
    };
    assert!(notes(&world.ok(&text(""))).contains("approved commands only"));
    let asking = world.ok(&text("tools: {shell: {approval: required}}\n"));
    assert_eq!((notes(&asking), asking.warnings), (String::new(), Vec::new()));
}

#[test]
fn a_list_that_the_named_backend_cannot_hold_is_told() {
    let world = Fixture::new();
    let of = |backend: &str| {
        let text = format!(
            "sandbox: {{backend: {backend}}}\nshell: {{rules: [{{pattern: a, network: {{allow: [a.example]}}}}]}}\n"
        );
        notes(&world.ok(&text))
    };
    assert!(of("landlock").contains("cannot hold a list of hosts"));
    assert_eq!(of("auto"), "");
}

#[test]
fn ceilings_take_hosts_away_from_every_network_and_say_which() {
    let world = Fixture::new();
    world.system("extends: [system]\nshell:\n  network:\n    allow: ['*.example.org:443', 10.0.0.0/8]\n");
    let loaded = world.ok(
        "shell:\n  network: {allow: [a.example.org, evil.example], ask: true}\n  rules:\n    - {pattern: npm, network: true}\ncustom_tools:\n  t: {description: d, command: [t], network: {allow: [10.1.1.1:80, 11.1.1.1]}}\nextends: []\n",
    );
    assert_eq!(
        loaded.policy.network.to_string(),
        "a.example.org:443; asks for *.example.org:443"
    );
    let own: Vec<String> = loaded
        .policy
        .own_networks()
        .map(|(_, own)| own.network.to_string())
        .collect();
    assert_eq!(own, ["*.example.org:443, 10.0.0.0/8:80,443", "10.1.1.1:80"]);
    assert_snapshot!(world.cuts(&loaded), @"
    /dir/project/stockade.yaml:2: connect a.example.org:80: not given by the ceiling /dir/etc/stockade/ceiling.yaml:4
    /dir/project/stockade.yaml:2: connect evil.example:80: not given by the ceiling /dir/etc/stockade/ceiling.yaml:4
    /dir/project/stockade.yaml:2: connect example.org:1 after a question: not given by the ceiling /dir/etc/stockade/ceiling.yaml:4
    /dir/project/stockade.yaml:4: network full: not given by the ceiling /dir/etc/stockade/ceiling.yaml:4
    /dir/project/stockade.yaml:6: connect 11.1.1.1:80: not given by the ceiling /dir/etc/stockade/ceiling.yaml:4
    ");
}
