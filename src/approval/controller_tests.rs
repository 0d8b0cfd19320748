//! Decisions, mode by mode and answer by answer.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use super::memory::Memory;
use super::verdict::{no, yes};
use super::*;
use crate::policy::Mode;

/// Gives the same answer each time and counts the questions.
struct Scripted(fn() -> Result<ApprovalDecision, ApproverError>, Arc<AtomicUsize>);

impl Approver for Scripted {
    fn ask(&mut self, _: &ApprovalRequest, _: &Presentation) -> Result<ApprovalDecision, ApproverError> {
        self.1.fetch_add(1, Ordering::SeqCst);
        (self.0)()
    }
}

fn controller(mode: Mode, answer: fn() -> Result<ApprovalDecision, ApproverError>) -> (Controller, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    (Controller::new(mode, Box::new(Scripted(answer, asked.clone()))), asked)
}

fn request(required: bool, payload: &str) -> ApprovalRequest {
    ApprovalRequest {
        required,
        description: "run make".to_owned(),
        payload: payload.as_bytes().to_vec(),
        presentation: Lazy::new(|| Ok(Presentation::Text("make".to_owned()))),
        allowed_by: "a rule `{pattern: make, approval: none}` would allow it".to_owned(),
        ..ApprovalRequest::new("shell", "run a command")
    }
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "one of several answers, some of which are errors"
)]
fn session() -> Result<ApprovalDecision, ApproverError> {
    Ok(ApprovalDecision {
        remember: Remember::Session,
        ..yes()
    })
}

#[test]
fn the_mode_table_holds() {
    for (mode, required, approved, questions) in [
        (Mode::Interactive, true, true, 1),
        (Mode::Interactive, false, true, 1),
        (Mode::ApproveAll, true, true, 0),
        (Mode::ApproveAll, false, true, 0),
        (Mode::Strict, true, false, 0),
        (Mode::Strict, false, true, 0),
    ] {
        let (controller, asked) = controller(mode, || Ok(yes()));
        let verdict = controller.decide(&request(required, "a"));
        assert_eq!(verdict.decision.approved, approved, "{mode} {required}");
        assert_eq!(verdict.denial.is_some(), !approved);
        assert_eq!(asked.load(Ordering::SeqCst), questions, "{mode} {required}");
    }
}

#[test]
fn a_session_approval_covers_the_same_call_and_no_other() {
    let (controller, asked) = controller(Mode::Interactive, session);
    controller.decide(&request(true, "a"));
    assert_eq!(controller.decide(&request(true, "a")).by, DecidedBy::Memory);
    assert_eq!(controller.decide(&request(true, "b")).by, DecidedBy::Approver);
    let other_tool = ApprovalRequest {
        tool_name: "write_file".to_owned(),
        ..request(true, "a")
    };
    assert_eq!(controller.decide(&other_tool).by, DecidedBy::Approver);
    assert_eq!(asked.load(Ordering::SeqCst), 3);
}

#[test]
fn a_plain_yes_is_remembered_only_where_once_per_session_is_enough() {
    let (controller, asked) = controller(Mode::Interactive, || Ok(yes()));
    controller.decide(&request(true, "a"));
    controller.decide(&request(true, "a"));
    assert_eq!(asked.load(Ordering::SeqCst), 2);
    let once = ApprovalRequest {
        remember: Remember::Session,
        ..request(true, "b")
    };
    controller.decide(&once);
    controller.decide(&once);
    assert_eq!(asked.load(Ordering::SeqCst), 3);
}

#[test]
fn a_no_is_not_remembered() {
    let (controller, asked) = controller(Mode::Interactive, || {
        Ok(ApprovalDecision {
            remember: Remember::Session,
            ..no()
        })
    });
    controller.decide(&request(true, "a"));
    controller.decide(&request(true, "a"));
    assert_eq!(asked.load(Ordering::SeqCst), 2);
    assert!(controller.approvals().is_empty());
}

