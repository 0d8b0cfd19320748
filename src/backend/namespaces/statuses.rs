//! What becomes of each clause.

use std::collections::{BTreeMap, BTreeSet};

use super::hold::{Cover, Held, rights_of};
use super::mounting::Mounted;
use super::own::in_proc;
use super::shown::Shown;
use crate::backend::landlock::lower::SOCKETS;
use crate::backend::status::{ClauseStatus, ReachKind, Residual, Status};
use crate::backend::survey::Kind;
use crate::policy::{Deny, Right, Rights, Target, UnixSockets};
use crate::profile::Profile;

/// What mounts leave open of a pattern where commands may make names.
const NEW_NAMES: &str = "what matches before a command is covered; what appears while one runs, made by it or saved by \
    somebody else, is open to that command, reported, and covered from the next one on";

/// One status per clause of the profile.
pub(super) fn say(profile: &Profile, held: &Held, inside: Vec<ClauseStatus>, mounted: &Mounted) -> Vec<ClauseStatus> {
    let mut statuses: Vec<ClauseStatus> = Vec::new();
    let brought = profile.grants.iter().filter(|grant| in_proc(&grant.path));
    let read_only = ["/proc is read only".to_owned()];
    statuses.extend(brought.map(|grant| {
        let changes = grant.rights.has(Right::Write) || grant.rights.has(Right::Execute);
        clause(
            grant.to_string(),
            grant.origin.to_string(),
            if changes { &read_only } else { &[] },
        )
    }));
    // Of a deny that is left to it whole the layer says what there is to say; what it says of the rest of one is not all.
    let left: BTreeSet<String> = held.left.iter().map(ToString::to_string).collect();
    let (of_left, others): (Vec<_>, Vec<_>) = inside.into_iter().partition(|status| left.contains(&status.clause));
    statuses.extend(others.into_iter().map(|status| sockets(status, profile, held)));
    let of_left: BTreeMap<&str, &ClauseStatus> = of_left
        .iter()
        .rev()
        .map(|status| (status.clause.as_str(), status))
        .collect();
    let is_left: BTreeSet<&Deny> = held.left.iter().collect();
    statuses.extend(profile.denies.iter().map(|deny| {
        let words = deny.to_string();
        match of_left.get(words.as_str()) {
            Some(status) if is_left.contains(deny) => (*status).clone(),
            Some(_) | None if held.open.contains(deny) => ClauseStatus {
                clause: words,
                origin: deny.origin.to_string(),
                status: Status::Residual(Residual {
                    reach: ReachKind::Content,
                    what: NEW_NAMES.to_owned(),
                }),
            },
            Some(_) | None => {
                let losses = losses_of(deny, held, &is_left);
                clause(words, deny.origin.to_string(), &losses)
            }
        }
    }));
    let writable = mounted.made.values().filter(|shown| **shown == Shown::Writable);
    if writable.count() > 1 {
        let what = "each of them, and each directory on the way to what is held apart in them, is a mount of its own: it is \
                    neither moved nor removed, and between two of them renaming and linking is copying";
        statuses.push(clause(
            "writable roots and private directories".to_owned(),
            "built in".to_owned(),
            &[what.to_owned()],
        ));
    }
    statuses
}

/// What the layer says of Unix sockets is about the sockets that are there.
fn sockets(status: ClauseStatus, profile: &Profile, held: &Held) -> ClauseStatus {
    if status.origin != SOCKETS {
        return status;
    }
    let losses: &[String] = match profile.unix_sockets {
        UnixSockets::None => return status,
        UnixSockets::WithinRoots if held.covers.is_empty() => return status,
        UnixSockets::WithinRoots => {
            &["a mount on part of a root does not keep sockets there from being reached: all are refused".to_owned()]
        }
        UnixSockets::All => &["only sockets that are mounted, in what is granted, can be reached".to_owned()],
    };
    clause(format!("unix sockets {}", profile.unix_sockets), status.origin, losses)
}

fn losses_of(deny: &Deny, held: &Held, left: &BTreeSet<&Deny>) -> Vec<String> {
    let mut losses = Vec::new();
    let rights = rights_of(deny);
    if deny.beyond.is_some() && rights.has(Right::Write) {
        losses.push("a size limit cannot be held for commands: they write nothing there".to_owned());
    }
    let masks = match &deny.target {
        Target::Path(path) => {
            held.covers
                .get(path)
                .and_then(|covered| covered.over(path, Kind::Directory))
                == Some(Cover::Mask)
        }
        Target::Pattern { .. } => true,
    };
    if masks && rights.has(Right::Read) && rights != Rights::ALL && !left.contains(deny) {
        losses.push("what may not be read is masked: nothing at all can be done there".to_owned());
    }
    losses
}

fn clause(clause: String, origin: String, losses: &[String]) -> ClauseStatus {
    let status = if losses.is_empty() {
        Status::Enforced
    } else {
        Status::Stricter(losses.join("; "))
    };
    ClauseStatus { clause, origin, status }
}
