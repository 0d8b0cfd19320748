//! `sandbox.paths` → drafts of roots, with their paths resolved.
//!
//! `contradictions` then checks all drafts together. Missing directories are created last, when the config is
//! applied.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::FileType;

use foldhash::quality::RandomState;

use super::context::Context;
use super::denies::{self, DenyDraft};
use super::error::Diagnostic;
use super::keywords::RawMode;
use super::layers::{Layer, Layers, Role};
use super::path_cache::PathCache;
use super::paths::{self, Variables, Walked};
use super::raw::RawRoot;
use super::scalar::At;
use super::system_paths::system_part;
use crate::policy::private_names::{IN_HOME, OF_STOCKADE};
use crate::policy::{AbsPath, BasePath, Identity, Rights, Scope};

/// A root before missing directories are made.
#[derive(Debug)]
pub(crate) struct Draft<'a> {
    pub(crate) layer: &'a Layer,
    pub(crate) name: &'a At<String>,
    pub(crate) raw: &'a RawRoot,
    pub(crate) path: AbsPath,
    /// `None` until the directory is made.
    pub(crate) identity: Option<Identity>,
    pub(crate) scope: Scope,
    pub(crate) rights: Rights,
    pub(crate) links: Vec<AbsPath>,
    pub(crate) denies: Vec<DenyDraft>,
}

impl Draft<'_> {
    /// Whether its path is told from the directory Stockade was started in.
    pub(crate) fn is_at_start(&self) -> bool {
        paths::below_start(&self.raw.root.value).is_some()
    }
}

/// The roots that are told from the directory Stockade was started in: the name of each, and its path as it is written.
pub(crate) fn at_start(drafts: &[Draft<'_>]) -> Vec<(String, String)> {
    let at_start = drafts.iter().filter(|draft| draft.is_at_start());
    at_start
        .map(|draft| (draft.name.value.clone(), draft.raw.root.value.clone()))
        .collect()
}

/// The roots of all layers. A root of the file replaces a preset's of the same name or path.
pub(crate) fn drafts<'a>(
    layers: &'a Layers,
    context: &Context,
    cache: &PathCache,
    warnings: &mut Vec<Diagnostic>,
) -> Result<Vec<Draft<'a>>, Box<Diagnostic>> {
    let mut drafts: Vec<Draft<'a>> = Vec::new();
    let mut names: HashSet<&str, RandomState> = HashSet::default();
    // The drafts by path and by identity.
    let mut at: HashMap<AbsPath, usize, RandomState> = HashMap::default();
    let mut found: HashMap<Identity, usize, RandomState> = HashMap::default();
    for layer in &layers.stack {
        let paths = layer.raw.sandbox.as_ref().and_then(|s| s.paths.as_ref());
        for (name, raw) in paths.iter().flat_map(|paths| &paths.0) {
            if names.contains(name.value.as_str()) {
                continue;
            }
            let Some(draft) = draft(layers, layer, name, raw, context, cache)? else {
                continue;
            };
            let same = draft.identity.and_then(|identity| found.get(&identity));
            let first = at.get(&draft.path).into_iter().chain(same).min();
            match first.and_then(|first| drafts.get(*first)) {
                None => {
                    if layer.source.is_preset() || (draft.is_at_start() && draft.rights.contains(Rights::WRITE)) {
                        refuse_workspace(&draft, context, cache)?;
                    }
                    names.insert(&name.value);
                    at.insert(draft.path.clone(), drafts.len());
                    found.extend(draft.identity.map(|identity| (identity, drafts.len())));
                    drafts.push(draft);
                }
                Some(first) if !std::ptr::eq(first.layer, layer) => warnings.push(replaced(first, &draft)),
                Some(first) => return Err(duplicate_root(first, &draft)),
            }
        }
    }
    drafts.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(drafts)
}