#[test]
fn a_revoked_approval_is_asked_about_again() {
    let (controller, asked) = controller(Mode::Interactive, session);
    controller.decide(&request(true, "a"));
    controller.decide(&request(true, "b"));
    let ids: Vec<u64> = controller.approvals().iter().map(|approval| approval.id).collect();
    assert_eq!(ids, [1, 2]);
    assert!(controller.revoke(1).is_some());
    assert!(controller.revoke(1).is_none());
    controller.decide(&request(true, "a"));
    controller.decide(&request(true, "b"));
    assert_eq!(asked.load(Ordering::SeqCst), 3);
    controller.forget_approvals();
    controller.decide(&request(true, "b"));
    assert_eq!(asked.load(Ordering::SeqCst), 4);
}

#[test]
fn the_presentation_is_built_only_when_somebody_is_asked() {
    let built = Arc::new(AtomicUsize::new(0));
    let counted = || {
        let built = built.clone();
        let presentation = Lazy::new(move || {
            built.fetch_add(1, Ordering::SeqCst);
            Ok(Presentation::Text(String::new()))
        });
        ApprovalRequest {
            presentation,
            ..request(true, "a")
        }
    };
    for mode in [Mode::Strict, Mode::ApproveAll] {
        controller(mode, session).0.decide(&counted());
    }
    assert_eq!(built.load(Ordering::SeqCst), 0);
    let (controller, _) = controller(Mode::Interactive, session);
    controller.decide(&counted());
    controller.decide(&counted());
    assert_eq!(built.load(Ordering::SeqCst), 1);
}

#[test]
fn an_approver_that_fails_denies_and_says_what_would_allow_it() {
    let (controller, _) = controller(Mode::Interactive, || Err(ApproverError::EndOfInput));
    let verdict = controller.decide(&request(false, "a"));
    assert!(!verdict.decision.approved);
    let denial = verdict.denial.unwrap();
    assert!(
        denial.starts_with("permission denied: nobody could approve shell: the terminal gave no answer"),
        "{denial}"
    );
    assert!(
        denial.ends_with("a rule `{pattern: make, approval: none}` would allow it"),
        "{denial}"
    );
}

#[test]
fn what_cannot_be_shown_is_denied_unasked() {
    let (controller, asked) = controller(Mode::Interactive, session);
    let hidden = ApprovalRequest {
        presentation: Lazy::new(|| Err("no diff".to_owned())),
        ..request(true, "a")
    };
    assert!(!controller.decide(&hidden).decision.approved);
    assert_eq!(asked.load(Ordering::SeqCst), 0);
}

#[test]
fn a_denial_tells_the_note_and_every_decision_is_in_the_history() {
    let (controller, _) = controller(Mode::Interactive, || {
        Ok(ApprovalDecision {
            note: Some("not now".to_owned()),
            ..no()
        })
    });
    let verdict = controller.decide(&request(true, "a"));
    assert_eq!(
        verdict.denial.as_deref(),
        Some("permission denied: user denied shell: not now")
    );
    assert_eq!(controller.history().len(), 1);
    assert_eq!(controller.history()[0].verdict, verdict);
    assert_eq!(controller.history()[0].fingerprint, Fingerprint::of(b"a"));
}

#[test]
fn where_only_the_approver_counts_no_mode_approves_and_nothing_is_remembered() {
    let only = || ApprovalRequest {
        answer: AnswerOf::ApproverOnly,
        remember: Remember::Session,
        ..request(false, "a")
    };
    for mode in [Mode::Strict, Mode::ApproveAll] {
        let (controller, asked) = controller(mode, session);
        assert!(!controller.decide(&only()).decision.approved, "{mode}");
        assert!(controller.decide(&request(false, "a")).decision.approved, "{mode}");
        assert_eq!(asked.load(Ordering::SeqCst), 0);
    }
    let (controller, asked) = controller(Mode::Interactive, session);
    // A yes for the session to the same words is none to this.
    assert!(controller.decide(&request(true, "a")).decision.approved);
    for _ in 0..2 {
        let verdict = controller.decide(&only());
        assert!(verdict.decision.approved);
        assert_eq!(verdict.decision.remember, Remember::None);
        assert_eq!(verdict.by, DecidedBy::Approver);
    }
    assert_eq!(asked.load(Ordering::SeqCst), 3);
}

