//! What is held against the config late: it is held all the same.

use std::path::Path;

use super::*;
use crate::approval::Remember;
use crate::config::amend::load_amended;
use crate::config::{Context, Matchers};
use crate::confine::protect::Person;
use crate::policy::shell::{rule_covers, rule_matches};
use crate::policy::{AbsPath, Mode};
use crate::tools::plan::PlanError;
use crate::tools::{
    Caches, Executor, GitFiles, Narrowing, OutputMode, Places, Prospect, ShellCall, ShellCommand, Stdin, ToolError,
};

const NOTHING_ASKS: &str =
    "{backend: landlock, paths: {a: {root: /usr/bin, mode: ro}}}\nshell: {default: {approval: none}}";
const SOMETHING_ASKS: &str =
    "{backend: landlock, paths: {a: {root: /usr/bin, mode: ro}}}\nshell: {default: {approval: required}}";

fn foreseen(sandbox: &str) -> Result<Prospect, ToolError> {
    let context = Context::host(Matchers {
        matches: rule_matches,
        covers: rule_covers,
    });
    let text = format!("sandbox: {sandbox}\n");
    let policy = load_amended(Path::new("/agent.yaml"), &text, &context).unwrap().policy;
    let places = Places {
        state: "/nowhere/state".into(),
        git: GitFiles::default(),
        person: Person::default(),
        caches: Caches::default(),
    };
    let (_, stops) = tokio::sync::mpsc::channel(1);
    let call = ShellCall {
        command: ShellCommand::Argv(vec!["true".into()]),
        directory: "/usr/bin".into(),
        environment: Vec::new(),
        timeout: None,
        stdin: Stdin::Null,
        output: OutputMode::Capture,
        kept: None,
        stops,
    };
    Prospect::foreseeing(policy, Narrowing::default(), places, &call)
}

fn executor(prospect: Prospect) -> Executor {
    let (approver, _) = saying(false, Remember::None);
    Executor::under(prospect, Mode::Strict, approver).unwrap()
}

/// The same, for a profile that reaches elsewhere.
fn widened(mut prospect: Prospect) -> Prospect {
    for grant in &mut prospect.envelope.grants {
        if grant.path == AbsPath::new("/usr/bin").unwrap() {
            grant.path = AbsPath::new("/root").unwrap();
        }
    }
    prospect
}

#[test]
fn a_profile_that_was_not_held_yet_is_held_before_a_worker_is_given_out() {
    let prospect = foreseen(NOTHING_ASKS).unwrap();
    assert_eq!(prospect.envelope_held.get(), None);
    let kept = executor(prospect);
    kept.prove(None).unwrap();
    let wide = executor(widened(foreseen(NOTHING_ASKS).unwrap()));
    for _ in 0..2 {
        let refused = wide.prove(None);
        assert!(
            matches!(refused, Err(ToolError::Plan(PlanError::WeakProfile(_)))),
            "{refused:?}"
        );
        // Neither is one beside it let through.
        assert!(wide.beside().prove(None).is_err());
    }
}

#[test]
fn where_somebody_may_be_asked_it_is_held_at_once() {
    assert_eq!(foreseen(SOMETHING_ASKS).unwrap().envelope_held.get(), Some(&()));
}
