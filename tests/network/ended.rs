//! What is told of it afterwards, and that with the command everything ends: its connections, and what it left running.

use std::fs;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::common::{Invocation, descendants, eventually};
use crate::inside::{Inside, Recorded};
use crate::lab::{Lab, in_the_lab};

in_the_lab! {
    an_outcome_tells_of_every_attempt ["python3"];
    a_refusal_is_told_after_the_command_and_in_letters_that_show ["python3", "curl"];
    what_a_command_left_running_reaches_nobody ["curl", "python3"];
    a_tunnel_ends_with_its_command ["python3"];
    a_tunnel_ends_with_a_stockade_that_is_killed ["python3"];
    what_was_tried_is_told_whichever_helper_is_killed ["python3"];
    a_person_is_told_what_was_let_through_when_the_forker_is_killed ["python3"];
    a_time_limit_ends_a_tunnel_that_says_nothing ["python3"];
    without_a_list_there_is_no_proxy ["python3"];
    a_list_without_a_host_reaches_nothing ["curl"];
    flags_name_hosts ["curl"];
    a_rule_has_a_list_of_its_own ["curl", "python3"];
    a_custom_tool_has_a_list_of_its_own ["curl"];
    landlock_does_not_start_with_a_list [];
}

fn an_outcome_tells_of_every_attempt(lab: &Lab) {
    let mut inside = Inside::new(lab, &["www.example.org:80,443,9999"]);
    for python in [
        "tunnel('www.example.org', 9999, b'12345', 0.2, b'6789')",
        "raw(absolute('http://www.example.org/bytes/1000'))",
        "socks(3, b'www.example.org', 9999, says=b'abc')",
    ] {
        inside.does(python).unwrap();
    }
    for python in [
        "ask_connect('evil.example.net:443')",
        "raw(absolute('http://evil.example.net/'))",
        "raw('nonsense\\r\\n\\r\\n')",
    ] {
        inside.does(python).unwrap();
    }
    let recorded = Recorded::of(&inside.end());
    let kinds: Vec<String> = recorded
        .0
        .iter()
        .map(|attempt| {
            let text = |field: &str| attempt[field].as_str().unwrap_or("-").to_owned();
            format!(
                "{} {} {} {}",
                text("host"),
                attempt["port"],
                text("protocol"),
                text("result")
            )
        })
        .collect();
    for kind in [
        "www.example.org 9999 CONNECT passed",
        "www.example.org 80 HTTP passed",
        "www.example.org 9999 SOCKS5 passed",
        "evil.example.net 443 CONNECT refused",
        "evil.example.net 80 HTTP refused",
    ] {
        assert!(kinds.iter().any(|one| one == kind), "{kind}: {:#?}", recorded.lines());
    }
    assert!(
        kinds
            .iter()
            .any(|one| one.starts_with("- null") && one.ends_with("refused")),
        "{:#?}",
        recorded.0
    );
    let of = |protocol: &str| {
        recorded
            .passed()
            .find(|attempt| attempt["protocol"] == protocol)
            .unwrap()
            .clone()
    };
    // Each piece comes back behind `reached ADDRESS: `.
    assert_eq!(of("CONNECT")["up"], 9);
    assert!(of("CONNECT")["down"].as_u64().unwrap() > 9 + 30);
    // The heads carry something, too.
    assert!(of("HTTP")["down"].as_u64().unwrap() > 1000);
    assert!(of("HTTP")["up"].as_u64().unwrap() > 30);
    assert_eq!(of("SOCKS5")["up"], 3);
    assert!(of("HTTP")["addresses"][0].as_str().unwrap().ends_with(":80"));
}