/// The config says that a plain yes covers the path; who says "exactly this" means that.
#[test]
fn a_yes_for_less_than_the_config_says_of_a_plain_one_is_one_for_less() {
    let of = |payload: &str| ApprovalRequest {
        remember: Remember::Scope(0),
        scopes: vec![SessionScope {
            covers: "write_file of /w/a, whatever is written".to_owned(),
            key: b"path".to_vec(),
        }],
        ..request(true, payload)
    };
    for (answer, asked_again) in [(session as fn() -> _, true), ((|| Ok(yes())) as fn() -> _, false)] {
        let (controller, asked) = controller(Mode::Interactive, answer);
        assert!(controller.decide(&of("content")).decision.approved);
        assert!(controller.decide(&of("content")).decision.approved);
        assert!(controller.decide(&of("other content")).decision.approved);
        assert_eq!(asked.load(Ordering::SeqCst), if asked_again { 2 } else { 1 });
    }
}

#[test]
fn what_is_not_remembered_is_asked_each_time_and_decided_by_the_modes() {
    let once = || ApprovalRequest {
        answer: AnswerOf::AnyoneOnce,
        remember: Remember::Session,
        ..request(true, "a")
    };
    for (mode, approved) in [(Mode::Strict, false), (Mode::ApproveAll, true)] {
        let (controller, asked) = controller(mode, session);
        assert_eq!(controller.decide(&once()).decision.approved, approved, "{mode}");
        assert_eq!(asked.load(Ordering::SeqCst), 0);
    }
    let (controller, asked) = controller(Mode::Interactive, session);
    // A yes for the session to the same words is none to this.
    assert!(controller.decide(&request(true, "a")).decision.approved);
    for _ in 0..2 {
        let verdict = controller.decide(&once());
        assert!(verdict.decision.approved);
        assert_eq!(verdict.decision.remember, Remember::None);
    }
    assert_eq!(asked.load(Ordering::SeqCst), 3);
    let requests = [once(), once()].map(|request| ApprovalRequest {
        group_id: Some("g".to_owned()),
        ..request
    });
    let requests: Vec<&ApprovalRequest> = requests.iter().collect();
    assert_eq!(group::combine(&requests).answer, AnswerOf::AnyoneOnce);
}

/// The requests: descriptions and presentations.
type Requests = Arc<Mutex<Vec<(String, Presentation)>>>;

/// Records each request, and gives the same answer each time.
struct Recording(ApprovalDecision, Requests);

impl Approver for Recording {
    fn ask(
        &mut self,
        request: &ApprovalRequest,
        presentation: &Presentation,
    ) -> Result<ApprovalDecision, ApproverError> {
        let asked = (request.description.clone(), presentation.clone());
        self.1.lock().unwrap().push(asked);
        Ok(self.0.clone())
    }
}

fn recording(answer: ApprovalDecision) -> (Controller, Requests) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let approver = Box::new(Recording(answer, asked.clone()));
    (Controller::new(Mode::Interactive, approver), asked)
}

fn grouped(group: Option<&str>, payload: &'static str) -> ApprovalRequest {
    ApprovalRequest {
        description: format!("do {payload}"),
        presentation: Lazy::new(move || Ok(Presentation::Text(payload.to_owned()))),
        group_id: group.map(ToOwned::to_owned),
        ..request(true, payload)
    }
}

fn several(parts: &[&str]) -> Presentation {
    let part = |part: &&str| (format!("do {part}"), Presentation::Text((*part).to_owned()));
    Presentation::Several(parts.iter().map(part).collect())
}

