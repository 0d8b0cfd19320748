//! Hooks: they tighten and loosen, and never un-block.

use proptest::prelude::*;

use super::super::guarded::Guarded;
use super::super::hook::Override;
use super::*;

fn words() -> impl Strategy<Value = Option<Override>> {
    prop_oneof![
        Just(None),
        Just(Some(Override::Keep)),
        Just(Some(Override::PreApprove)),
        Just(Some(Override::Ask)),
        Just(Some(Override::Block("the hook says no".to_owned()))),
    ]
}

fn demands() -> impl Strategy<Value = Option<Demand>> {
    prop::option::of(prop::sample::select(vec![
        Demand::None,
        Demand::OncePerSession,
        Demand::Required,
        Demand::Deny,
    ]))
}

/// What should come of it, by the rules as they are written, without a word of the guard's own code.
fn expected(mode: Mode, says: Says, rule: Option<Demand>, word: Option<&Override>, approved: bool) -> (bool, usize) {
    let blocked = says == Says::Blocked || rule == Some(Demand::Deny) || matches!(word, Some(Override::Block(_)));
    if blocked {
        return (false, 0);
    }
    let by_tool = says != Says::PreApproved;
    let by_rule = rule.map_or(by_tool, |demand| demand != Demand::None);
    let asks = match word {
        Some(Override::Ask) => true,
        Some(Override::PreApprove) => false,
        _ => by_rule,
    };
    if !asks {
        return (true, 0);
    }
    let required = says != Says::NeedsNotRequired;
    // An entry under `tools:` demands it, whatever the tool thought.
    let required = required || matches!(rule, Some(Demand::Required | Demand::OncePerSession));
    match mode {
        Mode::ApproveAll => (true, 0),
        Mode::Strict => (!required, 0),
        Mode::Interactive => (approved, 1),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn every_combination_comes_to_what_the_rules_say(
        mode in prop::sample::select(vec![Mode::Interactive, Mode::ApproveAll, Mode::Strict]),
        says in prop::sample::select(EVERYTHING.to_vec()),
        rule in demands(),
        word in words(),
        approved: bool,
        together: bool,
    ) {
        let (approver, asked) = saying(approved, Remember::None);
        let mut guard = guard(mode, approver);
        if let Some(demand) = rule {
            guard = ruling(guard, "fake", demand);
        }
        if let Some(word) = word.clone() {
            guard = hooked(guard, Arc::new(move |_, _| word.clone()));
        }
        let (fake, log) = Fake::new("fake", says);
        let done = if together {
            let mut set = super::super::set::ToolSet::new(guard);
            set.add(Box::new(fake));
            run(set.call_together(&[context("fake")])).pop().unwrap()
        } else {
            run(Guarded::new(Box::new(fake), guard).call(&context("fake"), Prepared::nothing()))
        };
        let (used, questions) = expected(mode, says, rule, word.as_ref(), approved);
        prop_assert_eq!(done.is_ok(), used);
        prop_assert_eq!(log.lock().unwrap().called.len(), usize::from(used));
        prop_assert_eq!(asked.lock().unwrap().len(), questions);
    }
}

#[test]
fn a_hook_sees_who_calls_and_what_the_config_made_of_it() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (approver, _) = saying(true, Remember::None);
    let guard = ruling(guard(Mode::Interactive, approver), "fake", Demand::None);
    let notes = Arc::clone(&seen);
    let guard = hooked(
        guard,
        Arc::new(move |context: &ApprovalContext, assessment: &Assessment| {
            let pre_approved = matches!(assessment, Assessment::PreApproved(_));
            notes.lock().unwrap().push((context.clone(), pre_approved));
            Override::Keep
        }),
    );
    let (fake, _) = Fake::new("fake", Says::Needs);
    let told = ApprovalContext {
        run_id: Some("run 7".to_owned()),
        session_id: Some("session 8".to_owned()),
        tags: BTreeMap::from([("team".to_owned(), "docs".to_owned())]),
        ..context("fake").called_by("reviewer").called_by("planner")
    };
    run(Guarded::new(Box::new(fake), guard).call(&told, Prepared::nothing())).unwrap();
    let seen = seen.lock().unwrap();
    let (context, pre_approved) = &seen[0];
    assert_eq!(context, &told);
    assert_eq!(context.caller.as_deref(), Some("planner › reviewer"));
    assert!(*pre_approved);
}

#[test]
fn a_hook_that_panics_runs_nothing() {
    let (approver, asked) = saying(true, Remember::None);
    let guard = hooked(
        guard(Mode::ApproveAll, approver),
        Arc::new(|_, _| panic!("a hook of the program's own")),
    );
    let (fake, log) = Fake::new("fake", Says::PreApproved);
    let mut guarded = Guarded::new(Box::new(fake), guard);
    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        run(guarded.call(&context("fake"), Prepared::nothing()))
    }));
    assert!(done.is_err());
    assert!(log.lock().unwrap().called.is_empty());
    assert!(asked.lock().unwrap().is_empty());
}
