//! The status of each clause.

use std::collections::{BTreeMap, BTreeSet};

use super::covers::{Cover, CoverPlan, rights_of};
use super::mounting::Mounted;
use super::own::in_proc;
use super::visibility::Visibility;
use crate::backend::landlock::lower::SOCKETS;
use crate::backend::status::{ClauseStatus, ReachKind, Residual, Status};
use crate::backend::survey::Kind;
use crate::policy::{Deny, Right, Rights, Target, UnixSockets};
use crate::profile::Profile;

/// What mounts leave open of a pattern where commands may make names.
const NEW_NAMES: &str = "what matches before a command is covered; what appears while one runs, made by it or saved by \
    somebody else, is open to that command, reported, and covered from the next one on";

/// One status per clause of the profile.
pub(super) fn clause_statuses(
    profile: &Profile,
    cover_plan: &CoverPlan,
    inside: Vec<ClauseStatus>,
    mounted: &Mounted,
) -> Vec<ClauseStatus> {
    let mut statuses: Vec<ClauseStatus> = Vec::new();
    let own_grants = profile.grants.iter().filter(|grant| in_proc(&grant.path));
    let read_only = ["/proc is read only".to_owned()];
    statuses.extend(own_grants.map(|grant| {
        let changes = grant.rights.has(Right::Write) || grant.rights.has(Right::Execute);
        ClauseStatus::with_losses(grant, &grant.origin, if changes { &read_only[..] } else { &[] })
    }));
    // For a deny that is left to the layer as a whole, its status counts; for part of a deny it is incomplete.
    let for_landlock: BTreeSet<String> = cover_plan.for_landlock.iter().map(ToString::to_string).collect();
    let (landlock_statuses, others): (Vec<_>, Vec<_>) = inside
        .into_iter()
        .partition(|status| for_landlock.contains(&status.clause));
    statuses.extend(others.into_iter().map(|status| sockets(status, profile, cover_plan)));
    let landlock_statuses: BTreeMap<&str, &ClauseStatus> = landlock_statuses
        .iter()
        .rev()
        .map(|status| (status.clause.as_str(), status))
        .collect();
    let is_for_landlock: BTreeSet<&Deny> = cover_plan.for_landlock.iter().collect();
    statuses.extend(profile.denies.iter().map(|deny| {
        let text = deny.to_string();
        match landlock_statuses.get(text.as_str()) {
            Some(status) if is_for_landlock.contains(deny) => (*status).clone(),
            Some(_) | None if cover_plan.open.contains(deny) => ClauseStatus {
                clause: text,
                origin: deny.origin.to_string(),
                status: Status::Residual(Residual {
                    reach: ReachKind::Content,
                    what: NEW_NAMES.to_owned(),
                }),
            },
            Some(_) | None => {
                let losses = losses_of(deny, cover_plan, &is_for_landlock);
                ClauseStatus::with_losses(&text, &deny.origin, &losses)
            }
        }
    }));
    let writable = mounted.made.values().filter(|shown| **shown == Visibility::Writable);
    if writable.count() > 1 {
        let what = "each of them, and each directory on the way to what is held apart in them, is a mount of its own: it is \
                    neither moved nor removed, and between two of them renaming and linking is copying";
        statuses.push(ClauseStatus::with_losses(
            &"writable roots and private directories",
            &"built in",
            &[what],
        ));
    }
    statuses
}

/// The status of Unix sockets: mounts narrow what the layer reports.
fn sockets(status: ClauseStatus, profile: &Profile, cover_plan: &CoverPlan) -> ClauseStatus {
    if status.origin != SOCKETS {
        return status;
    }
    let losses: &[String] = match profile.unix_sockets {
        UnixSockets::None => return status,
        UnixSockets::WithinRoots if cover_plan.covers.is_empty() => return status,
        UnixSockets::WithinRoots => {
            &["a mount on part of a root does not keep sockets there from being reached: all are refused".to_owned()]
        }
        UnixSockets::All => &["only sockets that are mounted, in what is granted, can be reached".to_owned()],
    };
    ClauseStatus::with_losses(
        &format!("unix sockets {}", profile.unix_sockets),
        &status.origin,
        losses,
    )
}

fn losses_of(deny: &Deny, cover_plan: &CoverPlan, for_landlock: &BTreeSet<&Deny>) -> Vec<String> {
    let mut losses = Vec::new();
    let rights = rights_of(deny);
    if deny.beyond.is_some() && rights.has(Right::Write) {
        losses.push("a size limit cannot be held for commands: they write nothing there".to_owned());
    }
    let masks = match &deny.target {
        Target::Path(path) => {
            cover_plan
                .covers
                .get(path)
                .and_then(|covered| covered.over(path, Kind::Directory))
                == Some(Cover::Mask)
        }
        Target::Pattern { .. } => true,
    };
    if masks && rights.has(Right::Read) && rights != Rights::ALL && !for_landlock.contains(deny) {
        losses.push("what may not be read is masked: nothing at all can be done there".to_owned());
    }
    losses
}
