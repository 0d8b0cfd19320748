//! Where a program lies that a command did not find, and which grant would add it.
//!
//! Only directories of the caller's PATH are looked at that the session may not write, and in them only what a command named
//! without a slash: no path of an agent's is followed, and none that it could re-point.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::call::{ShellCommand, quoted};
use super::files::plain;
use super::outcome::Status;
use super::search::{UngrantedFiles, directories, may_run, may_take_names, own_path};
use super::session_policy::SessionPolicy;
use crate::config::amend::quoted_path;
use crate::config::walk;
use crate::policy::path::display;
use crate::policy::private_names::{IN_HOME, OF_STOCKADE};
use crate::policy::shell::{Names, names_of_argv, names_of_line};
use crate::policy::{AbsPath, Access, Operation, Origin, Policy, Right};
use crate::profile::{FileReach as _, Profile};

/// A name that stands for every name that no clause speaks of.
const ANY: &str = ".any-program";

/// The most programs of one command that are looked for.
const MOST: usize = 64;

/// What is said of the first program that a command named, did not find, and that lies in the caller's PATH.
pub(super) fn missing_program(
    session: &SessionPolicy,
    command: &ShellCommand,
    (environment, profile): (&[(OsString, OsString)], &Profile),
    status: &Status,
    stderr: &str,
) -> Option<String> {
    let is_missed = match status {
        Status::NotFound { .. } | Status::NotExecutable { .. } => true,
        // A shell says 126 of what it finds and may not execute.
        Status::Exited { code } => matches!(code, 126 | 127) || (*code != 0 && stderr.contains("not found")),
        _ => false,
    };
    if !is_missed {
        return None;
    }
    let own = own_path(environment)?;
    let search = HostSearch { session, own: &own };
    let names: Names = match command {
        ShellCommand::Argv(argv) => names_of_argv(argv),
        ShellCommand::Line(line) => names_of_line(line.to_str()?),
    };
    let mut names: Vec<&str> = names.programs.iter().map(String::as_str).take(MOST).collect();
    // What was printed says which of several it was.
    names.sort_by_key(|name| !stderr.contains(name));
    let is_name = |name: &&str| !name.contains(['/', '\0']) && !matches!(*name, "" | "." | "..");
    let missing = names
        .into_iter()
        .filter(is_name)
        .find(|name| !search.is_inside(name, profile))?;
    let found = search.find(missing)?;
    let grants = found.grants(session)?;
    let fix = fix(&session.policy, missing, &grants)?;
    let shown = display(&found.named);
    let link = if found.file.as_path() == found.named {
        "which is not in this sandbox".to_owned()
    } else {
        format!(
            "which leads to {}: not all of that is in this sandbox",
            display(found.file.as_path())
        )
    };
    Some(format!("`{missing}` is {shown}, {link}\n  → {fix}"))
}

struct HostSearch<'a> {
    session: &'a SessionPolicy,
    own: &'a OsStr,
}

impl HostSearch<'_> {
    /// Whether a command finds a program of this name.
    fn is_inside(&self, name: &str, profile: &Profile) -> bool {
        let all = directories(
            Some(self.own),
            (profile, &self.session.envelope),
            UngrantedFiles::Hidden,
        );
        let mut searched = all.iter().filter(|at| !at.is_writable && at.runs(name, profile));
        searched.any(|at| {
            let file = at.path.as_path().join(name);
            is_program(&file) && leads_to(&file).is_some_and(|real| may_run(profile, &real))
        })
    }

    /// Whether the session may write there, or in it, on the host: what it has of its own at such a path lies elsewhere.
    fn is_writable(&self, path: &AbsPath) -> bool {
        let any = path.child(ANY).unwrap_or_else(|| path.clone());
        self.session.may(Operation::Write, path) != Access::Denied || may_take_names(&self.session.envelope, path, &any)
    }

    /// The first program of this name in the caller's PATH.
    fn find(&self, name: &str) -> Option<FoundProgram> {
        let written = self.own.as_bytes().split(|byte| *byte == b':');
        let written = written.map(|path| Path::new(OsStr::from_bytes(path)));
        written.filter(|path| path.is_absolute()).find_map(|written| {
            let directory = AbsPath::new(fs::canonicalize(written).ok()?).ok()?;
            if self.is_writable(&directory) || self.is_writable(&plain(written)) {
                return None;
            }
            let named = directory.child(name)?;
            if !is_program(named.as_path()) {
                return None;
            }
            let walked = walk(named.as_path()).ok()?;
            let is_fixed = [&walked.path]
                .into_iter()
                .chain(&walked.links)
                .all(|path| !self.is_writable(path));
            is_fixed.then_some(FoundProgram {
                named: written.join(name),
                written: plain(written),
                directory,
                links: walked.links,
                file: walked.path,
            })
        })
    }
}

