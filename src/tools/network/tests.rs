//! The gate of a command, with a list, a controller and somebody who answers.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::bounds::{Bound, Bounds, By, SETTING};
use super::gate::HostGate;
use super::log::Log;
use super::question::{About, Asker};
use super::{NetworkUse, Tried, TriedResult};
use crate::approval::{
    ApprovalDecision, ApprovalRequest, Approver, ApproverError, Controller, Presentation, Remember, TerminalApprover,
};
use crate::confine::io::Pause;
use crate::policy::{Destination, Host, HostList, HostRule, Mode, Network, Origin};
use crate::proxy::{
    Attempt, AttemptResult, ConnectRequest, End, Failure, Gate, HelloError, Protocol, Refusal, Subject, TunnelContent,
    Verdict,
};
use crate::tools::deciding::Deciding;

const CLIENT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 40_000);

fn list(free: &[&str], ask: bool) -> HostList {
    let origin = Origin::Builtin("a test");
    let rules = free
        .iter()
        .map(|text| HostRule::free(Destination::parse(text).unwrap(), origin.clone()));
    HostList::new(rules.chain(ask.then(|| HostList::ask_for_others(origin.clone()))))
}

fn about(digest: u8) -> About {
    About {
        call: None,
        tool_name: "shell".to_owned(),
        command: "npm install".to_owned(),
        caller: None,
        digest: [digest; 32],
        bounds: Bounds::default(),
    }
}

fn wanted(host: &str, port: u16) -> ConnectRequest {
    ConnectRequest {
        host: Host::parse(host).unwrap(),
        port,
        protocol: Protocol::Connect,
        client: CLIENT,
    }
}

/// Somebody who says what the test says, when it says so.
struct Person {
    asked: Arc<AtomicUsize>,
    answers: Arc<Mutex<Receiver<ApprovalDecision>>>,
}

impl Approver for Person {
    fn ask(&mut self, _: &ApprovalRequest, _: &Presentation) -> Result<ApprovalDecision, ApproverError> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let answers = self.answers.lock().unwrap();
        answers
            .recv()
            .map_err(|_| ApproverError::NoDecision("the person left".to_owned()))
    }
}

struct Fixture {
    asker: Asker,
    asked: Arc<AtomicUsize>,
    answers: Sender<ApprovalDecision>,
}

fn world(mode: Mode) -> Fixture {
    let asked = Arc::new(AtomicUsize::new(0));
    let (answers, taken) = channel();
    let taken = Arc::new(Mutex::new(taken));
    let controller = Controller::new(mode, Box::new(TerminalApprover::sized_by(|_| None)));
    let mut deciding = Deciding::by(Arc::new(controller));
    let counted = Arc::clone(&asked);
    deciding.extra_approver = Some(Arc::new(move || {
        let person = Person {
            asked: Arc::clone(&counted),
            answers: Arc::clone(&taken),
        };
        Ok((Box::new(person) as Box<dyn Approver + Send>, None))
    }));
    Fixture {
        asker: Asker {
            deciding,
            hold: Pause::default(),
        },
        asked,
        answers,
    }
}

fn says(approved: bool, remember: Remember) -> ApprovalDecision {
    ApprovalDecision {
        approved,
        note: None,
        remember,
    }
}

fn gate(list: HostList, digest: u8, asker: Option<&Asker>) -> HostGate {
    HostGate::new(list, about(digest), asker.cloned(), Arc::new(|_| None), None)
}