fn a_refusal_is_told_after_the_command_and_in_letters_that_show(lab: &Lab) {
    let line = "curl -sS http://evil.example.net/ http://metadata.example.org/; echo the command ends >&2";
    let run = lab.run(&["*.example.org"], line);
    let err = String::from_utf8(run.stderr.clone()).unwrap();
    let after = err.split_once("the command ends").unwrap().1;
    for place in ["evil.example.net:80", "metadata.example.org:80"] {
        assert!(after.contains(place), "{place}: {err}");
    }
    assert!(after.contains("169.254.169.254"), "{err}");

    lab.world.write(
        "odd.py",
        "import os, socket, urllib.parse
way = urllib.parse.urlsplit(os.environ['http_proxy'])
for name in [b'a\\x1b[2Jb', 'a\\u202eb'.encode(), b'a\\nstockade: forged', b'a\\x9bb']:
    with socket.create_connection((way.hostname, way.port)) as s:
        s.sendall(b'CONNECT ' + name + b'.example.net:443 HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n')
        s.recv(1000)
",
    );
    let run = lab.run(&["www.example.org"], "/usr/bin/python3 odd.py");
    let err = run.stderr.clone();
    let shows = String::from_utf8(err.clone()).unwrap();
    let hidden = |letter: char| letter.is_control() && letter != '\n' || letter == '\u{202e}';
    assert!(!shows.chars().any(hidden), "{}", err.escape_ascii());
    assert!(
        !shows.lines().any(|line| line.starts_with("stockade: forged")),
        "{shows}"
    );
    assert!(shows.contains("example.net"), "{shows}");
}

fn what_a_command_left_running_reaches_nobody(lab: &Lab) {
    lab.world.write(
        "leaves.py",
        "import os, time, urllib.request
os.fork() and os._exit(0)
os.setsid()
os.fork() and os._exit(0)
open('one', 'w').close()
while not os.path.exists('over'): time.sleep(0.05)
urllib.request.urlopen('http://www.example.org/later')
",
    );
    // Both are there, and try when the command is over.
    let line = "setsid sh -c 'touch other; until [ -e over ]; do sleep 0.05; done; curl -sS http://www.example.org/late' >/dev/null 2>&1 </dev/null & \
                (python3 leaves.py >/dev/null 2>&1) & \
                until [ -e one ] && [ -e other ]; do sleep 0.05; done; curl -sS http://www.example.org/now";
    lab.forget();
    lab.run(&["www.example.org"], line).ok();
    lab.world.write("over", "");
    std::thread::sleep(Duration::from_millis(1500));
    let requests = lab.seen().requests();
    assert!(requests.len() == 1 && requests[0].contains("/now"), "{requests:?}");
}

/// A line that leaves a process behind which sends through a tunnel without end.
fn sends_for_ever(lab: &Lab, until: &str) -> String {
    lab.world.write(
        "sends.py",
        "import os, socket, time, urllib.parse
way = urllib.parse.urlsplit(os.environ['http_proxy'])
s = socket.create_connection((way.hostname, way.port))
s.sendall(b'CONNECT www.example.org:9999 HTTP/1.1\\r\\nHost: www.example.org:9999\\r\\n\\r\\n')
assert b' 200 ' in s.recv(1000)
if os.fork(): os._exit(0)
os.setsid()
s.sendall(b'x')
assert s.recv(1000)
open('sends', 'w').close()
while True:
    s.sendall(b'x')
    time.sleep(0.01)
",
    );
    format!(
        "rm -f sends; /usr/bin/python3 sends.py >/dev/null 2>&1 </dev/null; \
         until [ -e sends ]; do sleep 0.05; done; {until}"
    )
}

fn a_tunnel_ends_with_its_command(lab: &Lab) {
    lab.forget();
    let run = lab.run(&["www.example.org:9999"], &sends_for_ever(lab, "true"));
    run.ok();
    assert!(lab.seen().internet.iter().any(|event| event["kind"] == "bytes"));
    lab.falls_silent();
}

fn a_tunnel_ends_with_a_stockade_that_is_killed(lab: &Lab) {
    let stockade = lab.confined(
        "{allow: [\"www.example.org:9999\"]}",
        &[],
        &sends_for_ever(lab, "sleep infinity"),
    );
    let running = lab.on_the_machine(|| stockade.spawn());
    eventually("it sends", || lab.world.workspace().join("sends").exists());
    running.signal(Signal::SIGKILL);
    running.wait().exits(137);
    lab.falls_silent();
}

/// What stands between a Stockade and its command: nearest first, the forker among them.
fn helpers(stockade: i32) -> Vec<i32> {
    let words: [&[u8]; 3] = [b"__supervisor", b"__forker", b"--die-with-parent"];
    let is_helper = |pid: &i32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        words
            .iter()
            .any(|word| line.windows(word.len()).any(|part| part == *word))
    };
    descendants(stockade).into_iter().filter(is_helper).collect()
}