fn is_program(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|found| found.is_file() && found.mode() & 0o111 != 0)
}

fn leads_to(file: &Path) -> Option<AbsPath> {
    AbsPath::new(fs::canonicalize(file).ok()?).ok()
}

/// A program on the host.
struct FoundProgram {
    /// As the caller's PATH names it.
    named: PathBuf,
    /// Its directory as PATH has it.
    written: AbsPath,
    /// The same, without links.
    directory: AbsPath,
    /// The links from there on.
    links: Vec<AbsPath>,
    /// The file that is executed.
    file: AbsPath,
}

impl FoundProgram {
    /// What must be granted for a command to find and execute it; `None` where that is already so, or no root should be there.
    fn grants(&self, session: &SessionPolicy) -> Option<Vec<AbsPath>> {
        let mut grants: Vec<AbsPath> = Vec::new();
        let holds = |grants: &[AbsPath], path: &AbsPath| grants.iter().any(|grant| path.is_within(grant));
        // Each link is followed inside, so the directory that it lies in must be there.
        let of_links = self.links.iter().filter_map(AbsPath::parent);
        for directory in [self.directory.clone()].into_iter().chain(of_links) {
            if !holds(&grants, &directory) && !has_programs(&session.envelope, &directory) {
                grants.push(directory);
            }
        }
        if !holds(&grants, &self.file) && !may_run(&session.envelope, &self.file) {
            grants.push(self.installation().unwrap_or_else(|| self.file.clone()));
        }
        let outer = grants.clone();
        grants.retain(|grant| !outer.iter().any(|other| grant.is_below(other)));
        if let Some(first) = grants.iter_mut().find(|grant| **grant == self.directory) {
            // A link to the directory is in the sandbox where the root is named by it.
            first.clone_from(&self.written);
        }
        let is_offered = |grant: &AbsPath| !is_broad_or_private(grant) && !is_denied(session, grant);
        (!grants.is_empty() && grants.iter().all(is_offered) && !is_denied(session, &self.file)).then_some(grants)
    }

    /// The directory above a `bin` that the program lies in and PATH does not name: what it needs lies there, too.
    fn installation(&self) -> Option<AbsPath> {
        let bin = self.file.parent()?;
        let above = bin.parent()?;
        let is_own = bin.name() == Some(OsStr::new("bin")) && !self.directory.is_within(&above);
        (is_own && !is_broad_or_private(&above)).then_some(above)
    }
}

/// Whether a command may list, read and execute what lies in a directory.
fn has_programs(profile: &Profile, directory: &AbsPath) -> bool {
    let Some(file) = directory.child(ANY) else {
        return false;
    };
    [Operation::Read, Operation::Execute]
        .into_iter()
        .all(|operation| profile.access(operation, &file) == Access::Full)
}

/// Whether a deny, a flag or a ceiling would take it again.
fn is_denied(session: &SessionPolicy, path: &AbsPath) -> bool {
    let SessionPolicy { policy, narrowing, .. } = session;
    let mut denies = policy.roots.iter().flat_map(|root| &root.denies);
    let mut ceilings = policy.ceilings.all.iter();
    denies.any(|deny| deny.target.covers(path))
        || narrowing.denied.iter().any(|denied| path.is_within(denied))
        || ceilings.any(|ceiling| ceiling.policy.access(Operation::Execute, path) != Access::Full)
}

