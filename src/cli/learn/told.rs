//! What came of learning, in words and as JSON.

use serde_json::{Value, json};

use super::rounds::{Learned, Round};
use super::{Trusted, Written};
use crate::config::amend::Change;
use crate::policy::Right;
use crate::policy::path::{display, escape};
use crate::tools::Explained;
use crate::tools::explain::Wanted;
use crate::tools::learn::{AcceptedBy, Needs, Proposal, Standing, flag};

/// The most that a person is shown of each kind; `--json` has all of it.
const SHOWN: usize = 20;

/// A change, in words.
fn change(change: &Change) -> String {
    match change {
        Change::Root(root) => format!("a root for {}: {}", root.path, root.rights),
        Change::Widen(root) => format!("the root `{}` ({}): {} as well", root.name, root.path, root.rights),
        Change::List(path) => format!("the names in {path}"),
        Change::Host(place) => format!("the host {}", escape(place.to_string().as_bytes())),
        Change::Sockets(sockets) => format!("unix sockets: {sockets}"),
        Change::Undo => "`sandbox.protect_fallback: undo`".to_owned(),
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

/// What else has to be accepted for it.
const fn needs(proposal: &Proposal) -> &'static str {
    match proposal.needs {
        Needs::Nothing => "",
        Needs::Undo => "\n  only with `sandbox.protect_fallback: undo`",
    }
}

fn standing(standing: &Standing) -> String {
    format!("stays denied: {}\n  → {}", standing.denied, standing.why)
}

/// What a person is told at the end.
pub(super) fn summary(learned: &Learned, written: &Written) -> String {
    let mut text = String::new();
    let mut line = |told: String| text.extend(["stockade: learn: ", &told, "\n"]);
    for proposal in learned.left.iter().take(SHOWN) {
        let judged = &proposal.judged;
        let why = judged.reasons.first().map_or("", String::as_str);
        line(format!(
            "not accepted: {} ({} risk: {why})\n  denied: {}{}\n  → {}",
            change(&proposal.change),
            judged.risk,
            denied(&proposal.denied).unwrap_or_default(),
            needs(proposal),
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
    for (what, count) in [
        ("more denials are not listed", unlisted(learned).0),
        ("attempts were not looked at", unlisted(learned).1),
    ] {
        if count > 0 {
            line(format!("{count} {what}"));
        }
    }
    if learned.exhausted {
        line("no round is left; `--rounds N` gives more".to_owned());
    }
    let rounds = learned.rounds.len();
    let accepted = learned.accepted.len();
    let ended = if learned.passes() {
        "the command passes".to_owned()
    } else {
        format!("the command does not pass (exit code {})", learned.ended.code())
    };
    let plural = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    line(format!(
        "{}, {} accepted; {ended}",
        plural(rounds, "round"),
        plural(accepted, "change")
    ));
    for note in notes(learned) {
        line(note);
    }
    match written {
        Written::Unchanged => line("nothing was accepted, and nothing is written".to_owned()),
        Written::Stopped => line("stopped; nothing was written".to_owned()),
        Written::Printed => line("the config follows on standard output; `--out FILE` writes it".to_owned()),
        Written::Lost => {
            line("it could not be written: the config follows on standard output, and here is what is new".to_owned());
        }
        Written::In(path, trusted) => {
            let whether = match trusted {
                Trusted::Named => String::new(),
                Trusted::Anew => "; it is trusted as you have seen it".to_owned(),
                Trusted::NotYet => format!("; nobody has seen it: read it, then `stockade trust {}`", display(path)),
            };
            line(format!("wrote {}{whether}", display(path)));
        }
    }
    let difference = learned.draft.whole_difference();
    if !difference.is_empty() && !matches!(written, Written::Printed) {
        text.extend(
            difference
                .lines()
                .flat_map(|line| [escape(line.as_bytes()), "\n".to_owned()]),
        );
    }
    text
}

/// What was accepted and did not make the command pass, where nothing more could be accepted: nobody is to find that in the
/// config later and take it for needed.
fn notes(learned: &Learned) -> Vec<String> {
    let changes = learned.draft.accepted();
    if learned.passes() || learned.stopped || learned.exhausted || !learned.left.is_empty() || changes.is_empty() {
        return Vec::new();
    }
    let mut notes: Vec<String> = changes
        .iter()
        .take(SHOWN)
        .map(|(accepted, _)| {
            format!(
                "accepted, and the command does not pass all the same: {}; take it out of the config if nothing else needs it",
                change(accepted)
            )
        })
        .collect();
    if let Some(more) = changes.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        notes.push(format!("{more} more that were accepted and did not make it pass"));
    }
    let explained = |round: &Round| {
        round
            .outcome
            .explained
            .as_ref()
            .map(|explained| explained.blocked.clone())
    };
    let links = learned.rounds.iter().filter_map(explained).flatten();
    let is_in_namespaces = learned
        .rounds
        .last()
        .is_some_and(|round| round.outcome.regime.starts_with("namespaces"));
    if is_in_namespaces && links.into_iter().any(|blocked| blocked.wanted == Wanted::Link) {
        notes.push(
            "it makes hard links, which never lead from one root to another in the `namespaces` regime (\"Invalid cross-device \
             link\"), whatever both give: write one root that holds both places in their stead"
                .to_owned(),
        );
    }
    notes
}

fn unlisted(learned: &Learned) -> (u64, u64) {
    let last = learned.rounds.last().and_then(|round| round.outcome.explained.as_ref());
    last.map_or((0, 0), |explained: &Explained| (explained.more, explained.unseen))
}

/// All of it, for a program.
pub(super) fn object(learned: &Learned, written: &Written, reason: Option<&str>) -> Value {
    let rounds = learned
        .rounds
        .iter()
        .map(|round| json!({"outcome": round.outcome, "audit_session": round.session}));
    let rounds: Vec<Value> = rounds.collect();
    let accepted = learned
        .accepted
        .iter()
        .map(|(proposal, by)| proposed(proposal, Some(*by)));
    let left = learned.left.iter().map(|proposal| proposed(proposal, None));
    let (path, trusted) = match written {
        Written::In(path, trusted) => (Some(display(path)), Some(*trusted)),
        Written::Unchanged | Written::Printed | Written::Lost | Written::Stopped => (None, None),
    };
    let trusted = trusted.map(|trusted| match trusted {
        Trusted::Named => "not_needed",
        Trusted::Anew => "anew",
        Trusted::NotYet => "not_yet",
    });
    let (more, unseen) = unlisted(learned);
    json!({
        "passes": learned.passes(),
        "exit": learned.exit.code(),
        "rounds": rounds,
        "proposals": accepted.chain(left).collect::<Vec<_>>(),
        "standing": learned.standing,
        "notes": notes(learned),
        "more": more,
        "unseen": unseen,
        "exhausted": learned.exhausted,
        "stopped": learned.stopped,
        "reason": reason,
        "written": path,
        "trusted": trusted,
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
        "needs": proposal.needs,
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
        Change::Sockets(sockets) => json!({"kind": "unix_sockets", "unix_sockets": sockets.to_string()}),
        Change::Undo => json!({"kind": "protect_fallback", "protect_fallback": "undo"}),
    }
}
