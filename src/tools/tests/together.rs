//! Several calls that are asked about as one.

use super::super::set::ToolSet;
use super::*;

fn grouped(tool: &str) -> ApprovalContext {
    ApprovalContext {
        group_id: Some("g".to_owned()),
        ..context(tool)
    }
}

#[test]
fn a_group_is_one_question_and_each_call_has_an_outcome_of_its_own() {
    let (approver, asked) = saying(true, Remember::None);
    let mut set = ToolSet::new(guard(Mode::Interactive, approver));
    let (first, _) = Fake::new("first", Says::Needs);
    let (second, _) = Fake::new("second", Says::Needs);
    set.add(Box::new(first));
    set.add(Box::new(
        second.failing([ToolError::File("the disk is full".to_owned())]),
    ));
    let done = run(set.call_together(&[grouped("first"), grouped("second"), grouped("first")]));
    assert_eq!(asked.lock().unwrap().len(), 1);
    assert_eq!(asked.lock().unwrap()[0].tool, "first, second");
    let Presentation::Several(parts) = &asked.lock().unwrap()[0].presentation else {
        panic!("{asked:?}");
    };
    assert_eq!(parts.len(), 3);
    assert_eq!(done[0].as_ref().unwrap().text, "first was used");
    assert!(matches!(&done[1], Err(ToolError::File(_))));
    assert_eq!(done[2].as_ref().unwrap().text, "first was used");
}

#[test]
fn calls_without_a_group_are_asked_about_one_by_one() {
    let (approver, asked) = person(|request| Ok(decided(request.tool_name == "second", Remember::None)));
    let mut set = ToolSet::new(guard(Mode::Interactive, approver));
    set.add(Box::new(Fake::new("first", Says::Needs).0));
    set.add(Box::new(Fake::new("second", Says::Needs).0));
    let done = run(set.call_together(&[context("first"), context("second")]));
    assert_eq!(asked.lock().unwrap().len(), 2);
    assert!(matches!(&done[0], Err(ToolError::Denied(_))));
    assert_eq!(done[1].as_ref().unwrap().text, "second was used");
}

#[test]
fn what_is_blocked_or_unknown_does_not_take_the_others_along() {
    let (approver, asked) = saying(true, Remember::None);
    let mut set = ToolSet::new(guard(Mode::Interactive, approver));
    let (blocked, log) = Fake::new("blocked", Says::Blocked);
    set.add(Box::new(blocked));
    set.add(Box::new(Fake::new("free", Says::PreApproved).0));
    set.add(Box::new(Fake::new("asked", Says::Needs).0));
    let calls = ["blocked", "asked", "no\u{202e}ne", "free", "asked"].map(grouped);
    let done = run(set.call_together(&calls));
    assert!(matches!(&done[0], Err(ToolError::Blocked(_))));
    assert_eq!(done[1].as_ref().unwrap().text, "asked was used");
    let Err(ToolError::NoSuchTool(why)) = &done[2] else {
        panic!("{done:?}");
    };
    assert!(
        why.contains("blocked, free, asked") && !why.contains('\u{202e}'),
        "{why}"
    );
    assert_eq!(done[3].as_ref().unwrap().text, "free was used");
    assert_eq!(done[4].as_ref().unwrap().text, "asked was used");
    assert_eq!(asked.lock().unwrap().len(), 1);
    assert!(log.lock().unwrap().called.is_empty());
}

#[test]
fn a_no_to_a_group_runs_none_that_asked_and_all_that_did_not() {
    let (approver, _) = saying(false, Remember::None);
    let mut set = ToolSet::new(guard(Mode::Interactive, approver));
    set.add(Box::new(Fake::new("free", Says::PreApproved).0));
    let (fake, log) = Fake::new("asked", Says::Needs);
    set.add(Box::new(fake));
    let done = run(set.call_together(&["asked", "free", "asked"].map(grouped)));
    assert!(matches!(&done[0], Err(ToolError::Denied(_))));
    assert!(done[1].is_ok());
    assert!(matches!(&done[2], Err(ToolError::Denied(_))));
    assert!(log.lock().unwrap().called.is_empty());
}