/// Gives a root the execute right of the root or base path around it, unless the config sets it: a regime could separate the
/// two only entry by entry.
pub(crate) fn inherit_execute(drafts: &mut [Draft<'_>], base: &[BasePath]) {
    for number in 0..drafts.len() {
        let (outer, inner) = drafts.split_at_mut(number);
        let Some(inner) = inner.first_mut().filter(|inner| inner.raw.execute.is_none()) else {
            continue;
        };
        // Sorted, the innermost comes last.
        let around = outer.iter().rev().find(|outer| inner.path.is_below(&outer.path));
        let executes = match around {
            Some(outer) => outer.rights.contains(Rights::EXECUTE),
            None => base.iter().any(|base| {
                base.grant.scope == Scope::Tree
                    && base.grant.rights.contains(Rights::EXECUTE)
                    && inner.path.is_below(&base.grant.path)
            }),
        };
        if executes {
            inner.rights = inner.rights | Rights::EXECUTE;
        }
    }
}

fn replaced(first: &Draft<'_>, second: &Draft<'_>) -> Diagnostic {
    *Diagnostic::warning(format!(
        "`{}` replaces the root `{}` of {}",
        first.name.value, second.name.value, second.layer.source.name
    ))
    .at(
        first.layer.source.span(first.raw.root.at),
        "speaks for this place alone",
    )
    .and(second.layer.source.span(second.raw.root.at), "is not used")
}

fn duplicate_root(first: &Draft<'_>, second: &Draft<'_>) -> Box<Diagnostic> {
    Diagnostic::error(format!("two roots lead to {}", second.path))
        .at(
            second.layer.source.span(second.raw.root.at),
            format!("`{}` is the same place", second.name.value),
        )
        .and(
            first.layer.source.span(first.raw.root.at),
            format!("`{}` leads there", first.name.value),
        )
        .hint("one place has one root: merge them")
}

/// Refuses a workspace that is or contains `/`, a home directory or a system path, or that lies in PATH or in private files.
fn refuse_workspace(draft: &Draft<'_>, context: &Context, cache: &PathCache) -> Result<(), Box<Diagnostic>> {
    let homes = [context.home.clone(), context.path_variable("HOME")];
    let mut homes = homes.iter().flatten().flat_map(|home| [home.clone(), cache.real(home)]);
    let what = if draft.path == AbsPath::root() {
        "it holds the whole file system".to_owned()
    } else if let Some(home) = homes.find(|home| cache.holds(&draft.path, home)) {
        format!("it holds the home directory {home}")
    } else if let Some(part) = system_part(&draft.path, cache) {
        format!("{part} is the machine's")
    } else if let Some(why) = search_path_or_private(&draft.path, context, cache) {
        why
    } else {
        return Ok(());
    };
    Err(
        Diagnostic::error(format!("{} cannot be the workspace: {what}", draft.path))
            .at(draft.layer.source.span(draft.raw.root.at), "would be writable")
            .hint("start in a project directory, or name in a config what may be written"),
    )
}

/// Why files in this directory would be used outside the sandbox: it is in PATH, or holds keys or settings of a person.
fn search_path_or_private(directory: &AbsPath, context: &Context, cache: &PathCache) -> Option<String> {
    let homes = context.own_homes();
    let path = context.variables.get(OsStr::new("PATH"));
    let programs = path.into_iter().flat_map(std::env::split_paths);
    let programs = programs.filter_map(|programs| AbsPath::new(programs).ok());
    // A PATH entry that contains a home is ignored.
    let mut programs = programs
        .map(|programs| cache.real(&programs))
        .filter(|programs| !homes.iter().any(|home| cache.holds(programs, home)));
    if let Some(programs) = programs.find(|programs| cache.holds(programs, directory)) {
        return Some(format!(
            "{programs} is in your PATH, so what is made there runs by its name"
        ));
    }
    let names = IN_HOME.iter().chain(&OF_STOCKADE).chain(&[".config"]);
    let mut private = homes.iter().flat_map(|home| {
        let below = |name: &&str| AbsPath::new(home.as_path().join(name)).ok();
        let there = |private: &AbsPath| private.as_path().symlink_metadata().is_ok();
        names.clone().filter_map(below).filter(there)
    });
    let private = private.find(|private| cache.holds(&cache.real(private), directory))?;
    Some(format!("{private} holds keys, tokens or settings of yours"))
}

fn draft<'a>(
    layers: &Layers,
    layer: &'a Layer,
    name: &'a At<String>,
    raw: &'a RawRoot,
    context: &Context,
    cache: &PathCache,
) -> Result<Option<Draft<'a>>, Box<Diagnostic>> {
    let span = |at| layer.source.span(at);
    check_name(name).map_err(|why| Diagnostic::error(why).at(span(name.at), "not a root name"))?;
    let text = raw.root.value.as_str();
    let unresolved = |error: paths::PathError| {
        let hint = match &error {
            paths::PathError::Variable
                if ["$PWD", "$cwd", "${PWD}", "${cwd}"]
                    .iter()
                    .any(|near| text.starts_with(near)) =>
            {
                Some("did you mean `$CWD`, the directory Stockade is started in?")
            }
            paths::PathError::Variable => {
                Some("write the path out, or begin it with `~/` or `$CWD/`; `./$x` means a file of that name")
            }
            paths::PathError::Start => Some("a ceiling is the same wherever Stockade is started: write the path out"),
            paths::PathError::NoStart => Some("start it in a directory that is there and that you may search"),
            paths::PathError::OtherHome => Some("write the path out; `~/` is your own home"),
            _ => None,
        };
        let error = Diagnostic::error(format!("root `{}`: `{text}`: {error}", name.value))
            .at(span(raw.root.at), "leads nowhere");
        hint.into_iter().fold(error, Diagnostic::hint)
    };
    let variables = match layers.role {
        Role::Config => Variables::of(&layer.source),
        // `$CWD` in a preset is refused with the preset.
        Role::Ceiling if layer.source.is_preset() => Variables::Expand,
        Role::Ceiling => Variables::Refuse,
    };
    let Some(path) = paths::expand(text, &layer.place.base, variables, context).map_err(unresolved)? else {
        return Ok(None);
    };
    let walked = match (layers.role, cache.walk(&path)) {
        // In a ceiling, a path that cannot be read counts as missing: nothing is granted there.
        (Role::Ceiling, Err(paths::PathError::Look { .. })) => paths::Walked::missing(&path).map_err(unresolved)?,
        (_, walked) => walked.map_err(unresolved)?,
    };
    let on = |flag: &Option<At<bool>>| flag.as_ref().is_some_and(|f| f.value);
    let scope = match &walked.found {
        Some(found) => scope(found.file_type()).ok_or_else(|| {
            Diagnostic::error(format!(
                "root `{}`: {} is neither a file nor a directory",
                name.value, walked.path
            ))
            .at(span(raw.root.at), "cannot be a root")
        })?,
        None if on(&raw.create) || layers.role == Role::Ceiling => Scope::Tree,
        None if on(&raw.optional) => return Ok(None),
        None => {
            return Err(
                Diagnostic::error(format!("root `{}` does not exist: {}", name.value, walked.path))
                    .at(span(raw.root.at), "nothing there")
                    .hint("make it, or add `create: true` (make it at start) or `optional: true` (do without it)"),
            );
        }
    };
    let rights = match raw.mode.as_ref().map(|m| m.value) {
        None | Some(RawMode::Ro) => Rights::READ,
        Some(RawMode::Rw) => Rights::READ | Rights::WRITE,
    };
    let execute = if on(&raw.execute) {
        Rights::EXECUTE
    } else {
        Rights::NONE
    };
    let entries = raw.deny.iter().flatten();
    let denies = entries
        .map(|entry| denies::draft(layer, (&walked.path, variables), entry, context, cache))
        .collect::<Result<_, _>>()?;
    let identity = walked.identity();
    let Walked { path, links, .. } = walked;
    Ok(Some(Draft {
        layer,
        name,
        raw,
        path,
        identity,
        scope,
        rights: rights | execute,
        links,
        denies,
    }))
}

fn scope(kind: FileType) -> Option<Scope> {
    match (kind.is_dir(), kind.is_file()) {
        (true, _) => Some(Scope::Tree),
        (_, true) => Some(Scope::File),
        (false, false) => None,
    }
}

fn check_name(name: &At<String>) -> Result<(), String> {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let text = name.value.as_str();
    if !text.is_empty() && text.chars().all(good) && !text.starts_with(['-', '.']) {
        return Ok(());
    }
    Err(format!(
        "`{text}` cannot name a root: use letters, digits, `-`, `_` and `.` (tools write `name:path`)"
    ))
}
