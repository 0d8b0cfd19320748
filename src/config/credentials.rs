//! Credentials and other private files in home directories (`policy::private_names`).
//!
//! A root that contains a home directory does not grant them, nor the files that their links lead to. A config that needs one
//! grants it as a root of its own. Homes are those of the user and, because root can read them, of other people in the passwd
//! database.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use super::context::Context;
use super::error::Diagnostic;
use super::path_cache::PathCache;
use super::source::Span;
use crate::policy::path::display;
use crate::policy::private_names::IN_HOME;
use crate::policy::{AbsPath, BasePath, Deny, Origin, Rights, Root, Scope};

/// The first uid of a person, by convention of all distributions.
const PEOPLE: u32 = 1000;
/// The most entries of a private directory that are looked at for links.
const MOST_ENTRIES: usize = 100;

/// Denies existing private files in roots that do not name them, and warns for each such root.
pub(crate) fn deny(
    roots: &mut [Root],
    base: &[BasePath],
    context: &Context,
    cache: &PathCache,
    span_of: impl Fn(&Origin) -> Option<Span>,
) -> Vec<Diagnostic> {
    let wide: Vec<AbsPath> = roots
        .iter()
        .filter(|root| root.scope != Scope::File && !root.rights.is_empty())
        .map(|root| root.path.clone())
        .collect();
    let is_granted = |home: &AbsPath| wide.iter().any(|root| cache.holds(root, home));
    let mut found = Findings::default();
    for home in context.own_homes().iter().filter(|home| is_granted(home)) {
        found.scan_home(home, OsString::new(), roots, base, cache);
    }
    for home in others(context).iter().filter(|home| is_granted(home)) {
        found.scan_home(home, home.clone().into_os_string(), roots, base, cache);
    }
    let mut warnings = found.warnings;
    for (at, names) in found.denied {
        let Some(root) = roots.get_mut(at) else { continue };
        let shown: Vec<String> = names.values().map(display).collect();
        let whose = if context.own_homes().iter().any(|home| cache.holds(&root.path, home)) {
            "gives a home directory; what is private in it is denied there"
        } else {
            "holds what is private in a home directory; that is denied there"
        };
        let warning = Diagnostic::warning(format!("root `{}` {whose}: {}", root.name, shown.join(", ")));
        let warning = match span_of(&root.origin) {
            Some(span) => warning.at(span, "a home directory, or around one"),
            None => warning,
        };
        warnings.push(*warning.hint("a root of its own gives one of them, such as `keys: {root: ~/.ssh}`"));
        let origin = Origin::Builtin("what is private in a home directory");
        let denies = found.paths.iter().filter(|(of, _)| *of == at);
        root.denies
            .extend(denies.map(|(_, path)| Deny::tree(path.clone(), Rights::ALL, origin.clone())));
        root.denies.sort();
        root.denies.dedup();
    }
    warnings
}

/// The paths to deny, by the index of the root that contains them.
#[derive(Default)]
struct Findings {
    /// The names for the warning, in the order in which they were found.
    denied: BTreeMap<usize, BTreeMap<usize, PathBuf>>,
    paths: Vec<(usize, AbsPath)>,
    warnings: Vec<Diagnostic>,
}

impl Findings {
    /// Looks for each name in a home; `prefix` stands before it in messages.
    fn scan_home(&mut self, home: &AbsPath, prefix: OsString, roots: &[Root], base: &[BasePath], cache: &PathCache) {
        let prefix = PathBuf::from(prefix);
        for name in IN_HOME {
            let there = home.as_path().join(name);
            if std::fs::symlink_metadata(&there).is_err() {
                continue;
            }
            // The target is denied as well; a link that cannot be resolved is denied under its own name.
            let resolved = cache.walk(&there).map(|walked| walked.path);
            let Ok(path) = resolved.or_else(|_| AbsPath::new(&there)) else {
                continue;
            };
            self.add(prefix.join(name), path.clone(), roots, base);
            for (link, target) in links_in(&path, cache) {
                // A link denies its target only, and never the home itself.
                let named = !matches!(named_by(roots, base, &target), Named::Not);
                if !target.is_within(&path) && !home.is_within(&target) && !named {
                    self.add(prefix.join(name).join(link), target, roots, base);
                }
            }
        }
    }

