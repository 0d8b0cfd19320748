//! The terminal approver on a real pseudo-terminal: a child of its own session asks, the test types.

mod dialogue;
mod queue;

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use nix::pty::openpty;
use nix::sys::termios::{LocalFlags, tcgetattr};

use super::*;

const CHILD: &str = "approval::terminal_tests::child_that_asks";
/// A busy machine must not reach it: it ends a hang.
const PATIENCE: Duration = Duration::from_mins(4);
/// Put behind what the child has written, to know when all of that was read.
const MARK: &str = "\0all of it\0";
const ROWS: u16 = 11;
/// The lines of the diff in a request with `ASK_LONG`.
const LONG: usize = 100;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

#[test]
#[ignore = "started by the other tests, on a terminal of its own"]
fn child_that_asks() {
    let threads = number("ASK_THREADS").unwrap_or(1);
    let threads: Vec<_> = (0..threads).map(|_| std::thread::spawn(ask)).collect();
    for thread in threads {
        thread.join().unwrap();
    }
}

fn ask() {
    let controller = Controller::new(crate::policy::Mode::Interactive, Box::new(approver()));
    let request = request();
    for _ in 0..number("ASK_COUNT").unwrap_or(1) {
        let verdict = controller.decide(&request);
        let decision = verdict.decision;
        let note = decision.note.map(|note| format!(": {note}")).unwrap_or_default();
        println!(
            "\nVERDICT {} {:?} {:?}{note}",
            decision.approved, decision.remember, verdict.by
        );
    }
}

fn approver() -> TerminalApprover {
    let mut approver = TerminalApprover::sized_by(|_| Some((80, ROWS)));
    if let Some(millis) = number("ASK_TIMEOUT_MS") {
        approver = approver.with_timeout(Duration::from_millis(millis));
    }
    if let Some(when) = std::env::var_os("ASK_CANCEL_WHEN_EXISTS") {
        let (cancellable, handle) = approver.cancellable().unwrap();
        approver = cancellable;
        let there = move || std::path::Path::new(&when).exists();
        let cancel = move || handle.clone().cancel();
        if there() {
            cancel();
        } else {
            std::thread::spawn(move || {
                while !there() {
                    std::thread::sleep(Duration::from_millis(5));
                }
                cancel();
            });
        }
    }
    approver
}

fn request() -> ApprovalRequest {
    let answer = match std::env::var_os("ASK_APPROVER_ONLY") {
        Some(_) => AnswerOf::ApproverOnly,
        None => AnswerOf::Anyone,
    };
    let presentation = match std::env::var_os("ASK_LONG") {
        Some(_) => {
            let lines = (1..=LONG).map(|number| format!("+change {number}"));
            Presentation::Diff(lines.collect::<Vec<_>>().join("\n"))
        }
        None => Presentation::Text("make".to_owned()),
    };
    let scopes = match std::env::var_os("ASK_SCOPES") {
        Some(_) => vec!["make, whatever it is given", "every make"],
        None => Vec::new(),
    };
    let scope = |covers: &str| SessionScope {
        covers: covers.to_owned(),
        key: covers.as_bytes().to_vec(),
    };
    ApprovalRequest {
        answer,
        scopes: scopes.into_iter().map(scope).collect(),
        description: "run make".to_owned(),
        payload: b"make".to_vec(),
        presentation: Lazy::new(move || Ok(presentation.clone())),
        allowed_by: "a rule would allow it".to_owned(),
        why: vec!["agent.yaml:3:5: the default asks".to_owned()],
        ..ApprovalRequest::new("shell", "run a command")
    }
}

/// A child on a pseudo-terminal, and what it shows there.
struct Session {
    child: Child,
    master: File,
    slave: OwnedFd,
    shown: String,
    /// How much of it was waited for.
    position: usize,
    output: Receiver<Vec<u8>>,
}

