//! Calls beside and after one another, each with a list of its own; a third party's server; lists under ceilings.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::common::agent::{Agent, Era};
use crate::common::eventually;
use crate::lab::{Lab, in_the_lab};

in_the_lab! {
    each_call_of_a_session_has_its_own_list ["curl"];
    what_one_call_left_running_has_nothing_of_the_next ["curl"];
    what_waits_when_a_call_ends_is_no_concern_of_the_next ["python3"];
    calls_at_the_same_time_have_their_own_lists ["curl"];
    a_server_of_a_third_party_has_the_list_of_its_config ["curl", "python3"];
    a_list_under_a_ceiling_is_what_both_give ["curl"];
    a_profile_tells_of_the_hosts [];
}

/// Two tools that fetch, each with a list of its own, and a shell without any.
fn two_tools(lab: &Lab) -> PathBuf {
    lab.config_of(
        "  network: false
  default: {allowed: true, approval: none}
custom_tools:
  one: {description: Runs it, command: [sh, -c, \"{line}\"], args: {line: {type: string}}, approval: none, network: {allow: [www.example.org]}}
  two: {description: Runs it, command: [sh, -c, \"{line}\"], args: {line: {type: string}}, approval: none, network: {allow: [evil.example.net]}}
",
    )
}

/// A session of calls, one after the other: what each came to.
fn calls(lab: &Lab, calls: &[(&str, &str)]) -> Vec<Value> {
    let config = two_tools(lab);
    let lines: String = calls
        .iter()
        .map(|(tool, line)| json!({"call": {"tool": tool, "args": {"line": line}}}).to_string() + "\n")
        .collect();
    let args = ["call", "--config", config.to_str().unwrap(), "--stream"];
    let stockade = lab.world.stockade(&args).stdin(lines);
    let run = lab.on_the_machine(|| stockade.output());
    let (out, err) = (run.out(), run.err());
    let told: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(told.len(), calls.len(), "{out}\n{err}");
    told
}

const BOTH: &str = "curl -sS -m 200 http://www.example.org/ http://evil.example.net/";

/// Whether a call came to this host.
fn reached(told: &Value, host: &str) -> bool {
    told.to_string().contains(&format!("as {host}\\n"))
}

fn each_call_of_a_session_has_its_own_list(lab: &Lab) {
    let tools = ["one", "two", "one", "two", "two"];
    let told = calls(lab, &tools.map(|tool| (tool, BOTH)));
    for (tool, told) in tools.iter().zip(&told) {
        let listed = (reached(told, "www.example.org"), reached(told, "evil.example.net"));
        assert_eq!(listed, (*tool == "one", *tool == "two"), "{tool}: {told}");
        // What was tried is told with the call that tried it.
        let attempts = told["data"]["network"]["attempts"].as_array().unwrap();
        assert_eq!(attempts.len(), 2, "{told}");
    }
}

fn what_one_call_left_running_has_nothing_of_the_next(lab: &Lab) {
    lab.forget();
    // The first word that it reached its host ends the call.
    let stays = "{ setsid sh -c 'exec 3>&1 >/dev/null 2>&1 </dev/null; while :; do curl -sS http://evil.example.net/stolen; curl -sSf http://www.example.org/stolen && { echo reached >&3; exec 3>/dev/null; }; sleep 0.02; done' & } | read reached";
    let later = |url: &str| format!("curl -sSf {url}; sleep 0.7");
    let (second, third) = (
        later("http://evil.example.net/second"),
        later("http://www.example.org/third"),
    );
    let told = calls(lab, &[("one", stays), ("two", &second), ("one", &third)]);
    assert_eq!(told.len(), 3);
    let requests = lab.seen().requests();
    let places = |path: &str| -> Vec<usize> {
        let named = |request: &String| request.contains(path);
        let found = requests.iter().enumerate().filter(|(_, request)| named(request));
        found.map(|(place, _)| place).collect()
    };
    let (stolen, second, third) = (places("/stolen"), places("/second"), places("/third"));
    // The twin: while its own call ran, it did reach its own host. It never reached another's.
    assert!(!stolen.is_empty(), "{requests:?}");
    assert!(
        stolen.iter().all(|place| !requests[*place].contains("evil")),
        "{requests:?}"
    );
    // And with the call it ended.
    assert!(second.len() == 1 && third.len() == 1, "{requests:?}");
    assert!(stolen.iter().all(|place| *place < second[0]), "{requests:?}");
}

fn what_waits_when_a_call_ends_is_no_concern_of_the_next(lab: &Lab) {
    // More than are accepted at once, each with its request sent; all of them left when the call ends.
    lab.world.write(
        "fills.py",
        "import os, socket, urllib.parse
way = urllib.parse.urlsplit(os.environ['http_proxy'])
held = []
for n in range(600):
    s = socket.socket(); s.settimeout(2); held.append(s)
    try:
        s.connect((way.hostname, way.port))
        s.sendall(b'GET http://www.example.org/never HTTP/1.1\\r\\nHost: www.example.org\\r\\n\\r\\n')
    except OSError: break
print('held', len(held), flush=True)
os._exit(0)
",
    );
    let told = calls(
        lab,
        &[
            ("one", "/usr/bin/python3 fills.py"),
            ("one", "curl -sS http://www.example.org/mine"),
            ("one", "true"),
        ],
    );
    assert!(told[0].to_string().contains("held"), "{}", told[0]);
    assert!(reached(&told[1], "www.example.org"), "{}", told[1]);
    let attempts = |told: &Value| {
        let attempts = told["data"]["network"]["attempts"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        attempts
            .iter()
            .map(|attempt| attempt["times"].as_u64().unwrap())
            .sum::<u64>()
    };
    assert_eq!(
        (attempts(&told[1]), attempts(&told[2])),
        (1, 0),
        "{} {}",
        told[1],
        told[2]
    );
}

fn calls_at_the_same_time_have_their_own_lists(lab: &Lab) {
    let config = two_tools(lab);
    let args = ["mcp", "--config", config.to_str().unwrap()];
    let stockade = lab.world.stockade(&args);
    let mut agent = lab.on_the_machine(|| Agent::start(stockade, Era::Session, json!({})));
    let line = format!("for n in 1 2 3 4 5; do {BOTH}; sleep 0.05; done");
    let begun: Vec<(&str, u64)> = ["one", "two", "one", "two"]
        .map(|tool| (tool, agent.begin_call(tool, &json!({"line": line}))))
        .to_vec();
    for (tool, number) in begun {
        let told = agent.answer(number);
        let listed = (reached(&told, "www.example.org"), reached(&told, "evil.example.net"));
        assert_eq!(listed, (tool == "one", tool == "two"), "{tool}: {told}");
    }
    agent.end();
}

fn a_server_of_a_third_party_has_the_list_of_its_config(lab: &Lab) {
    let script = fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp/upstream/server.py")).unwrap();
    lab.world.write("server.py", script);
    let config = lab.config_of("  network: {allow: [www.example.org]}\n  default: {allowed: true, approval: none}\n");
    // It fetches, serves, and fetches for as long as it lives.
    let line = "curl -sS http://www.example.org/first http://evil.example.net/first > first 2>&1; touch begun; \
                (while sleep 0.1; do curl -sS http://www.example.org/later http://evil.example.net/later; done >/dev/null 2>&1 </dev/null &); \
                exec /usr/bin/python3 server.py";
    let args = [
        "mcp",
        "--config",
        config.to_str().unwrap(),
        "--upstream",
        "--",
        "/bin/sh",
        "-c",
        line,
    ];
    let stockade = lab.world.stockade(&args);
    lab.forget();
    let agent = lab.on_the_machine(|| Agent::start(stockade, Era::Session, json!({})));
    let fetched = |name: &str| lab.seen().requests().iter().any(|request| request.contains(name));
    eventually("the later fetch", || fetched("/later"));
    let (code, said) = agent.end();
    assert_eq!(code, Some(0), "{said}");
    let first = fs::read_to_string(lab.world.workspace().join("first")).unwrap();
    assert!(
        first.contains("as www.example.org") && first.contains("evil.example.net:80"),
        "{first}"
    );
    // Whoever runs it is told what it tried.
    assert!(said.contains("evil.example.net:80"), "{said}");
    let requests = lab.seen().requests();
    assert!(!requests.iter().any(|request| request.contains("evil")), "{requests:?}");
    lab.falls_silent();
}

fn a_list_under_a_ceiling_is_what_both_give(lab: &Lab) {
    let config = lab.config("{allow: [\"*.example.org\", evil.example.net]}");
    let ceiling = |network: &str| {
        let text = format!(
            "extends: [system]\nsandbox: {{paths: {{w: {{root: {}, mode: rw, execute: true}}}}}}\nshell: {{network: {network}}}\n",
            lab.world.workspace().display()
        );
        lab.world.write(lab.world.outside().join("most.yaml"), text)
    };
    let run = |network: &str, url: &str| {
        let (config, ceiling) = (config.to_str().unwrap(), ceiling(network));
        let args = [
            "run",
            "--config",
            config,
            "--ceiling",
            ceiling.to_str().unwrap(),
            "--",
            "curl",
            "-sSf",
            url,
        ];
        let stockade = lab.world.stockade(&args);
        lab.on_the_machine(|| stockade.output())
    };
    let narrow = "{allow: [\"*.www.example.org:80\", \"www.example.org:80\"]}";
    assert!(run(narrow, "http://www.example.org/").ok().contains("reached"));
    assert!(run(narrow, "http://a.www.example.org/").ok().contains("reached"));
    assert!(run("true", "http://evil.example.net/").ok().contains("reached"));
    lab.forget();
    for (network, url) in [
        (narrow, "https://www.example.org/"),
        (narrow, "http://evil.example.net/"),
        (narrow, "http://other.example.org/"),
        ("{allow: [10.0.0.0/8]}", "http://10.0.0.80/"),
        ("false", "http://www.example.org/"),
    ] {
        assert!(!run(network, url).status.success(), "{network} {url}");
    }
    lab.seen().nothing();
    // Whoever reads of it is told where the line stands that would have to change.
    let told = run(narrow, "http://evil.example.net/").err();
    let by_the_ceiling = format!(
        "is not in the list of hosts (shell.network.allow of the ceiling {}:3); no change to the config alone would allow it",
        lab.world.outside().join("most.yaml").display()
    );
    assert!(told.contains(&by_the_ceiling), "{told}");
    let told = run("true", "http://unlisted.example.com/").err();
    assert!(told.contains("in the `network` that holds for this command"), "{told}");
    assert!(!told.contains("no change to the config alone"), "{told}");
}

fn a_profile_tells_of_the_hosts(lab: &Lab) {
    let config = lab.config("{allow: [\"*.example.org:443\", 10.0.0.0/8]}");
    let config = config.to_str().unwrap();
    let profile = |args: &[&str]| {
        let stockade = lab
            .world
            .stockade(&[&["profile"], args, &["--config", config]].concat());
        lab.on_the_machine(|| stockade.output())
    };
    let shown = profile(&["show"]).ok();
    assert!(
        shown.contains("*.example.org:443") && shown.contains("10.0.0.0/8"),
        "{shown}"
    );
    // What is explained is what happens.
    for (place, url, explained) in [
        ("www.example.org:443", "https://www.example.org/", true),
        ("www.example.org:80", "http://www.example.org/", false),
        ("evil.example.net:443", "https://evil.example.net/", false),
        ("10.0.0.80:80", "http://10.0.0.80/", true),
        ("192.168.7.7:80", "http://192.168.7.7/", false),
    ] {
        let run = profile(&["explain", place]);
        let text = run.out() + &run.err();
        assert!(text.contains(place), "{text}");
        assert_eq!(text.contains("every command: free"), explained, "{place}: {text}");
        let reached = lab.run(&["*.example.org:443", "10.0.0.0/8"], &format!("curl -sSf {url}"));
        assert_eq!(reached.status.success(), explained, "{url}: {}", reached.err());
    }
}
