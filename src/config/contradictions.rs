//! Checks across roots: contradicting clauses, and links that the agent could re-point.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt as _;

use super::context::Context;
use super::denies::DenyDraft;
use super::error::Diagnostic;
use super::layers::{FileLink, Layers, Role};
use super::mounts::MountTable;
use super::paths;
use super::roots::Draft;
use super::state_files::state_dir;
use super::system_paths::{holds, pseudo_file_system};
use crate::policy::{AbsPath, Rights};

/// Refuses a grant under a deny of the same right, and links the agent could re-point.
pub(crate) fn check(layers: &Layers, drafts: &[Draft<'_>], context: &Context) -> Result<(), Box<Diagnostic>> {
    refuse_links_to_files(layers, drafts)?;
    let denies = denies_of(drafts);
    for draft in drafts {
        refuse_grants_under_denies(&denies, draft)?;
        refuse_symlinks(layers, drafts, draft, context)?;
    }
    Ok(())
}

/// Refuses a writable root around Stockade's own state: the agent could write its own trust.
pub(crate) fn refuse_writable_state(drafts: &[Draft<'_>], context: &Context) -> Result<(), Box<Diagnostic>> {
    let Some(state) = state_dir(context) else {
        return Ok(());
    };
    let state = paths::real(&state);
    match drafts
        .iter()
        .find(|d| d.rights.contains(Rights::WRITE) && (holds(&d.path, &state) || holds(&state, &d.path)))
    {
        None => Ok(()),
        Some(draft) => Err(Diagnostic::error(format!(
            "root `{}` would make stockade's own state writable: {state}",
            draft.name.value
        ))
        .at(
            draft.layer.source.span(draft.raw.root.at),
            "the agent could write its own trust",
        )
        .hint("use `mode: ro`, or name narrower roots")),
    }
}

/// Refuses a writable root on a file system of the kernel, such as /proc: a write there changes the host.
pub(crate) fn refuse_kernel_file_systems(drafts: &[Draft<'_>], context: &Context) -> Result<(), Box<Diagnostic>> {
    let state = state_dir(context).map(|state| paths::real(&state));
    let mounted = MountTable::read();
    for draft in drafts.iter().filter(|d| d.rights.contains(Rights::WRITE)) {
        if let Some(why) = mounted.objection(&draft.path, state.as_ref()) {
            return Err(
                Diagnostic::error(format!("root `{}` cannot be writable: {why}", draft.name.value))
                    .at(draft.layer.source.span(draft.raw.root.at), "reaches through the mount")
                    .hint(match &mounted {
                        MountTable(Ok(_)) => "unmount it, or name narrower roots",
                        MountTable(Err(_)) => "in a sandbox of Stockade no other can be made: start it outside; elsewhere /proc must be readable",
                    }),
            );
        }
        if let Some(kind) = pseudo_file_system(&draft.path) {
            return Err(Diagnostic::error(format!(
                "root `{}` cannot be writable: {} is on a file system of the kernel's ({kind})",
                draft.name.value, draft.path
            ))
            .at(
                draft.layer.source.span(draft.raw.root.at),
                "a write here changes the host",
            )
            .hint("use `mode: ro`"));
        }
    }
    Ok(())
}

/// The denies of all roots, by the path where each starts, with their order in the config.
type Denies<'a, 'b> = HashMap<&'b [u8], Vec<(usize, &'b Draft<'a>, &'b DenyDraft)>>;

fn denies_of<'a, 'b>(drafts: &'b [Draft<'a>]) -> Denies<'a, 'b> {
    let mut denies = Denies::new();
    let all = drafts
        .iter()
        .flat_map(|draft| draft.denies.iter().map(move |deny| (draft, deny)));
    for (order, (draft, deny)) in all.enumerate() {
        denies
            .entry(deny.deny.target.path().as_bytes())
            .or_default()
            .push((order, draft, deny));
    }
    denies
}

fn refuse_grants_under_denies(denies: &Denies<'_, '_>, granted: &Draft<'_>) -> Result<(), Box<Diagnostic>> {
    let above = granted
        .path
        .as_path()
        .ancestors()
        .filter_map(|path| denies.get(path.as_os_str().as_bytes()));
    let over = above
        .flatten()
        .filter(|(_, _, deny)| !deny.deny.rights.and(granted.rights).is_empty())
        .filter(|(_, _, deny)| deny.deny.target.covers(&granted.path));
    let Some((_, denying, deny)) = over.min_by_key(|(order, ..)| *order) else {
        return Ok(());
    };
    let both = deny.deny.rights.and(granted.rights);
    Err(Diagnostic::error(format!(
        "root `{}` lies under a deny: a deny always wins",
        granted.name.value
    ))
    .at(
        granted.layer.source.span(granted.raw.root.at),
        format!("grants {both} on {}", granted.path),
    )
    .and(
        denying.layer.source.span(deny.entry.at),
        format!("denies {}", deny.deny.target),
    )
    .hint("drop the root, or narrow the deny"))
}

/// Refuses a file that is extended through a link that the agent, or whoever writes the project, could re-point.
fn refuse_links_to_files(layers: &Layers, drafts: &[Draft<'_>]) -> Result<(), Box<Diagnostic>> {
    for FileLink { link, span, text } in &layers.file_links {
        let mut files = layers.config_dir.iter();
        let own = layers.stack.iter().find(|layer| layer.source.name == span.source.name);
        let is_beside = match own {
            Some(layer) => layers.lies_beside(layer, link),
            None => files.any(|directory| link.is_below(directory)),
        };
        let location = if is_beside {
            BESIDE.to_owned()
        } else if let Some(location) = in_writable_root(drafts, link) {
            location
        } else {
            continue;
        };
        return Err(
            Diagnostic::error(format!("`extends: {text}` goes through the symlink {link}"))
                .at(span.clone(), "leads where the link says today")
                .hint(format!("the link lies {location}: write the path it leads to")),
        );
    }
    Ok(())
}

/// Where a link lies that whoever writes the project could re-point.
const BESIDE: &str = "beside this config, where whoever writes the project could re-point it";

/// Where a link lies that the agent could re-point.
fn in_writable_root(drafts: &[Draft<'_>], link: &AbsPath) -> Option<String> {
    let root = writable_around(drafts, link)?;
    Some(format!(
        "inside the writable root `{}`, where the agent could re-point it",
        root.name.value
    ))
}

fn refuse_symlinks(
    layers: &Layers,
    drafts: &[Draft<'_>],
    draft: &Draft<'_>,
    context: &Context,
) -> Result<(), Box<Diagnostic>> {
    let source = &draft.layer.source;
    let of_root = draft
        .links
        .iter()
        .map(|link| (link, draft.raw.root.at, draft.raw.root.value.as_str()));
    let of_denies = draft
        .denies
        .iter()
        .flat_map(|d| d.links.iter().map(|link| (link, d.entry.at, d.entry.value.as_str())));
    for (link, at, text) in of_root.chain(of_denies) {
        let location = if layers.lies_beside(draft.layer, link) {
            BESIDE.to_owned()
        } else if paths::below_start(text).is_some() && context.start.as_ref().is_some_and(|start| link.is_below(start))
        {
            "in the directory Stockade was started in, where whoever writes the project could re-point it".to_owned()
        } else if let Some(root) = layers.writable.iter().find(|root| link.is_within(root)) {
            format!("inside the writable root {root}, where the agent could re-point it")
        } else if layers.role == Role::Ceiling {
            continue;
        } else if let Some(location) = in_writable_root(drafts, link) {
            location
        } else {
            continue;
        };
        return Err(Diagnostic::error(format!("`{text}` goes through the symlink {link}"))
            .at(source.span(at), "leads where the link says today")
            .hint(format!("the link lies {location}: write the path it leads to")));
    }
    Ok(())
}

/// A writable root that holds `path`.
pub(crate) fn writable_around<'a, 'b>(drafts: &'b [Draft<'a>], path: &AbsPath) -> Option<&'b Draft<'a>> {
    drafts
        .iter()
        .find(|d| d.rights.contains(Rights::WRITE) && path.is_within(&d.path))
}
