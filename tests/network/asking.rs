//! `ask: true`: a host that is not listed becomes a question, and what is answered holds for as long as was said.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::common::{Invocation, Run, eventually};
use crate::lab::{Lab, in_the_lab};

in_the_lab! {
    a_yes_lets_it_through_once_asked ["curl"];
    the_question_says_what_and_who ["curl"];
    a_process_with_an_odd_name_is_shown_in_letters ["curl"];
    a_no_refuses_and_the_client_is_told ["curl"];
    no_answer_in_time_refuses ["curl"];
    an_approver_that_fails_refuses ["curl"];
    many_connections_to_one_host_ask_once ["curl"];
    a_listed_host_is_not_asked_about ["curl"];
    what_is_no_host_is_not_asked_about ["python3"];
    a_yes_to_a_name_is_none_to_a_private_address ["curl"];
    a_command_that_nobody_was_asked_about_asks_for_nothing ["curl"];
    modes_answer_for_the_person ["curl"];
    a_yes_for_the_session_holds_for_the_next_call ["curl"];
    a_command_that_ends_withdraws_its_question ["curl"];
}

/// What the approver says to a question about a host; commands it approves.
#[derive(Debug, Clone, Copy)]
enum Says {
    Yes,
    Session,
    No,
    Nothing,
    Fails,
}

/// A person's program, which keeps every question about a host in a file.
struct Person<'a> {
    lab: &'a Lab,
    program: PathBuf,
    questions: PathBuf,
}

