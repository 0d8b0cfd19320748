//! Mode, the tool's word and the config's: which of them decides.

use super::super::guarded::Guarded;
use super::*;
use crate::policy::Requirement;

/// What came of one guarded call: whether the tool was used, how many were asked, the error.
fn came_of(mode: Mode, says: Says, rule: Option<Demand>, approved: bool) -> (bool, usize, Option<ToolError>) {
    let (answers, asked) = saying(approved, Remember::None);
    let mut guard = guard(mode, answers);
    if let Some(demand) = rule {
        guard = ruling(guard, "fake", demand);
    }
    let (fake, log) = Fake::new("fake", says);
    let mut guarded = Guarded::new(Box::new(fake), guard);
    let done = run(guarded.call(&context("fake"), Prepared::nothing()));
    let asked = asked.lock().unwrap().len();
    let called = log.lock().unwrap().called.len();
    assert_eq!(called, usize::from(done.is_ok()));
    (called == 1, asked, done.err())
}

#[test]
fn the_mode_table_holds_for_what_a_tool_says() {
    for (mode, required, approved, used, questions) in [
        (Mode::Interactive, true, true, true, 1),
        (Mode::Interactive, true, false, false, 1),
        (Mode::Interactive, false, true, true, 1),
        (Mode::Interactive, false, false, false, 1),
        (Mode::ApproveAll, true, false, true, 0),
        (Mode::ApproveAll, false, false, true, 0),
        (Mode::Strict, true, true, false, 0),
        (Mode::Strict, false, true, true, 0),
    ] {
        let says = if required { Says::Needs } else { Says::NeedsNotRequired };
        let (was_used, asked, _) = came_of(mode, says, None, approved);
        assert_eq!((was_used, asked), (used, questions), "{mode} {required} {approved}");
    }
}

#[test]
fn a_tool_without_opinion_and_without_entry_is_asked_about() {
    for says in [Says::Nothing, Says::NothingAtAll] {
        assert_eq!(came_of(Mode::Interactive, says, None, true).1, 1);
        let (used, _, error) = came_of(Mode::Strict, says, None, true);
        assert!(!used);
        let told = error.unwrap().to_string();
        assert!(told.contains("tools: {fake: {approval: none}}"), "{told}");
    }
}

#[test]
fn what_is_pre_approved_asks_nobody_in_any_mode() {
    for mode in [Mode::Interactive, Mode::ApproveAll, Mode::Strict] {
        let (used, asked, _) = came_of(mode, Says::PreApproved, None, false);
        assert_eq!((used, asked), (true, 0), "{mode}");
    }
}

#[test]
fn what_a_tool_blocks_no_mode_and_no_entry_opens() {
    for mode in [Mode::Interactive, Mode::ApproveAll, Mode::Strict] {
        for rule in [
            None,
            Some(Demand::None),
            Some(Demand::OncePerSession),
            Some(Demand::Required),
            Some(Demand::Deny),
        ] {
            let (used, asked, error) = came_of(mode, Says::Blocked, rule, true);
            assert_eq!((used, asked), (false, 0), "{mode} {rule:?}");
            assert!(matches!(error, Some(ToolError::Blocked(why)) if why == "the tool says no"));
        }
    }
}

#[test]
fn an_entry_under_tools_has_the_last_word_but_over_a_block() {
    for says in EVERYTHING.into_iter().filter(|says| *says != Says::Blocked) {
        assert!(came_of(Mode::Strict, says, Some(Demand::None), false).0, "{says:?}");
        for demand in [Demand::Required, Demand::OncePerSession] {
            let (used, asked, _) = came_of(Mode::Interactive, says, Some(demand), true);
            assert_eq!((used, asked), (true, 1), "{says:?} {demand:?}");
            assert!(!came_of(Mode::Interactive, says, Some(demand), false).0);
        }
        let (used, asked, error) = came_of(Mode::ApproveAll, says, Some(Demand::Deny), true);
        assert_eq!((used, asked), (false, 0), "{says:?}");
        assert!(matches!(error, Some(ToolError::Blocked(_))), "{error:?}");
    }
}

/// A required entry asks even about what the tool thought `strict` mode need not deny.
#[test]
fn what_an_entry_requires_and_nobody_asked_is_named_with_its_line() {
    let (approver, asked) = saying(true, Remember::None);
    let guard = ruling(guard(Mode::Interactive, approver), "fake", Demand::Required);
    let (fake, _) = Fake::new("fake", Says::PreApproved);
    run(Guarded::new(Box::new(fake), guard).call(&context("fake"), Prepared::nothing())).unwrap();
    let asked = asked.lock().unwrap();
    assert!(asked[0].why[0].contains("tools: {fake: …}"), "{asked:?}");
}

#[test]
fn an_entry_that_requires_holds_in_strict_mode_for_what_the_tool_would_let_pass() {
    for demand in [Demand::Required, Demand::OncePerSession] {
        for says in [Says::NeedsNotRequired, Says::PreApproved, Says::Needs] {
            let (used, ..) = came_of(Mode::Strict, says, Some(demand), true);
            assert!(!used, "{says:?} {demand:?}");
        }
    }
}

