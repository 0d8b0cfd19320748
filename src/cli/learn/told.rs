//! What came of learning, in words and as JSON.

use serde_json::{Value, json};

use super::rounds::Learned;
use super::written::Written;
use crate::config::amend::Change;
use crate::learn::{AcceptedBy, Proposal, Standing, flag};
use crate::policy::Right;
use crate::policy::path::{display, escape};

/// The most that a person is shown of each kind; `--json` has all of it.
const SHOWN: usize = 20;

/// A change, in words.
fn change(change: &Change) -> String {
    match change {
        Change::Root(root) => format!("a root for {}: {}", root.path, root.rights),
        Change::Widen(root) => format!("the root `{}` ({}): {} as well", root.name, root.path, root.rights),
        Change::List(path) => format!("the names in {path}"),
        Change::Host(place) => format!("the host {}", escape(place.to_string().as_bytes())),
    }
}

/// What was accepted, in a line.
pub(super) fn taken(proposal: &Proposal, by: AcceptedBy) -> String {
    let by = match by {
        AcceptedBy::Yes => "--yes",
        AcceptedBy::Include => "--include",
        AcceptedBy::Person => "you",
    };
    format!("accepted ({by}): {}", change(&proposal.change))
}

/// Why a proposal is what it is, a line each.
pub(super) fn reasons(proposal: &Proposal) -> Vec<String> {
    let what = change(&proposal.change);
    let judged = proposal.judged.reasons.iter().take(3);
    let mut lines: Vec<String> = judged
        .map(|why| format!("{what}: {} risk: {why}", proposal.judged.risk))
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

fn standing(standing: &Standing) -> String {
    format!("stays denied: {}\n  → {}", standing.denied, standing.why)
}

/// What a person is told at the end; `found` says that the config was not named.
pub(super) fn summary(learned: &Learned, written: &Written, found: bool) -> String {
    let mut text = String::new();
    let mut line = |told: String| text.extend(["stockade: learn: ", &told, "\n"]);
    for proposal in learned.left.iter().take(SHOWN) {
        let judged = &proposal.judged;
        let why = judged.reasons.first().map_or("", String::as_str);
        line(format!(
            "not accepted: {} ({} risk: {why})\n  denied: {}\n  → {}",
            change(&proposal.change),
            judged.risk,
            denied(&proposal.denied).unwrap_or_default(),
            flag(proposal)
        ));
    }
    for stays in learned.standing.iter().take(SHOWN) {
        line(standing(stays));
    }
    let more = learned.left.len().saturating_sub(SHOWN) + learned.standing.len().saturating_sub(SHOWN);
    if more > 0 {
        line(format!("{more} more; `--json` lists them"));
    }
    if learned.exhausted {
        line("no round is left; `--rounds N` gives more".to_owned());
    }
    let ended = if learned.passes() {
        "the command passes".to_owned()
    } else {
        format!("the command does not pass (exit code {})", learned.ended.code())
    };
    let (rounds, accepted) = (learned.rounds.len(), learned.accepted.len());
    line(format!("rounds: {rounds}, accepted: {accepted}; {ended}"));
    if !learned.passes() && accepted > 0 {
        line("what was accepted did not make it pass: take out of the config what nothing else needs".to_owned());
    }
    match written {
        Written::Unchanged => line("nothing was accepted, and nothing is written".to_owned()),
        Written::Stopped => line("stopped; nothing was written".to_owned()),
        Written::Printed => line("the config follows on standard output; `--out FILE` writes it".to_owned()),
        Written::In(path) => {
            let trust = if found {
                format!("; read it, then `stockade trust {}`", display(path))
            } else {
                String::new()
            };
            line(format!("wrote {}{trust}", display(path)));
        }
    }
    if !matches!(written, Written::Printed) {
        let difference = learned.draft.whole_difference();
        let difference = difference.lines().map(|line| escape(line.as_bytes()));
        text.extend(difference.flat_map(|line| [line, "\n".to_owned()]));
    }
    text
}

/// All of it, for a program.
pub(super) fn object(learned: &Learned, written: &Written, reason: Option<&str>) -> Value {
    let rounds = learned
        .rounds
        .iter()
        .map(|round| json!({"outcome": round.outcome, "audit_session": round.session}));
    let accepted = learned
        .accepted
        .iter()
        .map(|(proposal, by)| proposed(proposal, Some(*by)));
    let left = learned.left.iter().map(|proposal| proposed(proposal, None));
    let path = match written {
        Written::In(path) => Some(display(path)),
        Written::Unchanged | Written::Printed | Written::Stopped => None,
    };
    json!({
        "passes": learned.passes(),
        "exit": learned.exit.code(),
        "rounds": rounds.collect::<Vec<_>>(),
        "proposals": accepted.chain(left).collect::<Vec<_>>(),
        "standing": learned.standing,
        "exhausted": learned.exhausted,
        "stopped": learned.stopped,
        "reason": reason,
        "written": path,
        "config": learned.draft.text(),
        "difference": learned.draft.whole_difference(),
    })
}

fn proposed(proposal: &Proposal, by: Option<AcceptedBy>) -> Value {
    json!({
        "change": typed(&proposal.change),
        "risk": proposal.judged.risk,
        "reasons": proposal.judged.reasons,
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
        Change::Host(place) => json!({"kind": "host", "place": place.to_string()}),
    }
}
