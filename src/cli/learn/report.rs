//! The result of learning, as text and as JSON.

use serde_json::{Value, json};

use super::rounds::LearnRun;
use super::write::ConfigWrite;
use crate::config::amend::Change;
use crate::learn::{AcceptedBy, Proposal, StillDenied, flag};
use crate::policy::Right;
use crate::policy::path::{display, escape};

/// The most items of each kind in the text; `--json` has all.
const SHOWN: usize = 20;

/// A change as text.
fn change(change: &Change) -> String {
    match change {
        Change::Root(root) => format!("a root for {}: {}", root.path, root.rights),
        Change::Widen(root) => format!("the root `{}` ({}): {} as well", root.name, root.path, root.rights),
        Change::List(path) => format!("the names in {path}"),
        Change::Host(host) => format!("the host {}", escape(host.to_string().as_bytes())),
    }
}

/// An accepted proposal as a line.
pub(super) fn accepted_line(proposal: &Proposal, by: AcceptedBy) -> String {
    let by = match by {
        AcceptedBy::Yes => "--yes",
        AcceptedBy::Include => "--include",
        AcceptedBy::Person => "you",
    };
    format!("accepted ({by}): {}", change(&proposal.change))
}

/// The risk and the denials behind a proposal, one per line.
pub(super) fn reasons(proposal: &Proposal) -> Vec<String> {
    let what = change(&proposal.change);
    let rating = proposal.rating.reasons.iter().take(3);
    let mut lines: Vec<String> = rating
        .map(|why| format!("{what}: {} risk: {why}", proposal.rating.risk))
        .collect();
    lines.extend(denied(&proposal.denied).map(|denied| format!("{what}: denied: {denied}")));
    lines
}

fn denied(denied: &[String]) -> Option<String> {
    let first = denied.first()?;
    Some(match denied.len() {
        1 => first.clone(),
        count => format!("{first}, and {} more", count - 1),
    })
}

fn still_denied(still_denied: &StillDenied) -> String {
    format!("stays denied: {}\n  → {}", still_denied.denied, still_denied.why)
}

/// The final text; `found` means that the config was discovered, not named.
pub(super) fn summary(run: &LearnRun, written: &ConfigWrite, found: bool) -> String {
    let mut text = String::new();
    let mut line = |notice: String| text.extend(["stockade: learn: ", &notice, "\n"]);
    for proposal in run.left.iter().take(SHOWN) {
        let rating = &proposal.rating;
        let why = rating.reasons.first().map_or("", String::as_str);
        line(format!(
            "not accepted: {} ({} risk: {why})\n  denied: {}\n  → {}",
            change(&proposal.change),
            rating.risk,
            denied(&proposal.denied).unwrap_or_default(),
            flag(proposal)
        ));
    }
    for stays in run.still_denied.iter().take(SHOWN) {
        line(still_denied(stays));
    }
    let more = run.left.len().saturating_sub(SHOWN) + run.still_denied.len().saturating_sub(SHOWN);
    if more > 0 {
        line(format!("{more} more; `--json` lists them"));
    }
    if run.exhausted {
        line("no round is left; `--rounds N` gives more".to_owned());
    }
    let ended = if run.passes() {
        "the command passes".to_owned()
    } else {
        format!("the command does not pass (exit code {})", run.ended.code())
    };
    let (rounds, accepted) = (run.rounds.len(), run.accepted.len());
    line(format!("rounds: {rounds}, accepted: {accepted}; {ended}"));
    if !run.passes() && accepted > 0 {
        line("what was accepted did not make it pass: take out of the config what nothing else needs".to_owned());
    }
    match written {
        ConfigWrite::Unchanged => line("nothing was accepted, and nothing is written".to_owned()),
        ConfigWrite::Stopped => line("stopped; nothing was written".to_owned()),
        ConfigWrite::Printed => line("the config follows on standard output; `--out FILE` writes it".to_owned()),
        ConfigWrite::In(path) => {
            let trust = if found {
                format!("; read it, then `stockade trust {}`", display(path))
            } else {
                String::new()
            };
            line(format!("wrote {}{trust}", display(path)));
        }
    }
    if !matches!(written, ConfigWrite::Printed) {
        let difference = run.draft.total_difference();
        let difference = difference.lines().map(|line| escape(line.as_bytes()));
        text.extend(difference.flat_map(|line| [line, "\n".to_owned()]));
    }
    text
}

/// The result as a JSON object.
pub(super) fn object(run: &LearnRun, written: &ConfigWrite, reason: Option<&str>) -> Value {
    let rounds = run
        .rounds
        .iter()
        .map(|round| json!({"outcome": round.outcome, "audit_session": round.session}));
    let accepted = run.accepted.iter().map(|(proposal, by)| proposed(proposal, Some(*by)));
    let left = run.left.iter().map(|proposal| proposed(proposal, None));
    let path = match written {
        ConfigWrite::In(path) => Some(display(path)),
        ConfigWrite::Unchanged | ConfigWrite::Printed | ConfigWrite::Stopped => None,
    };
    json!({
        "passes": run.passes(),
        "exit": run.exit.code(),
        "rounds": rounds.collect::<Vec<_>>(),
        "proposals": accepted.chain(left).collect::<Vec<_>>(),
        "standing": run.still_denied,
        "exhausted": run.exhausted,
        "stopped": run.stopped,
        "reason": reason,
        "written": path,
        "config": run.draft.text(),
        "difference": run.draft.total_difference(),
    })
}

fn proposed(proposal: &Proposal, by: Option<AcceptedBy>) -> Value {
    json!({
        "change": typed(&proposal.change),
        "risk": proposal.rating.risk,
        "reasons": proposal.rating.reasons,
        "denied": proposal.denied,
        "accepted_by": by,
        "accept_with": flag(proposal),
    })
}

fn typed(change: &Change) -> Value {
    let rights = |rights: crate::policy::Rights| -> Vec<String> {
        rights.iter().map(|right: Right| right.to_string()).collect()
    };
    match change {
        Change::Root(root) => {
            json!({"kind": "root", "name": root.name, "path": root.path.to_string(), "rights": rights(root.rights)})
        }
        Change::Widen(root) => {
            json!({"kind": "widen", "name": root.name, "path": root.path.to_string(), "rights": rights(root.rights)})
        }
        Change::List(path) => json!({"kind": "list", "path": path.to_string()}),
        Change::Host(host) => json!({"kind": "host", "place": host.to_string()}),
    }
}
