//! A file call → the question a person is asked.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;

use super::arguments::FileKind;
use super::judge::{AskingLine, Judged};
use crate::approval::{ApprovalRequest, Lazy, Remember, SessionScope};
use crate::confine::files::protocol::{Bound, Change, State};
use crate::confine::wire;
use crate::policy::{AbsPath, Demand};
use crate::tools::plan::ProfileDigest;
use crate::tools::tool::ApprovalContext;
use crate::tools::tool_question::payload;

pub(super) struct Facts {
    pub(super) kind: FileKind,
    /// The places that a yes can cover whatever is done there; empty where it is to cover this alone.
    pub(super) places: Vec<Judged>,
    pub(super) description: String,
    /// What exactly would be done, in bytes.
    pub(super) subject: Vec<u8>,
    pub(super) digest: ProfileDigest,
    pub(super) regime: String,
    pub(super) presentation: Lazy,
}

pub(super) fn request(
    context: &ApprovalContext,
    facts: Facts,
    demand: Demand,
    lines: Vec<AskingLine>,
) -> ApprovalRequest {
    let name = facts.kind.name();
    let remedies: BTreeSet<&str> = lines.iter().map(|line| line.remedy).collect();
    let why: Vec<String> = lines.into_iter().map(|line| line.sentence).collect();
    let allowed_by = if why.is_empty() {
        format!("`tools: {{{name}: {{approval: none}}}}` in the config would allow it")
    } else {
        let remedies: Vec<&str> = remedies.into_iter().collect();
        format!("{}; {} there would allow it", why.join("; "), remedies.join(" and "))
    };
    let scopes = scopes(&facts);
    ApprovalRequest {
        payload: payload(&[name.as_bytes(), &facts.subject, &facts.digest, facts.regime.as_bytes()]),
        once: if scopes.is_empty() {
            Remember::Session
        } else {
            Remember::Scope(0)
        },
        scopes,
        presentation: facts.presentation,
        allowed_by,
        why,
        caller: context.caller.clone(),
        ..ApprovalRequest::new(name, facts.description)
    }
    .demanded(demand)
}

/// The most paths that a wider yes names; nobody reads more of them in one line.
const MAX_PLACES: usize = 8;

/// The same tool on the same paths, whatever their content; and anywhere in the same roots.
fn scopes(facts: &Facts) -> Vec<SessionScope> {
    if facts.places.is_empty() || facts.places.len() > MAX_PLACES {
        return Vec::new();
    }
    let name = facts.kind.name();
    let scope = |kind: &str, covers: String, fields: Vec<&[u8]>| {
        let own: [&[u8]; 4] = [name.as_bytes(), kind.as_bytes(), &facts.digest, facts.regime.as_bytes()];
        SessionScope {
            covers,
            key: payload(&own.into_iter().chain(fields).collect::<Vec<_>>()),
        }
    };
    let paths: BTreeSet<&AbsPath> = facts.places.iter().map(|place| &place.path).collect();
    let roots: BTreeSet<&str> = facts.places.iter().map(|place| place.root.as_str()).collect();
    let listed: Vec<String> = paths.iter().map(ToString::to_string).collect();
    let whatever = match facts.kind {
        FileKind::Read => "whichever lines",
        FileKind::List | FileKind::Search => "whatever is looked for",
        FileKind::Write | FileKind::Edit => "whatever is written",
        FileKind::Patch => "whatever the patch does to it",
        FileKind::Delete | FileKind::Move => "whatever it holds",
        FileKind::MakeDirectory => "again",
    };
    let of_paths = scope(
        "paths",
        format!("{name} of {}, {whatever}", listed.join(" and ")),
        paths.iter().map(|path| path.as_bytes()).collect(),
    );
    let names: Vec<&str> = roots.iter().copied().collect();
    let of_roots = scope(
        "roots",
        format!("{name} anywhere in {}", names.join(" and ")),
        roots.iter().map(|root| root.as_bytes()).collect(),
    );
    vec![of_paths, of_roots]
}

/// Changes that cannot be made, and why, as bytes.
pub(super) fn of_failure(changes: &[&Change], why: &str) -> Vec<u8> {
    wire::encode(&(changes, why)).unwrap_or_default()
}

/// Changes as bytes that differ whenever what is changed, or into what, does: the content before and after. When a file
/// was written last makes no difference to a person, unless it is too large to be told apart by its content.
pub(super) fn of_changes(bound: &[Bound]) -> Vec<u8> {
    let state_key: Vec<(&Change, Vec<StateKey<'_>>)> = bound
        .iter()
        .map(|one| (&one.change, one.before.iter().map(state_key).collect()))
        .collect();
    // What does not fit into a message is not sent either.
    wire::encode(&state_key).unwrap_or_default()
}

/// What of a state is told apart.
type StateKey<'a> = (u8, Option<&'a [u8; 32]>, u64, u32, Option<i128>, &'a [u8]);

fn state_key(state: &State) -> StateKey<'_> {
    match state {
        State::Absent => (0, None, 0, 0, None, &[]),
        State::File(file) => {
            let digest = file.digest.as_ref();
            let written = digest.is_none().then_some(file.modified);
            (1, digest, file.size, file.mode, written, &[])
        }
        State::Directory { inode, .. } => (2, None, *inode, 0, None, &[]),
        State::Symlink(target) => (3, None, 0, 0, None, target.as_bytes()),
        State::Other(_) => (4, None, 0, 0, None, &[]),
    }
}