#[expect(
    clippy::disallowed_methods,
    reason = "a test starts itself again on a terminal of its own"
)]
fn start(typed_ahead: &str, wrap: &str, envs: &[(&str, &str)]) -> Session {
    let pty = openpty(None, None).unwrap();
    let mut master = File::from(pty.master);
    master.write_all(typed_ahead.as_bytes()).unwrap();
    let mut command = Command::new("setsid");
    command.args(["--ctty", "--wait"]);
    if wrap.is_empty() {
        command.arg(std::env::current_exe().unwrap());
    } else {
        command.args(["bash", "-c", wrap]).arg(std::env::current_exe().unwrap());
    }
    let child = command
        .args([CHILD, "--exact", "--ignored", "--nocapture"])
        .env("TERM", "xterm")
        .env("LC_ALL", "C")
        .env_remove("NO_COLOR")
        .envs(envs.iter().copied())
        .stdin(Stdio::from(pty.slave.try_clone().unwrap()))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (sender, output) = channel();
    let mut reader = master.try_clone().unwrap();
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(count) = reader.read(&mut buffer) {
            if count == 0 || sender.send(buffer[..count].to_vec()).is_err() {
                break;
            }
        }
    });
    Session {
        child,
        master,
        slave: pty.slave,
        shown: String::new(),
        position: 0,
        output,
    }
}

impl Session {
    /// Waits until the prompt stands on the screen once more.
    fn prompt(&mut self, count: usize) -> &mut Self {
        self.read_until("prompt", |session| session.shown.matches("approve? [").count() >= count)
    }

    /// Waits until the text is shown, behind what was waited for before.
    fn expect(&mut self, text: &str) -> &mut Self {
        self.read_until(text, |session| {
            let found = session.shown[session.position..].find(text);
            session.position += found.map_or(0, |at| at + text.len());
            found.is_some()
        })
    }

    /// Whether the text is shown before the child ends.
    fn shows(&mut self, text: &str) -> bool {
        let mut ended = false;
        self.read_until(text, |session| {
            // What was written before the end is read before the mark.
            if !ended && session.child.try_wait().unwrap().is_some() {
                ended = true;
                session.mark();
            }
            session.shown.contains(text) || session.shown.contains(MARK)
        });
        self.shown.contains(text)
    }

    /// Writes the mark. The terminal may have been stopped: Ctrl-Q goes first.
    fn mark(&mut self) {
        self.type_in("\x11");
        File::from(self.slave.try_clone().unwrap())
            .write_all(MARK.as_bytes())
            .unwrap();
    }

