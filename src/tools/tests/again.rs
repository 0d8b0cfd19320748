//! What changed while somebody was asked is looked at and asked about anew, a few times.

use super::super::guarded::{Guarded, MAX_RETRIES};
use super::super::set::ToolSet;
use super::*;

fn changed() -> ToolError {
    ToolError::Changed("/w/f".to_owned())
}

fn changes(times: usize) -> Vec<ToolError> {
    (0..times).map(|_| changed()).collect()
}

#[test]
fn what_changed_is_assessed_and_asked_about_anew() {
    let (approver, asked) = saying(true, Remember::None);
    let (fake, log) = Fake::new("fake", Says::Needs);
    let fake = fake.failing(changes(1));
    let mut guarded = Guarded::new(Box::new(fake), guard(Mode::Interactive, approver));
    run(guarded.call(&context("fake"), Prepared::nothing())).unwrap();
    assert_eq!(asked.lock().unwrap().len(), 2);
    let log = log.lock().unwrap();
    assert_eq!((log.assessed.len(), log.called.len(), log.shown), (2, 2, 2));
}

#[test]
fn what_changes_for_ever_is_given_up_with_its_own_error() {
    let (approver, asked) = saying(true, Remember::None);
    let (fake, log) = Fake::new("fake", Says::Needs);
    let fake = fake.failing(changes(MAX_RETRIES + 10));
    let mut guarded = Guarded::new(Box::new(fake), guard(Mode::Interactive, approver));
    let done = run(guarded.call(&context("fake"), Prepared::nothing()));
    assert!(matches!(done, Err(ToolError::Changed(_))), "{done:?}");
    assert_eq!(MAX_RETRIES, 3);
    assert_eq!(asked.lock().unwrap().len(), 1 + MAX_RETRIES);
    assert_eq!(log.lock().unwrap().called.len(), 1 + MAX_RETRIES);
}

#[test]
fn a_no_to_the_second_question_ends_it() {
    let mut times = 0;
    let (approver, asked) = person(move |_| {
        times += 1;
        Ok(decided(times == 1, Remember::None))
    });
    let (fake, log) = Fake::new("fake", Says::Needs);
    let fake = fake.failing(changes(1));
    let mut guarded = Guarded::new(Box::new(fake), guard(Mode::Interactive, approver));
    let done = run(guarded.call(&context("fake"), Prepared::nothing()));
    assert!(matches!(done, Err(ToolError::Denied(_))), "{done:?}");
    assert_eq!(asked.lock().unwrap().len(), 2);
    assert_eq!(log.lock().unwrap().called.len(), 1);
}

#[test]
fn what_became_forbidden_meanwhile_is_blocked() {
    let (approver, _) = saying(true, Remember::None);
    let (fake, log) = Fake::changing("fake", [Says::Needs, Says::Blocked]);
    let fake = fake.failing(changes(1));
    let mut guarded = Guarded::new(Box::new(fake), guard(Mode::Interactive, approver));
    let done = run(guarded.call(&context("fake"), Prepared::nothing()));
    assert!(matches!(done, Err(ToolError::Blocked(_))), "{done:?}");
    assert_eq!(log.lock().unwrap().called.len(), 1);
}

#[test]
fn what_needs_a_yes_only_now_is_asked_about_and_what_needs_none_any_more_is_not_taken_for_asked() {
    let (approver, asked) = saying(true, Remember::None);
    let (fake, log) = Fake::changing("fake", [Says::PreApproved, Says::Needs, Says::PreApproved]);
    let fake = fake.failing(changes(2));
    let mut guarded = Guarded::new(Box::new(fake), guard(Mode::Interactive, approver));
    run(guarded.call(&context("fake"), Prepared::nothing())).unwrap();
    let answers: Vec<Answered> = log.lock().unwrap().called.iter().map(|(_, answer)| *answer).collect();
    assert_eq!(answers, [Answered::NotAsked, Answered::Yes, Answered::NotAsked]);
    assert_eq!(asked.lock().unwrap().len(), 1);
}

#[test]
fn the_caller_is_named_once_however_often_it_is_asked() {
    let (approver, asked) = saying(true, Remember::None);
    let guard = Guard {
        caller: Some("planner".to_owned()),
        ..guard(Mode::Interactive, approver)
    };
    let (fake, _) = Fake::new("fake", Says::Needs);
    let fake = fake.failing(changes(2));
    let mut set = ToolSet::new(guard);
    set.add(Box::new(fake));
    run(async {
        set.call_in(&context("fake")).await.unwrap();
        set.call_in(&context("fake")).await.unwrap();
    });
    let asked = asked.lock().unwrap();
    assert_eq!(asked.len(), 4);
    assert!(asked.iter().all(|asked| asked.caller.as_deref() == Some("planner")));
}

#[test]
fn another_error_is_not_tried_again() {
    let (approver, asked) = saying(true, Remember::None);
    let (fake, log) = Fake::new("fake", Says::Needs);
    let fake = fake.failing([ToolError::File("the disk is full".to_owned())]);
    let mut guarded = Guarded::new(Box::new(fake), guard(Mode::Interactive, approver));
    let done = run(guarded.call(&context("fake"), Prepared::nothing()));
    assert!(matches!(done, Err(ToolError::File(_))), "{done:?}");
    assert_eq!((asked.lock().unwrap().len(), log.lock().unwrap().called.len()), (1, 1));
}