/// Holds a tunnel open in which six bytes were sent and came back.
const HOLDS: &str = "held = connect('www.example.org', 9999); held.sendall(b'secret'); until(held, b'secret')";

fn what_was_tried_is_told_whichever_helper_is_killed(lab: &Lab) {
    let mut nth = 0;
    loop {
        let mut inside = Inside::new(lab, &["www.example.org:9999"]);
        assert!(inside.does(HOLDS).unwrap().contains("secret"));
        inside.does("ask_connect('evil.example.net:443')").unwrap();
        let helpers = helpers(inside.stockade());
        let Some(victim) = helpers.get(nth) else {
            assert!(nth >= 3, "{nth} helpers were found");
            inside.end();
            return;
        };
        kill(Pid::from_raw(*victim), Signal::SIGKILL).unwrap();
        let run = inside.ended().exits(125);
        let outcome: Value = serde_json::from_str(&run.out()).unwrap();
        assert_eq!(outcome["status"], "failed", "helper {nth}: {outcome}");
        let recorded = Recorded::of(&run);
        let [passed] = recorded.passed().collect::<Vec<_>>()[..] else {
            panic!("helper {nth}: {outcome}");
        };
        assert_eq!(
            (&passed["place"], &passed["up"]),
            (&"www.example.org:9999".into(), &6.into())
        );
        assert_eq!(recorded.refused().count(), 1, "helper {nth}: {outcome}");
        assert_eq!(outcome["network"]["up"], 6);
        nth += 1;
    }
}

fn a_person_is_told_what_was_let_through_when_the_forker_is_killed(lab: &Lab) {
    let mut inside = Inside::with(lab, "{allow: [\"www.example.org:9999\"]}", &[]);
    inside.does(HOLDS).unwrap();
    let supervisor = helpers(inside.stockade())[0];
    kill(Pid::from_raw(supervisor), Signal::SIGKILL).unwrap();
    let said = inside.ended().exits(125).err();
    let told = "\nstockade: network: www.example.org:9999 was let through: 6 bytes were sent, ";
    assert!(said.contains(told), "{said}");
}

fn a_time_limit_ends_a_tunnel_that_says_nothing(lab: &Lab) {
    let network = "{allow: [\"www.example.org\"]}";
    lab.run_with(network, &["--timeout", "1s"], "curl -sS http://www.example.org/never")
        .exits(124);
    lab.falls_silent();
}

/// The variables that name a proxy.
const SHOW: &str = "env | grep -i proxy | sort; cat /proc/net/tcp | wc -l";

fn without_a_list_there_is_no_proxy(lab: &Lab) {
    for network in ["false", "true"] {
        let out = lab.run_with(network, &[], SHOW).out();
        assert!(!out.to_lowercase().contains("127.0.0.1"), "{network}: {out}");
    }
    let out = lab.run(&["www.example.org"], SHOW).out();
    for variable in ["http_proxy=", "HTTPS_PROXY=", "ALL_PROXY=", "no_proxy="] {
        assert!(out.contains(variable), "{variable}: {out}");
    }
}

fn a_list_without_a_host_reaches_nothing(lab: &Lab) {
    lab.forget();
    let run = lab.run(
        &[],
        "curl -sSf http://www.example.org/ || curl -sSf --noproxy '*' http://93.184.216.34/",
    );
    assert!(!run.status.success(), "{}", run.out());
    lab.seen().nothing();
}