#[test]
fn requests_of_one_group_are_one_question_wherever_they_stand() {
    let (controller, asked) = recording(ApprovalDecision {
        note: Some("fine".to_owned()),
        ..yes()
    });
    let requests = [
        grouped(Some("g"), "a"),
        grouped(None, "x"),
        grouped(Some("h"), "h"),
        grouped(Some("g"), "b"),
        grouped(None, "x"),
        grouped(Some("g"), "c"),
    ];
    let verdicts = controller.decide_all(&requests);
    assert_eq!(verdicts.len(), requests.len());
    assert!(verdicts.iter().all(|verdict| verdict.decision.approved));
    let shown: Vec<Presentation> = asked.lock().unwrap().iter().map(|asked| asked.1.clone()).collect();
    let text = |text: &str| Presentation::Text(text.to_owned());
    assert_eq!(shown, [several(&["a", "b", "c"]), text("x"), text("h"), text("x")]);
    let history = controller.history();
    let kept: Vec<&str> = history.iter().map(|record| record.description.as_str()).collect();
    assert_eq!(kept, ["do a", "do b", "do c", "do x", "do h", "do x"]);
}

#[test]
fn the_verdicts_of_a_group_stand_in_the_order_of_the_requests() {
    let (controller, _) = recording(no());
    controller.keep(&grouped(None, "b"));
    let requests = [
        grouped(Some("g"), "a"),
        grouped(None, "b"),
        grouped(Some("g"), "b"),
        grouped(Some("g"), "c"),
    ];
    let approved: Vec<bool> = controller
        .decide_all(&requests)
        .iter()
        .map(|verdict| verdict.decision.approved)
        .collect();
    assert_eq!(approved, [false, true, true, false]);
}

#[test]
fn what_memory_knows_of_a_group_is_not_asked_again() {
    let (controller, asked) = recording(yes());
    controller.keep(&grouped(None, "b"));
    let group = || {
        [
            grouped(Some("g"), "a"),
            grouped(Some("g"), "b"),
            grouped(Some("g"), "c"),
        ]
    };
    let verdicts = controller.decide_all(&group());
    assert_eq!(verdicts[1].by, DecidedBy::Memory);
    assert_eq!(asked.lock().unwrap()[0].1, several(&["a", "c"]));
    // One that is left alone is a question like any other.
    controller.keep(&grouped(None, "c"));
    controller.decide_all(&group());
    assert_eq!(
        asked.lock().unwrap()[1],
        ("do a".to_owned(), Presentation::Text("a".to_owned()))
    );
}

#[test]
fn a_yes_for_the_session_to_a_group_is_remembered_for_each_part_by_itself() {
    let (controller, asked) = recording(ApprovalDecision {
        remember: Remember::Session,
        ..yes()
    });
    controller.decide_all(&[grouped(Some("g"), "a"), grouped(Some("g"), "b")]);
    assert_eq!(controller.approvals().len(), 2);
    assert_eq!(controller.decide(&grouped(None, "b")).by, DecidedBy::Memory);
    assert_eq!(asked.lock().unwrap().len(), 1);
    controller.revoke(1).unwrap();
    assert_eq!(controller.decide(&grouped(None, "a")).by, DecidedBy::Approver);
}

#[test]
fn a_part_of_a_group_that_only_the_approver_may_allow_is_not_remembered() {
    let (controller, _) = recording(ApprovalDecision {
        remember: Remember::Session,
        ..yes()
    });
    let only = ApprovalRequest {
        answer: AnswerOf::ApproverOnly,
        ..grouped(Some("g"), "a")
    };
    let verdicts = controller.decide_all(&[only, grouped(Some("g"), "b")]);
    assert_eq!(verdicts[0].decision.remember, Remember::None);
    assert_eq!(verdicts[1].decision.remember, Remember::Session);
    assert_eq!(controller.approvals().len(), 1);
}

