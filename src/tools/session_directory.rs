//! What is a session's own: where its directory may lie, and what of it a forker is granted and shown.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::call::ToolError;
use super::git;
use super::plan::Surroundings;
use crate::backend::host::program;
use crate::backend::namespaces::own;
use crate::config::{Walked, walk};
use crate::confine::{ForkerLocation, Session};
use crate::policy::{AbsPath, Access, Grant, Identity, Operation, Origin, Policy, Rights, Scope, Target};
use crate::profile::{FileReach, Profile};

/// Why there is no place for a session anywhere, where that comes of what is granted.
pub(crate) fn leaves_no_place(envelope: &Profile) -> Option<String> {
    let root = AbsPath::root();
    let gives = |grant: &&Grant| grant.path == root && grant.scope != Scope::File && !grant.rights.is_empty();
    let grant = envelope.grants.iter().find(gives)?;
    Some(format!(
        "{}: `{grant}` leaves no place for the private HOME and TMPDIR of commands, which lie outside of everything that is \
         granted; name the directories that commands need in its place (`extends: [system]`, which `--ro` has as well, gives \
         what the system's programs need)",
        grant.origin
    ))
}

/// Whether sessions may lie there: outside every grant, and where no deny takes what is the session's own.
pub(super) fn may_lie(base: &AbsPath, envelope: &Profile, place: ForkerLocation) -> bool {
    let denied = envelope.denies.iter().any(|deny| match &deny.target {
        Target::Path(path) | Target::Pattern { root: path, .. } => base.is_within(path),
    });
    let outside = Operation::ALL.into_iter().all(|operation| {
        envelope.access(operation, base) == Access::Denied
            && base
                .child("s")
                .is_none_or(|child| envelope.access(operation, &child) == Access::Denied)
    });
    outside && !denied && !(place.is_behind_mounts() && is_replaced(base))
}

/// Whether namespaces show something of their own there instead of the host's.
pub(super) fn is_replaced(path: &AbsPath) -> bool {
    let own = [own::TMP, own::DEV, own::PROC];
    own.iter()
        .any(|top| AbsPath::new(top).is_ok_and(|top| path.is_within(&top)))
}

/// What must be seen inside though nobody is granted it: what the forker needs to start, the file that nothing
/// may open, so that the refusal comes from the layer, the links that lead to roots, and that git has work trees elsewhere.
pub(super) fn show(
    session: &Session,
    policy: &Policy,
    envelope: &Profile,
    around: &mut Surroundings,
) -> Result<(), ToolError> {
    let needs = program::needs().map_err(ToolError::Private)?;
    let paths = needs.into_iter().chain([session.closed()]).map(AbsPath::new);
    let mut shown: Vec<AbsPath> = paths
        .collect::<Result<_, _>>()
        .map_err(|error| ToolError::Private(std::io::Error::other(error)))?;
    shown.extend(ways(policy, envelope));
    let settings = around.copies.iter().map(|copy| &copy.path).chain(&around.protect);
    let roots = policy.roots.iter().map(|root| &root.path);
    let trees = git::work_trees(roots, settings, |path| shows(envelope, path)).into_iter();
    let (links, files): (Vec<AbsPath>, Vec<AbsPath>) = trees.partition(|path| path.as_path().is_symlink());
    shown.extend(links);
    around.veiled = files;
    around.shown = shown;
    Ok(())
}

/// Whether something is granted at the path, so that it is shown anyway, or a command may have made it.
fn shows(envelope: &Profile, path: &AbsPath) -> bool {
    [Operation::Read, Operation::Write]
        .into_iter()
        .any(|operation| envelope.access(operation, path) > Access::Denied)
}

/// The links that somebody went through to the roots of the config, and to the directory that they are in, as their shell has it
/// in PWD: what they name by such a path is found inside under it. None that a command could have made, nor any in a root, where it is
/// seen anyway.
fn ways(policy: &Policy, envelope: &Profile) -> Vec<AbsPath> {
    let mut links = way_here();
    links.extend(policy.links.iter().cloned());
    links.sort();
    links.dedup();
    let in_a_root = |link: &AbsPath| policy.roots.iter().any(|root| link.is_within(&root.path));
    // What is a link no more is not shown.
    links.retain(|link| {
        !in_a_root(link) && envelope.access(Operation::Write, link) == Access::Denied && link.as_path().is_symlink()
    });
    links
}

fn way_here() -> Vec<AbsPath> {
    let here = std::fs::metadata(".").ok();
    let walked = std::env::var_os("PWD").and_then(|pwd| walk(Path::new(&pwd)).ok());
    let is_here = |walked: &Walked| {
        let there = walked.identity().map(|there| (there.device, there.inode));
        there.is_some() && there == here.map(|here| (here.dev(), here.ino()))
    };
    walked.filter(is_here).map(|walked| walked.links).unwrap_or_default()
}

/// A directory of the session as a grant needs it: its path and its inode.
fn own_directory(path: &Path) -> Result<(AbsPath, Identity), ToolError> {
    let meta = std::fs::symlink_metadata(path).map_err(ToolError::Private)?;
    let path = AbsPath::new(path).map_err(|error| ToolError::Private(std::io::Error::other(error)))?;
    Ok((
        path,
        Identity {
            device: meta.dev(),
            inode: meta.ino(),
        },
    ))
}

/// The profile of a forker: with the session's own directories, and what its self-test must be able to read.
pub(super) fn forker_profile(profile: Profile, session: &Session) -> Result<Profile, ToolError> {
    let private = session.private();
    let own = [own_directory(&private.home)?, own_directory(&private.tmp)?];
    with_canary(profile.with_private(own), session)
}

fn with_canary(mut profile: Profile, session: &Session) -> Result<Profile, ToolError> {
    let (path, identity) = own_directory(&session.readable())?;
    let canary = Grant {
        scope: Scope::File,
        ..Grant::tree(path.clone(), Rights::READ, Origin::Builtin("self-test"))
    };
    profile.grants.push(canary);
    profile.identities.insert(path, identity);
    Ok(profile)
}