fn flags_name_hosts(lab: &Lab) {
    let run = |flags: &[&str], url: &str| {
        let curl = ["--cwd", "/usr", "--", "curl", "-sSf", url];
        let stockade = lab.world.stockade(&[&["run"], flags, &curl].concat());
        lab.on_the_machine(|| stockade.output())
    };
    let hosts = ["--net", "www.example.org:80", "--net", "*.example.net:8080,8443"];
    for (url, reached) in [
        ("http://www.example.org/", "as www.example.org"),
        ("http://a.example.net:8080/", "as a.example.net:8080"),
    ] {
        let out = run(&hosts, url).ok();
        assert!(out.contains(reached), "{out}");
    }
    lab.forget();
    for url in [
        "http://www.example.org:8080/",
        "http://a.example.net/",
        "https://www.example.org/",
    ] {
        let refused = run(&hosts, url);
        assert!(
            !refused.status.success() && refused.err().contains("list of hosts"),
            "{}",
            refused.err()
        );
    }
    lab.seen().nothing();
    // With a config they only narrow.
    let config = lab.config("{allow: [www.example.org]}");
    let config = ["--config", config.to_str().unwrap()];
    let with = |host: &'static str| [&config[..], &["--net", host]].concat();
    assert!(
        run(&with("*.example.org"), "http://www.example.org/")
            .ok()
            .contains("reached")
    );
    assert!(
        !run(&with("*.example.org"), "http://other.example.org/")
            .status
            .success()
    );
    assert!(
        !run(&with("other.example.org"), "http://other.example.org/")
            .status
            .success()
    );
    assert!(!run(&with("off"), "http://www.example.org/").status.success());
}

fn a_rule_has_a_list_of_its_own(lab: &Lab) {
    let config = lab.config_of(
        "  network: false
  default: {allowed: true, approval: none}
  rules:
    - {pattern: curl, approval: none, network: {allow: [www.example.org]}}
",
    );
    let run = |line: &str| {
        let stockade = lab
            .world
            .stockade(&["run", "--config", config.to_str().unwrap(), "-c", line]);
        lab.on_the_machine(|| stockade.output())
    };
    let out = run("curl -sSf http://www.example.org/").ok();
    assert!(out.contains("as www.example.org"), "{out}");
    let python =
        "/usr/bin/python3 -c 'import urllib.request as r; print(r.urlopen(\"http://www.example.org/\").read())'";
    lab.forget();
    assert!(!run("curl -sSf http://evil.example.net/").status.success());
    assert!(!run(python).status.success());
    // One line is one sandbox, which gets what every command in it gets.
    assert!(
        !run(&format!("curl -sSf http://www.example.org/; {python}"))
            .status
            .success()
    );
    lab.seen().nothing();
}

fn a_custom_tool_has_a_list_of_its_own(lab: &Lab) {
    let config = lab.config_of(
        "  network: {allow: [evil.example.net]}
  default: {allowed: true, approval: none}
custom_tools:
  fetch: {description: Fetch it, command: [curl, -sSf, \"{url}\"], args: {url: {type: string}}, approval: none, network: {allow: [www.example.org]}}
  plain: {description: Fetch it, command: [curl, -sSf, \"{url}\"], args: {url: {type: string}}, approval: none}
",
    );
    let call = |tool: &str, url: &str| {
        let arguments = format!("{{\"url\": \"{url}\"}}");
        let args = ["call", "--config", config.to_str().unwrap(), tool, &arguments];
        let stockade = lab.world.stockade(&args);
        lab.on_the_machine(|| stockade.output())
    };
    for (tool, host, other) in [
        ("fetch", "www.example.org", "evil.example.net"),
        ("plain", "evil.example.net", "www.example.org"),
    ] {
        let out = call(tool, &format!("http://{host}/")).ok();
        assert!(out.contains(&format!("as {host}")), "{out}");
        lab.forget();
        assert!(!call(tool, &format!("http://{other}/")).status.success());
        lab.seen().nothing();
    }
}

fn landlock_does_not_start_with_a_list(lab: &Lab) {
    let marker = lab.world.workspace().join("made");
    let config = lab.config("{allow: [www.example.org]}");
    let world = &lab.world;
    let run = |network: &[&str]| {
        let args = ["run", "--backend", "landlock"];
        let line = ["--rw", ".", "-c", "touch made"];
        let stockade: Invocation = world.bare(world.binary()).args([&args, network, &line].concat());
        lab.on_the_machine(|| stockade.output())
    };
    for network in [
        &["--config", config.to_str().unwrap()][..],
        &["--net", "www.example.org"],
    ] {
        let refused = run(network).exits(125);
        let said = refused.err();
        assert!(said.contains("landlock") && said.contains("namespace"), "{said}");
        assert!(!marker.exists());
    }
    let json = world.bare(world.binary()).args(["doctor", "--json"]);
    let doctor: Value = serde_json::from_str(&lab.on_the_machine(|| json.output()).out()).unwrap();
    assert!(doctor.is_object());
    fs::remove_file(config).unwrap();
}