#[test]
fn a_group_with_a_part_that_cannot_be_shown_is_denied_unasked() {
    let (controller, asked) = recording(yes());
    let hidden = ApprovalRequest {
        presentation: Lazy::new(|| Err("no diff".to_owned())),
        ..grouped(Some("g"), "b")
    };
    let verdicts = controller.decide_all(&[grouped(Some("g"), "a"), hidden]);
    assert!(verdicts.iter().all(|verdict| !verdict.decision.approved));
    let denial = verdicts[0].denial.as_ref().unwrap();
    assert!(denial.contains("cannot be shown: do b: no diff"), "{denial}");
    assert!(asked.lock().unwrap().is_empty());
}

#[test]
fn each_mode_decides_each_part_of_a_group_by_itself() {
    let group = || {
        let free = ApprovalRequest {
            required: false,
            ..grouped(Some("g"), "b")
        };
        [grouped(Some("g"), "a"), free]
    };
    for (mode, expected) in [(Mode::Strict, [false, true]), (Mode::ApproveAll, [true, true])] {
        let (controller, asked) = controller(mode, session);
        let verdicts = controller.decide_all(&group());
        assert_eq!([0, 1].map(|index: usize| verdicts[index].decision.approved), expected);
        assert_eq!(asked.load(Ordering::SeqCst), 0);
    }
    assert!(controller(Mode::Strict, session).0.decide_all(&[]).is_empty());
}

#[test]
fn a_note_is_cleaned_before_the_agent_is_told() {
    let (controller, _) = recording(ApprovalDecision {
        note: Some("no\u{1b}[2J\u{202e}\n".to_owned() + &"x".repeat(1_000_000)),
        ..no()
    });
    for verdict in [
        controller.decide(&request(true, "a")),
        controller.decide_all(&[grouped(Some("g"), "a"), grouped(Some("g"), "b")])[1].clone(),
    ] {
        let denial = verdict.denial.unwrap();
        assert!(denial.starts_with("permission denied: user denied shell: no\\u{1b}[2J\\u{202e}\\nxxx"));
        assert!(denial.chars().count() < 2_100);
        assert_eq!(verdict.decision.note.unwrap().chars().count(), 2_000);
    }
}

#[test]
fn the_history_keeps_the_latest_ten_thousand_and_counts_the_rest() {
    let (controller, _) = controller(Mode::Strict, session);
    for index in 0..10_002 {
        let asked = ApprovalRequest {
            description: index.to_string(),
            caller: Some("nested".to_owned()),
            ..request(true, "a")
        };
        controller.decide(&asked);
    }
    assert_eq!(controller.history().len(), 10_000);
    assert_eq!(controller.dropped(), 2);
    assert_eq!(controller.history()[0].description, "2");
    assert_eq!(controller.history()[9_999].description, "10001");
    assert_eq!(controller.history()[0].caller.as_deref(), Some("nested"));
}

#[test]
fn no_more_than_ten_thousand_approvals_hold_at_a_time() {
    let mut memory = Memory::default();
    for index in 0..10_001 {
        memory.keep(&request(true, &index.to_string()), Remember::Session, None);
    }
    assert_eq!(memory.list().len(), 10_000);
    assert!(memory.covering(&request(true, "0")).is_none());
    assert!(memory.covering(&request(true, "1")).is_some() && memory.covering(&request(true, "10000")).is_some());
}

/// What was put on record.
type Records = Arc<Mutex<Vec<Record>>>;

/// A controller that is answered yes for the session, and whose decisions are put on record, or cannot be.
fn recorded(mode: Mode, on_record: Result<(), &'static str>) -> (Controller, Records) {
    let for_the_session = || {
        Ok(ApprovalDecision {
            remember: Remember::Session,
            ..yes()
        })
    };
    let (controller, _) = controller(mode, for_the_session);
    let seen = Records::default();
    let kept = Arc::clone(&seen);
    let record_decision = move |record: &Record| {
        kept.lock().unwrap().push(record.clone());
        on_record.map_err(str::to_owned)
    };
    (controller.recorded_by(Box::new(record_decision)), seen)
}