#[tokio::test]
async fn what_is_listed_is_let_through_and_the_rest_refused_without_a_question() {
    let Fixture { asker, asked, .. } = world(Mode::Interactive);
    let gate = gate(list(&["*.example.org:443", "10.0.0.0/8:22"], false), 1, Some(&asker));
    assert_eq!(gate.decide(wanted("a.example.org", 443)).await, Verdict::Allowed);
    for (host, port) in [("a.example.org", 80), ("example.org", 443), ("192.0.2.1", 443)] {
        let verdict = gate.decide(wanted(host, port)).await;
        assert!(
            matches!(verdict, Verdict::Refused(Refusal::NotListed(_))),
            "{host}:{port}"
        );
    }
    assert!(gate.reaches("10.1.2.3".parse().unwrap(), 22));
    assert!(!gate.reaches("10.1.2.3".parse().unwrap(), 443));
    assert!(!gate.reaches("127.0.0.1".parse().unwrap(), 22));
    assert_eq!(asked.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn connections_to_one_host_and_port_share_one_question_and_its_answer() {
    let Fixture { asker, asked, answers } = world(Mode::Interactive);
    let gate = gate(list(&[], true), 1, Some(&asker));
    let both = async {
        tokio::join!(
            gate.decide(wanted("a.example.org", 443)),
            gate.decide(wanted("A.example.org.", 443))
        )
    };
    answers.send(says(true, Remember::None)).unwrap();
    assert_eq!(both.await, (Verdict::Allowed, Verdict::Allowed));
    assert_eq!(gate.decide(wanted("a.example.org", 443)).await, Verdict::Allowed);
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    answers.send(says(false, Remember::None)).unwrap();
    for _ in 0..2 {
        let other = gate.decide(wanted("a.example.org", 80)).await;
        assert_eq!(other, Verdict::Refused(Refusal::Denied));
    }
    assert_eq!(asked.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_yes_for_the_session_holds_for_later_commands_of_the_same_profile_alone() {
    let Fixture { asker, asked, answers } = world(Mode::Interactive);
    answers.send(says(true, Remember::Session)).unwrap();
    let first = gate(list(&[], true), 1, Some(&asker));
    assert_eq!(first.decide(wanted("a.example.org", 443)).await, Verdict::Allowed);
    let second = gate(list(&[], true), 1, Some(&asker));
    assert_eq!(second.decide(wanted("a.example.org", 443)).await, Verdict::Allowed);
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    answers.send(says(false, Remember::None)).unwrap();
    let third = gate(list(&[], true), 2, Some(&asker));
    let verdict = third.decide(wanted("a.example.org", 443)).await;
    assert_eq!(verdict, Verdict::Refused(Refusal::Denied));
}

#[tokio::test]
async fn an_address_is_reached_by_number_alone_and_never_by_a_star_or_a_yes() {
    let Fixture { asker, answers, .. } = world(Mode::Interactive);
    let own = "93.184.215.2";
    let reaches = |list: HostList| gate(list, 1, None).reaches(own.parse().unwrap(), 80);
    assert!(!reaches(list(&["*:80"], false)));
    assert!(reaches(list(&["93.184.215.0/24:80"], false)));
    let asked = gate(list(&[], true), 1, Some(&asker));
    answers.send(says(true, Remember::Session)).unwrap();
    assert_eq!(asked.decide(wanted(own, 80)).await, Verdict::Allowed);
    assert!(!asked.reaches(own.parse().unwrap(), 80));
}

#[tokio::test]
async fn a_yes_for_the_session_that_comes_too_late_is_not_remembered() {
    let Fixture { asker, asked, answers } = world(Mode::Interactive);
    let first = gate(list(&[], true), 1, Some(&asker)).waiting(Duration::from_millis(50));
    let verdict = first.decide(wanted("a.example.org", 443)).await;
    assert_eq!(verdict, Verdict::Refused(Refusal::Unanswered));
    answers.send(says(true, Remember::Session)).unwrap();
    // The answer is taken on a thread of its own.
    while Arc::strong_count(&asked) > 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(asker.deciding.controller.approvals(), []);
    answers.send(says(false, Remember::None)).unwrap();
    let second = gate(list(&[], true), 1, Some(&asker));
    let verdict = second.decide(wanted("a.example.org", 443)).await;
    assert_eq!(verdict, Verdict::Refused(Refusal::Denied));
}

#[tokio::test]
async fn modes_decide_without_asking_anybody() {
    for (mode, verdict) in [
        (Mode::ApproveAll, Verdict::Allowed),
        (Mode::Strict, Verdict::Refused(Refusal::Denied)),
    ] {
        let Fixture { asker, asked, .. } = world(mode);
        let gate = gate(list(&[], true), 1, Some(&asker));
        assert_eq!(gate.decide(wanted("a.example.org", 443)).await, verdict);
        assert_eq!(asked.load(Ordering::SeqCst), 0);
    }
}

#[tokio::test]
async fn no_answer_in_time_is_a_refusal_and_so_is_a_later_yes() {
    let Fixture { asker, answers, .. } = world(Mode::Interactive);
    let gate = gate(list(&[], true), 1, Some(&asker)).waiting(Duration::from_millis(50));
    for _ in 0..2 {
        let verdict = gate.decide(wanted("a.example.org", 443)).await;
        assert_eq!(verdict, Verdict::Refused(Refusal::Unanswered));
        let _late = answers.send(says(true, Remember::None));
    }
}

#[tokio::test]
async fn the_last_client_to_leave_takes_its_question_along() {
    let Fixture { asker, asked, answers } = world(Mode::Interactive);
    let gate = gate(list(&[], true), 1, Some(&asker));
    let put = async |number: usize| {
        while asked.load(Ordering::SeqCst) < number {
            tokio::task::yield_now().await;
        }
    };
    {
        let stays = gate.decide(wanted("a.example.org", 443));
        let leaves = gate.decide(wanted("a.example.org", 443));
        tokio::select! {
            verdict = stays => panic!("{verdict:?}"),
            _left = async { tokio::select! { _verdict = leaves => (), () = put(1) => () } } => {}
        }
    }
    // The yes to the question that nobody waits for is the answer to no other one.
    answers.send(says(true, Remember::Session)).unwrap();
    answers.send(says(false, Remember::None)).unwrap();
    let verdict = gate.decide(wanted("a.example.org", 443)).await;
    assert_eq!(verdict, Verdict::Refused(Refusal::Denied));
    assert_eq!(asked.load(Ordering::SeqCst), 2);
    assert_eq!(asker.deciding.controller.approvals(), []);
}

#[tokio::test]
async fn a_question_stays_open_while_one_client_waits() {
    for the_first_stays in [true, false] {
        let Fixture { asker, asked, answers } = world(Mode::Interactive);
        let gate = gate(list(&[], true), 1, Some(&asker));
        let [mut first, mut second] = [(); 2].map(|()| gate.decide(wanted("a.example.org", 443)));
        tokio::select! {
            // In this order both wait by the time anybody is asked.
            biased;
            verdict = &mut first => panic!("{verdict:?}"),
            verdict = &mut second => panic!("{verdict:?}"),
            () = async { while asked.load(Ordering::SeqCst) < 1 { tokio::task::yield_now().await } } => {}
        }
        let (stays, leaves) = if the_first_stays {
            (first, second)
        } else {
            (second, first)
        };
        drop(leaves);
        answers.send(says(true, Remember::None)).unwrap();
        assert_eq!(stays.await, Verdict::Allowed);
        assert_eq!(asked.load(Ordering::SeqCst), 1);
    }
}

#[tokio::test]
async fn clients_that_leave_cannot_ask_without_end() {
    let Fixture {
        asker,
        asked,
        answers: _open,
    } = world(Mode::Interactive);
    let gate = gate(list(&[], true), 1, Some(&asker));
    for number in 1..=32 {
        tokio::select! {
            verdict = gate.decide(wanted("a.example.org", 443)) => panic!("{verdict:?}"),
            () = tokio::task::yield_now() => {}
        }
        assert!(asked.load(Ordering::SeqCst) <= number);
    }
    let verdict = gate.decide(wanted("a.example.org", 443)).await;
    assert!(matches!(verdict, Verdict::Refused(Refusal::Other(_))), "{verdict:?}");
}

#[tokio::test]
async fn nobody_to_ask_is_a_refusal_that_says_so() {
    let gate = gate(list(&[], true), 1, None);
    let verdict = gate.decide(wanted("a.example.org", 443)).await;
    let Verdict::Refused(why @ Refusal::Other(_)) = verdict else {
        panic!("{verdict:?}");
    };
    assert!(why.to_string().contains("nobody"), "{why}");
}

#[tokio::test]
async fn a_command_asks_about_so_many_hosts_and_no_more() {
    let Fixture { asker, asked, answers } = world(Mode::Interactive);
    let gate = gate(list(&[], true), 1, Some(&asker));
    for number in 0..40 {
        let _taken = answers.send(says(true, Remember::None));
        let verdict = gate.decide(wanted(&format!("h{number}.example"), 443)).await;
        assert_eq!(verdict == Verdict::Allowed, number < 32, "{number}: {verdict:?}");
    }
    assert_eq!(asked.load(Ordering::SeqCst), 32);
}

#[tokio::test]
async fn a_command_that_has_ended_asks_nothing() {
    let Fixture { asker, asked, .. } = world(Mode::Interactive);
    let gate = gate(list(&[], true), 1, Some(&asker));
    gate.end();
    let verdict = gate.decide(wanted("a.example.org", 443)).await;
    assert!(matches!(verdict, Verdict::Refused(_)));
    assert_eq!(asked.load(Ordering::SeqCst), 0);
}

fn attempt(host: &str, outcome: AttemptResult, down: u64) -> Attempt {
    Attempt {
        subject: Subject::Destination {
            host: Host::parse(host).unwrap(),
            port: 443,
        },
        protocol: Some(Protocol::Connect),
        client: CLIENT,
        outcome,
        address: None,
        content: TunnelContent::Nothing,
        up: 0,
        down,
        duration: Duration::ZERO,
    }
}

/// An attempt that reached its host and moved so much.
fn reached(host: &str, outcome: AttemptResult, up: u64) -> Attempt {
    Attempt {
        address: Some(CLIENT),
        up,
        ..attempt(host, outcome, 0)
    }
}

/// The entries about a host.
fn about_host<'a>(told: &'a NetworkUse, host: &str) -> Vec<&'a Tried> {
    let about = |tried: &&Tried| tried.host.as_deref() == Some(host);
    told.attempts.iter().filter(about).collect()
}

fn times(told: &NetworkUse) -> u64 {
    told.attempts.iter().map(|tried| tried.times).sum()
}

#[test]
fn a_flood_of_attempts_that_reach_nothing_pushes_out_none_that_reached_something() {
    let mut log = Log::default();
    let flood = |log: &mut Log, letter| {
        for number in 0..1_000 {
            let failed = [
                AttemptResult::Refused(Refusal::Denied),
                AttemptResult::Failed(Failure::NoAddress),
            ];
            log.add(&attempt(
                &format!("{letter}{number}.example"),
                failed[number % 2].clone(),
                0,
            ));
        }
    };
    flood(&mut log, 'h');
    for number in 0..300 {
        // As little as there can be.
        log.add(&reached(
            &format!("real{number}.example"),
            AttemptResult::Passed(End::Closed),
            0,
        ));
    }
    flood(&mut log, 'g');
    let told = log.summary();
    let passed = told.attempts.iter().filter(|tried| tried.result == TriedResult::Passed);
    assert_eq!((passed.count(), told.attempts.len()), (300, 500));
    assert_eq!((told.more_reached, told.more_unreached), (0, 1_800));
}

#[test]
fn a_flood_of_ends_at_one_place_is_one_entry_and_pushes_out_no_other_place() {
    let mut log = Log::default();
    log.add(&reached("real.example", AttemptResult::Passed(End::Closed), 7));
    for number in 0..5_000 {
        // The client chooses the name in its hello, and so the words.
        let named = HelloError::Differs(format!("n{number}.example"));
        log.add(&reached("open.example", AttemptResult::Refused(named.into()), 1_000));
    }
    log.add(&reached("open.example", AttemptResult::Passed(End::Closed), 50));
    let told = log.summary();
    assert_eq!((told.more_reached, times(&told), told.up), (0, 5_002, 5_000_057));
    let [real] = about_host(&told, "real.example")[..] else {
        panic!("{:?}", about_host(&told, "real.example"));
    };
    assert_eq!(
        (real.result, real.up, real.why.as_str()),
        (TriedResult::Passed, 7, "closed")
    );
    let [open] = about_host(&told, "open.example")[..] else {
        panic!("{} entries", about_host(&told, "open.example").len());
    };
    assert_eq!(
        (open.result, open.up, open.times),
        (TriedResult::Passed, 5_000_050, 5_001)
    );
}

#[test]
fn of_too_many_places_those_that_moved_most_are_told_of_and_the_others_counted() {
    let mut log = Log::default();
    log.add(&reached(
        "much.example",
        AttemptResult::Refused(HelloError::Unreadable.into()),
        1 << 30,
    ));
    for number in 0..1_500 {
        let outcome = AttemptResult::Passed(End::Closed);
        log.add(&reached(&format!("h{number}.example"), outcome, 100));
    }
    let told = log.summary();
    assert_eq!(
        (told.attempts.len(), told.more_reached, times(&told)),
        (1_000, 501, 1_000)
    );
    assert_eq!(about_host(&told, "much.example").len(), 1);
    assert_eq!(told.up, (1 << 30) + 150_000);
    // A person is told that it is not all, in few lines.
    let (lines, listed) = (told.messages(), told.listed());
    assert!(lines.iter().any(|line| line.starts_with("501 more")), "{lines:?}");
    assert_eq!(listed.len(), 202);
    assert!(listed[200].starts_with("800 more"), "{}", listed[200]);
}

#[test]
fn like_attempts_are_one_entry_and_a_refusal_says_what_would_allow_it() {
    let mut log = Log::default();
    let refused = || {
        attempt(
            "a.example",
            AttemptResult::Refused(Refusal::NotListed("shell.network.allow".into())),
            0,
        )
    };
    assert!(log.add(&refused()).is_some());
    assert!(log.add(&refused()).is_none());
    let lines = log.summary().messages();
    let [line] = lines.as_slice() else {
        panic!("{lines:?}");
    };
    assert!(line.contains("a.example:443 is not in the list of hosts"), "{line}");
    assert!(
        line.contains("(2 times)") && line.contains("`allow: [\"a.example:443\"]`"),
        "{line}"
    );
}

/// What a ceiling gives, whose file has a hostile name.
fn ceiling(network: Network) -> Bound {
    let file = Arc::new(PathBuf::from("/etc/c\r\n\u{e9}.yaml"));
    Bound {
        by: By::Ceiling(Arc::clone(&file), Some(Origin::File { file, line: 3 })),
        network,
    }
}

fn flag(network: Network) -> Bound {
    Bound { by: By::Flag, network }
}

/// What a person is told of a place that a gate with this list and these bounds refuses, and nobody is asked.
async fn refused(list: HostList, bounds: Vec<Bound>, host: &str) -> String {
    let about = About {
        bounds: Bounds(bounds),
        ..about(1)
    };
    let gate = HostGate::new(list, about, None, Arc::new(|_| None), None);
    let Verdict::Refused(why) = gate.decide(wanted(host, 443)).await else {
        panic!("{host} was let through");
    };
    let mut log = Log::default();
    log.add(&attempt(host, AttemptResult::Refused(why), 0)).unwrap()
}

const BY_THE_CONFIG: &str = "in the `network` that holds for this command";
const NOT_ALONE: &str = "; no change to the config alone would allow it";

#[tokio::test]
async fn a_refusal_names_the_config_where_nothing_else_stands_in_the_way() {
    for bounds in [
        vec![],
        vec![ceiling(Network::Full), flag(Network::Full)],
        vec![ceiling(Network::Hosts(list(&["*.example"], false)))],
    ] {
        for ask in [false, true] {
            let told = refused(list(&["b.example"], ask), bounds.clone(), "a.example").await;
            assert!(told.contains(BY_THE_CONFIG) && !told.contains(NOT_ALONE), "{told}");
        }
    }
}

#[tokio::test]
async fn a_refusal_names_the_ceiling_or_the_flag_that_stands_in_the_way() {
    let other = || Network::Hosts(list(&["b.example"], false));
    for (bounds, setting) in [
        (
            vec![ceiling(other())],
            "(shell.network.allow of the ceiling /etc/c\\r\\n\u{e9}.yaml:3)",
        ),
        (vec![ceiling(Network::Full), flag(other())], "(--net)"),
        (vec![flag(Network::Off)], "(--net off)"),
    ] {
        let told = refused(list(&["b.example"], false), bounds, "a.example").await;
        assert!(
            told.contains(setting) && told.ends_with(NOT_ALONE) && !told.contains(BY_THE_CONFIG),
            "{told}"
        );
    }
}

#[tokio::test]
async fn a_ceiling_that_asks_stands_in_the_way_of_a_config_that_would_not() {
    let asks = || ceiling(Network::Hosts(list(&[], true)));
    let told = refused(list(&[], true), vec![asks()], "a.example").await;
    assert!(
        told.contains("nobody could be asked") && told.ends_with(NOT_ALONE),
        "{told}"
    );
    let about = About {
        bounds: Bounds(vec![asks()]),
        ..about(1)
    };
    let question = |about: &About| super::question::request(about, &Host::parse("a.example").unwrap(), 443, None);
    assert_eq!(
        question(&about).allowed_by,
        "no change to the config alone would allow it"
    );
    let free = question(&super::tests::about(1));
    assert!(
        free.allowed_by.contains("in the config would allow it"),
        "{}",
        free.allowed_by
    );
}

#[test]
fn what_somebody_says_of_a_question_is_not_taken_for_a_bound() {
    let why = "is not in the list of hosts, and nobody could be asked: (--net)";
    let told = attempt("a.example", AttemptResult::Refused(Refusal::Other(why.into())), 0);
    let line = Log::default().add(&told).unwrap();
    assert!(line.contains(BY_THE_CONFIG) && !line.contains(NOT_ALONE), "{line}");
}

#[test]
fn who_wants_a_loopback_is_told_whose_it_would_be() {
    let told = |host: &str| {
        let mut log = Log::default();
        let refused = Refusal::NotListed(SETTING.into());
        log.add(&reached(host, AttemptResult::Refused(refused), 0));
        log.summary().messages().remove(0)
    };
    for (host, rule) in [
        ("127.0.0.1", "`127.0.0.1:443`"),
        ("localhost", "`127.0.0.1:443`"),
        ("127.9.9.9", "`127.9.9.9:443`"),
    ] {
        let line = told(host);
        assert!(line.contains(rule) && line.contains("on this machine"), "{line}");
        assert!(!line.contains("--net"), "{line}");
    }
    assert!(told("a.example").contains("`--net a.example:443`"));
}