impl<'a> Person<'a> {
    fn new(lab: &'a Lab, says: Says) -> Self {
        let questions = lab.world.base().join("questions");
        if questions.exists() {
            fs::remove_file(&questions).unwrap();
        }
        let about_a_host = match says {
            Says::Yes => "echo '{\"approved\": true}'",
            Says::Session => "echo '{\"approved\": true, \"remember\": \"session\"}'",
            Says::No => "echo '{\"approved\": false, \"note\": \"not that one\"}'",
            Says::Nothing => "sleep infinity",
            Says::Fails => "exit 3",
        };
        let body = format!(
            "#!/bin/sh
read -r question
case \"$question\" in
    *'connect to '*) printf '%s\\n' \"$question\" >> {}; {about_a_host} ;;
    *) echo '{{\"approved\": true}}' ;;
esac
",
            questions.display()
        );
        let program = lab.world.program(lab.world.base().join("person"), body);
        Self {
            lab,
            program,
            questions,
        }
    }

    /// The places that were asked about.
    fn asked(&self) -> Vec<Value> {
        let text = fs::read_to_string(&self.questions).unwrap_or_default();
        // The last one may be half written.
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn config(&self, approval: &str) -> PathBuf {
        self.lab.config_of(&format!(
            "  network: {{allow: [www.example.org], ask: true}}\n  default: {{allowed: true, approval: {approval}}}\n"
        ))
    }

    fn stockade(&self, does: &str, approval: &str, flags: &[&str]) -> Invocation {
        let config = self.config(approval);
        let named = [
            "--config",
            config.to_str().unwrap(),
            "--approver-program",
            path(&self.program),
        ];
        self.lab.world.stockade(&[&[does], &named[..], flags].concat())
    }

    /// A line that is asked about, and approved.
    fn run(&self, flags: &[&str], line: &str) -> Run {
        let stockade = self.stockade("run", "required", &[flags, &["-c", line]].concat());
        self.lab.on_the_machine(|| stockade.output())
    }
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

const FETCH: &str = "curl -sSf http://other.example.org/";

fn a_yes_lets_it_through_once_asked(lab: &Lab) {
    let person = Person::new(lab, Says::Yes);
    let out = person
        .run(
            &[],
            &format!("{FETCH} && {FETCH} && curl -sSf http://evil.example.net/"),
        )
        .ok();
    assert_eq!(out.matches("reached").count(), 3, "{out}");
    // The second to the same host is not asked about.
    assert_eq!(person.asked().len(), 2, "{:?}", person.asked());
    // Another port is another place.
    person
        .run(
            &[],
            "curl -sSf http://other.example.org/ http://other.example.org:8080/",
        )
        .ok();
    assert_eq!(person.asked().len(), 4);
}

fn the_question_says_what_and_who(lab: &Lab) {
    let person = Person::new(lab, Says::Yes);
    person.run(&[], FETCH).ok();
    let asked = person.asked();
    let text = asked[0].to_string();
    for part in ["other.example.org:80", "not in the list of hosts", FETCH] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(asked[0]["tool"], "shell", "{text}");
    // Which process it was.
    assert!(
        asked[0]["presentation"].to_string().contains("\"process\"") || text.contains("curl ("),
        "{text}"
    );
}

fn a_process_with_an_odd_name_is_shown_in_letters(lab: &Lab) {
    let person = Person::new(lab, Says::Yes);
    let line = "cp /usr/bin/curl \"$(printf 'a\\033[2J\\342\\200\\256b')\"; ./a* -sSf http://other.example.org/";
    person.run(&[], line).ok();
    let asked = person.asked();
    let fields = asked[0]["presentation"]["structured"].as_array().unwrap();
    assert!(fields.iter().any(|field| field[0] == "process"), "{}", asked[0]);
    for field in fields {
        let shown = field[1].as_str().unwrap();
        let hidden = |letter: char| letter.is_control() || letter == '\u{202e}';
        assert!(
            field[0] == "command" || !shown.chars().any(hidden),
            "{}",
            shown.escape_debug()
        );
    }
}

#[track_caller]
fn assert_refused(lab: &Lab, run: &Run, why: &str) {
    assert!(!run.status.success() && run.code() != 125, "{}", run.err());
    assert!(run.err().contains("403") || run.out().contains("403"), "{}", run.err());
    assert!(
        run.err().contains("other.example.org:80") && run.err().contains(why),
        "{why}: {}",
        run.err()
    );
    let seen = lab.seen();
    assert!(seen.beyond_names().is_empty() && seen.names().is_empty(), "{seen:?}");
}

fn a_no_refuses_and_the_client_is_told(lab: &Lab) {
    let person = Person::new(lab, Says::No);
    lab.forget();
    assert_refused(lab, &person.run(&[], &format!("{FETCH}; {FETCH}")), "denied");
    assert_eq!(person.asked().len(), 1, "a no is not asked about again");
    let told = person.run(&[], "curl -sS http://other.example.org/").out();
    assert!(
        told.contains("other.example.org:80") && told.contains("denied"),
        "{told}"
    );
}

fn no_answer_in_time_refuses(lab: &Lab) {
    // On a busy machine the time may be over before the question about the command is answered.
    for time in ["1s", "4s", "16s", "64s"] {
        let person = Person::new(lab, Says::Nothing);
        lab.forget();
        let run = person.run(&["--approval-timeout", time], FETCH);
        if !person.asked().is_empty() {
            return assert_refused(lab, &run, "answer");
        }
    }
    panic!("nobody was asked about the host in time");
}

fn an_approver_that_fails_refuses(lab: &Lab) {
    let person = Person::new(lab, Says::Fails);
    lab.forget();
    assert_refused(lab, &person.run(&[], FETCH), "nobody");
}

fn many_connections_to_one_host_ask_once(lab: &Lab) {
    for says in [Says::Yes, Says::No] {
        let person = Person::new(lab, says);
        let urls = "http://other.example.org/[1-20]";
        let run = person.run(
            &[],
            &format!("curl -sS --parallel --parallel-immediate --parallel-max 20 '{urls}'"),
        );
        let reached = run.out().matches("reached").count();
        assert_eq!(reached, if matches!(says, Says::Yes) { 20 } else { 0 }, "{}", run.err());
        assert_eq!(person.asked().len(), 1, "{:?}", person.asked());
    }
}

fn a_listed_host_is_not_asked_about(lab: &Lab) {
    let person = Person::new(lab, Says::No);
    person
        .run(
            &[],
            "curl -sSf http://www.example.org/ && curl -sSf https://www.example.org/",
        )
        .ok();
    assert!(person.asked().is_empty(), "{:?}", person.asked());
}

fn what_is_no_host_is_not_asked_about(lab: &Lab) {
    let person = Person::new(lab, Says::Yes);
    let script = "
import os, socket, urllib.parse
way = urllib.parse.urlsplit(os.environ['http_proxy'])
for name in ['0177.0.0.1', '2130706433', 'a\\0b', 'x@y', 'a b', '%31', 'other.example.org:99999']:
    with socket.create_connection((way.hostname, way.port)) as s:
        s.sendall(f'CONNECT {name}:443 HTTP/1.1\\r\\nHost: {name}:443\\r\\n\\r\\n'.encode()); print(s.recv(1000)[:12])
";
    lab.world.write("odd.py", script);
    lab.forget();
    let out = person.run(&[], "/usr/bin/python3 odd.py").out();
    assert_eq!(out.lines().count(), 7, "{out}");
    assert!(!out.contains(" 200"), "{out}");
    assert!(person.asked().is_empty(), "{:?}", person.asked());
    lab.seen().nothing();
}

fn a_yes_to_a_name_is_none_to_a_private_address(lab: &Lab) {
    let person = Person::new(lab, Says::Yes);
    lab.forget();
    let run = person.run(&[], "curl -sSf http://private.example.org/");
    assert!(
        !run.status.success() && run.err().contains("10.0.0.80"),
        "{}",
        run.err()
    );
    lab.seen().only(&[]);
    // By its number it is not even asked about: only an entry that says the number lets it through.
    let run = person.run(&[], "curl -sSf http://10.0.0.80/ || curl -sSf http://169.254.169.254/");
    assert!(
        !run.status.success() && run.err().contains("10.0.0.80:80"),
        "{}",
        run.err()
    );
    assert_eq!(person.asked().len(), 1, "{:?}", person.asked());
    lab.seen().only(&[]);
}

fn a_command_that_nobody_was_asked_about_asks_for_nothing(lab: &Lab) {
    let person = Person::new(lab, Says::Yes);
    lab.forget();
    let stockade = person.stockade("run", "none", &["-c", FETCH]);
    let run = lab.on_the_machine(|| stockade.output());
    assert_refused(lab, &run, "list of hosts");
    assert!(person.asked().is_empty(), "{:?}", person.asked());
    let stockade = person.stockade("run", "none", &["-c", "curl -sSf http://www.example.org/"]);
    assert!(lab.on_the_machine(|| stockade.output()).ok().contains("reached"));
}

fn modes_answer_for_the_person(lab: &Lab) {
    let run = |mode: &str, approval: &str| {
        let config = Person::new(lab, Says::No).config(approval);
        let args = ["run", "--config", path(&config), "--mode", mode, "-c", FETCH];
        let stockade = lab.world.stockade(&args);
        lab.on_the_machine(|| stockade.output())
    };
    assert!(run("approve_all", "required").ok().contains("reached"));
    lab.forget();
    // What was never asked about gets what is listed.
    assert!(!run("approve_all", "none").status.success());
    assert!(!run("strict", "none").status.success());
    run("strict", "required").exits(126);
    lab.seen().nothing();
}

fn a_yes_for_the_session_holds_for_the_next_call(lab: &Lab) {
    for (says, questions) in [(Says::Session, 1), (Says::Yes, 3)] {
        let person = Person::new(lab, says);
        let call = serde_json::json!({"call": {"tool": "shell", "args": {"command": FETCH}}});
        let calls = format!("{call}\n").repeat(3);
        let stockade = person.stockade("call", "required", &["--stream"]).stdin(calls);
        let out = lab.on_the_machine(|| stockade.output()).ok();
        assert_eq!(out.matches("\"text\":\"reached").count(), 3, "{out}");
        assert_eq!(person.asked().len(), questions, "{says:?}: {:#?}", person.asked());
    }
    // A yes to one place is none to another.
    let person = Person::new(lab, Says::Session);
    let calls: String = ["http://other.example.org/", "http://third.example.org/"]
        .map(|url| {
            serde_json::json!({"call": {"tool": "shell", "args": {"command": format!("curl -sSf {url}")}}}).to_string()
                + "\n"
        })
        .concat();
    let stockade = person.stockade("call", "required", &["--stream"]).stdin(calls);
    lab.on_the_machine(|| stockade.output()).ok();
    assert_eq!(person.asked().len(), 2);
}

fn a_command_that_ends_withdraws_its_question(lab: &Lab) {
    let person = Person::new(lab, Says::Nothing);
    lab.forget();
    // The client gives up, and the command ends, while the question is open.
    let line = "curl -sS http://other.example.org/ & until [ -e go ]; do sleep 0.05; done; kill $!; wait $!; true";
    let stockade = person.stockade("run", "required", &["-c", line]);
    let running = lab.on_the_machine(|| stockade.spawn());
    eventually("the question", || !person.asked().is_empty());
    lab.world.write("go", "");
    running.wait().ok();
    assert_eq!(person.asked().len(), 1);
    lab.seen().nothing();
}