/// Whether no root should be there: a home or what holds one, what is private in one, or a place of the kernel's.
fn is_broad_or_private(path: &AbsPath) -> bool {
    let passwd = nix::unistd::User::from_uid(nix::unistd::Uid::effective())
        .ok()
        .flatten();
    let homes = passwd
        .map(|user| user.dir)
        .into_iter()
        .chain(std::env::var_os("HOME").map(PathBuf::from));
    let homes = homes.filter_map(|home| AbsPath::new(fs::canonicalize(home).ok()?).ok());
    let private = |home: &AbsPath| {
        let names = IN_HOME.iter().chain(&OF_STOCKADE);
        let mut below = names.filter_map(|name| AbsPath::new(home.as_path().join(name)).ok());
        below.any(|private| path.is_within(&private))
    };
    let of_kernel = ["/proc", "/sys", "/dev"];
    *path == AbsPath::root()
        || of_kernel.iter().any(|top| path.as_path().starts_with(top))
        || homes.into_iter().any(|home| home.is_within(path) || private(&home))
}

/// What to write or to add; `None` where a path cannot be written.
fn fix(policy: &Policy, program: &str, grants: &[AbsPath]) -> Option<String> {
    let flags = || {
        let each = grants.iter().map(|grant| {
            let word = String::from_utf8(quoted(grant.as_path().as_os_str())).ok()?;
            (display(grant.as_path()) == grant.as_path().to_str()?).then(|| format!("--ro {word}"))
        });
        each.collect::<Option<Vec<_>>>().map(|each| each.join(" "))
    };
    match Basis::of(policy) {
        Basis::Flags => Some(format!("`{}` besides grants it", flags()?)),
        Basis::Preset => Some(format!(
            "`--rw . {}` grants it; in a config, under `sandbox.paths`: {}",
            flags()?,
            lines(policy, program, grants)?
        )),
        Basis::Config => Some(format!(
            "under `sandbox.paths` in the config: {}",
            lines(policy, program, grants)?
        )),
    }
}

/// The lines of roots.
fn lines(policy: &Policy, program: &str, grants: &[AbsPath]) -> Option<String> {
    let good = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let name: String = program.chars().filter(good).take(40).collect();
    let name = match name.trim_start_matches(['-', '.']) {
        "" => "program",
        name => name,
    };
    let mut used: Vec<String> = policy.roots.iter().map(|root| root.name.clone()).collect();
    let mut text = String::new();
    for grant in grants {
        if !text.is_empty() {
            text.push_str(" and ");
        }
        if let Some(root) = policy
            .roots
            .iter()
            .find(|root| root.path == *grant && !root.rights.has(Right::Write))
        {
            // Writing to a String cannot fail.
            let _infallible = write!(text, "`execute: true` for the root `{}`", root.name);
            continue;
        }
        let numbered = (2_u32..).map(|number| format!("{name}-{number}"));
        let mut names = std::iter::once(name.to_owned()).chain(numbered);
        let name = names.find(|name| !used.contains(name))?;
        let _infallible = write!(
            text,
            "`{}: {{root: {}, mode: ro, execute: true}}`",
            crate::config::amend::quoted(&name),
            quoted_path(grant)?
        );
        used.push(name);
    }
    Some(text)
}

/// What a session was started with.
enum Basis {
    /// `--rw` or `--ro`.
    Flags,
    /// A preset, or a config that says nothing that can be told from one.
    Preset,
    Config,
}

impl Basis {
    fn of(policy: &Policy) -> Self {
        let is_granted_by_flag = |origin: &Origin| match origin {
            Origin::Flag(flag) => flag.starts_with("--rw") || flag.starts_with("--ro"),
            Origin::File { .. } | Origin::Preset { .. } | Origin::Builtin(_) => false,
        };
        if policy.roots.iter().any(|root| is_granted_by_flag(&root.origin)) {
            return Self::Flags;
        }
        let roots = policy.roots.iter().map(|root| &root.origin);
        let base = policy.base.iter().map(|base| &base.grant.origin);
        let rules = policy
            .rules
            .iter()
            .chain([&policy.default_rule])
            .map(|rule| &rule.origin);
        let tools = policy.tools.values().map(|tool| &tool.origin);
        let mut all = roots.chain(base).chain(rules).chain(tools);
        if all.any(|origin| matches!(origin, Origin::File { .. })) {
            Self::Config
        } else {
            Self::Preset
        }
    }
}