#[test]
fn every_decision_is_on_record_before_it_takes_effect_and_an_earlier_yes_with_its_channel() {
    let (controller, seen) = recorded(Mode::Interactive, Ok(()));
    assert!(controller.decide(&request(true, "a")).decision.approved);
    assert!(controller.decide(&request(true, "a")).decision.approved);
    let seen = seen.lock().unwrap();
    let by: Vec<_> = seen
        .iter()
        .map(|record| (&record.verdict.by, record.verdict.channel))
        .collect();
    let channel = Some(crate::policy::Channel::Program);
    assert_eq!(by, [(&DecidedBy::Approver, channel), (&DecidedBy::Memory, channel)]);
}

#[test]
fn a_decision_that_cannot_be_put_on_record_is_a_no_and_is_not_remembered() {
    for mode in [Mode::Interactive, Mode::ApproveAll] {
        let (controller, seen) = recorded(mode, Err("the disk is full"));
        let verdict = controller.decide(&request(true, "a"));
        assert!(!verdict.decision.approved && controller.approvals().is_empty());
        let denial = verdict.denial.unwrap();
        assert!(
            denial.starts_with("permission denied: ") && denial.contains("the disk is full"),
            "{denial}"
        );
        assert!(seen.lock().unwrap()[0].verdict.decision.approved);
        assert_eq!(controller.history().len(), 1);
    }
}

#[test]
fn a_yes_to_a_group_covers_no_scope_that_the_whole_question_did_not_offer() {
    let (controller, _) = recording(ApprovalDecision {
        remember: Remember::Scope(0),
        ..yes()
    });
    let part = |payload: &str| ApprovalRequest {
        group_id: Some("g".to_owned()),
        scopes: vec![SessionScope {
            covers: "everything".to_owned(),
            key: b"everything".to_vec(),
        }],
        ..request(true, payload)
    };
    let verdicts = controller.decide_all(&[part("a"), part("b")]);
    assert!(
        verdicts
            .iter()
            .all(|verdict| verdict.decision.remember == Remember::Session)
    );
    assert!(
        controller
            .approvals()
            .iter()
            .all(|approval| approval.description != "everything")
    );
}

#[test]
fn a_scope_covers_what_has_its_key_and_what_was_not_offered_is_exactly_this() {
    for (number, covers) in [(0, true), (1, false)] {
        let (controller, asked) = recording(ApprovalDecision {
            remember: Remember::Scope(number),
            ..yes()
        });
        let scoped = |payload: &str| ApprovalRequest {
            scopes: vec![SessionScope {
                covers: "all of a kind".to_owned(),
                key: b"kind".to_vec(),
            }],
            ..request(true, payload)
        };
        controller.decide(&scoped("a"));
        controller.decide(&scoped("b"));
        let hidden = ApprovalRequest {
            covered_by: vec![b"kind".to_vec()],
            ..request(true, "c")
        };
        controller.decide(&hidden);
        assert_eq!(asked.lock().unwrap().len(), if covers { 1 } else { 3 }, "{number}");
    }
}

#[test]
fn what_changed_since_the_last_yes_is_told_and_what_did_not_is_not() {
    let fact = |name: &str, value: u8| Fact {
        name: name.to_owned(),
        value: vec![value],
    };
    let with = |facts: Vec<Fact>| ApprovalRequest {
        subject: b"sh test.sh".to_vec(),
        facts,
        ..request(true, "a")
    };
    let mut memory = Memory::default();
    assert!(memory.changes(&with(vec![fact("test.sh", 1)])).is_empty());
    memory.note_facts(&with(vec![fact("test.sh", 1), fact("lib.sh", 1)]));
    assert!(
        memory
            .changes(&with(vec![fact("test.sh", 1), fact("lib.sh", 1)]))
            .is_empty()
    );
    let changed = memory.changes(&with(vec![fact("test.sh", 2), fact("new.sh", 1)]));
    for part in [
        "test.sh changed since",
        "new.sh was not part of it",
        "lib.sh is no longer part",
    ] {
        assert!(changed.iter().any(|line| line.contains(part)), "{part}: {changed:?}");
    }
    assert!(memory.changes(&request(true, "a")).is_empty());
}