#[test]
fn an_entry_speaks_of_its_own_tool_alone() {
    let (approver, asked) = saying(true, Remember::None);
    let guard = ruling(guard(Mode::Interactive, approver), "other", Demand::Deny);
    let (fake, _) = Fake::new("fake", Says::Needs);
    run(Guarded::new(Box::new(fake), guard).call(&context("fake"), Prepared::nothing())).unwrap();
    assert_eq!(asked.lock().unwrap().len(), 1);
}

#[test]
fn an_entry_holds_under_whatever_name_the_caller_gives_the_tool() {
    let (approver, _) = saying(true, Remember::None);
    let guard = ruling(guard(Mode::ApproveAll, approver), "fake", Demand::Deny);
    let (fake, log) = Fake::new("fake", Says::PreApproved);
    let mut guarded = Guarded::new(Box::new(fake), guard);
    let done = run(guarded.call(&context("harmless"), Prepared::nothing()));
    assert!(matches!(done, Err(ToolError::Blocked(_))), "{done:?}");
    assert_eq!(log.lock().unwrap().assessed[0].tool_name, "fake");
}

#[test]
fn requirements_combine_to_the_strictest() {
    let ordered = [
        Requirement::PreApproved,
        Requirement::NeedsApproval,
        Requirement::Blocked,
    ];
    for (index, one) in ordered.iter().enumerate() {
        for (other_index, other) in ordered.iter().enumerate() {
            assert_eq!(one.max(other), &ordered[index.max(other_index)]);
        }
    }
    let demands = [Demand::None, Demand::OncePerSession, Demand::Required, Demand::Deny];
    for (one, other) in demands.into_iter().flat_map(|one| demands.map(|other| (one, other))) {
        assert_eq!(
            one.max(other).requirement(),
            one.requirement().max(other.requirement()),
            "{one} {other}"
        );
    }
}

#[test]
fn a_bare_tool_asks_nobody_and_a_blocked_one_gives_nothing_to_run() {
    let (mut fake, log) = Fake::new("fake", Says::Needs);
    run(async {
        let assessed = fake.assess(&context("fake")).await.unwrap();
        let prepared = assessed.into_prepared().unwrap();
        fake.call(&context("fake"), prepared).await.unwrap();
    });
    assert_eq!(log.lock().unwrap().called[0].1, Answered::NotAsked);
    assert_eq!(log.lock().unwrap().shown, 0);
    let (mut blocked, _) = Fake::new("fake", Says::Blocked);
    let assessed = run(blocked.assess(&context("fake"))).unwrap();
    assert!(matches!(assessed.into_prepared(), Err(ToolError::Blocked(_))));
}

#[test]
fn a_tool_learns_whether_somebody_said_yes() {
    for (mode, says, expected) in [
        (Mode::Interactive, Says::Needs, Answered::Yes),
        (Mode::ApproveAll, Says::Needs, Answered::Yes),
        (Mode::Interactive, Says::PreApproved, Answered::NotAsked),
        (Mode::ApproveAll, Says::PreApproved, Answered::NotAsked),
    ] {
        let (approver, _) = saying(true, Remember::None);
        let (fake, log) = Fake::new("fake", says);
        let mut guarded = Guarded::new(Box::new(fake), guard(mode, approver));
        run(guarded.call(&context("fake"), Prepared::nothing())).unwrap();
        assert_eq!(log.lock().unwrap().called[0].1, expected, "{mode} {says:?}");
    }
}

#[test]
fn what_a_caller_prepared_itself_is_not_taken_for_what_was_approved() {
    let (approver, _) = saying(false, Remember::None);
    let (fake, log) = Fake::new("fake", Says::Needs);
    let mut guarded = Guarded::new(Box::new(fake), guard(Mode::Interactive, approver));
    let done = run(guarded.call(&context("fake"), Prepared::of("mine").approved()));
    assert!(matches!(done, Err(ToolError::Denied(_))), "{done:?}");
    assert!(log.lock().unwrap().called.is_empty());
}

#[test]
fn a_no_is_an_ordinary_error_that_names_tool_and_note() {
    let (approver, _) = person(|_| {
        Ok(ApprovalDecision {
            note: Some("not today".to_owned()),
            ..decided(false, Remember::None)
        })
    });
    let (fake, _) = Fake::new("fake", Says::Needs);
    let mut guarded = Guarded::new(Box::new(fake), guard(Mode::Interactive, approver));
    let done = run(guarded.call(&context("fake"), Prepared::nothing()));
    assert_eq!(
        done.unwrap_err().to_string(),
        "permission denied: user denied fake: not today"
    );
}

#[test]
fn an_approver_that_fails_denies_and_the_next_call_is_asked_anew() {
    let mut times = 0;
    let (approver, asked) = person(move |_| {
        times += 1;
        match times {
            1 => Err(ApproverError::EndOfInput),
            _ => Ok(decided(true, Remember::None)),
        }
    });
    let (fake, log) = Fake::new("fake", Says::Needs);
    let mut guarded = Guarded::new(Box::new(fake), guard(Mode::Interactive, approver));
    run(async {
        let done = guarded.call(&context("fake"), Prepared::nothing()).await;
        assert!(matches!(done, Err(ToolError::Denied(_))), "{done:?}");
        guarded.call(&context("fake"), Prepared::nothing()).await.unwrap();
    });
    assert_eq!(asked.lock().unwrap().len(), 2);
    assert_eq!(log.lock().unwrap().called.len(), 1);
}