#[test]
fn each_answer_goes_to_the_call_that_asked_for_it() {
    // Of calls in groups and none, of tools that ask and do not, exactly those run that were approved.
    let tools = ["free", "blocked", "a", "b"];
    let groups = [None, Some("g"), Some("h")];
    for seed in 0..200u32 {
        let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(12_345);
        let mut next = |most: usize| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            usize::try_from(state >> 16).unwrap() % most
        };
        let calls: Vec<ApprovalContext> = (0..next(6))
            .map(|number| ApprovalContext {
                group_id: groups[next(3)].map(str::to_owned),
                args: json!({"number": number}),
                ..context(tools[next(4)])
            })
            .collect();
        // Group `g` is denied, `h` approved; alone, `a` is approved and `b` denied.
        let (approver, _) = person(|request| {
            let approved = match request.group_id.as_deref() {
                Some(group) => group == "h",
                None => request.tool_name == "a",
            };
            Ok(decided(approved, Remember::None))
        });
        let mut set = ToolSet::new(guard(Mode::Interactive, approver));
        for (name, says) in [
            ("free", Says::PreApproved),
            ("blocked", Says::Blocked),
            ("a", Says::Needs),
            ("b", Says::Needs),
        ] {
            set.add(Box::new(Fake::new(name, says).0));
        }
        let done = run(set.call_together(&calls));
        assert_eq!(done.len(), calls.len());
        for (call, done) in calls.iter().zip(&done) {
            let runs = match (call.tool_name.as_str(), call.group_id.as_deref()) {
                ("free", _) => true,
                ("blocked", _) => false,
                (_, Some(group)) => group == "h",
                (tool, None) => tool == "a",
            };
            assert_eq!(done.is_ok(), runs, "{call:?} of {calls:?}: {done:?}");
        }
    }
}

#[test]
fn where_asking_breaks_down_what_asked_nothing_keeps_its_own_outcome() {
    let (approver, _) = person(|_| panic!("an approver of the program's own"));
    let mut set = ToolSet::new(guard(Mode::Interactive, approver));
    set.add(Box::new(Fake::new("blocked", Says::Blocked).0));
    let (fake, log) = Fake::new("asked", Says::Needs);
    set.add(Box::new(fake));
    set.add(Box::new(Fake::new("free", Says::PreApproved).0));
    let done = run(set.call_together(&["blocked", "asked", "free"].map(grouped)));
    assert!(matches!(&done[0], Err(ToolError::Blocked(_))), "{done:?}");
    assert!(matches!(&done[1], Err(ToolError::Denied(_))), "{done:?}");
    assert!(log.lock().unwrap().called.is_empty());
    // Where none of them asks, nobody need be there.
    assert!(run(set.call_together(&[grouped("free")]))[0].is_ok());
}

#[test]
fn a_tool_of_the_same_name_takes_the_place_of_the_earlier_one() {
    let (approver, _) = saying(true, Remember::None);
    let mut set = ToolSet::new(guard(Mode::Interactive, approver));
    let (first, log) = Fake::new("fake", Says::PreApproved);
    set.add(Box::new(first));
    set.add(Box::new(Fake::new("fake", Says::Blocked).0));
    assert_eq!(set.list().len(), 1);
    let done = run(set.call("fake", Value::Null));
    assert!(matches!(done, Err(ToolError::Blocked(_))), "{done:?}");
    assert!(log.lock().unwrap().assessed.is_empty());
}

#[test]
fn no_calls_have_no_outcomes_and_ask_nobody() {
    let (approver, asked) = saying(true, Remember::None);
    let mut set = ToolSet::new(guard(Mode::Interactive, approver));
    assert!(run(set.call_together(&[])).is_empty());
    assert!(asked.lock().unwrap().is_empty());
}
