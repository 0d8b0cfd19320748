//! A session that asks over a socket, and `stockade approvals` that answers it, each a process of its own.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::os::unix::net::UnixStream;
    use std::path::{Path, PathBuf};
    use std::time::{Duration, Instant};

    use nix::sys::signal::Signal;
    use serde_json::{Value, json};

    use crate::common::{
        Actor, Fixture, Invocation, Run, Running, Snapshot, as_root_and_as_user, assert_nothing_left_behind,
        eventually, in_namespaces, stop, without,
    };

    as_root_and_as_user! {
        a_question_is_listed_shown_and_approved_from_another_process [];
        a_no_from_another_process_denies_with_its_note [];
        a_yes_for_the_session_is_one [];
        of_a_single_command_a_yes_for_the_session_is_refused_and_one_is_taken [];
        who_watches_waits_for_sessions_and_outlives_them [];
        several_sessions_ask_at_the_default_place_at_once [];
        a_session_that_is_stopped_holds_up_nobody_who_asks_the_others [];
        a_session_that_is_stopped_alone_is_named_with_what_to_do [];
        what_killed_sessions_left_at_the_default_place_is_swept [];
        the_end_of_a_session_is_said_in_words [];
        the_questions_are_asked_on_the_terminal_of_who_answers ["python3"];
        what_nobody_answers_in_time_is_denied [];
        a_signal_withdraws_the_question [];
        the_default_place_is_found_by_both_sides [];
        one_place_is_one_sessions [];
        what_a_killed_session_left_is_replaced [];
        a_socket_in_reach_of_commands_is_refused [];
        a_socket_and_a_program_at_once_are_a_mistake [];
        what_a_question_hides_is_shown_escaped [];
        nobody_answers_where_nobody_asks [];
        a_file_change_is_shown_whole_and_approved_from_another_process [];
        what_nobody_answers_at_a_terminal_in_time_is_denied ["python3"];
        commands_that_run_unconfined_are_not_asked_about_over_a_socket [];
        a_command_reaches_neither_the_token_nor_an_answer ["python3"];
    }

    in_namespaces! {
        a_command_reaches_neither_the_token_nor_an_answer ["python3"];
    }

    fn config(world: &Fixture, shell: &str) -> PathBuf {
        let text = format!(
            "extends: [system]
sandbox:
  protect_fallback: undo
  paths:
    w: {{root: {}, mode: rw, execute: true, write_approval: false}}
    readable: {{root: {}, mode: ro}}
{shell}",
            world.workspace().display(),
            world.outside().display()
        );
        world.write(world.base().join("agent.yaml"), text)
    }

    fn socket(world: &Fixture) -> PathBuf {
        world.base().join("run/asks")
    }

    fn session(world: &Fixture, socket: &Path, flags: &[&str], line: &str) -> Invocation {
        let config = config(world, "");
        let named = [
            "--config",
            config.to_str().unwrap(),
            "--approvals-socket",
            socket.to_str().unwrap(),
        ];
        world.stockade(&[&["run"], &named[..], flags, &["-c", line]].concat())
    }

    /// `stockade approvals WORDS` at the socket of the fixture.
    fn approvals(world: &Fixture, words: &[&str]) -> Invocation {
        let socket = socket(world);
        world.stockade(&[&["approvals", "--socket", socket.to_str().unwrap()], words].concat())
    }

    /// Says yes to a question that was shown.
    fn approve(world: &Fixture, id: &str, flags: &[&str]) {
        approvals(world, &["show", id]).output().ok();
        approvals(world, &[&["approve", id], flags].concat()).output().ok();
    }

    /// A session that waits for an answer to `line`, and the name of its question.
    fn asking(world: &Fixture, line: &str) -> (Running, String) {
        asked(world, session(world, &socket(world), &[], line))
    }

    fn asked(world: &Fixture, session: Invocation) -> (Running, String) {
        let running = session.spawn();
        let mut id = None;
        eventually("the question", || {
            let listed = approvals(world, &["list", "--json"]).output();
            if listed.status.success() {
                let json: Value = serde_json::from_str(&listed.out()).unwrap();
                id = json["waiting"][0]["id"].as_str().map(str::to_owned);
            }
            id.is_some()
        });
        (running, id.unwrap())
    }

    fn made(world: &Fixture) -> bool {
        world.workspace().join("made").exists()
    }

    fn a_question_is_listed_shown_and_approved_from_another_process(world: &Fixture) {
        let before = Snapshot::of(world);
        let (running, id) = asking(world, "touch made");
        let listed = approvals(world, &["list"]).output().ok();
        assert!(
            listed.starts_with(&format!("{id} shell: $ touch made (open for ")),
            "{listed}"
        );
        // Nobody says yes to what was not shown.
        let unseen = approvals(world, &["approve", &id]).output().exits(125).err();
        assert!(unseen.contains(&format!("`stockade approvals show {id}`")), "{unseen}");
        let shown = approvals(world, &["show", &id]).output().ok();
        assert!(shown.contains("$ touch made"), "{shown}");
        let json = approvals(world, &["show", &id, "--json"]).output().ok();
        let json: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json["presentation"]["command"]["command"], "touch made");
        assert!(!made(world));
        let told = approvals(world, &["approve", &id]).output().ok();
        assert_eq!(told, format!("approved {id}\n"));
        running.wait().ok();
        assert!(made(world));
        assert_nothing_left_behind(&before, world);
    }

    fn a_no_from_another_process_denies_with_its_note(world: &Fixture) {
        let (running, id) = asking(world, "touch made");
        let denied = approvals(world, &["deny", &id, "--note", "not \u{1b}[2Jnow", "--json"])
            .output()
            .ok();
        assert_eq!(
            serde_json::from_str::<Value>(&denied).unwrap(),
            json!({"id": id, "settled": "denied"})
        );
        let run = running.wait().exits(126);
        let told = String::from_utf8(run.stderr).unwrap();
        assert!(told.contains("user denied shell: not \\u{1b}[2Jnow"), "{told}");
        assert!(!made(world));
    }

    fn a_yes_for_the_session_is_one(world: &Fixture) {
        let (file, place) = (config(world, ""), socket(world));
        let named = [
            "--config",
            file.to_str().unwrap(),
            "--approvals-socket",
            place.to_str().unwrap(),
        ];
        let call = [&["call"], &named[..], &["shell", r#"{"command": "touch made"}"#]].concat();
        let (running, id) = asked(world, world.stockade(&call));
        approve(world, &id, &["--session"]);
        running.wait().ok();
        assert!(made(world));
    }

    fn of_a_single_command_a_yes_for_the_session_is_refused_and_one_is_taken(world: &Fixture) {
        let (running, id) = asking(world, "touch made");
        approvals(world, &["show", &id]).output().ok();
        let refused = approvals(world, &["approve", &id, "--session"]).output().exits(125);
        assert!(
            refused.err().contains("approved once or not at all"),
            "{}",
            refused.err()
        );
        assert!(!made(world));
        approve(world, &id, &[]);
        running.wait().ok();
        assert!(made(world));
    }

    /// The next line of somebody who watches.
    fn event(tells: &mut impl std::io::BufRead) -> Value {
        let mut line = String::new();
        tells.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("no event: {line}"))
    }

    fn who_watches_waits_for_sessions_and_outlives_them(world: &Fixture) {
        for place in [socket(world), PathBuf::from("default")] {
            let args = ["approvals", "--socket", place.to_str().unwrap(), "watch", "--json"];
            let mut watching = world.stockade(&args).converse();
            let mut tells = BufReader::new(watching.stdout.take().unwrap());
            let mut says = BufReader::new(watching.stderr.take().unwrap());
            let mut said = String::new();
            says.read_line(&mut said).unwrap();
            assert!(said.contains("no session asks now; waiting for one"), "{said}");
            // Two sessions, one after the other.
            for _ in 0..2 {
                let running = session(world, &place, &[], "touch made").spawn();
                let id = event(&mut tells)["asked"]["id"].as_str().unwrap().to_owned();
                let answer = |word: &str| {
                    world
                        .stockade(&["approvals", "--socket", args[2], word, &id])
                        .output()
                        .ok()
                };
                answer("show");
                answer("approve");
                running.wait().ok();
                assert_eq!(event(&mut tells)["settled"], json!({"id": id, "how": "approved"}));
                said.clear();
                says.read_line(&mut said).unwrap();
                assert!(said.contains("a session has ended"), "{said}");
                said.clear();
                says.read_line(&mut said).unwrap();
                assert!(said.contains("waiting for one"), "{said}");
            }
            assert_eq!(watching.try_wait().unwrap(), None);
            watching.kill().unwrap();
            watching.wait().unwrap();
        }
    }

    fn the_questions_are_asked_on_the_terminal_of_who_answers(world: &Fixture) {
        let config = config(world, "");
        let begin = |made: &str| {
            let binary = world.binary().display();
            let named = format!("--config {} --approvals-socket default", config.display());
            // The shell of the driver has the user, home and directory of this world.
            json!([
                "shell",
                format!("'{binary}' run {named} -c 'touch {made}' 2>/dev/null >/dev/null &")
            ])
        };
        let steps = json!([
            ["expect", "waiting for one"],
            begin("made"),
            begin("other"),
            ["expect", "approve? ["],
            ["send", "y"],
            ["expect", "approve? ["],
            ["send", "y"],
            ["expect", "a session has ended"],
            ["expect", "a session has ended"],
            ["expect", "waiting for one"],
            ["signal", "SIGTERM"]
        ]);
        let (code, shown) = world.play(&steps, &["approvals"]);
        assert_eq!(code, 143, "{shown}");
        assert!(shown.contains("touch made") && shown.contains("touch other"), "{shown}");
        assert!(made(world) && world.workspace().join("other").exists());
    }

    fn several_sessions_ask_at_the_default_place_at_once(world: &Fixture) {
        make_default_place(world);
        let before = Snapshot::of(world);
        let names = ["made", "other", "third"];
        // Each writes the config anew, so none may be reading it yet.
        let sessions = names.map(|name| session(world, Path::new("default"), &[], &format!("touch {name}")));
        let sessions = sessions.map(Invocation::spawn);
        let mut waiting = Vec::new();
        eventually("three questions", || {
            let listed = world.stockade(&["approvals", "list", "--json"]).output();
            let listed: Value = serde_json::from_str(&listed.out()).unwrap_or_default();
            waiting = listed["waiting"].as_array().cloned().unwrap_or_default();
            waiting.len() == 3
        });
        let mut processes: Vec<i64> = waiting.iter().map(|one| one["process"].as_i64().unwrap()).collect();
        processes.sort_unstable();
        processes.dedup();
        assert_eq!(processes.len(), 3, "{waiting:?}");
        let shown = world.stockade(&["approvals", "list"]).output().ok();
        assert_eq!(shown.matches(" [process ").count(), 3, "{shown}");
        for one in &waiting {
            let id = one["id"].as_str().unwrap();
            let shown = world.stockade(&["approvals", "show", id]).output().ok();
            let verb = if shown.contains("touch other") {
                "deny"
            } else {
                "approve"
            };
            world.stockade(&["approvals", verb, id]).output().ok();
            let again = world.stockade(&["approvals", "approve", id]).output().exits(125).err();
            assert!(
                again.contains("no such question")
                    || again.contains("answered already")
                    || again.contains("no session asks")
                    || again.contains("the session has ended"),
                "{again}"
            );
        }
        let [made_it, denied, third] = sessions;
        made_it.wait().ok();
        denied.wait().exits(126);
        third.wait().ok();
        assert!(made(world) && world.workspace().join("third").exists() && !world.workspace().join("other").exists());
        let over = world.stockade(&["approvals", "list"]).output().exits(125).err();
        assert!(
            over.contains("no session asks now") && !over.contains("os error"),
            "{over}"
        );
        assert_nothing_left_behind(&before, world);
    }

    fn a_session_that_is_stopped_holds_up_nobody_who_asks_the_others(world: &Fixture) {
        let list = || world.stockade(&["approvals", "list", "--json"]).output();
        let waiting = |listed: &Value| listed["waiting"].as_array().cloned().unwrap_or_default();
        let mut all = Vec::new();
        let mut sessions = Vec::new();
        for name in ["made", "other", "third"] {
            sessions.push(session(world, Path::new("default"), &[], &format!("touch {name}")).spawn());
            eventually("its question", || {
                all = waiting(&serde_json::from_str(&list().out()).unwrap_or_default());
                all.len() == sessions.len()
            });
        }
        let shows = |word: &str| world.stockade(&["approvals", "show", word]).output();
        let id = |one: &Value| one["id"].as_str().unwrap().to_owned();
        let (stopped, others) = all.split_first().unwrap();
        let process = stopped["process"].as_i64().unwrap();
        let pid = nix::unistd::Pid::from_raw(i32::try_from(process).unwrap());
        stop(pid);
        let quickly = |what: &dyn Fn() -> Run| {
            let begun = Instant::now();
            let run = what();
            // Without a bound it was never.
            assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
            run
        };
        let listed: Value = serde_json::from_str(&quickly(&list).exits(125).out()).unwrap();
        assert_eq!(waiting(&listed).len(), 2, "{listed}");
        assert_eq!(listed["unanswered"][0]["process"], process, "{listed}");
        assert_eq!(listed["unanswered"].as_array().unwrap().len(), 1, "{listed}");
        let text = quickly(&|| world.stockade(&["approvals", "list"]).output()).exits(125);
        assert_eq!(text.out().lines().count(), 2, "{}", text.out());
        let told = text.err();
        assert!(
            told.lines().count() == 1
                && told.contains(&format!("the session of process {process} does not answer"))
                && told.contains(&format!("kill -CONT {process}")),
            "{told}"
        );
        for one in others {
            assert!(quickly(&|| shows(&id(one))).ok().contains("$ touch"));
            world.stockade(&["approvals", "approve", &id(one)]).output().ok();
        }
        let told = quickly(&|| shows(&id(stopped))).exits(125).err();
        assert!(
            told.contains(&process.to_string()) && told.contains("kill -CONT"),
            "{told}"
        );
        nix::sys::signal::kill(pid, Signal::SIGCONT).unwrap();
        assert!(shows(&id(stopped)).ok().contains("$ touch"));
        world.stockade(&["approvals", "approve", &id(stopped)]).output().ok();
        for one in sessions {
            one.wait().ok();
        }
    }

    fn a_session_that_is_stopped_alone_is_named_with_what_to_do(world: &Fixture) {
        let (running, id) = asking(world, "touch made");
        let process = running.pid();
        running.stop();
        for words in [&["list"][..], &["show", &id], &["approve", &id]] {
            let begun = Instant::now();
            let told = approvals(world, words).output().exits(125).err();
            assert!(begun.elapsed() < Duration::from_secs(40), "{:?}", begun.elapsed());
            assert!(
                told.contains("does not answer") && told.contains(&format!("kill -CONT {process}")),
                "{told}"
            );
            assert!(told.lines().count() <= 3, "{told}");
        }
        running.signal(Signal::SIGCONT);
        running.signal(Signal::SIGTERM);
        running.wait().exits(143);
    }

    /// The directory that sessions share by default, which stays.
    fn make_default_place(world: &Fixture) {
        let place = world.base().join("run/stockade-approvals");
        world
            .bare("/usr/bin/mkdir")
            .args(["-m", "700"])
            .args([place])
            .output()
            .ok();
    }

    fn what_killed_sessions_left_at_the_default_place_is_swept(world: &Fixture) {
        let running = session(world, Path::new("default"), &[], "touch never").spawn();
        let listed = || world.stockade(&["approvals", "list", "--json"]).output();
        eventually("the question", || listed().out().contains("\"id\""));
        running.signal(Signal::SIGKILL);
        running.wait().exits(137);
        assert!(listed().exits(125).out().contains("no session asks"));
        let running = session(world, Path::new("default"), &[], "touch made").spawn();
        eventually("the question", || listed().out().contains("\"id\""));
        let place = world.base().join("run/stockade-approvals");
        // A socket and its token.
        assert_eq!(fs::read_dir(&place).unwrap().count(), 2);
        assert_eq!(fs::metadata(&place).unwrap().permissions().mode() & 0o7777, 0o700);
        running.signal(Signal::SIGTERM);
        running.wait().exits(143);
        // Sandboxes of other sessions hide the directory by a mount, which would go with it.
        assert_eq!(fs::read_dir(&place).unwrap().count(), 0);
    }

    fn the_end_of_a_session_is_said_in_words(world: &Fixture) {
        let (running, id) = asking(world, "touch made");
        approve(world, &id, &[]);
        running.wait().ok();
        for words in [&["list"][..], &["show", &id], &["approve", &id], &["deny", &id]] {
            let said = approvals(world, words).output().exits(125).err();
            assert!(
                said.contains("has ended, or none was started") && !said.contains("os error"),
                "{said}"
            );
        }
    }

    fn what_nobody_answers_in_time_is_denied(world: &Fixture) {
        let before = Snapshot::of(world);
        let run = session(world, &socket(world), &["--approval-timeout", "1s"], "touch made").output();
        let run = run.exits(126);
        assert!(run.err().contains("no answer within 1s"), "{}", run.err());
        assert!(!made(world));
        assert_nothing_left_behind(&before, world);
    }

    fn what_nobody_answers_at_a_terminal_in_time_is_denied(world: &Fixture) {
        let config = config(world, "");
        let steps = json!([["expect", "approve? ["], ["expect", "no answer within 1s"]]);
        let named = ["run", "--config", config.to_str().unwrap(), "--approval-timeout", "1s"];
        let (code, shown) = world.play(&steps, &[&named[..], &["-c", "touch made"]].concat());
        assert_eq!(code, 126, "{shown}");
        assert!(!made(world));
    }

    fn a_signal_withdraws_the_question(world: &Fixture) {
        let before = Snapshot::of(world);
        let (running, _) = asking(world, "touch made");
        running.signal(Signal::SIGTERM);
        running.wait().exits(143);
        assert!(!made(world));
        assert_nothing_left_behind(&before, world);
    }

    fn the_default_place_is_found_by_both_sides(world: &Fixture) {
        make_default_place(world);
        let before = Snapshot::of(world);
        let running = session(world, Path::new("default"), &[], "touch made").spawn();
        let mut id = String::new();
        eventually("the question", || {
            let listed = world.stockade(&["approvals", "list"]).output();
            let said = listed.out();
            said.split(' ').next().unwrap().clone_into(&mut id);
            listed.status.success() && id != "nothing"
        });
        world.stockade(&["approvals", "show", &id]).output().ok();
        world.stockade(&["approvals", "approve", &id]).output().ok();
        running.wait().ok();
        assert!(made(world));
        assert_nothing_left_behind(&before, world);
    }

    fn one_place_is_one_sessions(world: &Fixture) {
        let (running, id) = asking(world, "touch made");
        let second = session(world, &socket(world), &[], "touch other").output().exits(125);
        assert!(second.err().contains("another session listens"), "{}", second.err());
        approve(world, &id, &[]);
        running.wait().ok();
        assert!(made(world) && !world.workspace().join("other").exists());
    }

    fn what_a_killed_session_left_is_replaced(world: &Fixture) {
        let before = Snapshot::of(world);
        let (running, old) = asking(world, "touch never");
        running.signal(Signal::SIGKILL);
        running.wait().exits(137);
        assert!(socket(world).exists());
        let gone = approvals(world, &["list"]).output().exits(125);
        assert!(gone.err().contains("no session asks"), "{}", gone.err());
        let (running, id) = asking(world, "touch made");
        assert_ne!(old, id);
        let refused = approvals(world, &["approve", &old]).output().exits(125);
        assert!(refused.err().contains("no such question"), "{}", refused.err());
        approve(world, &id, &[]);
        running.wait().ok();
        assert!(made(world) && !world.workspace().join("never").exists());
        assert_nothing_left_behind(&before, world);
    }

    fn a_socket_in_reach_of_commands_is_refused(world: &Fixture) {
        for folder in [world.workspace(), world.outside()] {
            let refused = session(world, &folder.join("asks"), &[], "touch made")
                .output()
                .exits(125);
            assert!(refused.err().contains("could approve themselves"), "{}", refused.err());
            assert!(!folder.join("asks").exists() && !folder.join("asks.token").exists());
        }
        // A link that a command could re-point, to a place that is none of its business.
        let link = world.workspace().join("link");
        symlink(world.base().join("run"), &link).unwrap();
        let refused = session(world, &link.join("asks"), &[], "touch made")
            .output()
            .exits(125);
        assert!(refused.err().contains("could approve themselves"), "{}", refused.err());
        let open = world.base().join("open");
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
        session(world, &open.join("asks"), &[], "touch made")
            .output()
            .exits(125);
        assert!(!made(world));
    }

    fn a_socket_and_a_program_at_once_are_a_mistake(world: &Fixture) {
        let both = session(
            world,
            &socket(world),
            &["--approver-program", "/bin/true"],
            "touch made",
        );
        let both = both.output().exits(125);
        assert!(both.err().contains("cannot be used with"), "{}", both.err());
    }

    fn what_a_question_hides_is_shown_escaped(world: &Fixture) {
        let (running, id) = asking(world, "touch made; : '\u{1b}[2J\u{202e}'");
        let shown = approvals(world, &["show", &id]).output().ok();
        assert!(
            shown.contains("\\u{1b}[2J\\u{202e}") && shown.contains("WARNING"),
            "{shown}"
        );
        assert!(!shown.contains(['\u{1b}', '\u{202e}']), "{shown}");
        approvals(world, &["deny", &id]).output().ok();
        running.wait().exits(126);
    }

    fn nobody_answers_where_nobody_asks(world: &Fixture) {
        for words in [&["list"][..], &["show", "x"], &["approve", "x"], &["deny", "x"]] {
            let run = approvals(world, words).output().exits(125);
            assert!(run.err().contains("no session asks"), "{}", run.err());
        }
    }

    fn a_file_change_is_shown_whole_and_approved_from_another_process(world: &Fixture) {
        let before = Snapshot::of(world);
        let config = config(world, "tools: {write_file: {approval: required}}\n");
        let place = socket(world);
        let content = "line\n".repeat(200);
        let arguments = json!({"path": "made", "content": content}).to_string();
        let named = [
            "--config",
            config.to_str().unwrap(),
            "--approvals-socket",
            place.to_str().unwrap(),
        ];
        let call = || world.stockade(&[&["call"], &named[..], &["write_file", &arguments]].concat());
        let (running, id) = asked(world, call());
        let shown = approvals(world, &["show", &id]).output().ok();
        assert_eq!(shown.matches(" line\n").count(), 200, "{shown}");
        assert!(!shown.contains("\n\n") && shown.ends_with('\n'), "{shown}");
        approvals(world, &["deny", &id]).output().ok();
        running.wait().exits(126);
        assert!(!made(world));
        let (running, id) = asked(world, call());
        approve(world, &id, &[]);
        running.wait().ok();
        assert_eq!(fs::read_to_string(world.workspace().join("made")).unwrap(), content);
        assert_nothing_left_behind(&before, world);
    }

    fn commands_that_run_unconfined_are_not_asked_about_over_a_socket(world: &Fixture) {
        let text = "extends: [system]\nsandbox: {require_os_sandbox: false, protect: none}\n";
        let config = world.write(world.base().join("agent.yaml"), text);
        let run = |more: &[&str]| {
            let named = ["run", "--backend", "landlock", "--config", config.to_str().unwrap()];
            without(world, "landlock", &[&named[..], more, &["-c", "touch made"]].concat()).output()
        };
        let socket = socket(world);
        let refused = run(&["--approvals-socket", socket.to_str().unwrap()]).exits(125);
        assert!(refused.err().contains("could approve themselves"), "{}", refused.err());
        assert!(!made(world) && !socket.exists());
        run(&["--mode", "approve_all"]).ok();
        assert!(made(world));
    }

    /// Reads the token and asks for the list with it, or with one that it makes up.
    const THIEF: &str = "
import json, socket, sys
place = sys.argv[1]
try:
    token = open(place + '.token').read()
    print('the token was read')
except OSError:
    token = '0' * 64
try:
    s = socket.socket(socket.AF_UNIX)
    s.connect(place)
    s.sendall((json.dumps({'token': token, 'request': 'list'}) + '\\n').encode())
    print(s.makefile().readline())
except OSError as error:
    print('not connected:', error)
";

    fn a_command_reaches_neither_the_token_nor_an_answer(world: &Fixture) {
        let thief = world.write("thief.py", THIEF);
        let (thief, place) = (thief.to_str().unwrap().to_owned(), socket(world));
        let place = place.to_str().unwrap();
        for sockets in ["all", "none"] {
            let shell = format!("shell: {{unix_sockets: {sockets}, rules: [{{pattern: python3, approval: none}}]}}\n");
            let config = config(world, &shell);
            let named = ["--config", config.to_str().unwrap(), "--approvals-socket", place];
            let inside = format!("python3 {thief} {place}");
            let run = world
                .stockade(&[&["run"], &named[..], &["-c", &inside]].concat())
                .output()
                .ok();
            assert!(!run.contains("the token was read"), "{run}");
            assert!(
                run.contains("not connected") || run.contains("the token is another one"),
                "{run}"
            );
        }
        // Whoever can read the token is listened to.
        let (running, id) = asking(world, "touch made");
        let outside = world
            .bare("/usr/bin/python3")
            .args([thief.as_str(), place])
            .output()
            .ok();
        assert!(
            outside.contains("the token was read") && outside.contains(&id),
            "{outside}"
        );
        approvals(world, &["deny", &id]).output().ok();
        running.wait().exits(126);
    }

    #[test]
    fn another_user_is_not_listened_to_even_with_the_token() {
        let Some(world) = crate::common::world_with(Actor::User, crate::common::Backend::Landlock, &[]) else {
            return;
        };
        if Actor::invoker() != Actor::Root {
            return;
        }
        let (running, id) = asking(&world, "touch made");
        let token = fs::read_to_string(world.base().join("run/asks.token")).unwrap();
        // Root may connect, and reads the token.
        let mut stream = UnixStream::connect(socket(&world)).unwrap();
        let line = json!({"token": token, "request": {"approve": {"id": id}}});
        let _closed = stream.write_all(format!("{line}\n").as_bytes());
        let mut told = String::new();
        BufReader::new(stream).read_line(&mut told).unwrap();
        assert!(told.contains("another user's"), "{told}");
        let args = [
            "approvals",
            "--socket",
            socket(&world).to_str().unwrap(),
            "approve",
            &id,
        ]
        .map(str::to_owned);
        let as_root = Invocation::new(world.binary(), None, world.base()).args(args);
        let refused = as_root.env("HOME", "/root").output().exits(125);
        assert!(refused.err().contains("belongs to another user"), "{}", refused.err());
        approve(&world, &id, &[]);
        running.wait().ok();
        assert!(made(&world));
    }

    #[test]
    fn another_user_cannot_come_to_the_socket() {
        let Some(world) = crate::common::world_with(Actor::invoker(), crate::common::Backend::Landlock, &[]) else {
            return;
        };
        if Actor::invoker() != Actor::Root {
            return;
        }
        let open = world.base().join("open");
        fs::create_dir(&open).unwrap();
        let (socket, token) = (open.join("asks"), open.join("asks.token"));
        let running = session(&world, &socket, &[], "touch made").spawn();
        eventually("the token", || token.exists());
        let list = ["approvals", "--socket", socket.to_str().unwrap(), "list"];
        let other = Invocation::new(world.binary(), Some(Actor::User.uid()), world.base()).args(list);
        let refused = other.env("HOME", "/").output().exits(125);
        assert!(refused.err().contains("Permission denied"), "{}", refused.err());
        eventually("an answer to the session's own user", || {
            world.stockade(&list).output().status.success()
        });
        running.signal(Signal::SIGTERM);
        running.wait().exits(143);
    }
}