    fn read_until(&mut self, what: &str, mut is_there: impl FnMut(&mut Self) -> bool) -> &mut Self {
        let start = Instant::now();
        while !is_there(self) {
            assert!(start.elapsed() < PATIENCE, "no {what}: {:?}", self.shown);
            match self.output.recv_timeout(Duration::from_millis(100)) {
                Ok(bytes) => self.shown.push_str(&String::from_utf8_lossy(&bytes)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => panic!("the terminal closed: {:?}", self.shown),
            }
        }
        self
    }

    fn type_in(&mut self, text: &str) -> &mut Self {
        self.master.write_all(text.as_bytes()).unwrap();
        self
    }

    /// Says no without a reason.
    fn deny(&mut self) -> &mut Self {
        self.type_in("n").expect("reason (empty: none): ").type_in("\n")
    }

    fn still_asks(&mut self) -> &mut Self {
        std::thread::sleep(Duration::from_millis(300));
        assert!(
            self.child.try_wait().unwrap().is_none(),
            "it did not wait for an answer"
        );
        self
    }

    /// The decisions that the child printed.
    fn verdicts(self) -> Vec<String> {
        self.end().0
    }

    /// The same, and everything that was shown.
    fn end(mut self) -> (Vec<String>, String) {
        let start = Instant::now();
        while self.child.try_wait().unwrap().is_none() {
            if start.elapsed() > PATIENCE {
                let _gone = self.child.kill();
                panic!("the child hangs: {:?}", self.shown);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let mut text = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        let settings = tcgetattr(&self.slave).unwrap();
        assert!(
            settings
                .local_flags
                .contains(LocalFlags::ISIG | LocalFlags::ICANON | LocalFlags::ECHO),
            "the terminal was not put back"
        );
        if !self.shown.contains(MARK) {
            self.mark();
            self.read_until("end of the output", |session| session.shown.contains(MARK));
        }
        let verdicts = text.lines().filter_map(|line| line.split_once("VERDICT "));
        (verdicts.map(|(_, verdict)| verdict.to_owned()).collect(), self.shown)
    }
}

#[test]
fn each_key_gives_its_decision_without_enter() {
    for (typed, verdict) in [
        ("y", "true None Approver"),
        ("y\n", "true None Approver"),
        ("yes\n", "true None Approver"),
        ("s", "true Session Approver"),
        ("n no\n", "false None Approver: no"),
    ] {
        let mut session = start("", "", &[]);
        session.prompt(1).type_in(typed);
        assert_eq!(session.verdicts(), [verdict], "{typed:?}");
    }
    let mut session = start("", "", &[]);
    session.prompt(1).deny();
    assert_eq!(session.verdicts(), ["false None Approver"]);
}

#[test]
fn a_yes_for_the_session_is_for_the_scope_that_is_chosen() {
    for (key, verdict) in [("1", "Session"), ("2", "Scope(0)"), ("3", "Scope(1)")] {
        let mut session = start("", "", &[("ASK_SCOPES", "1")]);
        session
            .prompt(1)
            .type_in("s")
            .expect("exactly this")
            .expect("every make");
        session.expect("which? [1/2/3] ").type_in(key);
        assert_eq!(session.verdicts(), [format!("true {verdict} Approver")], "{key}");
    }
    for key in ["4", "0", "y", "\n", "22", "\u{b2}"] {
        let mut session = start("", "", &[("ASK_SCOPES", "1")]);
        session.prompt(1).type_in("s").expect("which? [1/2/3] ").type_in(key);
        session.prompt(2).deny();
        assert_eq!(session.verdicts(), ["false None Approver"], "{key:?}");
    }
}

#[test]
fn what_was_typed_before_the_question_is_no_answer() {
    let mut session = start("y\ny\ny", "", &[]);
    session.prompt(1).still_asks().deny();
    assert_eq!(session.verdicts(), ["false None Approver"]);
}

#[test]
fn what_was_typed_before_the_second_question_is_no_answer_to_it() {
    let mut session = start("", "", &[("ASK_COUNT", "2")]);
    session.prompt(1).deny();
    session.prompt(2).still_asks().deny();
    assert_eq!(session.verdicts(), ["false None Approver", "false None Approver"]);
}

#[test]
fn what_is_no_answer_is_asked_for_again_and_denied_in_the_end() {
    let mut session = start("", "", &[]);
    for (index, typed) in ["Y", "yy", "\n", "y y", "\x1b[A", "\u{fe}"].into_iter().enumerate() {
        session.prompt(index + 1).type_in(typed).expect("Please press");
    }
    session.prompt(7).type_in("y");
    assert_eq!(session.verdicts(), ["true None Approver"]);
    let mut session = start("", "", &[]);
    for count in 1..=100 {
        session.prompt(count).type_in("x");
    }
    assert_eq!(
        session.verdicts(),
        ["false None Failure(\"the answer was not understood\")"]
    );
}

#[test]
fn end_of_input_denies() {
    let mut session = start("", "", &[]);
    session.prompt(1).type_in("\x04");
    assert_eq!(
        session.verdicts(),
        ["false None Failure(\"the terminal gave no answer (end of input)\")"]
    );
}

#[test]
fn ctrl_c_denies_the_question_and_does_not_end_the_session() {
    for key in ["\x03", "y\x03", "\x1c"] {
        let mut session = start("", "", &[("ASK_COUNT", "2")]);
        session.prompt(1).type_in(key).prompt(2).type_in("y\n");
        let denied = "false None Failure(\"the question was interrupted\")";
        assert_eq!(session.verdicts(), [denied, "true None Approver"], "{key:?}");
    }
}

#[test]
fn no_answer_in_time_denies() {
    let session = start("", "", &[("ASK_TIMEOUT_MS", "200")]);
    assert_eq!(session.verdicts(), ["false None Failure(\"no answer within 200ms\")"]);
}

#[test]
fn a_background_job_is_denied() {
    // With job control on, bash gives the child a process group that does not hold the terminal.
    let session = start("", "set -m; \"$0\" \"$@\" & wait", &[]);
    let verdicts = session.verdicts();
    assert_eq!(verdicts.len(), 1);
    assert!(verdicts[0].contains("belongs to another job"), "{verdicts:?}");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a test starts itself again without a terminal")]
fn without_a_terminal_it_is_denied() {
    // There is no timeout that would.
    let output = Command::new("setsid")
        .arg("--wait")
        .arg(std::env::current_exe().unwrap())
        .args([CHILD, "--exact", "--ignored", "--nocapture"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("VERDICT false None Failure(\"there is no terminal to ask on"),
        "{text}"
    );
}

#[test]
fn colours_are_left_out_where_no_color_says_so() {
    for (envs, coloured) in [(&[("NO_COLOR", "1")][..], false), (&[][..], true)] {
        let mut session = start("", "", envs);
        session.prompt(1).type_in("y\n");
        assert_eq!(session.shown.contains("\x1b[1m"), coloured);
        assert_eq!(session.verdicts(), ["true None Approver"]);
    }
}

const WITHDRAWN: &str = "false None Failure(\"the question was withdrawn before it was answered\")";

#[test]
fn a_question_that_is_withdrawn_is_denied_and_every_later_one_is_not_asked() {
    let dir = tempfile::tempdir().unwrap();
    let now = dir.path().join("now");
    let mut session = start(
        "",
        "",
        &[("ASK_COUNT", "3"), ("ASK_CANCEL_WHEN_EXISTS", now.to_str().unwrap())],
    );
    session.prompt(1).still_asks();
    std::fs::write(&now, "").unwrap();
    let (verdicts, shown) = session.end();
    assert_eq!(verdicts, [WITHDRAWN; 3]);
    assert_eq!(shown.matches("approve?").count(), 1);
}

#[test]
fn an_approver_that_can_be_cancelled_and_is_not_takes_an_answer() {
    let dir = tempfile::tempdir().unwrap();
    let never = dir.path().join("never");
    let mut session = start("", "", &[("ASK_CANCEL_WHEN_EXISTS", never.to_str().unwrap())]);
    session.prompt(1).still_asks().type_in("y\n");
    assert_eq!(session.verdicts(), ["true None Approver"]);
}

#[test]
fn a_yes_after_the_withdrawal_is_no_answer() {
    let dir = tempfile::tempdir().unwrap();
    let session = start(
        "y\ny\n",
        "",
        &[("ASK_CANCEL_WHEN_EXISTS", dir.path().to_str().unwrap())],
    );
    assert_eq!(session.verdicts(), [WITHDRAWN]);
}

#[test]
fn a_question_on_a_stopped_terminal_can_be_withdrawn() {
    let dir = tempfile::tempdir().unwrap();
    let now = dir.path().join("now");
    let mut session = start("", "", &[("ASK_CANCEL_WHEN_EXISTS", now.to_str().unwrap())]);
    session.prompt(1).type_in("\x13what\n").still_asks();
    std::fs::write(&now, "").unwrap();
    assert_eq!(session.verdicts(), [WITHDRAWN]);
}

#[test]
fn a_dropped_handle_withdraws_nothing_and_both_may_change_threads() {
    fn sent<T: Send + 'static>(value: T) -> T {
        std::thread::spawn(move || value).join().unwrap()
    }
    let (cancel, cancelled) = cancel::CancelHandle::new().unwrap();
    drop(sent(cancel.clone()));
    assert!(cancelled.check().is_ok());
    sent(cancel).cancel();
    assert!(matches!(cancelled.check(), Err(ApproverError::Cancelled)));
    let (approver, _handle) = sent(TerminalApprover::sized_by(|_| None).cancellable().unwrap());
    drop(approver);
}