    fn add(&mut self, shown: PathBuf, path: AbsPath, roots: &[Root], base: &[BasePath]) {
        let speaker = roots
            .iter()
            .enumerate()
            .filter(|(_, root)| root.scope != Scope::File && path.is_within(&root.path))
            .max_by_key(|(_, root)| root.path.as_bytes().len());
        let Some((at, root)) = speaker else { return };
        match named_by(roots, base, &path) {
            Named::Itself => {}
            Named::Not => {
                self.denied.entry(at).or_default().insert(self.paths.len(), shown);
                self.paths.push((at, path));
            }
            Named::Inside(inner) => {
                let message = format!(
                    "root `{}` gives all of {path}, because {inner} is granted in it",
                    root.name
                );
                let hint = format!(
                    "for {inner} alone, leave it out of roots and `base` and copy it elsewhere; or deny the rest"
                );
                self.warnings.push(*Diagnostic::warning(message).hint(hint));
            }
        }
    }
}

/// The links directly in a directory, with their targets.
fn links_in(directory: &AbsPath, cache: &PathCache) -> Vec<(OsString, AbsPath)> {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return Vec::new();
    };
    let links = entries
        .take(MOST_ENTRIES)
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
    let resolved = links.filter_map(|link| Some((link.file_name(), cache.walk(&link.path()).ok()?.path)));
    resolved.collect()
}

/// The existing homes of other people in the passwd database.
fn others(context: &Context) -> Vec<AbsPath> {
    let passwd = std::fs::read(&context.passwd).unwrap_or_default();
    let mut homes = homes_in(&String::from_utf8_lossy(&passwd));
    let own = context.own_homes();
    homes.retain(|home| !own.contains(home) && home.as_path().is_dir());
    homes
}

fn homes_in(passwd: &str) -> Vec<AbsPath> {
    let homes = passwd.lines().filter_map(|line| {
        let mut fields = line.split(':').skip(2);
        let uid: u32 = fields.next()?.parse().ok()?;
        let home = AbsPath::new(fields.nth(2)?).ok()?;
        ((uid == 0 || uid >= PEOPLE) && home != AbsPath::root()).then_some(home)
    });
    let mut homes: Vec<AbsPath> = homes.collect();
    homes.sort();
    homes.dedup();
    homes
}

/// Whether a root or a base grant is this path, or lies below it.
fn named_by(roots: &[Root], base: &[BasePath], path: &AbsPath) -> Named {
    let mut grants = roots
        .iter()
        .map(|root| &root.path)
        .chain(base.iter().map(|base| &base.grant.path));
    let mut inside = grants.clone().filter(|inner| inner.is_below(path));
    if grants.any(|inner| inner == path) {
        Named::Itself
    } else {
        inside.next().map_or(Named::Not, |inner| Named::Inside(inner.clone()))
    }
}

/// How a config names a private path.
enum Named {
    /// Not at all.
    Not,
    /// By a grant of the path itself.
    Itself,
    /// By a grant of something below it.
    Inside(AbsPath),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_homes_of_people_are_found_in_the_passwd_database() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\ndaemon:x:1:1::/usr/sbin:/bin/sh\nann:x:1000:1000:A, B:/home/ann:/bin/sh\n\
            odd:x:y:1::/home/odd:/bin/sh\nshort:x:1001\n# note\nall:x:1002:1::/:/bin/sh\nann2:x:1003:1::/home/ann:/bin/sh\n";
        let found: Vec<String> = homes_in(passwd).iter().map(ToString::to_string).collect();
        assert_eq!(found, ["/home/ann", "/root"]);
    }
}
